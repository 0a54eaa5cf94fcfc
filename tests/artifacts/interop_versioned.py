"""The package versioned at the other end of a pipe, using the same server as Holdall.

`start_versioned` starts an application that uses it, when a test first needs one; the application ends with the test
process. ``versioned.txt`` lists what pip installs into ``.venv-versioned``, once. Without access to PyPI the test is
skipped with that reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig.installation import install
from rig.program import Program, once
from rig.servers import ENVIRONMENT, start_server

__all__ = ["REGION", "Repository", "VersionedError", "start_versioned"]

HERE = Path(__file__).parent

REGION = ENVIRONMENT["AWS_REGION"]


class VersionedError(Exception):
    """The package refused a call; ``name`` is the name of its error."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


@dataclass(frozen=True)
class Repository:
    """A repository of the package: call it with a method's name and its arguments."""

    application: Program
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
        answer = self.application.ask({"repository": settings, "do": command, "with": arguments})
        if "error" in answer:
            raise VersionedError(answer["error"]["name"], answer["error"]["message"])
        return answer["ok"]


@once("the package versioned")
def start_versioned() -> Program:
    """Start ``versioned_application.py``, once."""
    settings = {
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": start_server(
            "ministack"
        ),  # botocore reads it; the package has no argument for it
    }
    python = install(".venv-versioned")
    return Program([str(python), "-W", "ignore", str(HERE / "versioned_application.py")], settings)
