"""Event handlers: functions that are called, as jobs, after something has happened.

A process that makes a change enqueues one job for each handler that it knows, in the same transaction as the change.
Each handler is therefore called at least once for each change, and never for a change that did not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from hashlib import sha256
from typing import Any

from holdall.core.nearest_name import suggest_name
from holdall.errors import InvalidOptionsError, JobDefinitionError
from holdall.jobs.declaration import Job, JobOptions, check_function, declared_jobs, is_async_function, job

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
    """Make a function the handler of these kinds of a room's events; ``read_event`` rebuilds an event from a job."""
    unknown = [kind for kind in kinds if kind not in known]
    if not kinds or unknown:
        raise JobDefinitionError(
            f"a handler names unknown events: {', '.join(map(repr, unknown))}"
            if unknown
            else "a handler names no event",
            hint=suggest_name(unknown[0] if unknown else "", known, f"events of {room}"),
        )
    called = name or _name_of(room, function)
    check_function(called, function)
    handle = _as_job(function, read_event)
    _check_takes_event(called, handle, bool(options.get("transactional")))
    declare: Any = job(called, **options)
    declared = declared_jobs().get(called)
    earlier = () if declared is None else declared.topics  # from another decorator on the same function
    declare(handle).topics = (*earlier, *(f"{room}:{kind}" for kind in kinds))


def handlers_of(room: str, kind: str) -> Iterable[str]:
    """The names of the jobs that handle a kind of event."""
    topic = f"{room}:{kind}"
    return [name for name, each in declared_jobs().items() if topic in each.topics]


def _name_of(room: str, function: Any) -> str:
    """A job name from the function's module and name; if that is long or not ASCII, a digest keeps it unique."""
    called = getattr(function, "__qualname__", type(function).__qualname__)
    place = f"{getattr(function, '__module__', '')}.{called}"
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "_.-") else "_" for each in place)
    if len(plain) > _LONGEST or not place.isascii():
        plain = f"{plain[: _LONGEST - 9]}-{sha256(place.encode()).hexdigest()[:8]}"
    return f"{room}:{plain}"


def _check_takes_event(name: str, handle: Callable[..., Any], transactional: bool) -> None:
    """Refuse a handler that cannot take an event now, because later the refusal would fail the change itself."""
    try:
        made: Job[*tuple[Any, ...]] = Job(name, handle, JobOptions(transactional=transactional))
        made.accepts({})
    except InvalidOptionsError as error:
        raise JobDefinitionError(
            f"the handler {name} cannot be called with an event: {error.message}", hint=error.hint
        ) from None


def _as_job(function: Callable[..., Any], read_event: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """Wrap the function so that it takes an event as a job stores it, after the transaction if there is one."""
    if is_async_function(function):

        @wraps(function)
        async def handle(*arguments: Any) -> Any:
            return await function(*arguments[:-1], read_event(arguments[-1]))

    else:

        @wraps(function)
        def handle(*arguments: Any) -> Any:
            return function(*arguments[:-1], read_event(arguments[-1]))

    return handle
