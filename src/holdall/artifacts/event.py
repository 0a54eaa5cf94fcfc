"""Events: what happened to an artifact, delivered to handlers through the outbox.

A handler is a job. A process that changes an artifact enqueues one job for each handler that it knows, in the same
transaction as the change: so each handler is called for each change at least once, and never for one that did not
happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from hashlib import sha256
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from holdall.artifacts.name import display_version
from holdall.artifacts.record import parse_moment, show_moment
from holdall.core.frozen import dataclass
from holdall.errors import InvalidOptionsError, JobDefinitionError
from holdall.jobs.declaration import Job, JobOptions, check_function, declared_jobs, job
from holdall.tables.commit.change import Change

F = TypeVar("F", bound=Callable[..., Any])

EventKind: TypeAlias = Literal["published", "alias_moved", "deleted", "restored"]
"""What can happen: a version was published, an alias points elsewhere (or nowhere), a version was deleted or came
back."""

KINDS: tuple[str, ...] = get_args(EventKind)


@dataclass(frozen=True, slots=True)
class ArtifactEvent:
    """Something that happened. ``id`` is the same for all handlers, and when one is tried again.

    ``version`` and ``sha256`` are those of a version; ``alias``, with the weights that it had ``before`` and has
    ``after`` (none: it is not there), those of an alias.
    """

    id: str
    kind: EventKind
    name: str
    at: datetime
    version: str | None = None
    sha256: str | None = None
    alias: str | None = None
    before: dict[str, int] | None = None
    after: dict[str, int] | None = None


_LONGEST = 80


def on(*kinds: EventKind, name: str | None = None, **options: Any) -> Callable[[F], F]:
    """A decorator: the function hears of events of these kinds, in a worker.

    It becomes a job, called ``name`` or after where it is defined, with the options of any job (``queue``, ``retries``,
    ...). The processes that change artifacts have to know it: import its module there, too.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if not kinds or unknown:
        raise JobDefinitionError(
            f"a handler for {', '.join(map(repr, unknown)) or 'nothing'}",
            hint=f"the events of artifacts are: {', '.join(KINDS)}",
        )

    def decorate(function: F) -> F:
        called = name or _name_of(function)
        check_function(called, function)
        handle = _as_job(function)
        _check_takes_event(called, handle, bool(options.get("transactional")))
        declare: Any = job(called, **options)
        earlier = (
            declared_jobs()[called].topics if called in declared_jobs() else ()
        )  # of another @on above the function
        declare(handle).topics = (*earlier, *map(_topic, kinds))
        return function

    return decorate


def _topic(kind: EventKind) -> str:
    return f"artifacts:{kind}"


def _name_of(function: Any) -> str:
    """A name after where the function is; of a long place, or one with other signs in it, a digest keeps it apart."""
    called = getattr(function, "__qualname__", type(function).__qualname__)
    place = f"{getattr(function, '__module__', '')}.{called}"
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "_.-") else "_" for each in place)
    if len(plain) > _LONGEST or not place.isascii():
        plain = f"{plain[: _LONGEST - 9]}-{sha256(place.encode()).hexdigest()[:8]}"
    return f"artifacts:{plain}"


def _check_takes_event(name: str, handle: Callable[..., Any], transactional: bool) -> None:
    """Refuse now what would else fail whoever changes an artifact."""
    try:
        made: Job[*tuple[Any, ...]] = Job(name, handle, JobOptions(transactional=transactional))
        made.accepts({})
    except InvalidOptionsError as error:
        raise JobDefinitionError(
            f"the handler {name} cannot be called with an event: {error.message}", hint=error.hint
        ) from None


def _as_job(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one that takes what a job can keep of an event; a transaction, if there is one, comes first."""
    from inspect import iscoroutinefunction

    if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004

        @wraps(function)
        async def handle(*arguments: Any) -> Any:
            return await function(*arguments[:-1], _event(arguments[-1]))

    else:

        @wraps(function)
        def handle(*arguments: Any) -> Any:
            return function(*arguments[:-1], _event(arguments[-1]))

    return handle


def _event(said: dict[str, Any]) -> ArtifactEvent:
    return ArtifactEvent(**{**said, "at": parse_moment(said["at"])})


# --- enqueuing --------------------------------------------------------------------------------------------


def announce(
    change: Change,
    kind: EventKind,
    name: str,
    sk: str | None = None,
    sha256: str | None = None,
    *,
    alias: str | None = None,
    before: Mapping[str, int] | None = None,
    after: Mapping[str, int] | None = None,
) -> None:
    """Enqueue a job for each handler of an event, with the change that is the event."""
    handlers = [name for name, each in declared_jobs().items() if _topic(kind) in each.topics]
    if not handlers:
        return
    context = change.context
    said = {
        "id": context.port.new_id(),
        "kind": kind,
        "name": name,
        "at": show_moment(context.port.now()),
        "version": None if sk is None else display_version(sk),
        "sha256": sha256,
        "alias": alias,
        "before": None if before is None else dict(before),
        "after": None if after is None else dict(after),
    }
    for handler in handlers:
        _, participant = context.hook("plan_job")(
            context, (), handler, (said,), key=None, delay=None, queue=None
        )
        change.join(participant)
