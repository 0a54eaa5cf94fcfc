"""The server ministack, as the tests start it."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def start_ministack() -> str:
    """Return the URL of the server that the tests run on; it ends with this process."""
    sys.path.append(str(ROOT / "tests"))
    from rig.servers import start_server

    return start_server("ministack")
