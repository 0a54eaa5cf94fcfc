"""The source of a model for a table that other programs use, from its description and a sample of its items.

Pure: text from values. The model has ``layout="plain"``, so its fields are the table's attributes. What the sample
cannot prove is listed in a comment at the top.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from keyword import iskeyword
from textwrap import wrap
from unicodedata import normalize

from holdall import Model
from holdall.cli.stored_guess import REASONS, guess_form
from holdall.core import Attribute, IndexSchema, Item, KeyAttribute, TableSchema

_TYPE_ATTRIBUTES = ("entity", "__edb_e__", "_type", "cls", "type")
_MOST_TYPES = 20
_SHOWN_TYPES = 5
_KINDS = {
    "S": "text",
    "N": "number",
    "B": "binary",
    "BOOL": "boolean",
    "NULL": "null",
    "L": "list",
    "M": "map",
    "SS": "set of texts",
    "NS": "set of numbers",
    "BS": "binary set",
}
_IMPORTS = {"Decimal": "decimal", "date": "datetime", "datetime": "datetime", "Any": "typing"}
_OWN_NAMES = {"Index", "Key", "Model", "SortKey", "field"}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z?)")
_OTHER_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", re.DOTALL)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WIDTH = 100


@dataclass(frozen=True)
class TableSample:
    """A table and some of its items; ``complete`` if the table has no others. ``ttl`` is the attribute of expiry.

    ``name`` is the table's name as a model declares it, without the prefix of the settings.
    """

    name: str
    schema: TableSchema
    ttl: str | None
    items: Sequence[Item]
    complete: bool


def name_class(table: str) -> str:
    """Return the name of a model for a table: ``order-lines`` becomes OrderLines."""
    name = "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", table))
    return name if is_class_name(name) else f"Table{name}"


def is_class_name(name: str) -> bool:
    """Whether the model can have this name."""
    taken = iskeyword(name) or name in {*_OWN_NAMES, *_IMPORTS}
    return re.fullmatch("[A-Z][A-Za-z0-9]*", name) is not None and not taken


def recognise_layout(sample: TableSample) -> str | None:
    """Explain how Holdall itself laid out the table; None if another program did."""
    schema = sample.schema
    if [key.name for key in schema.keys] in (["_id"], ["_id", "_sk"]):
        return "declare its model with table= and without layout="
    types = {_text(item, "_type") for item in sample.items} - {None}
    heads = {(_text(item, schema.partition.name) or "").partition("#")[0] for item in sample.items}
    models = sorted(text for text in types & heads if text)
    if not models or schema.sort is None:
        return None
    return f"declare its models without table= and layout=; the sample has items of {', '.join(models)}"


def write_source(sample: TableSample, class_name: str) -> str:
    """Return the module with the model."""
    columns = _find_columns(sample)
    notes = _Notes()
    for column in columns.values():
        notes.add_column(column)
    indexes = [_write_index(index, columns, notes) for index in sample.schema.indexes]
    expiry = _find_expiry(sample, columns, notes)
    used = {word for column in columns.values() for word in re.findall(r"\w+", column.annotation)}
    fields = _name_fields(columns, {*used, *_OWN_NAMES})
    arguments = ["Model", f"table={_quote(sample.name)}", 'layout="plain"']
    if expiry is not None:
        arguments.append(f"ttl={_quote(fields[expiry])}")
    declared = [index.write(fields) for index in indexes if index is not None]
    lines = [
        *_write_comment(sample, notes, columns),
        "",
        *_write_imports(columns, fields, used, has_indexes=bool(declared)),
        "",
        "",
        *_write_class(class_name, arguments, declared),
        *(column.write(fields[name]) for name, column in columns.items()),
    ]
    return "\n".join(lines) + "\n"


# --- types --------------------------------------------------------------------------------------------------


def infer_type(attributes: Iterable[Attribute]) -> tuple[str, bool]:
    """Return the type that reads all these attributes, and whether one of them is null; Any if they differ."""
    by_kind: dict[str, list[object]] = {}
    for attribute in attributes:
        for kind, content in attribute.items():
            by_kind.setdefault(kind, []).append(content)
    null = by_kind.pop("NULL", None) is not None
    if len(by_kind) == 2 and "L" in by_kind and not any(by_kind["L"]) and by_kind.keys() & {"SS", "NS", "BS"}:
        del by_kind["L"]  # Holdall stores an empty set as an empty list
    if len(by_kind) != 1:
        return "Any", null
    [(kind, contents)] = by_kind.items()
    return _infer(kind, contents), null


def _infer(kind: str, contents: Sequence[object]) -> str:
    if kind == "N":
        return "int" if all(_is_whole(str(text)) for text in contents) else "Decimal"
    if kind in ("SS", "NS", "BS"):
        members = [
            {kind[0]: each} for content in contents if isinstance(content, Sequence) for each in content
        ]
        return f"set[{infer_type(members)[0]}]"
    if kind == "L":
        return f"list[{_infer_members(each for c in contents if isinstance(c, Sequence) for each in c)}]"
    if kind == "M":
        inner = (each for c in contents if isinstance(c, Mapping) for each in c.values())
        return f"dict[str, {_infer_members(inner)}]"
    return {"S": "str", "B": "bytes", "BOOL": "bool"}[kind]


def _infer_members(members: Iterable[Attribute]) -> str:
    inner, null = infer_type(members)
    return f"{inner} | None" if null and inner != "Any" else inner


def _infer_text(texts: Sequence[str]) -> str:
    """Return datetime or date if it stores exactly these texts, and otherwise str."""
    zones = {found[1] if (found := _MOMENT.fullmatch(text)) else None for text in texts}
    if len(zones) == 1 and None not in zones and all(_is_moment(text) for text in texts):
        return "datetime"
    if texts and all(_DAY.fullmatch(text) and _is_day(text) for text in texts):
        return "date"
    return "str"


def _is_whole(text: str) -> bool:
    number = Decimal(text)
    return number == number.to_integral_value()


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


# --- columns ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """An attribute of the table, and what the sample shows of it. ``role`` is Key, SortKey or empty."""

    name: str
    role: str
    annotation: str
    optional: bool
    kinds: Mapping[str, int]
    stored: str | None
    has_other_moments: bool

    def write(self, field: str) -> str:
        """The field's line in the class."""
        options = [] if field == self.name else [f"name={_quote(self.name)}"]
        options += [] if self.stored is None else [f"stored={_quote(self.stored)}"]
        given = f" = field({', '.join(options)})" if options else ""
        if self.role:
            return f"    {field}: {self.role}[{self.annotation}]{given}"
        if not self.optional:
            return f"    {field}: {self.annotation}{given}"
        given = f"field({', '.join(['default=None', *options])})" if options else "None"
        return f"    {field}: {self.annotation} | None = {given}"


