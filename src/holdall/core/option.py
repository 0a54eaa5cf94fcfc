"""Options that several features have, and the checks of their values."""

from __future__ import annotations

from holdall.errors import InvalidOptionsError


def check_count(number: object, name: str) -> None:
    """Refuse any value, such as a limit, that is not a whole number from 1 up."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidOptionsError(f"{name} must be a whole number from 1 up, not {number!r:.60}")
