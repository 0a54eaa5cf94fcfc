"""Events: what happened to attachments and blobs, delivered to handlers through the outbox."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from holdall.attachments.record import AttachmentRow
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.keys import format_moment
from holdall.jobs.declaration import job
from holdall.jobs.handler import declare_handler, handlers_of

F = TypeVar("F", bound=Callable[..., Any])

EventKind: TypeAlias = Literal["attached", "detached", "purged"]
"""What can happen: a file was attached, a file was detached, or a blob was deleted with its bytes."""

KINDS: tuple[str, ...] = get_args(EventKind)


@dataclass(frozen=True, slots=True)
class AttachmentEvent:
    """Something that happened to an attachment or a blob.

    ``id`` is the same for all handlers of an event, and for every attempt to run one. If ``kind`` is ``"purged"``,
    there is no owner: ``record_type``, ``record_id``, ``name`` and ``attachment_id`` are None.
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
    """Decorate a function that handles events of these kinds; a worker calls it at least once for each event.

    The function becomes a job. Its name is ``name``, or derived from where it is defined; ``options`` are those of any
    job, such as ``queue`` and ``retries``. Import its module also in the processes that change attachments: they record
    only events that have a handler.
    """

    def decorate(function: F) -> F:
        declare_handler(function, "attachments", kinds, KINDS, _read_event, name, options)
        return function

    return decorate


def _read_event(fields: dict[str, Any]) -> AttachmentEvent:
    return AttachmentEvent(**{**fields, "at": datetime.fromisoformat(fields["at"])})


def describe_event(
    context: Context, kind: EventKind, blob_id: str, row: AttachmentRow | None = None
) -> dict[str, Any] | None:
    """The event as a job stores it; None if this process knows no handler for it."""
    if not handlers_of("attachments", kind):
        return None
    port = context.port
    fields: dict[str, Any] = {
        "id": port.new_id(),
        "kind": kind,
        "at": format_moment(port.now()),
        "blob_id": blob_id,
    }
    if row is not None:
        fields |= {
            "attachment_id": row.id,
            "record_type": row.record_type,
            "record_id": row.record_id,
            "name": row.name,
        }
    return fields


@job("holdall.attachment-events", transactional=True)
async def deliver_events(tx: Any, *events: dict[str, Any]) -> None:
    """Enqueue a job for each handler of each event. A change enqueues only this one job, for all of them."""
    for event in events:
        for handler in handlers_of("attachments", event["kind"]):
            tx.enqueue(handler, event)
