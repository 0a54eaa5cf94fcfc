"""Items as rows of Parquet: one column per field, with the field's type. Needs pyarrow.

Everyday types, and lists and sets of them, have columns of that type. Values without a single Parquet type (a Decimal,
whose digits do not fit a fixed scale; maps; unions) become text: values stored as text stay as they are, all others
become JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, get_args, get_origin

from holdall.core.frozen import dataclass
from holdall.core.measure import item_size
from holdall.core.values import Attribute, Item
from holdall.errors import ConfigurationError, InvalidValueError
from holdall.models.codec.annotation import peel
from holdall.models.marks import OPENED
from holdall.transactions.read.instance import make_instance

if TYPE_CHECKING:
    from holdall.models.fields.field import Field
    from holdall.models.schema import ModelSchema
    from holdall.transactions.binding import Binding

_ROW_GROUP = 16 * 1024**2
"""The bytes of items that make up a row group, which is held in memory."""

_SEQUENCES = (list, set, frozenset)


def load_pyarrow() -> Any:
    """Import pyarrow; `ConfigurationError` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ConfigurationError(
            "exporting to Parquet needs pyarrow, which is not installed",
            hint='install it: pip install "holdall[parquet]"',
        ) from None
    return pyarrow


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its name, its pyarrow type, and the function that writes a field's value into it."""

    name: str
    type: Any
    write: Callable[[Field[Any], Any], Any]


class ParquetRows:
    """Collects items into row groups."""

    def __init__(self, binding: Binding) -> None:
        self._pyarrow = pyarrow = load_pyarrow()
        self._binding = binding
        self._columns = list_columns(pyarrow, binding.schema)
        self._schema = pyarrow.schema([(column.name, column.type) for column in self._columns])
        self._sink = _Sink()
        self._writer = pyarrow.parquet.ParquetWriter(
            pyarrow.PythonFile(self._sink, mode="w"), self._schema, compression="snappy"
        )
        self._rows: list[list[Any]] = []
        self._size = 0

    def add(self, rows: Sequence[tuple[ModelSchema, Item]]) -> bytes:
        """Add items; return the bytes that are ready to be written, which may be none."""
        for schema, item in rows:
            instance = make_instance(self._binding, schema, item, OPENED, None)
            self._rows.append([_read_cell(column, schema, instance) for column in self._columns])
            self._size += item_size(item)
        if self._size >= _ROW_GROUP:
            self._write_group()
        return self._sink.take()

    def finish(self) -> bytes:
        """Return the last bytes."""
        if self._rows:
            self._write_group()
        self._writer.close()
        return self._sink.take()

    def _write_group(self) -> None:
        arrays = [
            self._make_array(column, [row[position] for row in self._rows])
            for position, column in enumerate(self._columns)
        ]
        self._rows, self._size = [], 0
        self._writer.write_table(self._pyarrow.Table.from_arrays(arrays, schema=self._schema))

    def _make_array(self, column: _Column, values: list[Any]) -> Any:
        try:
            return self._pyarrow.array(values, column.type)
        except (self._pyarrow.ArrowException, OverflowError) as error:
            raise InvalidValueError(
                f"a value of {column.name} does not fit into a Parquet column of type {column.type}: {error}",
                hint='export with format="dynamodb-json", which accepts all values',
            ) from None


def _read_cell(column: _Column, schema: ModelSchema, instance: Any) -> Any:
    if column.name not in schema.fields:  # a field of another model of the family
        return schema.name if column.name == "_type" else None
    value = getattr(instance, column.name)
    return None if value is None else column.write(schema.fields[column.name], value)


def list_columns(pyarrow: Any, schema: ModelSchema) -> list[_Column]:
    """List the columns of a model and of those derived from it; if there are several models, ``_type`` names it."""
    found: dict[str, _Column] = {}
    family = list(schema.family())
    for each in reversed(family):
        for name, field in each.fields.items():
            column = _make_column(pyarrow, field)
            if name in found and found[name].type != column.type:
                column = _Column(name, pyarrow.string(), _write_text)
            found[name] = column
    if len(family) > 1:
        found["_type"] = _Column("_type", pyarrow.string(), _write_text)
    return list(found.values())


def _make_column(pyarrow: Any, field: Field[Any]) -> _Column:
    base = peel(field.codec.annotation).base
    plain = _plain_type(pyarrow, base)
    if plain is not None:
        return _Column(field.name, plain, _write_plain)
    if get_origin(base) in _SEQUENCES and get_args(base):
        member = _plain_type(pyarrow, peel(get_args(base)[0]).base)
        if member is not None:
            return _Column(field.name, pyarrow.list_(member), _write_list)
    return _Column(field.name, pyarrow.string(), _write_text)


def _plain_type(pyarrow: Any, base: Any) -> Any:
    kinds: dict[Any, Callable[[], Any]] = {
        str: pyarrow.string,
        int: pyarrow.int64,
        float: pyarrow.float64,
        bool: pyarrow.bool_,
        bytes: pyarrow.binary,
        datetime: lambda: pyarrow.timestamp("us", tz="UTC"),
        date: pyarrow.date32,
    }
    make = kinds.get(base) if isinstance(base, type) else None
    return None if make is None else make()


def _write_plain(field: Field[Any], value: Any) -> Any:
    return value


def _write_list(field: Field[Any], value: Any) -> list[Any]:
    return value if isinstance(value, list) else sorted(value)


def _write_text(field: Field[Any], value: Any) -> str:
    attribute = field.codec.encode(value)
    return str(attribute["S"]) if field.codec.kind == "S" else format_json(attribute)


def format_json(attribute: Attribute) -> str:
    """Format an attribute as plain JSON. Numbers keep all their digits; bytes become base64, sets become lists."""
    ((kind, content),) = attribute.items()
    if kind in ("N", "NULL", "BOOL"):
        return str(content) if kind == "N" else "null" if kind == "NULL" else json.dumps(content)
    if kind == "L":
        return f"[{','.join(map(format_json, content))}]"
    if kind == "M":
        members = (
            f"{json.dumps(name, ensure_ascii=False)}:{format_json(part)}" for name, part in content.items()
        )
        return f"{{{','.join(members)}}}"
    if kind == "NS":
        return f"[{','.join(content)}]"
    return json.dumps(content, ensure_ascii=False)


class _Sink:
    """The file that pyarrow writes to: it keeps the bytes until they are taken."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._at += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Do nothing: no bytes are held back."""

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        """Return the bytes that were written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
