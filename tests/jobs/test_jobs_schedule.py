"""When recurring jobs are due: compared with a slow oracle and with vectors; and refused schedules."""

from __future__ import annotations

import pickle
import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from cron_oracle import DAY, lines, list_days, list_minutes, midnights
from hypothesis import assume, given
from hypothesis import strategies as st

from holdall.errors import InvalidOptionsError
from holdall.jobs.schedule import Schedule, schedule

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT = re.compile(r"[A-Za-z0-9 */,@:.-]{1,250}")

moments = st.datetimes(datetime(1890, 1, 1), datetime(2130, 1, 1), timezones=st.just(UTC))
intervals = st.timedeltas(timedelta(seconds=1), timedelta(days=36525))


def every(interval: timedelta | float) -> Schedule:
    made = schedule(every=interval)
    assert made is not None
    return made


def cron(line: str) -> Schedule:
    made = schedule(cron=line)
    assert made is not None
    return made


def cron_or_none(line: str) -> Schedule | None:
    try:
        return schedule(cron=line)
    except InvalidOptionsError as error:
        if "never occurs" not in error.message:
            raise
        return None


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def list_occurrences(made: Schedule, after: datetime, until: datetime) -> list[datetime]:
    found = []
    while (due := made.next_after(after)) <= until:
        assert due > after
        found.append(after := due)
    return found


# --- every or cron ---


def test_without_every_and_cron_there_is_no_schedule() -> None:
    assert schedule() is None
    assert schedule(every=None, cron=None) is None


def test_every_and_cron_together_are_refused() -> None:
    with pytest.raises(InvalidOptionsError, match="both given"):
        schedule(every=60, cron="@daily")


# --- every ---


@pytest.mark.parametrize(
    ("interval", "after", "due"),
    [
        (timedelta(hours=1), "2026-03-01T10:20:30", "2026-03-01T11:00:00"),
        (timedelta(hours=1), "2026-03-01T10:59:59.999999", "2026-03-01T11:00:00"),
        (timedelta(hours=1), "2026-03-01T11:00:00", "2026-03-01T12:00:00"),
        (timedelta(days=1), "2026-03-01T10:20:30", "2026-03-02T00:00:00"),
        (timedelta(days=7), "1970-01-01T00:00:00", "1970-01-08T00:00:00"),  # weeks begin on a Thursday
        (timedelta(days=7), "1969-12-31T23:59:59", "1970-01-01T00:00:00"),
        (timedelta(days=7), "1969-12-25T00:00:00", "1970-01-01T00:00:00"),
        (90, "2026-03-01T00:00:00", "2026-03-01T00:01:30"),
        (2.5, "1970-01-01T00:00:01", "1970-01-01T00:00:02.5"),
        (1, "2026-03-01T10:20:30.5", "2026-03-01T10:20:31"),
    ],
)
def test_an_interval_is_counted_from_1970(interval: timedelta | float, after: str, due: str) -> None:
    assert every(interval).next_after(utc(after)) == utc(due)


@given(intervals, moments)
def test_the_next_multiple_is_the_only_one_within_an_interval(interval: timedelta, moment: datetime) -> None:
    due = every(interval).next_after(moment)
    assert (due - EPOCH) % interval == timedelta(0)
    assert timedelta(0) < due - moment <= interval
    assert due.tzinfo is UTC


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (timedelta(hours=1), "every:3600"),
        (3600, "every:3600"),
        (3600.0, "every:3600"),
        (1, "every:1"),
        (1.5, "every:1.5"),
        (timedelta(seconds=10, microseconds=1), "every:10.000001"),
        (10.01, "every:10.01"),
        (timedelta(days=36525), "every:3155760000"),
    ],
)
def test_the_text_of_an_interval_is_its_seconds(interval: timedelta | float, text: str) -> None:
    assert every(interval).text == text


@given(intervals, intervals)
def test_different_intervals_have_different_texts(one: timedelta, other: timedelta) -> None:
    assert TEXT.fullmatch(every(one).text)
    assert (every(one).text == every(other).text) == (one == other)


