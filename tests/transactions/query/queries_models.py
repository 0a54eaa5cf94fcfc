"""Models with sort keys and indexes of every kind, and the order of their values.

A `Kind` is a type of key component: its annotation, values worth testing, and the order that the layout promises for
them. In the shared table that is the order of the values themselves. In a model's own table, whose form is the
JavaScript library's, a single number is ordered as a number, and the parts of a longer key are ordered as text.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from holdall import Index, Key, Model, SortKey, field

__all__ = ["KINDS", "ONE_TABLE", "OWN_TABLES", "Kind", "Shape"]


@dataclass(frozen=True, repr=False)
class Kind:
    """A type of key component. ``text`` converts a value to its text in a longer key in a model's own table."""

    annotation: Any
    values: Sequence[Any]
    order: Callable[[Any], Any]
    text: Callable[[Any], str] | None = None
    """None if the kind cannot be used in a model's own table."""
    foreign: Sequence[Any] = ()
    """The values for a model's own table, if they differ."""

    def list_values(self, *, own: bool, alone: bool) -> list[Any]:
        """Return the values that can be part of a key. A key that consists of one part cannot be empty."""
        values = self.foreign if own and self.foreign else self.values
        return [value for value in values if not alone or value not in ("", b"")]


def _to_decimal(number: Any) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


_TEXTS = ("", "a", "aa", "a!", "ab", "b", "B", "10", "9", "é", "\uffff", "😀", "~", "a b", "#", "%23")
_ODD_TEXTS = ("\0", "a\0", "a\0b", "\x01", "a\x01", "a\x01\x01", "a\x01\x02", "\x01\x02", "a\x02", "\0\0")
_INTS = (0, 1, -1, 2, 9, 10, 11, -9, -10, -11, 99, 100, 12345, -12345, 2**53 - 1, -(2**53) + 1)
_LARGE_INTS = (10**37, -(10**37), 10**38 - 1, -(10**38) + 1, 5 * 10**120, -5 * 10**120)
_FLOATS = (0.0, -0.0, 1.5, -1.5, 0.1, 0.30000000000000004, -0.1, 2.0, 10.0, 1e21, -1e21, 1e-7)
_LARGE_FLOATS = (1e125, -1e125, 1e-129, -1e-129, 5e-100, 1.7976931348623157e100)
_EAST = timezone(timedelta(hours=14))
_TIMES = (
    datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
    datetime(2026, 1, 31, 9, 30, 0, 1, tzinfo=UTC),
    datetime(2026, 1, 31, 23, 30, 0, 2, tzinfo=_EAST),
    datetime(2025, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1969, 12, 31, tzinfo=UTC),
)
_IDS = (UUID(int=0), UUID(int=2**128 - 1), UUID(int=1), UUID("9" * 32), UUID("a" * 32), UUID(int=10))
_BYTES = (b"", b"\0", b"a", b"a\0", b"ab", b"\xff", b"\xff\0", b"\x7f", b"\x80")


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


KINDS: Mapping[str, Kind] = {
    "text": Kind(str, (*_TEXTS, *_ODD_TEXTS), str, str, (*_TEXTS, "a\x01", "\x01", "a\x02")),
    "int": Kind(int, (*_INTS, *_LARGE_INTS), _to_decimal, str, _INTS),
    "float": Kind(float, (*_FLOATS, *_LARGE_FLOATS), _to_decimal),
    "decimal": Kind(
        Decimal, [Decimal(t) for t in ("0", "1.10", "-1.1", "1E+100", "1E-100", "3")], _to_decimal
    ),
    "time": Kind(datetime, _TIMES, lambda moment: moment.astimezone(UTC), _format_time),
    "bool": Kind(bool, (False, True), int, lambda flag: "true" if flag else "false"),
    "id": Kind(UUID, _IDS, lambda uuid: uuid.hex, str),
    "bytes": Kind(bytes, _BYTES, bytes),
}


