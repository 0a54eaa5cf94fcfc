"""Handlers of events: functions that hear what happened, as jobs.

A process that changes something enqueues one job for each handler that it knows, in the same transaction as the change:
so each handler is called for each change at least once, and never for one that did not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from hashlib import sha256
from typing import Any

from holdall.errors import InvalidOptionsError, JobDefinitionError
from holdall.jobs.declaration import Job, JobOptions, check_function, declared_jobs, job

_LONGEST = 80


def declare_handler(
    function: Callable[..., Any],
    room: str,
    kinds: Sequence[str],
    known: Sequence[str],
    read_event: Callable[[dict[str, Any]], Any],
    name: str | None,
    options: Mapping[str, Any],
) -> None:
    """Make a function the handler of a room's events of these kinds; ``read_event`` makes one of what a job keeps."""
    unknown = [kind for kind in kinds if kind not in known]
    if not kinds or unknown:
        raise JobDefinitionError(
            f"a handler names unknown events: {', '.join(map(repr, unknown))}"
            if unknown
            else "a handler names no event",
            hint=f"the events of {room} are: {', '.join(known)}",
        )
    called = name or _name_of(room, function)
    check_function(called, function)
    handle = _as_job(function, read_event)
    _check_takes_event(called, handle, bool(options.get("transactional")))
    declare: Any = job(called, **options)
    declared = declared_jobs().get(called)
    earlier = () if declared is None else declared.topics  # of another decorator above the function
    declare(handle).topics = (*earlier, *(f"{room}:{kind}" for kind in kinds))


def handlers_of(room: str, kind: str) -> Iterable[str]:
    """The names of the jobs that handle a kind of event."""
    topic = f"{room}:{kind}"
    return [name for name, each in declared_jobs().items() if topic in each.topics]


def _name_of(room: str, function: Any) -> str:
    """A name after where the function is; of a long place, or one with other signs in it, a digest keeps it apart."""
    called = getattr(function, "__qualname__", type(function).__qualname__)
    place = f"{getattr(function, '__module__', '')}.{called}"
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "_.-") else "_" for each in place)
    if len(plain) > _LONGEST or not place.isascii():
        plain = f"{plain[: _LONGEST - 9]}-{sha256(place.encode()).hexdigest()[:8]}"
    return f"{room}:{plain}"


def _check_takes_event(name: str, handle: Callable[..., Any], transactional: bool) -> None:
    """Refuse now what would else fail whoever makes a change."""
    try:
        made: Job[*tuple[Any, ...]] = Job(name, handle, JobOptions(transactional=transactional))
        made.accepts({})
    except InvalidOptionsError as error:
        raise JobDefinitionError(
            f"the handler {name} cannot be called with an event: {error.message}", hint=error.hint
        ) from None


def _as_job(function: Callable[..., Any], read_event: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """The function as one that takes what a job can keep of an event; a transaction, if there is one, comes first."""
    from inspect import iscoroutinefunction

    if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004

        @wraps(function)
        async def handle(*arguments: Any) -> Any:
            return await function(*arguments[:-1], read_event(arguments[-1]))

    else:

        @wraps(function)
        def handle(*arguments: Any) -> Any:
            return function(*arguments[:-1], read_event(arguments[-1]))

    return handle
