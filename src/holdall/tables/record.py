"""Typed records: the attributes of a stored item, declared once, for reads, writes and conditions.

A `Record` is an item at an `Address` as it was read; a record that is not stored has no item. Its attributes are
columns (`holdall.tables.record_column`). A condition on what was read (`Record.same`) repeats the stored attribute
exactly.

    class Pair(Record, type="holdall.Pair"):
        size = number("size")
        taken = flag("taken", False)

    pair = await fetch(port, Pair(address))
    change.update(pair, Pair.taken.set(True), expect=[pair.same(Pair.size)])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from holdall.core.cursor import PageCursor
from holdall.core.expressions import And, Compare, Condition, Path, Remove, Set, UpdateAction, Value
from holdall.core.port import Port
from holdall.core.requests import BatchGet, BatchWrite, DeleteItem, GetItem, PutItem, Query, Scan
from holdall.core.values import Attribute, Item
from holdall.tables.layout import Address
from holdall.tables.record_column import RecordColumn

R = TypeVar("R", bound="Record")
R2 = TypeVar("R2", bound="Record")
R3 = TypeVar("R3", bound="Record")

TYPE = "_type"


class Record:
    """An item at an address, as it was read or as it will be written; ``item`` is None if it is not stored.

    ``type`` is stored in the attribute ``_type``. ``stamps=False``: another program that does not know Holdall's hidden
    attributes shares the item, so Holdall adds none.
    """

    __slots__ = ("address", "item")
    type: ClassVar[str | None] = None
    stamps: ClassVar[bool] = False

    def __init_subclass__(cls, *, type: str | None = None, stamps: bool = False) -> None:
        cls.type = type
        cls.stamps = stamps

    def __init__(self, address: Address, item: Item | None = None) -> None:
        self.address = address
        self.item = item

    @classmethod
    def new(cls, address: Address, *values: UpdateAction, **attributes: Attribute) -> Self:
        """Return a record with these values, to be written."""
        item: dict[str, Attribute] = {**address.attributes}
        if cls.type is not None:
            item[TYPE] = {"S": cls.type}
        if values:
            _assign(item, values)
        item |= attributes
        return cls(address, item)

    @classmethod
    def tag(cls) -> Set:
        """Return the update action that stores the type, for a record that is created by an update."""
        assert cls.type is not None
        return Set(Path((TYPE,)), Value({"S": cls.type}))

    @classmethod
    def is_type_of(cls, item: Item) -> bool:
        """Whether an item of any kind is stored with this type."""
        return item.get(TYPE) == {"S": cls.type}

    @property
    def is_stored(self) -> bool:
        """Whether the record is stored."""
        return self.item is not None

    @property
    def stored(self) -> Item:
        """The stored item; the record must be stored."""
        assert self.item is not None
        return self.item

    def apply(self, *values: UpdateAction) -> Self:
        """Return the record as it is after an update that sets and removes attributes."""
        item = {**(self.address.attributes if self.item is None else self.item)}
        _assign(item, values)
        return type(self)(self.address, item)

    def fill(self, *values: UpdateAction) -> None:
        """Set more values of a record that a change will write, before it is sent."""
        assert isinstance(self.item, dict)
        _assign(self.item, values)

    def same(self, *columns: RecordColumn[Any], or_created: bool = False) -> Condition:
        """The condition that these attributes are exactly as they were read; if no item was found, that none exists.

        ``or_created``: if no item was found, another process may have created it, but without these attributes.
        """
        item = self.item
        if item is None:
            if not or_created:
                return self.address.absent
            item = {}
        parts: list[Condition] = [
            Compare("=", column.path, Value(item[column.name])) if column.name in item else column.absent
            for column in columns
        ]
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def __repr__(self) -> str:
        key = ", ".join(str(value) for attribute in self.address.key.values() for value in attribute.values())
        return f"{type(self).__name__}({key})"


def _assign(item: dict[str, Attribute], values: Iterable[UpdateAction]) -> None:
    for action in values:
        (name,) = map(str, action.path.parts)
        if isinstance(action, Set):
            assert isinstance(action.value, Value)
            item[name] = action.value.attribute
        else:
            assert isinstance(action, Remove)
            item.pop(name, None)


# --- reads ------------------------------------------------------------------------------------------------


@overload
async def fetch(port: Port, record: R, /) -> R: ...
@overload
async def fetch(port: Port, record: R, second: R2, /) -> tuple[R, R2]: ...
@overload
async def fetch(port: Port, record: R, second: R2, third: R3, /) -> tuple[R, R2, R3]: ...
async def fetch(port: Port, *records: Record) -> Any:
    """Read the records as they are stored now, in one request."""
    found = await fetch_all(port, records)
    return found[0] if len(found) == 1 else tuple(found)


async def fetch_all(port: Port, records: Sequence[R]) -> list[R]:
    """Read any number of records as they are stored now, in order: each hundred in one request, concurrently."""
    if len(records) == 1:
        (record,) = records
        return [type(record)(record.address, (await port.send(_read(record))).item)]
    if not records:
        return []
    items = await read_items(port, [_read(record) for record in records])
    return [type(record)(record.address, item) for record, item in zip(records, items, strict=True)]


async def read_items(port: Port, reads: Sequence[GetItem]) -> Sequence[Item | None]:
    """Read any number of items, each independently, in order; one request for each hundred, concurrently."""
    most = BatchGet.most
    batches = [BatchGet(tuple(reads[at : at + most])) for at in range(0, len(reads), most)]
    if len(batches) == 1:
        return (await port.send(batches[0])).items
    outcomes = await port.gather([port.send(batch) for batch in batches])
    return [item for outcome in outcomes for item in outcome.result().items]


def _read(record: Record) -> GetItem:
    return GetItem(record.address.table, record.address.key, consistent=True)


class RecordPages(Generic[R]):
    """The records that a query or scan finds, a page at a time; ``address_of`` finds out where an item is stored."""

    def __init__(
        self, port: Port, kind: type[R], request: Query | Scan, address_of: Callable[[Item], Address]
    ) -> None:
        self._cursor = PageCursor(port, request)
        self._kind = kind
        self._address_of = address_of

    async def next_page(self) -> list[R] | None:
        """Return the records of the next page, which may be empty; None after the last page."""
        page = await self._cursor.next_page()
        if page is None:
            return None
        return [self._kind(self._address_of(item), item) for item in page.items]

    async def read_all(self) -> list[R]:
        """Return all remaining records."""
        found: list[R] = []
        while (page := await self.next_page()) is not None:
            found += page
        return found


# --- batches ----------------------------------------------------------------------------------------------


async def put_all(port: Port, records: Sequence[Record]) -> None:
    """Store records without conditions, in batches: half the price of transactions, and harmless if sent twice."""
    await _write_all(port, [PutItem(record.address.table, record.stored) for record in records])


async def delete_all(port: Port, records: Sequence[Record]) -> None:
    """Delete records that no process changes any more, in batches. Deleting a missing record is not an error."""
    await _write_all(port, [DeleteItem(record.address.table, record.address.key) for record in records])


async def _write_all(port: Port, writes: Sequence[PutItem | DeleteItem]) -> None:
    for start in range(0, len(writes), BatchWrite.most):
        await port.send(BatchWrite(tuple(writes[start : start + BatchWrite.most])))
