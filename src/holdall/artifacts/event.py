"""Events: what happened to an artifact, delivered to handlers through the outbox.

A handler is a job. A process that changes an artifact enqueues one job for each handler that it knows, in the same
transaction as the change. So each handler is called for each change at least once, and never for a change that did not
happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from holdall.artifacts.name import display_version
from holdall.artifacts.record import parse_moment, show_moment
from holdall.core.frozen import dataclass
from holdall.jobs.handler import declare_handler, handlers_of
from holdall.tables.commit.change import Change

F = TypeVar("F", bound=Callable[..., Any])

EventKind: TypeAlias = Literal["published", "alias_moved", "deleted", "restored"]
"""What can happen: a version was published, deleted or restored, or an alias was moved or deleted."""

KINDS: tuple[str, ...] = get_args(EventKind)


@dataclass(frozen=True, slots=True)
class ArtifactEvent:
    """Something that happened to an artifact.

    ``id`` is the same for all handlers of an event, and for every attempt to run one. ``version`` and ``sha256`` are
    set if it happened to a version. ``alias`` is set if it happened to an alias; ``before`` and ``after`` are its
    weights before and after the change, None if the alias did not exist.
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


def on(*kinds: EventKind, name: str | None = None, **options: Any) -> Callable[[F], F]:
    """Decorate a function that handles events of these kinds; a worker calls it at least once for each event.

    The function becomes a job. Its name is ``name``, or derived from where it is defined; ``options`` are those of any
    job, such as ``queue`` and ``retries``. Import its module also in the processes that change artifacts: they record
    only events that have a handler.
    """

    def decorate(function: F) -> F:
        declare_handler(function, "artifacts", kinds, KINDS, _event, name, options)
        return function

    return decorate


def _event(fields: dict[str, Any]) -> ArtifactEvent:
    return ArtifactEvent(**{**fields, "at": parse_moment(fields["at"])})


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
    """Enqueue a job for each handler of an event, in the change that causes the event."""
    handlers = handlers_of("artifacts", kind)
    if not handlers:
        return
    from holdall.jobs.outbox import Outbox  # it takes a while to load

    context = change.context
    fields = {
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
    outbox = Outbox(context)
    for handler in handlers:
        outbox.add(handler, (fields,))
    change.join(outbox)
