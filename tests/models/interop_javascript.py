"""The JavaScript library @pocketgems/dynamodb at the other end of a pipe, using the same server as our tests.

`javascript` starts it when a test first needs it; it ends with the test process. npm installs the packages that
``package.json`` in this folder lists into ``.venv-javascript``, once. If node or npm is missing, or the registry cannot
be reached, the test is skipped with the reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rig.installation import install
from rig.program import Program, once
from rig.servers import start_server

__all__ = ["PREFIX", "REGION", "Javascript", "JavascriptError", "javascript"]

HERE = Path(__file__).parent

PREFIX = "unittest"
"""What the library puts before the name of each table: its environment variable SERVICE."""

REGION = "us-west-2"
"""The region that the library uses. Our requests must name it too, because some servers keep regions apart."""


class JavascriptError(Exception):
    """The library raised an error called ``name``."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class Javascript:
    """A running application of the library: call it with a command of ``javascript_models.cjs``."""

    def __init__(self, program: Program, url: str) -> None:
        self._program = program
        self.url = url

    def __call__(self, command: str, **arguments: Any) -> Any:
        answer = self._program.ask({"do": command, **arguments}, _parse_whole)
        if "error" in answer:
            raise JavascriptError(answer["error"]["name"], answer["error"]["message"])
        return answer["ok"]


def _parse_whole(text: str) -> int | float:
    """Parse a whole number as JavaScript does: beyond 2^53 the text has more digits than the number."""
    number = int(text)
    return number if abs(number) < 2**53 else float(number)


@once("the JavaScript library")
def javascript() -> Javascript:
    """The application, with its tables; the first call starts it."""
    packages = install(".venv-javascript")
    url = start_server("ministack")
    settings = {
        "NODE_PATH": str(packages),
        "DYNAMO_ENDPT": url,
        "SERVICE": PREFIX,
        "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE": "1",
    }
    application = Javascript(Program(["node", str(HERE / "javascript_models.cjs")], settings), url)
    application("setup")
    return application
