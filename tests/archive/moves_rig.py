"""Where the tests of moved archive objects run: in a shared or own table, both colours, memory or files.

A test is written once, as ``async def test(db: Rig)``. A test declares the model with the archive that it needs; a new
declaration replaces the old one of the same name, as after a change of the program.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from archive_rig import open_service
from rig.clock import Clock
from rig.colour import COLOURS, Awaited, Colour, run_in, take_turns
from rig.database import FeatureRig, find_address, open_recorded
from rig.recorder import Recorder
from rig.torture import TORTURE

from holdall import Key, Model, SortKey
from holdall.archive import Archive
from holdall.core.objects import DeleteObject, PutObject
from holdall.core.requests import BatchWrite, GetItem, PutItem, UpdateItem
from holdall.transactions.binding import Bindings

WEEKS = timedelta(days=30)
OLD = "orders/{partitionKey}/{sortKey}"
NEW = "new/{partitionKey}/{sortKey}"


class Died(Exception):
    """The process died."""


@dataclass(frozen=True)
class Way:
    """Whether the model has its own table, the kind of store, and a colour."""

    own: bool
    store: str
    colour: Colour

    def __str__(self) -> str:
        return f"{'own' if self.own else 'shared'}, {self.store}, {self.colour}"


class Rig(FeatureRig):
    """A database, and old orders of a model that can be declared again."""

    way: Way

    def __init__(self, db: Any, way: Way, recorder: Recorder, service: Recorder, clock: Clock) -> None:
        super().__init__(db, way, recorder, service, clock)
        self.model = self.declare()

    @property
    def archive(self) -> Any:
        return Awaited(self.database.archive)

    def declare(self, **options: Any) -> Any:
        """Declare the model with these options of its archive."""
        options = {"timestamp": "placed_at", "after_days": 30, "key": OLD, **options}

        class Order(
            Model,
            name="Order",
            table="orders" if self.way.own else None,
            archive=Archive(**options),
        ):
            customer: Key[str]
            number: SortKey[str]
            note: str
            tags: set[str] = set()  # noqa: RUF012 - a model copies it
            placed_at: datetime

        self.model = Order
        return Order

    async def fill(self, *numbers: str, customer: str = "ada") -> None:
        """Create old orders, and archive them."""
        async with self.db.transaction() as tx:
            for number in numbers:
                self.add(tx, number, customer)
        await self.run()

    async def run(self, **options: Any) -> Any:
        """Archive the items that are old enough, whatever it costs."""
        return await self.archive.run(self.model, force=True, **options)

    def add(self, tx: Any, number: str, customer: str = "ada") -> None:
        placed = self.clock.now() - timedelta(days=100)
        given = {"note": f"note {number}", "tags": {"a", "b"}, "placed_at": placed}
        tx.create(self.model, customer=customer, number=number, **given)

    async def note(self, number: str, customer: str = "ada") -> str:
        found = await self.db.get_one(self.model, customer=customer, number=number)
        assert found.tags == {"a", "b"}
        return str(found.note)

    @property
    def binding(self) -> Any:
        """The binding of the model; known after its first use."""
        known = self.database._context.state.of(Bindings).of_models
        return next(each for schema, each in known.items() if schema.name == "Order")

    def row_key(self, number: str, customer: str = "ada") -> Any:
        return self.binding.key(self.model.key(customer=customer, number=number))

    def send(self, request: Any) -> Any:
        """Send a request directly to the table; the recorder does not see it."""
        return self.recorder.inner.send_blocking(request)

    def row(self, number: str) -> dict[str, Any]:
        return dict(self.send(GetItem(self.binding.table, self.row_key(number), True)).item or {})

    def put_row(self, item: Any) -> None:
        self.send(PutItem(self.binding.table, item))

    @contextmanager
    def die_after(self, count: int) -> Iterator[None]:
        """Let the process die right after the write with this number, counted from 0."""
        left = [count]

        def after(request: Any) -> None:
            if isinstance(request, PutObject | UpdateItem | DeleteObject | BatchWrite):
                left[0] -= 1
                if left[0] < 0:
                    raise Died

        self.recorder.after = after
        try:
            yield
        finally:
            self.recorder.after = lambda request: None


@contextmanager
def open_rig(way: Way) -> Iterator[Rig]:
    """Open a new database for a test."""
    with tempfile.TemporaryDirectory() as directory, open_service(way.store, directory) as service:
        address = find_address(way.store, directory, "moved")
        address[2]["manage_table"] = True
        with open_recorded(way.colour, address, service) as (db, table, recorded, clock):
            yield Rig(db, way, table, recorded, clock)


def _with_files(name: str) -> list[Way]:
    if TORTURE:
        places = [(own, store) for own in (False, True) for store in ("memory", "file")]
        return [Way(own, store, colour) for own, store in places for colour in COLOURS]
    turn = take_turns(name)
    return [Way(False, "memory", COLOURS[turn]), Way(True, "file", COLOURS[1 - turn])]


def _everywhere(name: str) -> list[Way]:
    others = [Way(own, "ministack", colour) for own in (False, True) for colour in COLOURS]
    return [*_with_files(name), *(others if TORTURE else [others[take_turns(name, "ministack")]])]


with_files = run_in(_with_files, open_rig)
"""In memory, and with files."""

everywhere = run_in(_everywhere, open_rig)
"""In memory, with files, and on ministack."""
