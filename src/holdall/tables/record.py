"""Typed records: the attributes of a stored item, declared once, for reads, writes and conditions.

A `Record` is an item at an `Address` as it was read; a record that is not stored has no item. On an instance, a column
is the attribute's value; on the class, it makes updates (``Row.count.add(-1)``) and conditions
(``Row.count.equals(0)``). A condition on what was read (`Record.same`) repeats the stored attribute exactly.

    class Pair(Record, type="holdall.Pair"):
        size = number("size")
        taken = flag("taken", False)

    pair = await fetch(port, Pair(address))
    change.update(pair, Pair.taken.set(True), expect=[pair.same(Pair.size)])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from holdall.core.expressions import (
    Add,
    And,
    Comparator,
    Compare,
    Condition,
    Delete,
    Exists,
    IfNotExists,
    NotExists,
    Path,
    Remove,
    Set,
    UpdateAction,
    Value,
)
from holdall.core.port import Port
from holdall.core.requests import BatchGet, BatchWrite, DeleteItem, GetItem, PutItem
from holdall.core.values import Attribute, Item, decode, encode
from holdall.tables.layout import Address

__all__ = [
    "Address",
    "Column",
    "Family",
    "Record",
    "family",
    "fetch",
    "fetch_all",
    "flag",
    "mapping",
    "inner_item",
    "number",
    "raw",
    "real",
    "text",
    "texts",
]

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R", bound="Record")
R2 = TypeVar("R2", bound="Record")
R3 = TypeVar("R3", bound="Record")

TYPE = "_type"
_REQUIRED: Any = object()
_MOST_READS = 100


class Column(Generic[T]):
    """One attribute of a record: its stored name, its form, and its default if it is absent.

    ``form`` describes the form for the `ValueError` that is raised if the stored attribute has another. ``exists`` and
    ``absent`` are the conditions that the attribute has a value, and that it has none.
    """

    __slots__ = ("_decode", "_default", "absent", "encode", "exists", "form", "name", "path")

    def __init__(
        self,
        name: str,
        encode: Callable[[Any], Attribute],
        decode: Callable[[Attribute], T],
        default: Any = _REQUIRED,
        form: str = "in the expected form",
    ) -> None:
        self.name = name
        self.path = Path((name,))
        self.exists: Condition = Exists(self.path)
        self.absent: Condition = NotExists(self.path)
        self.encode = encode
        self.form = form
        self._decode = decode
        self._default = default

    def through(self, write: Callable[[U], Any], read: Callable[[Any], U]) -> Column[U]:
        """Return a column for values of another type: ``write`` turns them into this column's values, ``read`` back."""
        encode, decode = self.encode, self._decode
        return Column(
            self.name,
            lambda value: encode(write(value)),
            lambda attribute: read(decode(attribute)),
            self._default,
            self.form,
        )

    @overload
    def __get__(self, record: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, record: Record, owner: type[Any]) -> T: ...
    def __get__(self, record: Record | None, owner: type[Any]) -> Self | T:
        if record is None:
            return self
        try:
            return self._decode(record.item[self.name])  # type: ignore[index]
        except (KeyError, TypeError):  # it is absent or in another form
            return self.read(record.item)

    def read(self, item: Item | None) -> T:
        """Return the value in an item. If it is absent, return the default, or raise `KeyError` if there is none."""
        attribute = None if item is None else item.get(self.name)
        if attribute is not None:
            try:
                return self._decode(attribute)
            except KeyError:
                raise ValueError(f"{self.name} is not {self.form}") from None
        if self._default is _REQUIRED:
            raise KeyError(self.name)
        return self._default  # type: ignore[no-any-return]

    # --- updates ------------------------------------------------------------------------------------------

    def set(self, value: T) -> Set | Remove:
        """Set the attribute; None removes it."""
        return Remove(self.path) if value is None else Set(self.path, Value(self.encode(value)))

    def set_if_absent(self, value: T) -> Set:
        """Set the attribute unless it has a value."""
        return Set(self.path, IfNotExists(self.path, Value(self.encode(value))))

    def remove(self) -> Remove:
        """Remove the attribute."""
        return Remove(self.path)

    def add(self, value: T) -> Add:
        """Add to a number (0 if absent), or add members to a set."""
        return Add(self.path, Value(self.encode(value)))

    def discard(self, members: T) -> Delete:
        """Remove members from a set."""
        return Delete(self.path, Value(self.encode(members)))

    # --- conditions ---------------------------------------------------------------------------------------

    def equals(self, value: T) -> Condition:
        """The condition that the attribute has this value; None: that it is absent."""
        return self.absent if value is None else Compare("=", self.path, Value(self.encode(value)))

    def differs(self, value: T) -> Condition:
        """The condition that the attribute does not have this value."""
        return self._compare("<>", value)

    def below(self, value: T) -> Condition:
        """The condition that the attribute is less than the value."""
        return self._compare("<", value)

    def at_least(self, value: T) -> Condition:
        """The condition that the attribute is at least the value."""
        return self._compare(">=", value)

    def _compare(self, comparator: Comparator, value: T) -> Condition:
        return Compare(comparator, self.path, Value(self.encode(value)))


