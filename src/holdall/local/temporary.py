"""Temporary files: each in a new directory, so that it can have any name."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO


def make_directory() -> Path:
    """Create a directory that only this user can read."""
    return Path(tempfile.mkdtemp(prefix="holdall-"))


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading."""
    return path.open("rb")


def remove_directory(directory: Path, file: BinaryIO | None) -> None:
    """Close the file and remove the directory with everything in it."""
    if file is not None:
        file.close()
    shutil.rmtree(directory, ignore_errors=True)  # the system clears what cannot be removed now
