"""Helpers of the migration tests: versions of a model on one store, small pages, and writes by other processes.

Tests are written like tests of behaviour: ``async def test(db)`` in both colours, `everywhere` or `in_memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from rig.behaviour import BlockingDb, Db, awaiting, blocking, everywhere, in_memory, raw_key
from rig.behaviour_models import arrange, expect_contention, expect_failure, meanwhile, put_raw
from rig.wrapper import Wrapper

from holdall import Model, ModelKey
from holdall.core import (
    Item,
    Path,
    PutItem,
    Remove,
    Request,
    Scan,
    Set,
    TransactWrite,
    Update,
    UpdateItem,
    Value,
)
from holdall.core.frozen import replace
from holdall.core.port import Backend, Send

__all__ = [
    "Db",
    "Layer",
    "RivalWriter",
    "SmallPages",
    "awaiting",
    "blocking",
    "expect_contention",
    "read_all",
    "everywhere",
    "expect_failure",
    "arrange",
    "in_memory",
    "order_item",
    "is_item_write",
    "add_layer",
    "meanwhile",
    "create_tables",
    "put_raw",
    "raw_key",
    "scan_model",
    "use_small_pages",
    "fetch_item",
    "update_raw",
    "version",
]

M = TypeVar("M", bound=Model)
L = TypeVar("L", bound="Layer")


def version(model: type[M]) -> type[M]:
    """Mark a class as a version of a model, so that classes with one model name in one module pass for one class."""
    model.__qualname__ = model._schema.name
    return model


async def create_tables(db: Db, *models: type[Model]) -> None:
    """Create the tables and indexes of these models. Some stores take long to add an index to an existing table."""
    if isinstance(db, BlockingDb):
        db.sync.table.create(models=models)
    else:
        await db.table.create(models=models)


# --- reading what is stored -------------------------------------------------------------------------------


async def scan_model(db: Db, model: type[M], **options: Any) -> list[M]:
    """Scan all items of a model, and sort them by key."""
    if isinstance(db, BlockingDb):
        found = db.sync.scan(model, **options).all()
    else:
        found = await db.scan(model, **options).all()
    return sorted(found, key=lambda item: str(item.key.encoded))


async def read_all(db: Db, model: type[Model]) -> list[Item]:
    """Read all items in a model's table, those of other models too, without the stamps of writes."""
    found: list[Item] = []
    scan: Scan | None = Scan(db.table_of(model), consistent=True)
    while scan is not None:
        page = await db.send(scan)
        db.recorder.requests.pop()
        found += [_remove_stamp(item) for item in page.items]
        scan = None if page.last_key is None else replace(scan, start_after=page.last_key)
    return sorted(found, key=order_item)


def order_item(item: Item) -> str:
    """Return a sort key, so that lists of items can be compared."""
    return repr(sorted(item.items()))


async def fetch_item(db: Db, key: ModelKey[Any]) -> dict[str, Any]:
    """Fetch the item as it is stored, without the stamp of its last write."""
    item = await db.raw(key)
    assert item is not None
    return _remove_stamp(item)


def _remove_stamp(item: Item) -> dict[str, Any]:
    return {name: attribute for name, attribute in item.items() if name != "_w"}


def update_raw(db: Db, key: ModelKey[Any], **attributes: Any) -> UpdateItem:
    """Build another process's request to change attributes, given in DynamoDB's JSON form; None removes one."""
    actions = [
        Remove(Path((name,))) if attribute is None else Set(Path((name,)), Value(attribute))
        for name, attribute in attributes.items()
    ]
    return UpdateItem(db.table_of(key.model), raw_key(key), Update(tuple(actions)))


# --- stores -----------------------------------------------------------------------------------------------


def is_item_write(request: Request[Any]) -> bool:
    """Whether the request writes an item of a model, and not the position of a run."""
    if isinstance(request, PutItem):
        return not request.item.get("pk", {}).get("S", "").startswith("holdall#Migration#")
    return isinstance(request, UpdateItem | TransactWrite)


class Layer(Wrapper):
    """A backend around another: `arrange` decides which requests it sends."""

    def arrange(self, request: Request[Any]) -> Sequence[Request[Any]]:
        """Return the requests to send in place of a request; the caller gets the reply of the last one."""
        return [request]

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        *others, last = self.arrange(request)
        for other in others:
            await send(self.inner, other)
        return await send(self.inner, last)


class SmallPages(Layer):
    """A store whose pages hold few items."""

    size = 1

    def arrange(self, request: Request[Any]) -> Sequence[Request[Any]]:
        return [replace(request, limit=self.size) if isinstance(request, Scan) else request]


class RivalWriter(Layer):
    """A store in which another process writes first: it sends another request before each of the next writes."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.requests: list[Request[Any]] = []
        self.each: Request[Any] | None = None

    def arrange(self, request: Request[Any]) -> Sequence[Request[Any]]:
        if not is_item_write(request):
            return [request]
        if self.requests:
            return [self.requests.pop(0), request]
        return [request] if self.each is None else [self.each, request]


def add_layer(db: Db, kind: type[L]) -> L:
    """Put a layer between the database and its store."""
    layer = kind(db.recorder.inner)
    db.recorder.inner = layer
    return layer


def use_small_pages(db: Db, size: int) -> None:
    """Limit every page of a scan to this many items."""
    add_layer(db, SmallPages).size = size
