"""Times and durations as users type them: callbacks for options."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST = timedelta(days=365_000)


def moment(context: click.Context, parameter: click.Parameter, text: str | None) -> datetime | None:
    """A time in ISO 8601; UTC unless it names a time zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a time; write 2026-11-15 or 2026-11-15T09:30+01:00"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def duration(context: click.Context, parameter: click.Parameter, text: str | None) -> timedelta | None:
    """A duration: a number and its unit."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,5})([smhdw])", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration; write 30m, 12h, 7d or 2w")
    length = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if length > _LONGEST:
        raise click.BadParameter(f"{text!r} is more than a thousand years")
    return length
