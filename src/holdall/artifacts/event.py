"""Events: what happened to an artifact, delivered to handlers through the outbox.

A handler is a job. A process that changes an artifact enqueues one job for each handler that it knows, in the same
transaction as the change: so each handler is called for each change at least once, and never for one that did not
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


def on(*kinds: EventKind, name: str | None = None, **options: Any) -> Callable[[F], F]:
    """A decorator: the function hears of events of these kinds, in a worker.

    It becomes a job, called ``name`` or after where it is defined, with the options of any job (``queue``, ``retries``,
    ...). The processes that change artifacts have to know it: import its module there, too.
    """

    def decorate(function: F) -> F:
        declare_handler(function, "artifacts", kinds, KINDS, _event, name, options)
        return function

    return decorate


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
    handlers = handlers_of("artifacts", kind)
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
