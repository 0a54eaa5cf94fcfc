"""Events: what happened to attachments and blobs, delivered to handlers through the outbox."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from holdall.attachments.record import AttachmentRow, show_moment
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.jobs.declaration import job
from holdall.jobs.handler import declare_handler, handlers_of

F = TypeVar("F", bound=Callable[..., Any])

EventKind: TypeAlias = Literal["attached", "detached", "purged"]
"""What can happen: a file was attached, one was detached, or a blob was deleted with its bytes."""

KINDS: tuple[str, ...] = get_args(EventKind)


@dataclass(frozen=True, slots=True)
class AttachmentEvent:
    """Something that happened. ``id`` is the same for all handlers and in every attempt of one.

    A blob that was purged has no owner: ``record_type``, ``record_id``, ``name`` and ``attachment_id`` are None then.
    """

    id: str
    kind: EventKind
    at: datetime
    blob_id: str
    attachment_id: str | None = None
    record_type: str | None = None
    record_id: str | None = None
    name: str | None = None


def on(*kinds: EventKind, name: str | None = None, **options: Any) -> Callable[[F], F]:
    """A decorator: the function handles events of these kinds, one per call, in a worker.

    It becomes a job, called ``name`` or after where it is defined, with the options of any job (``queue``, ``retries``,
    ...). Import its module in the processes that change attachments, too: they record only events with a handler.
    """

    def decorate(function: F) -> F:
        declare_handler(function, "attachments", kinds, KINDS, _read_event, name, options)
        return function

    return decorate


def _read_event(said: dict[str, Any]) -> AttachmentEvent:
    return AttachmentEvent(**{**said, "at": datetime.fromisoformat(said["at"])})


def describe_event(
    context: Context, kind: EventKind, blob_id: str, row: AttachmentRow | None = None
) -> dict[str, Any] | None:
    """What a job keeps of an event; None if this process knows no handler of it."""
    if not handlers_of("attachments", kind):
        return None
    port = context.port
    said: dict[str, Any] = {
        "id": port.new_id(),
        "kind": kind,
        "at": show_moment(port.now()),
        "blob_id": blob_id,
    }
    if row is not None:
        said |= {
            "attachment_id": row.id,
            "record_type": row.record_type,
            "record_id": row.record_id,
            "name": row.name,
        }
    return said


@job("holdall.attachment-events", transactional=True)
async def deliver_events(tx: Any, *events: dict[str, Any]) -> None:
    """Enqueue a job for each handler of each event. A change adds only this one, however many there are."""
    for event in events:
        for handler in handlers_of("attachments", event["kind"]):
            tx.enqueue(handler, event)
