"""Indexes of models: other keys by which items can be queried.

Pure. Models in the database's table share overloaded indexes: *slot* N has the attributes ``gsiN_pk`` and ``gsiN_sk``,
and each model stores its own keys there. For a model with its own table, each index is an index of that table. Its
attributes are the fields themselves if possible, the table's key if it is the same, and otherwise derived attributes
(``_c_<names>``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.core.schema import IndexSchema, KeyAttribute, KeyType, Projection, make_index
from holdall.core.values import Attribute, Item
from holdall.errors import ModelDefinitionError
from holdall.models.codec.stored_form import plain
from holdall.models.fields.field import Field
from holdall.models.keys.form import advise_type, plain_attribute
from holdall.models.keys.part import (
    NO_SORT_KEY,
    decode_components,
    foreign_part,
    join_sort_text,
    part_attribute,
    segment,
)
from holdall.models.keys.ranges import range_of_ancestor, range_of_plain, range_of_several, range_of_shared

if TYPE_CHECKING:
    from holdall.models.fields.conditions import Clause
    from holdall.models.keys.ranges import Range


@dataclass(frozen=True, slots=True)
class Index:
    """The declaration of an index: ``Index("by_product", key=["product"], sort_key=["placed_at"])``.

    ``local`` (own tables only): the index has the model's own partition key, so ``key`` is left out, and only another
    ``sort_key``. It can be read with strong consistency, and must be created together with its table.
    ``slot`` chooses one of the table's shared indexes, from 1 up; it is required if a model has several indexes.
    ``include`` (own tables only) lists the fields that the index holds besides the keys; None means all. ``sparse``
    (own tables only): items that lack one of the index's fields are not in the index. Models whose indexes have the
    same name, slot and ``collection`` (shared table only) can be queried together through it.
    """

    name: str
    key: Sequence[str] = ()
    sort_key: Sequence[str] = ()
    slot: int | None = None
    include: Sequence[str] | None = None
    sparse: bool = False
    local: bool = False
    collection: str | None = None

    if not TYPE_CHECKING:

        def __new__(cls, *values: Any, **options: Any) -> Index:
            """Refuse an option that does not exist, with the nearest name."""
            for name in options:
                if name not in cls.__match_args__:
                    hint = suggest_name(name, cls.__match_args__, "options")
                    raise ModelDefinitionError(f"Index() has no option {name!r}", hint=hint)
            return object.__new__(cls)


class BoundIndex:
    """An index bound to its fields, with the attributes that it stores for them.

    ``schema`` is the index that the table needs. ``is_of_layout``: the model's layout describes it, not the class.
    ``fetches``: if the table's index holds only parts of items, they are fetched by their keys; otherwise such an index
    does not fit.
    """

    is_of_layout = False
    fetches = False

    def __init__(
        self, index: Index, key: tuple[Field[Any], ...], sort_key: tuple[Field[Any], ...], schema: IndexSchema
    ) -> None:
        self.name = index.name
        self.declared = index
        self.key = key
        self.sort_key = sort_key
        self.schema = schema

    @property
    def local(self) -> bool:
        """Whether it has the table's partition key."""
        return self.declared.local

    @property
    def components(self) -> tuple[Field[Any], ...]:
        """The fields from which its attributes are computed."""
        return (*self.key, *self.sort_key)

    def partition(self, values: Mapping[str, Any]) -> Attribute:
        """Return the index's partition key for these values of its key fields."""
        raise NotImplementedError

    def equalities(self, values: Mapping[str, Any]) -> tuple[tuple[str, Attribute], ...]:
        """Return the attributes of the index's partition key, with their values."""
        return ((self.schema.partition.name, self.partition(values)),)

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Return the attributes that are stored for it; None for one that is absent."""
        raise NotImplementedError

    def recover(self, item: Item) -> dict[str, Any]:
        """Return fields that a row of the index lacks, but that its attributes contain."""
        return {}

    def parse_partition(self, partition: Attribute) -> dict[str, Any] | None:
        """The components of a partition key that another model made; None if it is not one of this index."""
        return None

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """The range of the index's sort key that a condition describes, in the partition of these components."""
        raise NotImplementedError

    def advise(self, found: IndexSchema, fields: Iterable[Field[Any]]) -> str | None:
        """How to declare the index as another program's table has it; None if there is no way, or the table is ours."""
        return None


