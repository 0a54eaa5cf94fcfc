"""The retry rule: which errors are worth another attempt, how many, and how long to wait before each.

Pure. The backoff doubles from ``initial_backoff`` up to ``max_backoff``, and the wait is a random part of it (full
jitter), so that transactions that collided do not collide again. Without ``retries``, contention is retried for
`PATIENCE`: each collision means that another transaction committed, so even a hundred competing transactions all
commit. Any other error is retried `RETRIES` times: more retries do not help a service that is down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict

from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.core.option import check_switch
from holdall.errors import (
    AfterCommitError,
    ConflictError,
    ContentionError,
    InvalidOptionsError,
    TransactionFailedError,
    TransactionTimeoutError,
)

RETRIES = 3
PATIENCE = timedelta(seconds=30)


class TransactionArguments(TypedDict, total=False):
    """The keyword arguments of ``db.transaction``."""

    read_only: bool
    strict: bool


class RunArguments(TypedDict, total=False):
    """The keyword arguments of ``db.run`` and ``db.transactional``."""

    retries: int | None
    initial_backoff: float
    max_backoff: float
    timeout: float | None
    read_only: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a transaction is run; times are in seconds.

    ``retries`` is the number of attempts after the first; None means 3, or after contention as many as can begin within
    30 seconds. No attempt begins later than ``timeout`` after the first. ``read_only``: the transaction must not write,
    and it verifies that everything it read, including every row of a query, was true at the same moment; rows that
    appear in a query in the meantime are not noticed. ``strict``: reading an item twice is an error.
    """

    retries: int | None = None
    initial_backoff: float = 0.025
    max_backoff: float = 1.0
    timeout: float | None = None
    read_only: bool = False
    strict: bool = False


_DEFAULT = RunOptions()


def run_options(given: Mapping[str, Any]) -> RunOptions:
    """Check the options; `InvalidOptionsError` names the one that is wrong."""
    if not given:
        return _DEFAULT
    known = RunOptions.__match_args__
    for name in given:
        if name not in known:
            raise InvalidOptionsError(f"unknown option {name!r}", hint=suggest_name(name, known, "options"))
    options = RunOptions(**given)
    if options.retries is not None:
        _check(options, "retries", int, 0)
    _check(options, "initial_backoff", (int, float), 0)
    _check(options, "max_backoff", (int, float), 0)
    if options.timeout is not None:
        _check(options, "timeout", (int, float), 0)
    check_switch(options.read_only, "read_only")
    check_switch(options.strict, "strict")
    return options


def check_transaction(
    read_only: bool = False, strict: bool = False, **others: object
) -> TransactionArguments:
    """Return the options of a single attempt; `InvalidOptionsError` names one that is unknown."""
    for name in others:
        hint = suggest_name(name, ("read_only", "strict"), "options")
        if name in RunOptions.__match_args__:
            hint = f"a `with` block is one attempt: use db.run(function, {name}=...)"
        raise InvalidOptionsError(f"a transaction has no option {name!r}", hint=hint)
    check_switch(read_only, "read_only")
    check_switch(strict, "strict")
    return TransactionArguments(read_only=read_only, strict=strict)


def _check(options: RunOptions, name: str, kind: Any, least: float) -> None:
    value = getattr(options, name)
    if isinstance(value, bool) or not isinstance(value, kind) or not (least <= value < math.inf):
        what = "a whole number" if kind is int else "a number of seconds"
        raise InvalidOptionsError(f"{name} must be {what}, at least {least}, not {value!r}")


def backoff(options: RunOptions, retry: int) -> float:
    """Return the longest wait before a retry; the first retry is number 0."""
    return min(options.max_backoff, options.initial_backoff * 2.0 ** min(retry, 1000))


def is_retryable(error: BaseException) -> bool:
    """Whether another attempt can help: the error's ``retryable``; for a group, that of all its errors."""
    if isinstance(error, AfterCommitError):
        return False  # a committed transaction is never run again
    if isinstance(error, BaseExceptionGroup):
        return all(is_retryable(member) for member in error.exceptions)
    return isinstance(error, Exception) and bool(getattr(error, "retryable", False))


def final_error(
    options: RunOptions, attempts: int, started: datetime, now: datetime, cause: BaseException
) -> TransactionFailedError | None:
    """Return the error that ends a run after this many attempts; None if another attempt may begin."""
    why = str(cause).partition("\n")[0] or type(cause).__name__
    if is_exhausted(options, attempts, now - started, cause):
        times = "" if attempts == 1 else f" in {attempts} attempts"
        return TransactionFailedError(
            f"the transaction could not be committed{times}: {why}",
            attempts=attempts,
            hint=None if attempts > 1 else "run it with db.run, which tries again",
        )
    if options.timeout is not None and now - started >= timedelta(seconds=options.timeout):
        return TransactionTimeoutError(
            f"the transaction could not be committed within {options.timeout:g} seconds, in {attempts} attempts: {why}",
            attempts=attempts,
        )
    return None


def is_exhausted(options: RunOptions, attempts: int, spent: timedelta, cause: BaseException) -> bool:
    """Whether a run ends after this many attempts in this much time."""
    if options.retries is not None:
        return attempts > options.retries
    return attempts > RETRIES and not (_is_contention(cause) and spent < PATIENCE)


def _is_contention(error: BaseException) -> bool:
    """Whether the error means that another transaction committed; False if nothing is known to have changed."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_contention(member) for member in error.exceptions)
    return isinstance(error, ConflictError) or (isinstance(error, ContentionError) and bool(error.items))


def latest_begin(options: RunOptions, started: datetime) -> datetime:
    """Return until when an attempt may wait for its turn."""
    if options.timeout is None:
        return started + PATIENCE
    return started + min(PATIENCE, timedelta(seconds=options.timeout))
