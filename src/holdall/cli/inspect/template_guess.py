"""Guesses of single-table designs: the templates of the keys of each kind of items, from a sample.

Pure. A key such as ``CUSTOMER#ada`` is split at its separator. Each segment is a literal that all items of a kind have,
or the value of an attribute that they all have, possibly after a literal or padded with zeros. A design is proposed
only if this explains all keys of every sampled item, also those of indexes, and each kind has at least two items. A key
attribute that is a number or binary is a field itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdall.core import Item, KeyAttribute, TableSchema

TYPE_ATTRIBUTES = ("entity", "__edb_e__", "_type", "_et", "__typename", "cls", "type")
_MOST_TYPES = 20
_ELECTRODB_TYPE, _ELECTRODB_VERSION = "__edb_e__", "__edb_v__"
_SEPARATORS = "#|:/"


@dataclass(frozen=True)
class Placeholder:
    """The place of an attribute's value in a key; ``width`` is the number of its digits, if it is padded."""

    attribute: str
    width: int | None = None


Text = tuple[str | Placeholder, ...]
"""The template of a key attribute: literals and placeholders."""

Values = Mapping[str, Sequence[str | None]]
"""The texts of the values that all items of a kind have, by attribute, in the order of the items."""


@dataclass(frozen=True)
class Design:
    """One kind of items. ``items`` lack the attributes of the layout: keys, keys of indexes, and the type.

    ``name`` is the value of the attribute ``type``, if there is one; ``constants`` are other attributes that all items
    have, such as ElectroDB's version. ``casing`` is the case of values in keys. ``key`` and each of ``indexes`` have
    the template of each of their attributes, and each of ``local`` that of a local index's sort key.
    """

    type: str | None
    name: str | None
    constants: Mapping[str, str]
    casing: str | None
    items: Sequence[Item]
    key: Mapping[str, Text]
    indexes: Mapping[str, Mapping[str, Text]]
    local: Mapping[str, Mapping[str, Text]]

    @property
    def roles(self) -> dict[str, str]:
        """The attributes that are parts of the key."""
        first, *rest = self.key.values()
        found = {placeholder.attribute: "SortKey" for text in rest for placeholder in list_placeholders(text)}
        return found | {placeholder.attribute: "Key" for placeholder in list_placeholders(first)}

    @property
    def indexed(self) -> set[str]:
        """The attributes that are parts of an index's key."""
        texts = [text for index in (*self.indexes.values(), *self.local.values()) for text in index.values()]
        return {placeholder.attribute for text in texts for placeholder in list_placeholders(text)}


def list_placeholders(text: Text) -> list[Placeholder]:
    """The placeholders of a template."""
    return [piece for piece in text if isinstance(piece, Placeholder)]


def list_index_keys(schema: TableSchema) -> list[KeyAttribute]:
    """The key attributes of a table's indexes."""
    return [key for index in schema.indexes for key in index.keys]


def find_designs(schema: TableSchema, items: Sequence[Item]) -> list[Design]:
    """Return a design for each kind of items, by name; none if the sample does not clearly show one."""
    type = next((name for name in TYPE_ATTRIBUTES if _is_type(name, schema, items)), None)
    groups: dict[str | None, list[Item]] = {}
    for item in items:
        groups.setdefault(None if type is None else item[type]["S"], []).append(item)
    found = [_find_design(schema, type, name, group) for name, group in groups.items()]
    designs = [design for design in found if design is not None]
    return sorted(designs, key=lambda design: design.name or "") if len(designs) == len(groups) else []


def _is_type(name: str, schema: TableSchema, items: Sequence[Item]) -> bool:
    """Whether every item has this attribute, with one of a few short texts."""
    if any(name == key.name for key in (*schema.keys, *list_index_keys(schema))):
        return False
    texts = {item.get(name, {}).get("S") for item in items}
    return len(texts) <= _MOST_TYPES and all(text and re.fullmatch(r"\S{1,60}", text) for text in texts)


def _find_design(
    schema: TableSchema, type: str | None, name: str | None, items: Sequence[Item]
) -> Design | None:
    """The design of one kind of items, with the first casing that explains all keys; ElectroDB's is lower case."""
    if len(items) < 2:
        return None
    versions = (
        {item.get(_ELECTRODB_VERSION, {}).get("S") for item in items} if type == _ELECTRODB_TYPE else set()
    )
    version = next(iter(versions)) if len(versions) == 1 else None
    constants = {} if version is None else {_ELECTRODB_VERSION: version}
    casings = ("lower", None) if type == _ELECTRODB_TYPE else (None, "lower", "upper")
    texts = {key.name for key in (*schema.keys, *list_index_keys(schema)) if key.type == "S"}
    layout = texts | {type, *constants}
    shared = set.intersection(*({*item} for item in items)) - layout
    shared = {name for name in shared if len({kind for item in items for kind in item[name]}) == 1}
    for casing in casings:
        values = {name: [_spell(item[name], casing) for item in items] for name in shared}
        found = _find_keys(schema, items, values)
        if found is not None:
            kept = [{part: value for part, value in item.items() if part not in layout} for item in items]
            return Design(type, name, constants, casing, kept, *found)
    return None