@pytest.mark.parametrize(
    "interval",
    [
        *(0, -1, 0.999, 0.0, -3600.0, float("inf"), float("nan"), 10**12),
        *(timedelta(0), timedelta(seconds=-1), timedelta(microseconds=999_999), timedelta.max, timedelta.min),
    ],
)
def test_an_interval_too_short_or_too_long_is_refused(interval: timedelta | float) -> None:
    with pytest.raises(InvalidOptionsError, match=r"every must be from 1 second to 36525 days"):
        schedule(every=interval)


@pytest.mark.parametrize("interval", [True, "60", "1h", [60], EPOCH])
def test_an_interval_of_another_type_is_refused(interval: Any) -> None:
    with pytest.raises(InvalidOptionsError, match=r"every must be a timedelta or a number of seconds"):
        schedule(every=interval)


# --- cron: the times ---


@given(lines(), moments)
def test_cron_occurs_at_the_minutes_that_the_oracle_finds(line: str, after: datetime) -> None:
    made = cron_or_none(line)
    assume(made is not None)
    assert made is not None
    until = after + 2 * DAY
    assert list_occurrences(made, after, until) == list_minutes(line, after, until)


@given(midnights(), st.dates(date(1890, 1, 1), date(2130, 1, 1)))
def test_cron_occurs_on_the_days_that_the_oracle_finds(line: str, first: date) -> None:
    made = cron_or_none(line)
    assume(made is not None)
    assert made is not None
    start = datetime.combine(first, time.min, UTC)
    found = list_occurrences(made, start - timedelta(microseconds=1), start + 3300 * DAY)
    assert found == [
        datetime.combine(day, time.min, UTC) for day in list_days(line, first, first + 3300 * DAY)
    ]


@given(midnights())
def test_a_cron_line_is_refused_exactly_if_it_never_occurs(line: str) -> None:
    # in 28 years without a skipped leap day, each date falls on each weekday
    happens = bool(list_days(line, date(1996, 1, 1), date(2024, 12, 31)))
    assert (cron_or_none(line) is not None) == happens


@pytest.mark.parametrize(
    ("line", "after", "due"),
    [
        ("0 3 * * *", "2026-03-01T02:59:59.999999", "2026-03-01T03:00"),
        ("0 3 * * *", "2026-03-01T03:00", "2026-03-02T03:00"),
        ("0 3 * * *", "2026-12-31T03:00:01", "2027-01-01T03:00"),
        ("* * * * *", "2026-12-31T23:59:59", "2027-01-01T00:00"),
        ("*/15 9-17 * * mon-fri", "2026-03-06T17:45", "2026-03-09T09:00"),  # Friday to Monday
        ("5-55/20 * * * *", "2026-03-01T00:25", "2026-03-01T00:45"),
        ("0 0 31 * *", "2026-01-31T00:00", "2026-03-31T00:00"),
        ("0 0 31 * *", "2026-03-31T00:00", "2026-05-31T00:00"),
        ("59 23 31 dec *", "2026-12-31T23:59", "2027-12-31T23:59"),
        ("0 0 29 2 *", "2024-02-29T00:00", "2028-02-29T00:00"),
        ("0 0 29 2 *", "2096-02-29T00:00", "2104-02-29T00:00"),  # 2100 is not a leap year
        ("0 0 29 2 *", "1996-02-29T00:00", "2000-02-29T00:00"),  # and 2000 is one
        ("0 0 29 2 */7", "2088-02-29T00:00", "2128-02-29T00:00"),  # a Sunday: the longest possible wait
        ("0 0 13 * fri", "2026-03-01T00:00", "2026-03-06T00:00"),  # a Friday or a 13th
        ("0 0 13 * fri", "2026-04-10T00:00", "2026-04-13T00:00"),
        ("0 0 1-7 * */7", "2026-03-01T00:00", "2026-04-05T00:00"),  # the first Sunday
        ("0 0 */2 * 1", "2026-03-03T00:00", "2026-03-09T00:00"),  # Mondays with an odd number
        ("0 0 1-31 * mon", "2026-03-03T00:00", "2026-03-04T00:00"),  # no star: any day is enough
        ("0 0 * * 7", "2026-03-01T00:00", "2026-03-08T00:00"),
        ("0 0 * * sat-sun", "2026-03-07T00:00", "2026-03-08T00:00"),
        ("0 0 * * 5-7", "2026-03-08T00:00", "2026-03-13T00:00"),
        ("@hourly", "2026-03-01T10:20", "2026-03-01T11:00"),
        ("@daily", "2026-03-01T10:20", "2026-03-02T00:00"),
        ("@weekly", "2026-03-02T10:20", "2026-03-08T00:00"),
        ("@monthly", "2026-03-01T10:20", "2026-04-01T00:00"),
        ("@yearly", "2026-03-01T10:20", "2027-01-01T00:00"),
    ],
)
def test_cron_is_due_next_at_the_expected_time(line: str, after: str, due: str) -> None:
    assert cron(line).next_after(utc(after)) == utc(due)


