"""The environment in which interpreters are started to see how long that takes."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["startup_environment"]


def startup_environment(workshop: Path) -> dict[str, str]:
    """This process's environment, with bytecode kept in the workshop whatever the machine's habit.

    Compiling happens once per installation, not once per start: whoever measures starts drops the first.
    """
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(workshop / "bytecode")}
