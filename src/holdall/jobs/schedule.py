"""When a recurring job is due: at a fixed interval, or at the times that a cron line names.

Pure. An occurrence depends only on the declaration and the current time, so all workers on all machines agree on it
without communicating: intervals are counted from 1970-01-01T00:00Z, and cron fields are in UTC. The text of a schedule
can be part of a key: it does not depend on how the fields were written (names, order, ranges or lists), a cron text
reads back as the same schedule, and it has at most 250 characters, all of them ``a-z 0-9 * / , : . -`` or a space.

Cron lines follow crontab(5). If day of month and day of week are both restricted, a day needs to match only one of
them. A field that contains ``*``, even ``*/2``, counts as unrestricted, and then a day must match both.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Protocol

from holdall.core.frozen import dataclass
from holdall.errors import InvalidOptionsError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORTEST = timedelta(seconds=1)
_LONGEST = timedelta(days=36525)

_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # at the most


class Schedule(Protocol):
    """The times at which a recurring job is due."""

    @property
    def text(self) -> str:
        """The schedule in its canonical form: equal texts mean equal times."""
        ...

    def next_after(self, moment: datetime) -> datetime:
        """The first occurrence strictly after a moment, in UTC; `OverflowError` if the calendar ends before it."""
        ...


def schedule(every: timedelta | float | None = None, cron: str | None = None) -> Schedule | None:
    """The declared schedule, None if there is none; `InvalidOptionsError` for an invalid one.

    ``every`` is a timedelta or a number of seconds. ``cron`` has the fields minute, hour, day of month, month and day
    of week, or is one of ``@hourly @daily @weekly @monthly @yearly``.
    """
    if every is not None and cron is not None:
        raise InvalidOptionsError(
            "every and cron were both given", hint="a job has one schedule: pass one of them"
        )
    if every is not None:
        return _every(every)
    return None if cron is None else _cron(cron)


# --- every ---


@dataclass(frozen=True, slots=True)
class Every:
    """All multiples of an interval since 1970-01-01T00:00Z."""

    text: str
    interval: timedelta

    def next_after(self, moment: datetime) -> datetime:
        """The first multiple strictly after a moment."""
        passed = (_in_utc(moment) - _EPOCH) // self.interval
        return _EPOCH + (passed + 1) * self.interval


def _every(every: object) -> Every:
    if isinstance(every, bool) or not isinstance(every, timedelta | int | float):
        raise InvalidOptionsError(f"every must be a timedelta or a number of seconds, not {every!r:.80}")
    if isinstance(every, timedelta):
        fits = _SHORTEST <= every <= _LONGEST
    else:
        fits = 1 <= every <= _LONGEST // _SHORTEST
    if not fits:
        raise InvalidOptionsError(f"every must be from 1 second to 36525 days, not {every!r:.80}")
    interval = every if isinstance(every, timedelta) else timedelta(seconds=every)
    seconds, rest = divmod(interval, _SHORTEST)
    fraction = f".{rest.microseconds:06}".rstrip("0") if rest else ""
    return Every(f"every:{seconds}{fraction}", interval)


# --- cron ---


@dataclass(frozen=True, slots=True)
class Cron:
    """The minutes that a cron line names. Values are ascending; Sunday is 0.

    ``either``: a day needs to match ``days`` or ``weekdays``, not both.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either: bool

    def next_after(self, moment: datetime) -> datetime:
        """The first of these minutes strictly after a moment, found by month, day and hour."""
        start = _in_utc(moment).replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = self._day_from(start.date())
        if day == start.date():
            if time := self._time_from(start.hour, start.minute):
                return start.replace(hour=time[0], minute=time[1])
            day = self._day_from(day + timedelta(days=1))
        return datetime(day.year, day.month, day.day, self.hours[0], self.minutes[0], tzinfo=UTC)

    def _time_from(self, first_hour: int, first_minute: int) -> tuple[int, int] | None:
        for hour in self.hours:
            if hour > first_hour:
                return hour, self.minutes[0]
            if hour == first_hour and self.minutes[-1] >= first_minute:
                return hour, next(minute for minute in self.minutes if minute >= first_minute)
        return None

    def _day_from(self, start: date) -> date:
        first = start.day
        for year in range(start.year, date.max.year + 1):
            for month in self.months:
                if (year, month) < (start.year, start.month):
                    continue
                if (year, month) > (start.year, start.month):
                    first = 1
                if day := self._day_in(year, month, first):
                    return date(year, month, day)
        raise OverflowError(f"{self.text!r} has no occurrence from {start} to the end of the calendar")

    def _day_in(self, year: int, month: int, first: int) -> int | None:
        offset = date(year, month, 1).isoweekday() - 1
        for day in range(first, _month_days(year, month) + 1):
            fits, fits_week = day in self.days, (day + offset) % 7 in self.weekdays
            if (fits or fits_week) if self.either else (fits and fits_week):
                return day
        return None


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(range(self.low, self.high + 1))


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_DAY = _Field("day of month", 1, 31)
_MONTH = _Field("month", 1, 12, _MONTHS)
_WEEKDAY = _Field("day of week", 0, 6, _WEEKDAYS)
_FIELDS = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)


