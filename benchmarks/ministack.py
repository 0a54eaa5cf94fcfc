"""The server ministack, started with the tests' helper."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def start_ministack() -> str:
    """Return the URL of a server that ends with this process."""
    sys.path.append(str(ROOT / "tests"))
    from rig.servers import start_server

    return start_server("ministack")