def _find_keys(
    schema: TableSchema, items: Sequence[Item], values: Values
) -> tuple[dict[str, Text], dict[str, dict[str, Text]], dict[str, dict[str, Text]]] | None:
    """The templates of the key, of each index, and of each local index that the items are in."""
    key = _find_texts(schema.keys, items, values)
    if key is None or not list_placeholders(key[schema.partition.name]) or not _has_literal(key):
        return None
    indexes: dict[str, dict[str, Text]] = {}
    local: dict[str, dict[str, Text]] = {}
    for index in schema.indexes:
        parts = [part for part in index.keys if not (index.local and part == index.partition)]
        if not any(part.name in item for part in parts for item in items):
            continue
        texts = _find_texts(parts, items, values)
        if texts is None:
            return None  # a model that does not know the index would not keep its keys right
        if not any(map(list_placeholders, texts.values())):
            return None  # more likely a plain attribute with the same value in all sampled items
        (local if index.local else indexes)[index.name] = texts
    return key, indexes, local


def _has_literal(key: Mapping[str, Text]) -> bool:
    """Whether a key has more than a value: otherwise the table may as well be a plain one."""
    return any(isinstance(piece, str) for text in key.values() for piece in text)


def _find_texts(
    keys: Iterable[KeyAttribute], items: Sequence[Item], values: Values
) -> dict[str, Text] | None:
    found: dict[str, Text] = {}
    for key in keys:
        texts = [str(item.get(key.name, {}).get(key.type, "")) for item in items]
        own: Text | None = (Placeholder(key.name),) if key.type != "S" else _find_text(texts, values)
        if own is None or not all(texts):
            return None
        found[key.name] = own
    return found


def _find_text(texts: Sequence[str], values: Values) -> Text | None:
    """The template of these texts, one of each item. A value that is the whole key can contain a separator."""
    for name in sorted(values):
        if values[name] == [*texts]:
            return (Placeholder(name),)
    for separator in (*(each for each in _SEPARATORS if each in texts[0]), None):
        rows = [[text] if separator is None else text.split(separator) for text in texts]
        if len({len(row) for row in rows}) == 1:
            found = _find_pieces(rows, separator or "", values)
            if found is not None:
                return found
    return None


def _find_pieces(rows: Sequence[Sequence[str]], separator: str, values: Values) -> Text | None:
    pieces: list[str | Placeholder] = []
    for segments in zip(*rows, strict=True):
        found = _find_segment(segments, values, pieces[-2:])
        if found is None:
            return None
        pieces += [*([separator] if pieces else []), *found]
    return _join(pieces)


def _find_segment(
    segments: Sequence[str], values: Values, before: Sequence[str | Placeholder]
) -> list[str | Placeholder] | None:
    """A value; a literal that ends in the attribute's name, as ElectroDB has it, and a value; any literal, or both."""
    label = "".join(piece for piece in before if isinstance(piece, str)).lower().strip(_SEPARATORS)
    names = sorted(values, key=lambda name: (not label or label not in name.lower(), len(name), name))
    for prefix in ("", *(f"{name.lower()}_" for name in names)):
        related = names if not prefix else [name for name in names if f"{name.lower()}_" == prefix]
        if (found := _find_value(prefix, segments, values, related)) is not None:
            return found
    if len({*segments}) == 1:
        return None if re.search(r"[{}]", segments[0]) else [segments[0]]
    starts = {segments[0].removesuffix(texts[0] or " ") for texts in values.values()}
    for prefix in sorted(starts | {re.sub(r"\d+$", "", segments[0])}):
        found = None if re.search(r"^$|\d$", prefix) else _find_value(prefix, segments, values, names)
        if found is not None:
            return found
    return None


def _find_value(
    prefix: str, segments: Sequence[str], values: Values, names: Sequence[str]
) -> list[str | Placeholder] | None:
    """A value after a literal, padded with zeros or not."""
    if re.search(r"[{}]", prefix) or not all(segment.startswith(prefix) for segment in segments):
        return None
    literal: list[str | Placeholder] = [prefix] if prefix else []
    rest = [segment.removeprefix(prefix) for segment in segments]
    for name in names:
        if values[name] == rest:
            return [*literal, Placeholder(name)]
    widths = {len(each) for each in rest}
    if len(widths) == 1 and all(each.isdecimal() for each in rest):
        for name in names:
            if values[name] == [str(int(each)) for each in rest]:
                return [*literal, Placeholder(name, *widths)]
    return None


def _spell(attribute: Mapping[str, object], casing: str | None) -> str | None:
    """The text of a value in a key; None if it is neither a text nor a whole number."""
    text = attribute.get("S") or attribute.get("N")
    if not isinstance(text, str) or not ("S" in attribute or re.fullmatch(r"-?\d+", text)):
        return None
    return {"lower": text.lower(), "upper": text.upper()}.get(casing or "", text)


def _join(pieces: Iterable[str | Placeholder]) -> Text:
    joined: list[str | Placeholder] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece:
            joined.append(piece)
    return tuple(joined)
