"""The bytes that a Range header asks for. Pure."""

from __future__ import annotations

import re

LIMIT = 100 * 1024**2
"""A range that states its end must be shorter than this, in bytes."""

_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.ASCII)


def parse_range(header: str, size: int) -> range | None:
    """The bytes of a single range; None for several ranges, a range outside the file, one too long, or an invalid one.

    A range without an end may have any length: players and resumed downloads request the rest this way, and it is
    streamed.
    """
    found = _RANGE.fullmatch(header)
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if first:
        wanted = range(int(first), min(size, int(last) + 1) if last else size)
    else:
        wanted = range(max(0, size - int(last)), size)
    return wanted if wanted and (not last or len(wanted) < LIMIT) else None
