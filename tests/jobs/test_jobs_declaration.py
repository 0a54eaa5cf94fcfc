"""Declaring jobs: valid and invalid declarations, counted arguments, and pauses between attempts."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall import job
from holdall.errors import InvalidOptionsError, JobDefinitionError
from holdall.jobs import Job
from holdall.jobs.declaration import JobOptions, check_queues, declared_jobs, seconds_of

declare: Any = job  # untyped, because some tests pass wrong options


def function(*arguments: Any) -> Any:
    """What it does."""
    return arguments


# --- valid declarations ---------------------------------------------------------------------------------


def test_a_declared_job_is_registered_by_name_and_still_callable() -> None:
    made = declare("declared-one", queue="q", retries=0)(function)
    assert isinstance(made, Job)
    assert declared_jobs()["declared-one"] is made
    assert (made.name, made.options.queue, made.options.retries) == ("declared-one", "q", 0)
    assert made(1, 2) == (1, 2)
    assert made.__doc__ == "What it does."
    assert made.__wrapped__ is function
    assert repr(made) == "<job declared-one: test_jobs_declaration.function>"


def test_options_have_defaults() -> None:
    made = declare("declared-plain")(function)
    assert made.options == JobOptions("default", 10, 1.0, None, None, False, False)
    assert made.schedule is None


def test_a_duration_can_be_a_timedelta() -> None:
    assert declare("declared-once", once_for=timedelta(hours=1))(function).options.once_for == 3600.0


@pytest.mark.parametrize(
    ("options", "text"), [({"every": 90}, "every:90"), ({"cron": "@daily"}, "0 0 * * *")]
)
def test_a_job_can_recur(options: dict[str, Any], text: str) -> None:
    assert declare("declared-recurring", **options)(function).schedule.text == text


def test_the_same_function_can_be_declared_again() -> None:
    first = declare("declared-again")(function)
    second = declare("declared-again", retries=3)(function)
    assert declared_jobs()["declared-again"] is second is not first


@pytest.mark.parametrize("name", ["a", "A9", "send-9-receipts", "mail.send:now_1", "x" * 100])
def test_a_name_can_have_letters_digits_and_some_punctuation(name: str) -> None:
    assert declare(name)(function).name == name


async def _async(*arguments: Any) -> None: ...


class Callee:
    async def __call__(self) -> None: ...


class PlainCallee:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("given", "is_async"),
    [
        (function, False),
        (_async, True),
        (partial(_async, 1), True),
        (partial(function, 1), False),
        (Callee(), True),
        (PlainCallee(), False),
        (lambda: None, False),
    ],
)
def test_a_job_knows_whether_it_is_async(given: Callable[..., Any], is_async: bool) -> None:
    assert declare("declared-colour")(given).is_async is is_async


# --- refused declarations -------------------------------------------------------------------------------

NAMES: list[Any] = ["", " ", "a b", "-a", ".a", "a#b", "a/b", "é", "a\n", "x" * 101, None, 5, function]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: getattr(name, "__name__", repr(name)))
def test_an_invalid_name_is_refused(name: Any) -> None:
    with pytest.raises(JobDefinitionError, match="is not a valid name for a job"):
        declare(name)


OPTIONS: list[dict[str, Any]] = [
    {"retries": -1},
    {"retries": 1.0},
    {"retries": True},
    {"retries": "3"},
    {"backoff": 0},
    {"backoff": -1},
    {"backoff": math.inf},
    {"backoff": math.nan},
    {"backoff": "1"},
    {"timeout": 0},
    {"timeout": True},
    {"timeout": timedelta(seconds=1)},
    {"queue": "a b"},
    {"queue": ""},
    {"queue": "x" * 65},
    {"queue": None},
    {"once_for": -1},
    {"once_for": "day"},
    {"once_for": timedelta(days=400)},
    {"every": 0},
    {"every": "hour"},
    {"cron": "* * *"},
    {"cron": "@never"},
    {"every": 60, "cron": "@daily"},
    {"transactional": True, "process": True},
    {"transactional": "yes"},
    {"process": 1},
    {"retry": 3},
    {"key": "k"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_an_invalid_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(JobDefinitionError, match="declared-badly"):
        declare("declared-badly", **options)
    assert "declared-badly" not in declared_jobs()


def test_a_value_that_is_not_callable_is_refused() -> None:
    with pytest.raises(JobDefinitionError, match="is not callable"):
        declare("declared-nothing")(None)


def yield_plainly() -> Any:
    yield


async def yield_asynchronously() -> Any:
    yield


@pytest.mark.parametrize("given", [yield_plainly, yield_asynchronously, partial(yield_plainly)])
def test_a_generator_function_is_refused(given: Any) -> None:
    with pytest.raises(JobDefinitionError, match=r"the job declared-lazy: .* is a generator function"):
        declare("declared-lazy")(given)
    assert "declared-lazy" not in declared_jobs()


def test_two_functions_cannot_have_one_name() -> None:
    declare("declared-twice")(function)
    with pytest.raises(JobDefinitionError, match="two jobs are called declared-twice"):
        declare("declared-twice")(_async)
    assert declared_jobs()["declared-twice"].function is function


def test_a_recurring_job_is_called_without_arguments() -> None:
    with pytest.raises(JobDefinitionError, match="without arguments"):
        declare("declared-needy", every=60)(lambda argument: None)
    declare("declared-modest", every=60)(lambda argument=1: None)
    declare("declared-transactional", every=60, transactional=True)(lambda tx: None)


def test_a_job_cannot_need_keywords() -> None:
    def needs(*, word: str) -> None: ...

    with pytest.raises(JobDefinitionError, match="word by keyword"):
        declare("declared-keywords")(needs)


def test_a_transactional_job_needs_a_parameter_for_its_transaction() -> None:
    with pytest.raises(JobDefinitionError, match="no parameter for the transaction"):
        declare("declared-without", transactional=True)(lambda: None)


# --- arguments ------------------------------------------------------------------------------------------


def _none() -> None: ...
def _two(a: int, b: int) -> None: ...
def _some(a: int, b: int = 2, /, *, c: int = 3) -> None: ...
def _any(a: int, *rest: int) -> None: ...


@pytest.mark.parametrize(
    ("given", "transactional", "counts"),
    [
        (_none, False, {0}),
        (_two, False, {2}),
        (_two, True, {1}),
        (_some, False, {1, 2}),
        (_some, True, {0, 1}),
        (_any, False, {1, 2, 3, 4}),
        (_any, True, {0, 1, 2, 3, 4}),
    ],
)
def test_arguments_are_counted(given: Callable[..., Any], transactional: bool, counts: set[int]) -> None:
    made = declare("declared-counting", transactional=transactional)(given)
    for count in range(5):
        if count in counts:
            made.accepts(*range(count))
        else:
            with pytest.raises(InvalidOptionsError, match=f"takes .*, not {count}"):
                made.accepts(*range(count))


# --- pauses ---------------------------------------------------------------------------------------------


@given(
    backoff=st.floats(0.001, 1e6),
    attempts=st.integers(1, 10_000),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_a_pause_doubles_up_to_an_hour_and_half_of_it_is_random(
    backoff: float, attempts: int, chance: float
) -> None:
    longest = min(3600.0, backoff * 2 ** min(attempts - 1, 60))
    pause = JobOptions(backoff=backoff).delay(attempts, chance)
    assert longest / 2 <= pause <= longest
    assert pause == pytest.approx(longest * (1 + chance) / 2)


# --- queues and durations -------------------------------------------------------------------------------


def test_queues_keep_their_order_without_duplicates() -> None:
    assert check_queues(["b", "a", "b"]) == ("b", "a")
    assert check_queues("one") == ("one",)
    with pytest.raises(InvalidOptionsError, match="queues must not be empty"):
        check_queues([])


@given(st.timedeltas(timedelta(0), timedelta(days=366)))
def test_a_duration_is_the_same_in_seconds_and_as_a_timedelta(duration: timedelta) -> None:
    assert seconds_of(duration, "delay") == seconds_of(duration.total_seconds(), "delay")
