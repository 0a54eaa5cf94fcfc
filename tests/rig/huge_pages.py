"""Cheap forks: a fork copies one entry per page of memory, so large pages make it several times faster."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

__all__ = ["use_huge_pages"]

SIZE = 2 << 20
MADV_COLLAPSE = 25


def use_huge_pages() -> None:
    """Move this process's memory into huge pages where Linux can (since 6.1); elsewhere do nothing."""
    with suppress(OSError, AttributeError):
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for place, rights, *_, name in (f"{line} .".split(maxsplit=5) for line in maps):
            start, end = (int(number, 16) for number in place.split("-"))
            if rights == "rw-p" and name in (".", "[heap] ."):  # anonymous memory, not a file's
                for address in range(-(-start // SIZE) * SIZE, end // SIZE * SIZE, SIZE):
                    advise(address, SIZE, MADV_COLLAPSE)  # fails if the range has no pages
