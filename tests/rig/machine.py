"""A machine without settings, for tests of how databases and services are opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["strip_machine"]


def strip_machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the machine: neither ours nor AWS's; the home and working directory is empty."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "HOLDALL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