def _find_columns(sample: TableSample) -> dict[str, _Column]:
    """The key first, then the attributes that every item has, then the others; each group by name."""
    schema = sample.schema
    roles = dict(zip((key.name for key in schema.keys), ("Key", "SortKey"), strict=False))
    declared: dict[str, KeyAttribute] = {key.name: key for index in schema.indexes for key in index.keys}
    declared |= {key.name: key for key in schema.keys}
    if sample.ttl is not None:
        declared.setdefault(sample.ttl, KeyAttribute(sample.ttl, "N"))
    seen = {name for item in sample.items for name in item}
    included = {name for index in schema.indexes for name in index.projection.names}
    columns = [
        _describe_column(name, roles.get(name, ""), declared.get(name), sample)
        for name in sorted(seen | included | declared.keys())
    ]
    order = {"Key": 0, "SortKey": 1, "": 2}
    columns.sort(key=lambda column: (order[column.role], column.optional))
    return {column.name: column for column in columns}


def _describe_column(name: str, role: str, declared: KeyAttribute | None, sample: TableSample) -> _Column:
    items = sample.items
    found = [item[name] for item in items if name in item]
    annotation, null = infer_type(found)
    texts = [str(attribute["S"]) for attribute in found if "S" in attribute]
    if annotation == "str":
        annotation = _infer_text(texts)
    if not found and declared is not None:
        annotation = {"S": "str", "N": "int", "B": "bytes"}[declared.type]
    is_expiry = name == sample.ttl
    guess = None
    if annotation in ("str", "int"):
        is_key = declared is not None and not is_expiry
        guess = guess_form(name, found, is_key=is_key, is_expiry=is_expiry)
    annotation, stored = guess or (annotation, None)
    return _Column(
        name,
        role,
        annotation,
        optional=null or len(found) < len(items) or not found,
        kinds=Counter(kind for attribute in found for kind in attribute),
        stored=stored,
        has_other_moments=annotation == "str"
        and bool(texts)
        and all(_OTHER_MOMENT.fullmatch(text) and _is_moment(text) for text in texts),
    )


