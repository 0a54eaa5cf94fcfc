"""ElectroDB, the JavaScript library, at the other end of a pipe, over the same server as ours.

`electrodb` starts it when a test first needs it; it ends with the test process. What npm installs is named in
``electrodb_program/package.json`` and goes into ``.venv-electrodb``, once. Where node or npm is missing, or the
registry cannot be reached, the test is skipped with the reason.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rig.installation import NotHereError
from rig.npm import install
from rig.servers import ENVIRONMENT, started

__all__ = ["ElectroDB", "ElectroDBError", "electrodb"]

HERE = Path(__file__).parent / "electrodb_program"


class ElectroDBError(Exception):
    """The JavaScript raised an error."""


class ElectroDB:
    """A running ``program.cjs``; ``url`` is that of its server."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self._owner = os.getpid()
        self.url = url
        self.printed = ""

    def __call__(self, source: str, **values: Any) -> Any:
        """What the source, run with these values, returned; `printed` is what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"run": source, "with": values}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the program has ended"}')
        if "error" in answer:
            raise ElectroDBError(answer["error"])
        self.printed = answer["printed"]
        return answer["ok"]

    def stop(self) -> None:
        if os.getpid() == self._owner:  # a forked child ends without it
            self._process.communicate()


def electrodb() -> ElectroDB:
    """The program, started now if it was not."""
    if not _attempts:
        try:
            _attempts.append(_start())
        except NotHereError as error:
            _attempts.append(error)
    outcome = _attempts[0]
    if isinstance(outcome, NotHereError):
        pytest.skip(f"ElectroDB cannot run here: {outcome}")
    return outcome


_attempts: list[ElectroDB | NotHereError] = []
"""The program, or why there is none: nothing is attempted twice."""


def _start() -> ElectroDB:
    packages = install(HERE / "package.json", ".venv-electrodb")
    url = started("ministack")
    settings = {
        **ENVIRONMENT,
        "PATH": os.environ["PATH"],
        "NODE_PATH": str(packages),
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    process = subprocess.Popen(
        ["node", str(HERE / "program.cjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=settings,
        encoding="utf-8",
        start_new_session=True,
    )
    program = ElectroDB(process, url)
    atexit.register(program.stop)
    return program
