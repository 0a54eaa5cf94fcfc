"""What a worker runs: one client's operations on the canned S3 server, and their expected results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

__all__ = ["BUCKET", "LARGE", "OPERATIONS", "PART", "SMALL", "S3Client", "S3Operation", "content", "source"]

S3Operation: TypeAlias = Literal["put", "get", "up", "down"]

OPERATIONS: tuple[S3Operation, ...] = ("put", "get", "up", "down")
"""What every client does for each operation:

- ``put``: an object of 10 KB from memory;
- ``get``: the same object into memory;
- ``up``: a file of 200 MB, in parts of 8 MiB, ten at a time;
- ``down``: an object of that size into a file, in ranges of the same size and number.
"""

BUCKET = "benchmark"
SMALL = 10 * 1000
LARGE = 200 * 1000 * 1000
PART = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class S3Client:
    """``put`` takes bytes, ``get`` returns them, ``up`` uploads from a path and ``down`` downloads to it.

    The operations of an async client are ``async``.
    """

    operations: Mapping[S3Operation, Callable[..., Any]]
    close: Callable[[], None] | None = None


def content(size: int) -> bytes:
    """The bytes of an object."""
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def source(directory: Path) -> Path:
    """The file to upload."""
    path = directory / "source"
    if not path.exists():
        path.write_bytes(content(LARGE))
    return path
