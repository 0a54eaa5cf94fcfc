"""The environment of other Python libraries for DynamoDB, ``.venv-peers``, which the benchmarks use too."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.installation import NotHereError, install

__all__ = ["peers_interpreter"]


def peers_interpreter() -> Path:
    """Its interpreter. The first process that needs the environment creates it; if that fails, the test is skipped."""
    try:
        return install(".venv-peers")
    except NotHereError as error:
        pytest.skip(f"PynamoDB and dyntastic cannot be installed here: {error}")
