"""ElectroDB, the JavaScript library, at the other end of a pipe, using the same server as Holdall.

`electrodb` starts it when a test first needs it; it ends with the test process. What npm installs is listed in
``electrodb_program/package.json`` and goes into ``.venv-electrodb``, once. Without node, npm or access to the
registry, the test is skipped with that reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rig.installation import install
from rig.program import Program, once
from rig.servers import start_server

__all__ = ["ElectroDB", "ElectroDBError", "electrodb"]

HERE = Path(__file__).parent / "electrodb_program"


class ElectroDBError(Exception):
    """The JavaScript raised an error."""


class ElectroDB:
    """A running ``program.cjs``; ``url`` is its server's."""

    def __init__(self, program: Program, url: str) -> None:
        self._program = program
        self.url = url
        self.printed = ""

    def __call__(self, source: str, **values: Any) -> Any:
        """Run the source with these values and return its result; `printed` is its output."""
        answer = self._program.ask({"run": source, "with": values})
        if "error" in answer:
            raise ElectroDBError(answer["error"])
        self.printed = answer["printed"]
        return answer["ok"]


@once("ElectroDB")
def electrodb() -> ElectroDB:
    """Start the program, once."""
    packages = install(".venv-electrodb")
    url = start_server("ministack")
    settings = {"NODE_PATH": str(packages), "AWS_ENDPOINT_URL_DYNAMODB": url}
    return ElectroDB(Program(["node", str(HERE / "program.cjs")], settings), url)