# --- cron: the text ---


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("0 3 * * *", "0 3 * * *"),
        ("  00   03 *\t* * ", "0 3 * * *"),
        ("@hourly", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("30,0 * * * *", "0,30 * * * *"),
        ("*/30 * * * *", "0,30 * * * *"),
        ("0,15,30,45 */1 * * *", "*/15 * * * *"),
        ("5,15-55/10 * * * *", "5-55/10 * * * *"),
        ("1,2,3,7 0-23 * * *", "1-3,7 * * * *"),
        ("*/60 */24 * * *", "0 0 * * *"),
        ("0 0 * JAN,feb Mon-FRI", "0 0 * 1-2 1-5"),
        ("0 0 * * 7,0", "0 0 * * 0"),
        ("0 0 * * fri-sun", "0 0 * * 0,5-6"),
        ("0 0 * * 1-7", "0 0 * * *"),
        ("0 0 1-31/2 * *", "0 0 */2 * *"),
        ("0 0 1-31/2 * 1", "0 0 1-31/2 * 1"),  # one of the two is enough
        ("0 0 */2 * 1", "0 0 */2 * 1"),  # both are needed
        ("0 0 1-7 * */7", "0 0 1-7 * */7"),
        ("0 0 */31,1-7 * sun", "0 0 1-7 * */7"),
        ("0 0 */31,1-7 * mon", "0 0 */31,2-7 * 1"),
        ("0 0 1-31 * mon", "0 0 * * *"),
        ("0 0 13 * sun-sat", "0 0 * * *"),
    ],
)
def test_equivalent_cron_lines_have_the_same_text(line: str, text: str) -> None:
    assert cron(line).text == text


@given(lines())
def test_the_text_of_cron_reads_back_as_the_same_schedule(line: str) -> None:
    made = cron_or_none(line)
    assume(made is not None)
    assert made is not None
    assert cron(made.text) == made
    assert TEXT.fullmatch(made.text)


def test_the_longest_text_stays_a_short_part_of_a_key() -> None:
    def pairs(low: int, high: int) -> str:
        return ",".join(f"{first}-{first + 1}" for first in range(low, high, 3))

    line = f"{pairs(1, 59)} {pairs(1, 23)} {pairs(1, 30)},31 {pairs(2, 12)} {pairs(0, 5)},6"
    assert cron(line).text == line
    assert TEXT.fullmatch(line)


