"""The environment of other Python libraries for DynamoDB, ``.venv-peers``: that of the benchmarks, made once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import peers as environment

__all__ = ["peers_interpreter"]


def peers_interpreter() -> Path:
    """Its interpreter; the first process that needs the environment makes it. A skip if it cannot be made here."""
    try:
        return environment.interpreter()
    except (subprocess.CalledProcessError, OSError) as error:
        pytest.skip(f"PynamoDB and dyntastic cannot be installed here ({sys.version_info[:2]}): {error}")
