"""The environment of the peers, ``.venv-peers``, which keeps their packages out of Holdall's environment.

It is created when it is first needed, with the versions pinned in ``peers.txt``, and again when that list changes.
Peers run as subprocesses of its interpreter; ``python -m benchmarks.peers`` only creates it.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["interpreter"]

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".venv-peers"
PINNED = HERE / "peers.txt"


@cache
def interpreter() -> Path:
    """Return the interpreter of the peers' environment."""
    program = HERE.parent / "scripts" / "environment.py"
    subprocess.run([sys.executable, program, ENVIRONMENT, "--no-deps", "-r", PINNED], check=True)
    return ENVIRONMENT / "bin" / "python"


if __name__ == "__main__":
    print(interpreter())
