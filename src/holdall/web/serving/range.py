"""Which bytes a Range header asks for. Pure."""

from __future__ import annotations

import re

LIMIT = 100 * 1024**2
"""So many bytes in a range that says where it ends are too many."""

_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.ASCII)


def parse_range(header: str, size: int) -> range | None:
    """The bytes that one range asks for; None for several, none that are there, too many, or nonsense.

    A range without an end may be of any length: players and resumed downloads ask so for the rest, which is streamed.
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