@dataclass(frozen=True, repr=False)
class Shape:
    """A model, with the kinds of the components of its sort key (``s0``, ``s1``, …) and of its index's (``i0``, …)."""

    model: type[Any]
    sort: tuple[Kind, ...]
    index: tuple[Kind, ...]
    own: bool

    def __repr__(self) -> str:
        return self.model.__name__

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis prints this

    def rank(self, row: Any, *, index: bool = False) -> tuple[Any, ...]:
        """Return the values by which rows are ordered, in the table or in the index."""
        kinds, letter = (self.index, "i") if index else (self.sort, "s")
        values = [getattr(row, f"{letter}{number}") for number in range(len(kinds))]
        if self.own and len(kinds) > 1:
            texts = []
            for kind, value in zip(kinds, values, strict=True):
                assert kind.text is not None
                texts.append(kind.text(value))
            return ("\0".join(texts),)
        return tuple(kind.order(value) for kind, value in zip(kinds, values, strict=True))

    def is_indexed(self, row: Any) -> bool:
        """Whether the index contains a row: it has all components, and they do not form an empty key."""
        values = [getattr(row, f"i{number}") for number in range(len(self.index))]
        return row.group is not None and None not in values and values not in ([""], [b""])

    def is_ordered(self, kind: Kind, *, index: bool = False) -> bool:
        """Whether a query can compare a component with < and >."""
        kinds = self.index if index else self.sort
        alone = len(kinds) == 1
        if not self.own:
            return True
        return kind.annotation is not bool if alone else kind.annotation in (str, datetime, UUID)


def _define_shape(sort: str, index: str, *, own: bool = False) -> Shape:
    sorts = tuple(KINDS[name] for name in sort.split())
    indexed = tuple(KINDS[name] for name in index.split())
    name = ("Own" if own else "") + "".join(word.title() for word in sort.split())
    sort_key: Any = SortKey
    annotations: dict[str, Any] = {"p": Key[str]}
    annotations |= {f"s{n}": sort_key[kind.annotation] for n, kind in enumerate(sorts)}
    annotations |= {"group": str | None, "text": str | None, "num": int | None, "real": float | None}
    annotations |= {"flag": bool | None, "when": datetime | None, "data": bytes | None}
    annotations |= {"tags": list[str], "marks": set[int], "place": dict[str, Any]}
    annotations |= {f"i{n}": kind.annotation | None for n, kind in enumerate(indexed)}
    defaults: dict[str, Any] = dict.fromkeys(("group", "text", "num", "real", "flag", "when", "data"))
    defaults |= {f"i{n}": None for n in range(len(indexed))}
    defaults |= {"tags": field(default_factory=list), "marks": field(default_factory=set)}
    defaults |= {"place": field(default_factory=dict)}
    names = [f"i{n}" for n in range(len(indexed))]
    options: dict[str, Any] = {"indexes": [Index("by_group", key=["group"], sort_key=names, sparse=own)]}
    if own:
        options["table"] = name
    body = {"__annotations__": annotations, "__module__": __name__, **defaults}
    model = types.new_class(name, (Model,), options, lambda namespace: namespace.update(body))
    return Shape(model, sorts, indexed, own)


ONE_TABLE: Sequence[Shape] = [
    _define_shape("text", "int"),
    _define_shape("int", "text"),
    _define_shape("float", "time"),
    _define_shape("decimal", "bytes"),
    _define_shape("time", "float"),
    _define_shape("id", "bool text"),
    _define_shape("bytes", "id int"),
    _define_shape("bool", "int int"),
    _define_shape("text text", "text text"),
    _define_shape("int text", "float text"),
    _define_shape("text int bool", "time id"),
    _define_shape("bytes float", "decimal bytes"),
    _define_shape("time id", "text int bool"),
    _define_shape("bool text time", "bytes text"),
]

OWN_TABLES: Sequence[Shape] = [
    _define_shape("text", "int", own=True),
    _define_shape("int", "text", own=True),
    _define_shape("text text", "text int", own=True),
    _define_shape("int text", "time", own=True),
    _define_shape("time id", "bool", own=True),
]
