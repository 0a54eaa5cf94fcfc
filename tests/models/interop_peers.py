"""PynamoDB and dyntastic at the other end of a pipe, over the same server as ours.

Their environment is that of the benchmarks, ``.venv-peers``; it is made once. Where PyPI cannot be reached, the test is
skipped with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.peers import peers_interpreter
from rig.servers import ENVIRONMENT, started

__all__ = ["REGION", "Peers", "PeersError", "running_peers"]

HERE = Path(__file__).parent
REGION = ENVIRONMENT["AWS_REGION"]


class PeersError(Exception):
    """The program's call failed."""


class Peers:
    """A running ``peers_application.py``: call it with a function's name and its arguments."""

    def __init__(self, process: subprocess.Popen[str], url: str, prefix: str) -> None:
        self._process = process
        self.url = url
        self.prefix = prefix

    def __call__(self, command: str, **arguments: Any) -> Any:
        """What the function returned."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": command, "with": arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the program has ended"}')
        if "error" in answer:
            raise PeersError(answer["error"])
        return answer["ok"]


@contextmanager
def running_peers(prefix: str) -> Iterator[Peers]:
    """The program, with its tables under this prefix."""
    url = started("ministack")
    settings = {
        **ENVIRONMENT,
        "PATH": os.environ["PATH"],
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    process = subprocess.Popen(
        [str(peers_interpreter()), "-W", "ignore", str(HERE / "peers_application.py"), prefix],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=settings,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        yield Peers(process, url, prefix)
    finally:
        process.communicate()