def _name_fields(columns: Mapping[str, _Column], taken: set[str]) -> dict[str, str]:
    """Return a field name for each attribute: the same wherever Python and Holdall allow it."""
    fields = {name: name for name in columns if _is_field_name(name, taken)}
    used = {*fields.values()}
    for name in columns:
        if name in fields:
            continue
        base = normalize("NFKC", re.sub(r"\W", "_", name)).strip("_")
        base = base if base.isidentifier() else re.sub(r"\W", "_", f"field_{base}").rstrip("_")
        field = base if _is_field_name(base, taken) else f"{base}_"
        number = 2
        while field in used:
            field = f"{base}_{number}"
            number += 1
        fields[name] = field
        used.add(field)
    return {name: fields[name] for name in columns}


def _is_field_name(name: str, taken: set[str]) -> bool:
    plain = name.isidentifier() and normalize("NFKC", name) == name and not iskeyword(name)
    return plain and not name.startswith("_") and name not in {*taken, *dir(Model), "self"}


# --- indexes and expiry -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _IndexSource:
    schema: IndexSchema
    included: Sequence[str] | None

    def write(self, fields: Mapping[str, str]) -> str:
        parts = [_quote(self.schema.name)]
        if not self.schema.local:
            parts.append(f"key=[{_quote(fields[self.schema.partition.name])}]")
        if self.schema.sort is not None:
            parts.append(f"sort_key=[{_quote(fields[self.schema.sort.name])}]")
        if self.included is not None:
            parts.append(f"include=[{', '.join(_quote(fields[name]) for name in self.included)}]")
        if self.schema.local:
            parts.append("local=True")
        return f"Index({', '.join(parts)})"


def _write_index(index: IndexSchema, columns: Mapping[str, _Column], notes: _Notes) -> _IndexSource | None:
    mixed = [key.name for key in index.keys if columns[key.name].kinds.keys() - {key.type}]
    if mixed:
        notes.add(
            f"index {index.name} is left out: not all values of {', '.join(map(_show, mixed))} can be its key"
        )
        return None
    if index.projection.kind == "ALL":
        return _IndexSource(index, None)
    keys = {key.name for key in index.keys}
    return _IndexSource(
        index, [name for name in index.projection.names if not columns[name].role and name not in keys]
    )


def _find_expiry(sample: TableSample, columns: Mapping[str, _Column], notes: _Notes) -> str | None:
    if sample.ttl is None or columns[sample.ttl].annotation in ("int", "Decimal", "datetime"):
        return sample.ttl
    notes.add(f"items expire by {_show(sample.ttl)}, which is not always a number; ttl= is left out")
    return None


# --- the text -----------------------------------------------------------------------------------------------


