"""Where the tests of attachments run: both modes of a table, every kind of store, both colours.

A test is written once, as ``async def test(db: Rig)``.

- ``@in_memory``: in memory only, for tests that do not depend on the store. Each mode runs in one of the colours, in
  turn, as colours and modes are independent; under torture each mode runs in both.
- ``@everywhere``: one mode in memory and the other in a file or on ministack, in turn.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rig.clock import Clock, TimedPort
from rig.colour import COLOURS, Awaited, Colour, here_and_elsewhere, run_in, take_turns
from rig.database import FeatureRig, find_address, open_recorded
from rig.files import InterceptedService
from rig.recorder import Recorder
from rig.torture import TORTURE

from holdall import Database, Model, has_many_attached, has_one_attached
from holdall.attachments import Accept, Attachment, Blob
from holdall.backends.memory import MemoryService
from holdall.core.frozen import replace
from holdall.core.objects import ServiceTraits
from holdall.core.port import Backend
from holdall.tables.definition import Mode
from holdall.worker import Worker

__all__ = [
    "SECRET",
    "Member",
    "Rig",
    "ask_for_small_parts",
    "User",
    "Way",
    "everywhere",
    "file",
    "in_memory",
    "names_of",
    "open_rig",
    "row_of",
]

MODES: tuple[Mode, ...] = ("A", "B")
SECRET = "a secret of the tests, long enough"
BASE_URL = "https://app.example/files"


class Person(Model, abstract=True):
    name: str
    avatar = has_one_attached()
    documents = has_many_attached()
    portrait = has_one_attached(dependent="purge")
    scan = has_one_attached(dependent=False)
    photos = has_many_attached(validate=Accept(types=["image/*"], max_bytes=100, max_count=3))


class User(Person):
    """An owner in the one table (mode A)."""


class Member(Person, table="members"):
    """An owner in its own table, as mode B needs."""


@dataclass(frozen=True)
class Way:
    """A mode, a store and a colour."""

    mode: Mode
    store: str
    colour: Colour

    def __str__(self) -> str:
        return f"mode {self.mode}, {self.store}, {self.colour}"


def ask_for_small_parts(service: Backend, part_size: int = 10) -> InterceptedService:
    """The service, which asks for small parts."""
    return InterceptedService(service, ServiceTraits(single_put=part_size, part_size=part_size))


class Rig(FeatureRig):
    """A database, and owners of one model in it."""

    way: Way

    def __init__(self, db: Any, way: Way, recorder: Recorder, service: Recorder, clock: Clock) -> None:
        super().__init__(db, way, recorder, service, clock)
        self.model: type[Person] = User if way.mode == "A" else Member

    @property
    def blobs(self) -> Any:
        """``db.blobs``; every method can be awaited."""
        return Awaited(self.database.blobs)

    async def create(self, **attached: Any) -> Any:
        """Create a person with these files."""
        async with self.db.transaction() as tx:
            person = tx.create(self.model, name="Ada")
            for name, given in attached.items():
                setattr(person, name, given)
        return person

    async def load(self, person: Any, *names: str) -> Any:
        """The person as stored now, with these attachments."""
        return await self.db.get(self.model, person.id, include=names or ("avatar", "documents"))

    async def count(self, blob: Blob | None) -> int | None:
        """The attachments that a blob counts; None if the blob does not exist."""
        found = await self.find(blob)
        return None if found is None else found.attachments_count

    async def find(self, blob: Blob | None) -> Blob | None:
        assert blob is not None
        try:
            return await self.blobs.find(blob.id)  # type: ignore[no-any-return]
        except LookupError:
            return None

    async def drain(self) -> None:
        """Run all due jobs, and the jobs that they enqueue."""
        database = self.database if self.way.colour == "awaiting" else self.database.aio
        if self.way.colour == "blocking":
            port = TimedPort(database._context.port, self.clock)
            database._context = replace(database._context, port=port)
        drained = Worker(database).drain()
        if self.way.colour == "awaiting":
            await drained
        else:
            asyncio.run(drained)

    async def check(self) -> None:
        """Check that the audit finds nothing."""
        findings = (await self.blobs.check()).findings
        assert findings == (), findings


def file(data: bytes = b"bytes", name: str = "file.txt") -> dict[str, Any]:
    """A file to attach."""
    return {"io": data, "filename": name}


def names_of(attachments: Any) -> list[str]:
    """The names of the files, in order."""
    return [str(each.blob.filename) for each in attachments]


def row_of(attachment: Attachment) -> tuple[str, str, str]:
    """The owner and the name of an attachment."""
    return attachment.record_type, attachment.record_id, attachment.name


@contextmanager
def open_rig(way: Way) -> Iterator[Rig]:
    """Open a new database for a test, in a table of the mode."""
    with tempfile.TemporaryDirectory() as directory:
        address = find_address(way.store, directory, "attached")
        service, others = MemoryService(secret=[SECRET], base_url=BASE_URL), {"other": MemoryService()}
        given = {"default_service": "default", "secret": SECRET}
        with open_recorded(way.colour, address, service, others, **given) as (db, table, recorded, clock):
            with Database(address[0], backend=_Unclosed(table.inner), **address[2]) as plain:
                plain.table.create(mode=way.mode)
            yield Rig(db, way, table, recorded, clock)


class _Unclosed:
    """A backend that ignores ``close``."""

    def __init__(self, inner: Any) -> None:
        self.send_blocking = inner.send_blocking
        self.send_awaiting = inner.send_awaiting

    def close(self) -> None:
        pass


def _in_memory(name: str) -> list[Way]:
    if TORTURE:
        return [Way(mode, "memory", colour) for mode in MODES for colour in COLOURS]
    turn = take_turns(name)
    return [Way("A", "memory", COLOURS[turn]), Way("B", "memory", COLOURS[1 - turn])]


def _everywhere(name: str) -> list[Way]:
    """In memory one mode in one colour, elsewhere the other mode in the other colour, in turn."""
    ways = here_and_elsewhere(["file", "ministack"], name)
    if TORTURE:
        return [Way(mode, *way) for mode in MODES for way in ways]
    turn = take_turns(name, "mode")
    return [Way(MODES[(turn + (store == "memory")) % 2], store, colour) for store, colour in ways]


everywhere = run_in(_everywhere, open_rig)
in_memory = run_in(_in_memory, open_rig)
