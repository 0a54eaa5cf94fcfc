"""Names of files that survive a power cut: a name lasts once the directory that has it is synced."""

from __future__ import annotations

import os
from pathlib import Path


def make_directory(path: Path) -> None:
    """Create a directory, and those above it, durably, before anything is put into it."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Make the content of a file, or the names in a directory, survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
