"""The environment variables of interpreters whose start-up is timed."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["startup_environment"]


def startup_environment(workshop: Path) -> dict[str, str]:
    """Return this process's environment, but with bytecode cached in the workshop.

    Compiling happens once per installation, not once per start: callers drop the time of the first start.
    """
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(workshop / "bytecode")}