def slot_schema(slot: int) -> IndexSchema:
    """Return the shared index of a slot."""
    return IndexSchema(f"gsi{slot}", KeyAttribute(f"gsi{slot}_pk"), KeyAttribute(f"gsi{slot}_sk"))


class SlotIndex(BoundIndex):
    """An index of a model in the database's table."""

    def __init__(
        self,
        index: Index,
        key: tuple[Field[Any], ...],
        sort_key: tuple[Field[Any], ...],
        root: str,
        slot: int,
    ) -> None:
        super().__init__(index, key, sort_key, slot_schema(slot))
        self.slot = slot
        self._head = f"{index.collection or root}#{index.name}"
        self._sort_head = f"{root}#" if index.collection else ""
        self._names = [attribute.name for attribute in self.schema.keys]

    def partition(self, values: Mapping[str, Any]) -> Attribute:
        """Return the partition key in the shared index."""
        return {"S": "#".join([self._head, *(segment(field, values[field.name]) for field in self.key)])}

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Return both attributes; None for both if a component has no value, so that the item is not in the index."""
        partition, sort = self._names
        if any(values.get(field.name) is None for field in self.components):
            return {partition: None, sort: None}
        own = join_sort_text(self.sort_key, values) if self.sort_key else ""
        text = self._sort_head + own if self._sort_head or self.sort_key else NO_SORT_KEY
        return {partition: self.partition(values), sort: {"S": text} if text else None}

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of order-preserving texts."""
        return range_of_shared(clause, self.sort_key, attribute, self._sort_head)


