"""The package versioned at the other end of a pipe, over the same server as ours.

`versioned` starts an application of it when a test first needs one; it ends with the test process. What pip installs is
named in ``versioned.txt`` here and goes into ``.venv-versioned``, once. Where PyPI cannot be reached the test is
skipped with the reason.
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
from rig.pypi import install
from rig.servers import ENVIRONMENT, started

__all__ = ["REGION", "Repository", "Versioned", "VersionedError", "interpreter", "versioned"]

HERE = Path(__file__).parent

REGION = ENVIRONMENT["AWS_REGION"]


class VersionedError(Exception):
    """The package refused; ``name`` is that of its error."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


@dataclass
class Versioned:
    """A running application of the package, ``versioned_application.py``."""

    process: subprocess.Popen[str]
    log: IO[str]
    owner: int

    def ask(self, repository: dict[str, str], command: str, arguments: dict[str, Any]) -> Any:
        """What it answers; `VersionedError` when it refused."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"repository": repository, "do": command, "with": arguments}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError(f"the application of versioned ended:\n{self.log.read()}")
        answer = json.loads(line)
        if "error" in answer:
            raise VersionedError(answer["error"]["name"], answer["error"]["message"])
        return answer["ok"]

    def stop(self) -> None:
        """End its input, and so the application."""
        if os.getpid() != self.owner:
            return  # a forked child ends; the application is the parent's
        self.process.communicate()
        self.log.close()


@dataclass(frozen=True)
class Repository:
    """A repository of versioned's: call it with a method's name and its arguments."""

    application: Versioned
    bucket: str
    table: str
    suffix: str

    def __call__(self, command: str, **arguments: Any) -> Any:
        settings = {
            "aws_region": REGION,
            "s3_bucket": self.bucket,
            "dynamodb_table_name": self.table,
            "suffix": self.suffix,
        }
        return self.application.ask(settings, command, arguments)


def versioned() -> Versioned:
    """The application, started now if it was not."""
    if not _attempts:
        try:
            _attempts.append(_start())
        except NotHereError as error:
            _attempts.append(error)
    outcome = _attempts[0]
    if isinstance(outcome, NotHereError):
        pytest.skip(f"the package versioned cannot run here: {outcome}")
    return outcome


_attempts: list[Versioned | NotHereError] = []
"""The application, or why there is none: nothing is attempted twice."""


def _start() -> Versioned:
    settings = {
        **ENVIRONMENT,
        "PATH": os.environ["PATH"],
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": started("ministack"),  # the package has no argument for it, botocore has this
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - it is open as long as the application runs
    process = subprocess.Popen(
        [str(interpreter()), "-W", "ignore", str(HERE / "versioned_application.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=settings,
        encoding="utf-8",
        start_new_session=True,
    )
    application = Versioned(process, log, os.getpid())
    atexit.register(application.stop)
    return application


def interpreter() -> Path:
    """That of the package's environment, made unless it is there."""
    return install(".venv-versioned", "--no-deps", "-r", str(HERE / "versioned.txt"))
