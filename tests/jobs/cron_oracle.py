"""A slow reference implementation of cron, which checks every minute, and strategies for cron lines."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import cache

from hypothesis import strategies as st

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@cache
def element_matches(element: str, value: int, low: int) -> bool:
    spread, _, step = element.partition("/")
    if spread == "*":
        return (value - low) % int(step or 1) == 0
    first, _, last = spread.partition("-")
    return int(first) <= value <= int(last or first) and (value - int(first)) % int(step or 1) == 0


@cache
def field_matches(text: str, value: int, low: int) -> bool:
    return any(element_matches(element, value, low) for element in text.split(","))


@cache
def replace_names(line: str) -> tuple[str, ...]:
    minute, hour, day, month, weekday = line.lower().split()
    for number, name in enumerate(MONTHS, start=1):
        month = month.replace(name, str(number))
    for number, name in enumerate(WEEKDAYS):
        weekday = weekday.replace(f"-{name}", f"-{number or 7}").replace(name, str(number))
    return minute, hour, day, month, weekday


def matches_day(line: str, moment: date) -> bool:
    _, _, day, month, weekday = replace_names(line)
    today = moment.isoweekday()
    fits = field_matches(day, moment.day, 1)
    fits_week = field_matches(weekday, today, 0) or (today == 7 and field_matches(weekday, 0, 0))
    both_restricted = "*" not in day and "*" not in weekday
    return field_matches(month, moment.month, 1) and (
        (fits or fits_week) if both_restricted else (fits and fits_week)
    )


def matches_minute(line: str, moment: datetime) -> bool:
    minute, hour, *_ = replace_names(line)
    return (
        field_matches(minute, moment.minute, 0)
        and field_matches(hour, moment.hour, 0)
        and matches_day(line, moment)
    )


def list_minutes(line: str, after: datetime, until: datetime) -> list[datetime]:
    """Each minute of ``(after, until]`` that the line matches, found by checking every one."""
    found = []
    moment = after.replace(second=0, microsecond=0) + MINUTE
    while moment <= until:
        if matches_minute(line, moment):
            found.append(moment)
        moment += MINUTE
    return found


def list_days(line: str, first: date, last: date) -> list[date]:
    """Each day from the first to the last that the line matches, regardless of its hours."""
    return [
        day for day in (first + n * DAY for n in range((last - first).days + 1)) if matches_day(line, day)
    ]


def elements(low: int, high: int, names: list[str] | None = None) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    steps = st.integers(1, 7 if names is WEEKDAYS else high - low + 1)
    values = numbers.map(str) if names is None else numbers.map(str) | st.sampled_from(names)
    ends = st.tuples(numbers, numbers).map(lambda pair: f"{min(pair)}-{max(pair)}")
    stars = st.builds("*/{}".format, steps) | st.just("*")
    return values | ends | st.builds("{}/{}".format, ends, steps) | stars


def fields(low: int, high: int, names: list[str] | None = None) -> st.SearchStrategy[str]:
    some = st.lists(elements(low, high, names), min_size=1, max_size=3).map(",".join)
    many = st.lists(st.integers(low, high).map(str), min_size=1, max_size=high - low + 1).map(",".join)
    return st.just("*") | some | many


MINUTE_FIELDS, HOUR_FIELDS = fields(0, 59), fields(0, 23)
DAY_FIELDS, MONTH_FIELDS, WEEKDAY_FIELDS = fields(1, 31), fields(1, 12, MONTHS), fields(0, 7, WEEKDAYS)


def lines() -> st.SearchStrategy[str]:
    parts = st.tuples(MINUTE_FIELDS, HOUR_FIELDS, DAY_FIELDS, MONTH_FIELDS, WEEKDAY_FIELDS)
    return parts.map(" ".join)


def midnights() -> st.SearchStrategy[str]:
    """Lines at midnight that match few days, such as the last days of one or two months."""
    late = st.sampled_from(["28-31", "29", "30", "31", "29,31", "*/28", "*/29", "*/30"])
    few = st.lists(st.integers(1, 12).map(str), min_size=1, max_size=2).map(",".join)
    return st.tuples(late | DAY_FIELDS, few | MONTH_FIELDS, WEEKDAY_FIELDS).map(
        lambda part: f"0 0 {part[0]} {part[1]} {part[2]}"
    )