# --- cron: refused lines ---


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("60 * * * *", "'60' as its minute: '60' is not a number from 0 to 59$"),
        ("-1 * * * *", "'-1' as its minute: '' is not a number"),
        ("1,,2 * * * *", "'' as its minute"),
        ("* 24 * * *", "'24' as its hour: '24' is not a number from 0 to 23$"),
        ("* 1.5 * * *", "'1.5' as its hour"),
        ("* * 0 * *", "'0' as its day of month: '0' is not a number from 1 to 31$"),
        ("* * L * *", "'l' as its day of month"),
        ("* * 9-5 * *", "'9-5' as its day of month: a range must go from the smaller value to the larger"),
        ("* * * 13 *", "'13' as its month: '13' is not a number from 1 to 12 or a name from jan to dec"),
        ("* * * january *", "'january' as its month"),
        ("* * * mon *", "'mon' as its month"),
        ("* * * * 8", "'8' as its day of week: '8' is not a number from 0 to 7 or a name from sun to sat"),
        ("* * * * fri-mon", "'fri-mon' as its day of week: a range must go"),
        ("* * * * ?", r"'\?' as its day of week"),
        ("* * * * ٣", "as its day of week"),
        ("*/0 * * * *", r"'\*/0' as its minute: the step must be a number from 1 to 60"),
        ("*/90 * * * *", r"'\*/90' as its minute: the step must be a number from 1 to 60"),
        ("* */x * * *", "as its hour: the step"),
        ("* */ * * *", "as its hour: the step"),
        ("* * * */feb *", "as its month: the step"),
        ("* */2/3 * * *", "as its hour: the step"),
        ("5/10 * * * *", "'5/10' as its minute: a step needs a range, as in 5-59/10"),
        ("*5 * * * *", r"'\*5' as its minute"),
        ("1-2-3 * * * *", "'1-2-3' as its minute"),
        (f"{'9' * 5000} * * * *", "as its minute"),
        ("", "must have 5 fields, but '' has 0"),
        ("* * * *", "must have 5 fields, .* has 4"),
        ("0 * * * * *", "must have 5 fields, .* has 6"),
        ("@reboot", "is not a shorthand of cron"),
        ("@daily *", "is not a shorthand of cron"),
        ("0 0 31 2 *", "cron '0 0 31 2 .' never occurs"),
        ("0 0 30,31 feb *", "never occurs"),
        ("0 0 31 4,6,9,11 *", "never occurs"),
        ("0 0 31 feb */2", "never occurs"),
    ],
)
def test_an_invalid_cron_line_is_refused_with_the_name_of_the_field(line: str, message: str) -> None:
    with pytest.raises(InvalidOptionsError, match=message) as refused:
        schedule(cron=line)
    assert len(str(refused.value)) < 300


def test_an_impossible_date_is_accepted_if_a_weekday_is_enough() -> None:
    assert cron("0 0 31 2 mon").next_after(utc("2026-02-03T00:00")) == utc("2026-02-09T00:00")


@pytest.mark.parametrize("line", [5, b"* * * * *", ["*"] * 5, True])
def test_cron_of_another_type_is_refused(line: Any) -> None:
    with pytest.raises(InvalidOptionsError, match="must be text"):
        schedule(cron=line)


# --- both kinds ---


KINDS = [every(3600), cron("0 * * * *")]


@pytest.mark.parametrize("made", KINDS, ids=lambda made: made.text)
def test_a_moment_in_another_time_zone_gives_the_same_occurrence(made: Schedule) -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    due = made.next_after(datetime(2026, 3, 1, 4, 50, tzinfo=kathmandu))  # 23:05 UTC, a day earlier
    assert due == utc("2026-03-01T00:00")
    assert due.tzinfo is UTC


@pytest.mark.parametrize("made", KINDS, ids=lambda made: made.text)
def test_a_moment_without_a_time_zone_is_refused(made: Schedule) -> None:
    with pytest.raises(InvalidOptionsError, match="has no time zone"):
        made.next_after(datetime(2026, 3, 1))


@pytest.mark.parametrize("made", [*KINDS, cron("0 0 29 2 *")], ids=lambda made: made.text)
def test_after_the_last_date_of_the_calendar_an_error_is_raised(made: Schedule) -> None:
    with pytest.raises(OverflowError):
        made.next_after(datetime(9999, 12, 31, 23, 30, tzinfo=UTC))


@pytest.mark.parametrize("made", KINDS, ids=lambda made: made.text)
def test_a_schedule_is_a_value(made: Schedule) -> None:
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert hash(again) == hash(made)
    assert KINDS[0] != KINDS[1]
