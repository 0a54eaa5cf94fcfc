"""Everything that an error shows: its text, its repr, its traceback, and those of its causes."""

from __future__ import annotations

import traceback

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
TOKEN = "FwoGZXIvYXdzEXAMPLETOKEN"


def collect_text(error: BaseException) -> str:
    shown: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        shown += [str(current), repr(current), repr(vars(current)), *traceback.format_exception(current)]
        waiting += [current.__cause__, current.__context__]
    return "\n".join(shown)


def assert_shows_no_secret(error: BaseException) -> None:
    shown = collect_text(error)
    assert SECRET not in shown
    assert TOKEN not in shown
