"""PynamoDB and dyntastic at the other end of a pipe, using the same server as our tests.

They run in the environment of the benchmarks, ``.venv-peers``, which is made once. If PyPI cannot be reached, the test
is skipped with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.peers import peers_interpreter
from rig.program import Program
from rig.servers import ENVIRONMENT, start_server

__all__ = ["REGION", "Peers", "PeersError", "start_peers"]

HERE = Path(__file__).parent
REGION = ENVIRONMENT["AWS_REGION"]


class PeersError(Exception):
    """The program's call failed."""


class Peers:
    """A running ``peers_application.py``: call it with a function's name and its arguments."""

    def __init__(self, program: Program, url: str, prefix: str) -> None:
        self._program = program
        self.url = url
        self.prefix = prefix

    def __call__(self, command: str, **arguments: Any) -> Any:
        """Call the function and return its result."""
        answer = self._program.ask({"do": command, "with": arguments})
        if "error" in answer:
            raise PeersError(answer["error"])
        return answer["ok"]


@contextmanager
def start_peers(prefix: str) -> Iterator[Peers]:
    """Run the program, with this prefix for its tables."""
    url = start_server("ministack")
    settings = {"AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL_DYNAMODB": url}
    program = Program(
        [str(peers_interpreter()), "-W", "ignore", str(HERE / "peers_application.py"), prefix], settings
    )
    try:
        yield Peers(program, url, prefix)
    finally:
        program.stop()
