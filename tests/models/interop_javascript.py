"""The JavaScript library @pocketgems/dynamodb at the other end of a pipe, over the same server as ours.

`javascript` starts it when a test first needs it; it ends with the test process. What npm installs is named in
``package.json`` here and goes into ``.venv-javascript``, once. Where node or npm is missing, or the registry cannot be
reached, the test is skipped with the reason.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from rig.installation import NotHereError
from rig.npm import install
from rig.servers import ENVIRONMENT, started

__all__ = ["PREFIX", "REGION", "Javascript", "JavascriptError", "javascript"]

HERE = Path(__file__).parent

PREFIX = "unittest"
"""What the library puts before the name of each table: its environment variable SERVICE."""

REGION = "us-west-2"
"""The library's own choice, which servers that keep regions apart must find in our requests too."""


class JavascriptError(Exception):
    """The library refused; ``name`` is that of its error."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


@dataclass
class Javascript:
    """A running application of the library: call it with a command of ``javascript_models.cjs``."""

    process: subprocess.Popen[str]
    log: IO[str]
    url: str
    owner: int

    def __call__(self, command: str, **arguments: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError(f"the JavaScript application ended:\n{self.log.read()}")
        answer = json.loads(line, parse_int=_whole)
        if "error" in answer:
            raise JavascriptError(answer["error"]["name"], answer["error"]["message"])
        return answer["ok"]

    def stop(self) -> None:
        if os.getpid() != self.owner:
            return  # a forked child ends; the application is the parent's
        self.process.communicate()  # which ends its input, and so the application
        self.log.close()


def _whole(text: str) -> int | float:
    """A whole number as JavaScript means it: beyond 2^53 the text has digits that the number has not."""
    number = int(text)
    return number if abs(number) < 2**53 else float(number)


def javascript() -> Javascript:
    """The application, started now if it was not, with its tables."""
    if not _attempts:
        try:
            _attempts.append(_start())
        except NotHereError as error:
            _attempts.append(error)
    outcome = _attempts[0]
    if isinstance(outcome, NotHereError):
        pytest.skip(f"the JavaScript library cannot run here: {outcome}")
    return outcome


_attempts: list[Javascript | NotHereError] = []
"""The application, or why there is none: nothing is attempted twice."""


def _start() -> Javascript:
    packages = install(HERE / "package.json", ".venv-javascript")
    url = started("ministack")
    settings = {
        **ENVIRONMENT,
        "PATH": os.environ["PATH"],
        "NODE_PATH": str(packages),
        "DYNAMO_ENDPT": url,
        "SERVICE": PREFIX,
        "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE": "1",
    }
    log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - it is open as long as the application runs
    process = subprocess.Popen(
        ["node", str(HERE / "javascript_models.cjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=settings,
        encoding="utf-8",
        start_new_session=True,
    )
    application = Javascript(process, log, url, os.getpid())
    atexit.register(application.stop)
    application("setup")
    return application