class ForeignIndex(BoundIndex):
    """An index of a model with its own table."""

    def __init__(
        self,
        index: Index,
        key: tuple[Field[Any], ...],
        sort_key: tuple[Field[Any], ...],
        keys: tuple[Field[Any], ...],
        sort_keys: tuple[Field[Any], ...],
        included: Sequence[str] | None,
    ) -> None:
        self._partition = foreign_attribute(key, keys, sort_keys)
        sort = foreign_attribute(sort_key, keys, sort_keys) if sort_key else None
        projection = projection_of(included)
        super().__init__(
            index, key, sort_key, IndexSchema(index.name, self._partition, sort, projection, index.local)
        )
        pairs = ((key, self._partition), (sort_key, sort))
        made = [(fields, each) for fields, each in pairs if each is not None]
        self._derived = [(fields, each) for fields, each in made if each.name.startswith("_c_")]

    def partition(self, values: Mapping[str, Any]) -> Attribute:
        """Return the partition key in the index."""
        attribute = _foreign_value(self.key, self._partition, values)
        assert attribute is not None
        return attribute

    def recover(self, item: Item) -> dict[str, Any]:
        """Return the fields that a row holds only inside a derived attribute."""
        found: dict[str, Any] = {}
        for fields, attribute in self._derived:
            if (stored := item.get(attribute.name)) is not None:
                missing = [field for field in fields if field.stored not in item and not field.is_key]
                values = decode_components(fields, plain(stored)) if missing else {}
                found |= {field.name: values[field.name] for field in missing}
        return found

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Return its derived attributes; fields and the table's key are stored anyway."""
        return {each.name: _foreign_value(fields, each, values) for fields, each in self._derived}

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of texts, or of one number."""
        return range_of_ancestor(clause, self.sort_key, attribute)


class PlainIndex(BoundIndex):
    """An index of a table whose key attributes are fields themselves, one or several for each key."""

    def __init__(
        self,
        index: Index,
        key: tuple[Field[Any], ...],
        sort_key: tuple[Field[Any], ...],
        partitions: Sequence[KeyAttribute],
        projection: Projection,
    ) -> None:
        sorts = [plain_attribute(field) for field in sort_key]
        schema = make_index(index.name, partitions, sorts, projection, index.local)
        super().__init__(index, key, sort_key, schema)

    def equalities(self, values: Mapping[str, Any]) -> tuple[tuple[str, Attribute], ...]:
        """The values of the key fields."""
        found = ((field.stored, field.encode(values[field.name])) for field in self.key)
        return tuple((name, attribute) for name, attribute in found if attribute is not None)

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """None: the fields are stored anyway."""
        return {}

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of the values of the field, or of several."""
        if len(self.sort_key) < 2:
            return range_of_plain(clause, self.sort_key, attribute)
        return range_of_several(clause, self.sort_key, self.schema.sorts)

    def advise(self, found: IndexSchema, fields: Iterable[Field[Any]]) -> str:
        """The declaration, after the fields that it needs."""
        known = {field.stored: field for field in fields}
        notes = [
            f"declare a field for {key.name} ({key.type})"
            if key.name not in known
            else advise_type(known[key.name], key.type)
            for key in found.keys
            if key.name not in known or known[key.name].codec.kind != key.type
        ]

        def name_all(names: Iterable[str]) -> str:
            return ", ".join(quote(known[name].name if name in known else name) for name in names)

        parts = [quote(found.name)]
        parts += [] if found.local else [f"key=[{name_all(key.name for key in found.partitions)}]"]
        parts += [f"sort_key=[{name_all(key.name for key in found.sorts)}]"] if found.sorts else []
        if found.projection.kind != "ALL":
            held = (name for name in found.projection.names if name in known and not known[name].is_key)
            parts.append(f"include=[{name_all(held)}]")
        parts += ["local=True"] if found.local else []
        return "; ".join([*notes, f"Index({', '.join(parts)})"])


def foreign_attribute(
    fields: tuple[Field[Any], ...], keys: tuple[Field[Any], ...], sort_keys: tuple[Field[Any], ...]
) -> KeyAttribute:
    """Return the attribute that holds these fields in an index: a field's own, the table's key, or a derived one."""
    from holdall.models.codec.ecmascript import utf16_order

    numeric: KeyType = "N" if len(fields) == 1 and fields[0].codec.kind == "N" else "S"
    if len(fields) == 1 and not fields[0].is_key and fields[0].codec.kind in ("S", "N"):
        return KeyAttribute(fields[0].stored, numeric)
    names = {field.name for field in fields}
    if names == {field.name for field in keys}:
        return KeyAttribute("_id", numeric)
    if sort_keys and names == {field.name for field in sort_keys}:
        return KeyAttribute("_sk", numeric)
    return KeyAttribute(
        "_c_" + "_".join(sorted((field.stored for field in fields), key=utf16_order)), numeric
    )


def _foreign_value(
    fields: tuple[Field[Any], ...], attribute: KeyAttribute, values: Mapping[str, Any]
) -> Attribute | None:
    if any(values.get(field.name) is None for field in fields):
        return None
    if attribute.name == fields[0].stored:
        return fields[0].encode(values[fields[0].name])  # the field's own form, not a key text
    return part_attribute(foreign_part(fields, values, numeric=attribute.type == "N"))


def quote(text: str) -> str:
    """A text as it is written in Python, usually in double quotes."""
    return f'"{text}"' if text.isprintable() and not {*'"\\'} & {*text} else repr(text)


def projection_of(included: Sequence[str] | None) -> Projection:
    """What an index keeps besides the keys: all, nothing, or these attributes."""
    if included is None:
        return Projection()
    return Projection("INCLUDE", tuple(included)) if included else Projection("KEYS_ONLY")