class Family(Generic[T]):
    """Attributes whose names begin with a prefix; on an instance, a mapping from the rest of their names to values."""

    __slots__ = ("_column", "prefix")

    def __init__(self, prefix: str, column: Callable[[str], Column[T]]) -> None:
        self.prefix = prefix
        self._column = column

    @overload
    def __get__(self, record: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, record: Record, owner: type[Any]) -> dict[str, T]: ...
    def __get__(self, record: Record | None, owner: type[Any]) -> Self | dict[str, T]:
        if record is None:
            return self
        cut = len(self.prefix)
        return {
            name[cut:]: self._column(name).read(record.item)
            for name in record.item or ()
            if name.startswith(self.prefix)
        }

    def __getitem__(self, rest: str) -> Column[T]:
        return self._column(self.prefix + rest)


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
        for action in values:
            if isinstance(action, Set):
                assert isinstance(action.value, Value)
                item[str(action.path.parts[0])] = action.value.attribute
        return cls(address, {**item, **attributes})

    @classmethod
    def tag(cls) -> Set:
        """Return the update action that stores the type, for a record that is created by an update."""
        assert cls.type is not None
        return Set(Path((TYPE,)), Value({"S": cls.type}))

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
        for action in values:
            if isinstance(action, Set):
                assert isinstance(action.value, Value)
                item[str(action.path.parts[0])] = action.value.attribute
            else:
                assert isinstance(action, Remove)
                item.pop(str(action.path.parts[0]), None)
        return type(self)(self.address, item)

    def fill(self, *values: UpdateAction) -> None:
        """Set more values of a record that a change will write, before it is sent."""
        assert isinstance(self.item, dict)
        for action in values:
            if isinstance(action, Set):
                assert isinstance(action.value, Value)
                self.item[str(action.path.parts[0])] = action.value.attribute

    def same(self, *columns: Column[Any], or_created: bool = False) -> Condition:
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


# --- forms of columns -------------------------------------------------------------------------------------


@overload
def text(name: str) -> Column[str]: ...
@overload
def text(name: str, default: T) -> Column[str | T]: ...
def text(name: str, default: Any = _REQUIRED) -> Column[Any]:
    """Declare a column of strings."""
    return Column(name, lambda value: {"S": value}, itemgetter("S"), default, "text")


@overload
def number(name: str) -> Column[int]: ...
@overload
def number(name: str, default: T) -> Column[int | T]: ...
def number(name: str, default: Any = _REQUIRED) -> Column[Any]:
    """Declare a column of whole numbers."""
    return Column(name, lambda value: {"N": str(value)}, _whole, default, "a number")


def _whole(attribute: Attribute) -> int:
    try:
        return int(attribute["N"])
    except ValueError:
        found = Decimal(attribute["N"])  # such as 1E+2
        if found != int(found):
            raise
        return int(found)


@overload
def real(name: str) -> Column[float]: ...
@overload
def real(name: str, default: T) -> Column[float | T]: ...
def real(name: str, default: Any = _REQUIRED) -> Column[Any]:
    """Declare a column of floats, written as DynamoDB writes them, so that no store has to normalise them."""
    return Column(
        name,
        lambda value: {"N": repr(value).removesuffix(".0")},
        lambda attribute: float(attribute["N"]),
        default,
        "a number",
    )


@overload
def flag(name: str) -> Column[bool]: ...
@overload
def flag(name: str, default: T) -> Column[bool | T]: ...
def flag(name: str, default: Any = _REQUIRED) -> Column[Any]:
    """Declare a column of booleans."""
    return Column(name, lambda value: {"BOOL": value}, itemgetter("BOOL"), default, "true or false")


def texts(name: str) -> Column[Collection[str]]:
    """Declare a column of sets of strings; an absent attribute is the empty set."""
    return Column(name, lambda value: {"SS": list(value)}, itemgetter("SS"), (), "a set of texts")


@overload
def mapping(name: str) -> Column[Mapping[str, Any]]: ...
@overload
def mapping(name: str, default: T) -> Column[Mapping[str, Any] | T]: ...
def mapping(name: str, default: Any = _REQUIRED) -> Column[Any]:
    """Declare a column of maps of plain Python values."""
    return Column(name, encode, decode, default)


def inner_item(name: str) -> Column[Item | None]:
    """Declare a column that holds an item inside the item."""
    return Column(name, lambda item: {"M": item}, itemgetter("M"), None, "a map")


def raw(name: str) -> Column[Attribute | None]:
    """Declare a column that holds an attribute as it is stored."""
    return Column(name, lambda value: value, lambda attribute: attribute, None)


def family(prefix: str, column: Callable[[str], Column[T]]) -> Family[T]:
    """Declare columns whose names begin with a prefix, each in the form of ``column``."""
    return Family(prefix, column)


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
    """Read any number of records as they are stored now, in order; one request for each hundred, concurrently."""
    if len(records) == 1:
        (record,) = records
        return [type(record)(record.address, (await port.send(_read(record))).item)]
    reads = [_read(record) for record in records]
    batches = [BatchGet(tuple(reads[at : at + _MOST_READS])) for at in range(0, len(reads), _MOST_READS)]
    if len(batches) == 1:
        items = (await port.send(batches[0])).items
    else:
        outcomes = await port.gather([port.send(batch) for batch in batches])
        items = tuple(item for outcome in outcomes for item in outcome.result().items)
    return [type(record)(record.address, item) for record, item in zip(records, items, strict=True)]


def _read(record: Record) -> GetItem:
    return GetItem(record.address.table, record.address.key, consistent=True)


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