def _cron(cron: object) -> Cron:
    if not isinstance(cron, str):
        raise InvalidOptionsError(f"cron must be text, not {cron!r:.80}")
    line = cron.strip().lower()
    if line.startswith("@") and line not in _SHORTHANDS:
        raise InvalidOptionsError(
            f"{cron!r:.80} is not a shorthand of cron", hint=f"the shorthands are: {', '.join(_SHORTHANDS)}"
        )
    texts = _SHORTHANDS.get(line, line).split()
    if len(texts) != len(_FIELDS):
        raise InvalidOptionsError(
            f"cron must have 5 fields, but {cron!r:.80} has {len(texts)}",
            hint=f"the fields are: {', '.join(field.name for field in _FIELDS)}",
        )
    parsed = [_values(field, text) for field, text in zip(_FIELDS, texts, strict=True)]
    minutes, hours, days, months, weekdays = parsed
    either = "*" not in texts[2] and "*" not in texts[4]
    if either and (days == _DAY.values or weekdays == _WEEKDAY.values):
        either, days, weekdays = False, _DAY.values, _WEEKDAY.values
    if not either and all(days[0] > _MONTH_DAYS[month - 1] for month in months):
        raise InvalidOptionsError(f"cron {cron!r:.80} never occurs: none of its months has that day")
    month_text = _write(_MONTH, months)
    day_text, weekday_text = _write_days(days, weekdays, either)
    text = f"{_write(_MINUTE, minutes)} {_write(_HOUR, hours)} {day_text} {month_text} {weekday_text}"
    return Cron(text, minutes, hours, days, months, weekdays, either)


def _values(field: _Field, text: str) -> tuple[int, ...]:
    """The values that a field's text names, ascending."""
    found: set[int] = set()
    for element in text.split(","):
        spread, has_step, step = element.partition("/")
        first, last = _ends(field, element, spread)
        if not has_step:
            found.update(range(first, last + 1))
        elif spread != "*" and "-" not in spread:
            raise _refusal(field, element, f"a step needs a range, as in {spread}-{field.high}/{step}")
        elif (number := _whole(step, 1, len(field.values))) is None:
            raise _refusal(field, element, f"the step must be a number from 1 to {len(field.values)}")
        else:
            found.update(range(first, last + 1, number))
    if field is _WEEKDAY and 7 in found:
        found = found - {7} | {0}
    return tuple(sorted(found))


def _ends(field: _Field, element: str, spread: str) -> tuple[int, int]:
    if spread == "*":
        return field.low, field.high
    first_text, has_last, last_text = spread.partition("-")
    first = _value(field, element, first_text)
    last = _value(field, element, last_text) if has_last else first
    if field is _WEEKDAY and last == 0 < first:
        last = 7  # as in sat-sun
    if first > last:
        raise _refusal(field, element, "a range must go from the smaller value to the larger")
    return first, last


def _value(field: _Field, element: str, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    high = 7 if field is _WEEKDAY else field.high  # 7 is Sunday too
    value = _whole(text, field.low, high)
    if value is None:
        names = f" or a name from {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise _refusal(field, element, f"{text!r:.20} is not a number from {field.low} to {high}{names}")
    return value


def _whole(text: str, low: int, high: int) -> int | None:
    plain = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if plain and low <= int(text) <= high else None


def _refusal(field: _Field, element: str, why: str) -> InvalidOptionsError:
    return InvalidOptionsError(f"cron has {element!r:.40} as its {field.name}: {why}")


# --- canonical texts ---


def _write_days(days: tuple[int, ...], weekdays: tuple[int, ...], either: bool) -> tuple[str, str]:
    """Day of month and day of week: without a ``*`` if one match is enough, otherwise with one."""
    if either:
        return _write_list(days), _write_list(weekdays)
    texts = _write(_DAY, days), _write(_WEEKDAY, weekdays)
    if "*" in texts[0] + texts[1]:
        return texts
    # these days were written with a star that has no other effect, as in 1-7 and */7 for a month's first Sunday
    choices: list[tuple[str, str]] = []
    if days[0] == _DAY.low:
        choices.append((_write_star(_DAY, days), texts[1]))
    if weekdays[0] == _WEEKDAY.low:
        choices.append((texts[0], _write_star(_WEEKDAY, weekdays)))
    return min(choices, key=lambda choice: len(choice[0] + choice[1]))


def _write(field: _Field, values: tuple[int, ...]) -> str:
    if values == field.values:
        return "*"
    if len(values) > 2 and values == field.values[:: values[1] - values[0]]:
        return f"*/{values[1] - values[0]}"
    return _write_list(values)


def _write_star(field: _Field, values: tuple[int, ...]) -> str:
    """With a star and the smallest step that names only these values, which begin with the field's lowest."""
    steps = (step for step in range(1, len(field.values) + 1) if {*field.values[::step]} <= {*values})
    step = next(steps)
    rest = tuple(value for value in values if value not in field.values[::step])
    return f"*/{step},{_write_list(rest)}" if rest else f"*/{step}"


def _write_list(values: tuple[int, ...]) -> str:
    """Without a star: a range with a step, or a list of ranges and values."""
    first, last = values[0], values[-1]
    if len(values) > 2:
        step = values[1] - first
        if step > 1 and values == tuple(range(first, last + 1, step)):
            return f"{first}-{last}/{step}"
    starts = [value for value in values if value - 1 not in values]
    ends = [value for value in values if value + 1 not in values]
    return ",".join(
        f"{start}" if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)
    )


# --- the calendar ---


def _in_utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        # it would be taken as local time, on which other machines would disagree
        raise InvalidOptionsError(
            f"{moment} has no time zone",
            hint="pass a time with a time zone, such as datetime.now(timezone.utc)",
        )
    return moment.astimezone(UTC)


def _month_days(year: int, month: int) -> int:
    if month == 2 and (year % 4 or (year % 100 == 0 and year % 400)):
        return 28
    return _MONTH_DAYS[month - 1]
