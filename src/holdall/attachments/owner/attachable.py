"""Attachments of classes that are not models: a plain class, a dataclass, a model of another library.

None of their methods are overridden. `Saving` stores markers and bytes before the body saves the owner, and writes the
rows in one transaction after it: a crash in between leaves bytes that the sweep finds. `Destroying` enqueues a job
before the body destroys the owner; the job deletes the rows, but only if the owner no longer exists when it runs. So a
crash leaves no rows behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from holdall.attachments.home import Owner
from holdall.attachments.owner.declaration import Declaration
from holdall.attachments.owner.participant import AttachmentsParticipant, Order, Uploads
from holdall.attachments.owner.proxy import NOTHING, Pending, Removed
from holdall.core.context import Context
from holdall.core.internal import internal
from holdall.core.port import run, wait
from holdall.errors import HoldallError, InvalidOptionsError, JobBusyError, JobNotFoundError
from holdall.jobs.attempt import current_job
from holdall.jobs.declaration import job
from holdall.jobs.flow import delete as delete_job
from holdall.jobs.outbox import enqueue_alone
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, is_plain_no
from holdall.transactions.enqueued import Enqueued


class Attachable:
    """Derive from this to attach files to instances of a class that is not a Holdall model.

    ``record_type`` names the class in attachments (by default the class's name); ``id`` is the instance's id. Implement
    ``find``, which returns the instance with an id, and ``is_persisted``, which returns whether an instance is stored.
    """

    record_type: ClassVar[str] = ""

    if TYPE_CHECKING:

        @property
        def id(self) -> Any:
            """The id; it must not change once the instance is stored."""

    @classmethod
    def find(cls, id: str) -> Any:
        """Return the instance with this id, or None. May be async."""
        raise NotImplementedError(
            f"{cls.__name__} must implement find(id), which returns the instance or None"
        )

    def is_persisted(self) -> bool:
        """Return whether the instance is stored now."""
        raise NotImplementedError(
            f"{type(self).__name__} must implement is_persisted(), which returns whether the instance is stored"
        )

    def _holdall_locator(self) -> str:
        """The text that stands for this instance in the arguments of a job."""
        known = owner_of_instance(self)
        return f"owner:{json.dumps([known.record_type, place_of(type(self)), known.record_id])}"


def owner_of_instance(owner: Attachable) -> Owner:
    """An instance as an owner of attachments."""
    if owner.id is None or str(owner.id) == "":
        raise InvalidOptionsError(
            f"{owner!r:.80} has no id, so nothing can be attached to it",
            hint="save it in the body of db.saving(...)",
        )
    return Owner(record_type_of(type(owner)), str(owner.id))


def record_type_of(kind: type[Attachable]) -> str:
    """The record type of a class."""
    return kind.record_type or kind.__name__


def place_of(kind: type) -> str:
    """The module and qualified name of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def load_class(place: str) -> Any:
    """Import the class that `place_of` named."""
    module, _, name = place.partition(":")
    kind: Any = import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    return kind


async def find_instance(context: Context, kind: type[Attachable], id: str) -> Any:
    """Find an instance by its id; None if it no longer exists."""
    with suppress(LookupError):
        return await context.port.call(kind.find, id)
    return None


def declarations_of(kind: type) -> Iterator[Declaration]:
    """The attachments that a class declares or inherits."""
    found = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    yield from (value for value in found.values() if isinstance(value, Declaration))


class _Around:
    """A context manager around a body, sync and async."""

    @internal
    def __init__(self, context: Context, owner: Attachable) -> None:
        if not isinstance(owner, Attachable):
            raise InvalidOptionsError(
                f"{owner!r:.80} is not an Attachable", hint="derive its class from holdall.Attachable"
            )
        self._context = context
        self._owner = owner

    async def _enter(self) -> None:
        raise NotImplementedError

    async def _leave(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        run(self._enter(), self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run(self._leave(error), self._context)

    async def __aenter__(self) -> Self:
        await wait(self._enter(), self._context)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await wait(self._leave(error), self._context)


class Saving(_Around):
    """``with db.saving(owner): owner.save()``: the recorded attachments are stored with the owner."""

    async def _enter(self) -> None:
        """Store markers and bytes."""
        self._uploads = Uploads()
        self._keeper = AttachmentsParticipant(self._uploads)
        await self._keeper.upload(self._context, self._orders(Owner("-", "-")))

    async def _leave(self, error: BaseException | None) -> None:
        """Write the rows. If the body failed, delete the bytes again, and keep the recorded changes."""
        if error is not None:
            await self._keeper.abandon(self._context.port)
            return
        owner = owner_of_instance(self._owner)

        async def body(change: Change) -> None:
            participant = AttachmentsParticipant(self._uploads, self._keeper)
            for order in self._orders(owner):
                participant.add(order)
            change.join(participant)

        try:
            await commit(self._context, body, f"the attachments of {owner.record_type} {owner.record_id}")
        except HoldallError as refusal:
            if is_plain_no(refusal):  # if the outcome is unknown, the bytes are left to the sweep
                await self._keeper.abandon(self._context.port)
            raise

    def _orders(self, owner: Owner) -> list[Order]:
        orders = []
        for each in declarations_of(type(self._owner)):
            proxy = each.proxy_of(self._owner)
            if proxy.pending is not NOTHING:
                orders.append(Order(each.wish(owner, proxy.pending), each, proxy))
        return orders


class Destroying(_Around):
    """``with db.destroying(owner): owner.delete()``: the attachments are deleted with the owner."""

    async def _enter(self) -> None:
        """Enqueue the job that cleans up if this process dies."""
        self._known = owner_of_instance(self._owner)
        self._intent: Enqueued | None = None
        self._was_stored = self._owner.is_persisted()
        if self._was_stored:
            arguments = (place_of(type(self._owner)), self._known.record_id)
            self._intent = await enqueue_alone(self._context, destroy_orphans, *arguments, delay=60)

    async def _leave(self, error: BaseException | None) -> None:
        """If the owner was deleted, delete the rows, then the job. If the body failed, delete only the job."""
        if error is None and self._was_stored and not self._owner.is_persisted():
            await remove_all(self._context, type(self._owner), self._known)
        if self._intent is not None:
            await drop_job(self._context, self._intent.id)


async def drop_job(context: Context, id: str) -> None:
    """Delete a job that is no longer needed; if a worker has already taken it, it finds nothing to do."""
    with suppress(JobNotFoundError, JobBusyError):
        await delete_job(context, id)


async def remove_all(context: Context, kind: type, owner: Owner) -> None:
    """Remove all attachments of an owner that no longer exists."""

    async def body(change: Change) -> None:
        participant = AttachmentsParticipant(Uploads())
        for each in declarations_of(kind):
            pending = Pending((Removed(None, each.removal),))
            participant.add(Order(each.wish(owner, pending, is_gone=True), each, None))
        change.join(participant)

    await commit(context, body, f"the attachments of {owner.record_type} {owner.record_id}")


@job("holdall.destroy-orphans")
async def destroy_orphans(place: str, record_id: str) -> None:
    """Remove the attachments of an owner, if it no longer exists."""
    kind, context = load_class(place), current_job().context
    if await find_instance(context, kind, record_id) is None:
        await remove_all(context, kind, Owner(record_type_of(kind), record_id))