class _Notes:
    """What the sample does not prove, one sentence each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._guesses: dict[str, list[str]] = {}

    def add(self, line: str) -> None:
        """Add a sentence."""
        self.lines.append(line)

    def add_column(self, column: _Column) -> None:
        """Add what is uncertain about one attribute."""
        name, kinds = _show(column.name), column.kinds
        if not kinds:
            self.add(f"{name} is in no item of the sample")
        elif kinds.keys() == {"NULL"}:
            self.add(f"{name} is null in every item that has it")
        elif column.annotation == "Any":
            counts = ", ".join(f"{_KINDS[kind]} ({count})" for kind, count in sorted(kinds.items()))
            self.add(f"{name} has no single type: {counts}")
        elif column.stored is not None:
            self._guesses.setdefault(column.stored, []).append(name)
        elif column.annotation in ("int", "datetime", "date"):
            self._guesses.setdefault(column.annotation, []).append(name)
        if column.has_other_moments:
            self.add(
                f"{name} holds times; as datetime it would be read, but written as 2026-01-31T09:30:00.000000Z"
            )

    def all(self) -> list[str]:
        """Every sentence, guesses of types first."""
        reasons = {
            "int": "all sampled numbers are whole, so the type is int, not Decimal",
            "datetime": "all sampled texts are times in Holdall's own form, so the type is datetime",
            "date": "all sampled texts are dates, so the type is date",
            **{form: f'{reason}, so it has stored="{form}"' for form, reason in REASONS.items()},
        }
        guesses = [
            f"{', '.join(self._guesses[kind])}: {reasons[kind]}" for kind in reasons if kind in self._guesses
        ]
        return [*guesses, *self.lines]


def _write_comment(sample: TableSample, notes: _Notes, columns: Mapping[str, _Column]) -> list[str]:
    schema, count = sample.schema, len(sample.items)
    keys = " and ".join(f"{_show(key.name)} ({key.type})" for key in schema.keys)
    items = "1 item" if count == 1 else f"{count:,} items"
    sampled = f"{items}; the table {'has no others' if sample.complete else 'can have more'}"
    lines = [
        f"# The table {sample.name}, as `holdall models inspect` found it.",
        f"# Key: {keys}. Sample: {sampled}.",
    ]
    uncertain = notes.all()
    if not sample.complete:
        uncertain.append(
            "items outside the sample can lack required attributes, or have others or other types"
        )
    uncertain += _suggest_template(sample)
    if uncertain:
        lines += ["#", "# Please check:", *(part for line in uncertain for part in _wrap(line))]
    return lines


def _wrap(line: str) -> list[str]:
    return wrap(
        line,
        _WIDTH,
        initial_indent="# - ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _suggest_template(sample: TableSample) -> list[str]:
    for name in _TYPE_ATTRIBUTES:
        values = Counter(text for item in sample.items if (text := _text(item, name)) is not None)
        if 1 < len(values) <= min(_MOST_TYPES, len(sample.items) - 1) and max(map(len, values)) <= 60:
            shown = ", ".join(_quote(value) for value in sorted(values)[:_SHOWN_TYPES])
            more = len(values) - _SHOWN_TYPES
            shown += f" and {more} more" if more > 0 else ""
            return [
                f"{name} is {shown}: if these are different kinds of items, declare one model for each,"
                f' with layout=Template(..., type="{name}")'
            ]
    return []


def _write_imports(
    columns: Mapping[str, _Column], fields: Mapping[str, str], used: set[str], *, has_indexes: bool
) -> list[str]:
    standard: dict[str, list[str]] = {}
    for name in sorted(used & _IMPORTS.keys()):
        standard.setdefault(_IMPORTS[name], []).append(name)
    own = {column.role for column in columns.values() if column.role} | {"Model"}
    own |= {"Index"} if has_indexes else set()
    options = any(fields[name] != name or column.stored for name, column in columns.items())
    own |= {"field"} if options else set()
    lines = [f"from {module} import {', '.join(names)}" for module, names in sorted(standard.items())]
    return [*lines, *([""] if lines else []), f"from holdall import {', '.join(sorted(own))}"]


def _write_class(name: str, arguments: Sequence[str], indexes: Sequence[str]) -> list[str]:
    line = f"class {name}({', '.join(arguments)}):"
    if not indexes and len(line) <= _WIDTH:
        return [line]
    lines = [f"class {name}(", *(f"    {argument}," for argument in arguments)]
    if indexes:
        lines += ["    indexes=[", *(f"        {index}," for index in indexes), "    ],"]
    return [*lines, "):"]


def _show(name: str) -> str:
    return name if name.isidentifier() else _quote(name)


def _quote(text: str) -> str:
    """Return a text as a Python literal, in double quotes if possible."""
    literal = repr(text)
    return literal if '"' in literal else f'"{literal[1:-1]}"'


def _text(item: Item, name: str) -> str | None:
    attribute = item.get(name)
    return None if attribute is None else attribute.get("S")
