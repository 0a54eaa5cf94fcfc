"""The environment of other Python libraries for DynamoDB, ``.venv-peers``: that of the benchmarks, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.installation import NotHereError, install

__all__ = ["peers_interpreter"]


def peers_interpreter() -> Path:
    """Its interpreter; the first process that needs the environment makes it. A skip if it cannot be made here."""
    try:
        return install(".venv-peers")
    except NotHereError as error:
        pytest.skip(f"PynamoDB and dyntastic cannot be installed here: {error}")
