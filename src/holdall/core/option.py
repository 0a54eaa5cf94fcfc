"""Options that several features have, and the checks of their values."""

from __future__ import annotations

from holdall.errors import InvalidOptionsError


def check_count(number: object, name: str, most: int | None = None) -> None:
    """Refuse any value, such as a limit, that is not a whole number from 1 up, or to ``most``."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= (most or number):
        end = "up" if most is None else f"to {most:,}"
        raise InvalidOptionsError(f"{name} must be a whole number from 1 {end}, not {number!r:.60}")


def check_switch(value: object, name: str) -> None:
    """Refuse any value that is neither True nor False."""
    if not isinstance(value, bool):
        raise InvalidOptionsError(f"{name} must be True or False, not {value!r:.60}")


def check_progress(function: object) -> None:
    """Refuse a ``progress=`` that cannot be called."""
    if function is not None and not callable(function):
        raise InvalidOptionsError(f"progress must be callable, not {function!r:.60}")
