"""Temporary files: a directory of their own, so that a file in it can have any name."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO


def make_directory() -> Path:
    """A new directory that only this user can read."""
    return Path(tempfile.mkdtemp(prefix="holdall-"))


def open_file(path: Path) -> BinaryIO:
    """A file, to read from."""
    return path.open("rb")


def remove_directory(directory: Path, file: BinaryIO | None) -> None:
    """Close the file and remove the directory with all in it."""
    if file is not None:
        file.close()
    shutil.rmtree(directory, ignore_errors=True)  # the system clears what cannot be removed now
