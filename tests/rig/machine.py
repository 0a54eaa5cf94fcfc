"""A machine without settings, for tests of how databases and services are opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["strip_machine"]


def strip_machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the machine's settings, ours and AWS's; ``home`` becomes the home and working directory."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "HOLDALL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
