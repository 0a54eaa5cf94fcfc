"""Columns: the attributes that a record declares, each with its stored name, its form and its default."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from holdall.core.expressions import (
    Add,
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
    Value,
)
from holdall.core.internal import internal
from holdall.core.values import Attribute, Item, decode, encode

if TYPE_CHECKING:
    from holdall.tables.record import Record

T = TypeVar("T")
U = TypeVar("U")

_REQUIRED: Any = object()


class RecordColumn(Generic[T]):
    """One attribute of a record: its stored name, its form, and its default if it is absent.

    `text`, `number` and others return one, to be an attribute of a class: ``count = number("count", 0)``. On a record
    it is the value; on the class, it makes updates, ``Row.count.add(-1)``, and conditions, ``Row.count.at_least(1)``.
    ``form`` describes the form for the `ValueError` that is raised if the stored attribute has another. ``exists`` and
    ``absent`` are the conditions that the attribute has a value, and that it has none.
    """

    __slots__ = ("_decode", "_default", "absent", "encode", "exists", "form", "name", "path")

    @internal
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

    def through(self, write: Callable[[U], Any], read: Callable[[Any], U]) -> RecordColumn[U]:
        """Return a column for values of another type: ``write`` turns them into this column's values, ``read`` back."""
        encode, decode = self.encode, self._decode
        return RecordColumn(
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

    def peek(self, item: Item) -> T | None:
        """Return the value in an item of any kind; None if the attribute is absent or has another form."""
        try:
            return self._decode(item[self.name])
        except (KeyError, TypeError, ValueError):
            return None

    # --- updates ------------------------------------------------------------------------------------------

    def set(self, value: T) -> Set | Remove:
        """Set the attribute; None removes it."""
        return Remove(self.path) if value is None else Set(self.path, Value(self.encode(value)))

    def set_if_absent(self, value: T) -> Set:
        """Set the attribute unless it has a value."""
        return Set(self.path, IfNotExists(self.path, Value(self.encode(value))))

    def set_entry(self, name: str, value: Any) -> Set | Remove:
        """Set one entry of a map, and leave the others; None removes it."""
        path = Path((self.name, name))
        return Remove(path) if value is None else Set(path, Value(encode(value)))

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

    def __init__(self, prefix: str, column: Callable[[str], RecordColumn[T]]) -> None:
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

    def __getitem__(self, rest: str) -> RecordColumn[T]:
        return self._column(self.prefix + rest)


# --- forms of columns -------------------------------------------------------------------------------------


@overload
def text(name: str) -> RecordColumn[str]: ...
@overload
def text(name: str, default: T) -> RecordColumn[str | T]: ...
def text(name: str, default: Any = _REQUIRED) -> RecordColumn[Any]:
    """Declare a column of strings."""
    return RecordColumn(name, lambda value: {"S": value}, itemgetter("S"), default, "text")


@overload
def number(name: str) -> RecordColumn[int]: ...
@overload
def number(name: str, default: T) -> RecordColumn[int | T]: ...
def number(name: str, default: Any = _REQUIRED) -> RecordColumn[Any]:
    """Declare a column of whole numbers."""
    return RecordColumn(name, lambda value: {"N": str(value)}, _whole, default, "a number")


def _whole(attribute: Attribute) -> int:
    try:
        return int(attribute["N"])
    except ValueError:
        found = Decimal(attribute["N"])  # such as 1E+2
        if found != int(found):
            raise
        return int(found)


@overload
def real(name: str) -> RecordColumn[float]: ...
@overload
def real(name: str, default: T) -> RecordColumn[float | T]: ...
def real(name: str, default: Any = _REQUIRED) -> RecordColumn[Any]:
    """Declare a column of floats, written as DynamoDB writes them, so that no store has to normalize them."""
    return RecordColumn(
        name,
        lambda value: {"N": repr(value).removesuffix(".0")},
        lambda attribute: float(attribute["N"]),
        default,
        "a number",
    )


@overload
def flag(name: str) -> RecordColumn[bool]: ...
@overload
def flag(name: str, default: T) -> RecordColumn[bool | T]: ...
def flag(name: str, default: Any = _REQUIRED) -> RecordColumn[Any]:
    """Declare a column of booleans."""
    return RecordColumn(name, lambda value: {"BOOL": value}, itemgetter("BOOL"), default, "true or false")


def texts(name: str) -> RecordColumn[Collection[str]]:
    """Declare a column of sets of strings; an absent attribute is the empty set."""
    return RecordColumn(name, lambda value: {"SS": list(value)}, itemgetter("SS"), (), "a set of texts")


@overload
def mapping(name: str) -> RecordColumn[Mapping[str, Any]]: ...
@overload
def mapping(name: str, default: T) -> RecordColumn[Mapping[str, Any] | T]: ...
def mapping(name: str, default: Any = _REQUIRED) -> RecordColumn[Any]:
    """Declare a column of maps of plain Python values."""
    return RecordColumn(name, encode, decode, default)


def inner_item(name: str) -> RecordColumn[Item | None]:
    """Declare a column that holds an item inside the item."""
    return RecordColumn(name, lambda item: {"M": item}, itemgetter("M"), None, "a map")


def raw(name: str) -> RecordColumn[Attribute | None]:
    """Declare a column that holds an attribute as it is stored."""
    return RecordColumn(name, lambda value: value, lambda attribute: attribute, None)


def family(prefix: str, column: Callable[[str], RecordColumn[T]]) -> Family[T]:
    """Declare columns whose names begin with a prefix, each in the form of ``column``."""
    return Family(prefix, column)
