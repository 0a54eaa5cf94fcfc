"""Everything an error gives away: its text, its repr, its traceback, and the same of the errors behind it."""

from __future__ import annotations

import traceback

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
TOKEN = "FwoGZXIvYXdzEXAMPLETOKEN"


def collect_text(error: BaseException) -> str:
    said: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        said += [str(current), repr(current), repr(vars(current)), *traceback.format_exception(current)]
        waiting += [current.__cause__, current.__context__]
    return "\n".join(said)


def assert_tells_no_secret(error: BaseException) -> None:
    said = collect_text(error)
    assert SECRET not in said
    assert TOKEN not in said
