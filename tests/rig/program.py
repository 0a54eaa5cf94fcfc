"""Programs at the other end of a pipe: each line is a question or an answer, as JSON."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import pytest

from rig.installation import NotHereError
from rig.servers import ENVIRONMENT

__all__ = ["Program", "once"]

T = TypeVar("T")


class Program:
    """A running program. It ends with its input: after `stop`, or with the test process."""

    def __init__(self, command: Sequence[str], settings: Mapping[str, str]) -> None:
        self._command = command
        self._owner = os.getpid()
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - open as long as the program runs
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={
                **ENVIRONMENT,
                "PATH": os.environ["PATH"],
                "AWS_CONFIG_FILE": os.devnull,
                "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                **settings,
            },
            encoding="utf-8",
            start_new_session=True,
        )
        atexit.register(self.stop)

    def ask(
        self, question: Mapping[str, Any], parse_int: Callable[[str], int | float] = int
    ) -> dict[str, Any]:
        """Send a question, and return the program's answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"{' '.join(self._command)} has ended:\n{self._log.read()}")
        answer: dict[str, Any] = json.loads(line, parse_int=parse_int)
        return answer

    def stop(self) -> None:
        """End the program by closing its input."""
        atexit.unregister(self.stop)
        if os.getpid() != self._owner:
            return  # in a forked child: the program belongs to the parent
        self._process.communicate()
        self._log.close()


def once(what: str) -> Callable[[Callable[[], T]], Callable[[], T]]:
    """Call a function only once, and return its result each time; where it cannot run, tests are skipped."""

    def decorate(start: Callable[[], T]) -> Callable[[], T]:
        attempts: list[T | NotHereError] = []

        @wraps(start)
        def call() -> T:
            if not attempts:
                try:
                    attempts.append(start())
                except NotHereError as error:
                    attempts.append(error)
            outcome = attempts[0]
            if isinstance(outcome, NotHereError):
                pytest.skip(f"{what} cannot run here: {outcome}")
            return outcome

        return call

    return decorate
