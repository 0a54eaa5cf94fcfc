"""Indexes of models: other keys by which items can be queried.

Pure. Models in the database's table share overloaded indexes: *slot* N has the attributes ``gsiN_pk`` and ``gsiN_sk``,
and each model stores its own keys there. For a model with its own table, each index is an index of that table. Its
attributes are the fields themselves if possible, the table's key if it is the same, and otherwise derived attributes
(``_c_<names>``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.core.schema import IndexSchema, KeyAttribute, KeyType, Projection, TableSchema, make_index
from holdall.core.schema_rules import check_schema
from holdall.core.values import Attribute, Item
from holdall.errors import ConfigurationError, ModelDefinitionError
from holdall.models.fields import Field
from holdall.models.key_form import (
    AncestorForm,
    KeyForm,
    SharedForm,
    check_collection,
    plain_attribute,
    range_of_ancestor,
    range_of_plain,
    range_of_shared,
)
from holdall.models.keys import (
    NO_SORT_KEY,
    decode_components,
    foreign_part,
    join_sort_text,
    own_part,
    segment,
)
from holdall.models.ranges import range_of_several
from holdall.models.stored_form import plain

if TYPE_CHECKING:
    from holdall.models.conditions import Clause
    from holdall.models.model import Model
    from holdall.models.ranges import Range


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

    ``is_of_layout``: the model's layout describes it, not the class.
    """

    is_of_layout = False

    def __init__(self, index: Index, key: tuple[Field[Any], ...], sort_key: tuple[Field[Any], ...]) -> None:
        self.name = index.name
        self.declared = index
        self.key = key
        self.sort_key = sort_key

    @property
    def local(self) -> bool:
        """Whether it has the table's partition key."""
        return self.declared.local

    @property
    def components(self) -> tuple[Field[Any], ...]:
        """The fields from which its attributes are computed."""
        return (*self.key, *self.sort_key)

    @property
    def schema(self) -> IndexSchema:
        """The index that the table needs."""
        raise NotImplementedError

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
        super().__init__(index, key, sort_key)
        self.slot = slot
        self._head = f"{index.collection or root}#{index.name}"
        self._sort_head = f"{root}#" if index.collection else ""
        self._schema = slot_schema(slot)
        self._names = [attribute.name for attribute in self._schema.keys]

    @property
    def schema(self) -> IndexSchema:
        """The shared index of its slot."""
        return self._schema

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
        super().__init__(index, key, sort_key)
        self._partition = foreign_attribute(key, keys, sort_keys)
        self._sort = foreign_attribute(sort_key, keys, sort_keys) if sort_key else None
        projection = projection_of(included)
        self._schema = IndexSchema(self.name, self._partition, self._sort, projection, self.local)

    @property
    def schema(self) -> IndexSchema:
        """The index of the table, with the name of the model's index."""
        return self._schema

    def partition(self, values: Mapping[str, Any]) -> Attribute:
        """Return the partition key in the index."""
        attribute = _foreign_value(self.key, self._partition, values)
        assert attribute is not None
        return attribute

    def recover(self, item: Item) -> dict[str, Any]:
        """Return the fields that a row holds only inside a derived attribute."""
        found: dict[str, Any] = {}
        for fields, attribute in ((self.key, self._partition), (self.sort_key, self._sort)):
            stored = None if attribute is None else item.get(attribute.name)
            if stored is not None and attribute is not None and attribute.name.startswith("_c_"):
                missing = [field for field in fields if field.stored not in item and not field.is_key]
                values = decode_components(fields, plain(stored)) if missing else {}
                found |= {field.name: values[field.name] for field in missing}
        return found

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Return its derived attributes; fields and the table's key are stored anyway."""
        found: dict[str, Attribute | None] = {}
        for fields, attribute in ((self.key, self._partition), (self.sort_key, self._sort)):
            if attribute is not None and attribute.name.startswith("_c_"):
                found[attribute.name] = _foreign_value(fields, attribute, values)
        return found

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
        super().__init__(index, key, sort_key)
        sorts = [plain_attribute(field) for field in sort_key]
        self._schema = make_index(index.name, partitions, sorts, projection, index.local)

    @property
    def schema(self) -> IndexSchema:
        """The index of the table, under its own name."""
        return self._schema

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
        return range_of_several(clause, self.sort_key, self._schema.sorts, own_part)


def foreign_attribute(
    fields: tuple[Field[Any], ...], keys: tuple[Field[Any], ...], sort_keys: tuple[Field[Any], ...]
) -> KeyAttribute:
    """Return the attribute that holds these fields in an index: a field's own, the table's key, or a derived one."""
    from holdall.models.ecmascript import utf16_order

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
    from holdall.core.numbers import number_text

    if any(values.get(field.name) is None for field in fields):
        return None
    if attribute.name == fields[0].stored:
        return fields[0].encode(values[fields[0].name])  # the field's own form, not a key text
    part = foreign_part(fields, values, numeric=attribute.type == "N")
    return {"S": part} if isinstance(part, str) else {"N": number_text(part)}


_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
_ORDERED = {"S", "N", "B", "BOOL"}
_SLOTS = 20


def bind_indexes(
    cls: type[Model],
    declared: Sequence[Index],
    fields: Mapping[str, Field[Any]],
    form: KeyForm,
) -> list[BoundIndex]:
    """Bind the indexes to their fields; `ModelDefinitionError` names the class and the index that cannot work."""
    bound: list[BoundIndex] = []
    for index in declared:
        _check(cls, index, fields)
        if index.local:
            _check_local(cls, index, form)
        key = tuple(form.keys) if index.local else tuple(fields[name] for name in index.key)
        sort_key = tuple(fields[name] for name in index.sort_key)
        if isinstance(form, SharedForm):
            _check_alike(cls, index, key)
            check_collection(f"{cls.__name__}: the index {index.name!r}", index.collection)
            slot = _slot(cls, index, sort_key, len(declared))
            bound.append(SlotIndex(index, key, sort_key, form.root, slot))
        elif isinstance(form, AncestorForm):
            bound.append(_foreign(cls, index, key, sort_key, fields))
        else:
            bound.append(_plain(cls, index, key, sort_key, fields, form))
    bound += form.indexes()
    _check_apart(cls, bound)
    _check_definitions(cls, bound, form)
    return bound


def _check(cls: type[Model], index: Index, fields: Mapping[str, Field[Any]]) -> None:
    if not _NAME.fullmatch(index.name) or "#" in index.name:
        raise _wrong(cls, index, "its name is invalid", hint="use letters, digits and . _ -")
    for part in ("key", "sort_key"):
        if isinstance(getattr(index, part), str):
            raise _wrong(
                cls,
                index,
                f"{part} must be a list of field names, not a text",
                hint=f'write {part}=["{getattr(index, part)}"]',
            )
    if not index.key and not index.local:
        raise _wrong(cls, index, "it has no key", hint='add the fields of its key: key=["field"]')
    names = [*index.key, *index.sort_key]
    for name in names:
        if name not in fields:
            raise _wrong(
                cls,
                index,
                f"the model has no field {name!r}",
                hint=suggest_name(name, fields, "fields"),
            )
        if names.count(name) > 1:
            raise _wrong(cls, index, f"it has the field {name!r} twice")


def _check_local(cls: type[Model], index: Index, form: KeyForm) -> None:
    keys = form.table_keys()
    if keys is None:
        raise _wrong(
            cls,
            index,
            "a local index would limit every partition of the table that all models share to 10 GB",
            hint="remove local=True, or give the model its own table: table=...",
        )
    if index.key and {*index.key} != {field.name for field in form.keys}:
        names = ", ".join(field.name for field in form.keys)
        raise _wrong(
            cls,
            index,
            f"a local index has the key of its table ({names})",
            hint="leave out key= or local=True",
        )
    if keys[1] is None:
        raise _wrong(
            cls,
            index,
            "a table without a sort key cannot have local indexes",
            hint="declare a SortKey, or remove local=True",
        )
    if not index.sort_key:
        raise _wrong(cls, index, "it has no sort key", hint='add its fields: sort_key=["field"]')


def _check_alike(cls: type[Model], index: Index, key: Sequence[Field[Any]]) -> None:
    for field in key:
        if field.codec.kind is None:
            raise _wrong(
                cls,
                index,
                f"the values of {field.name} have different stored types: 1 and '1' would be found together",
                hint="index a field of a single type: str, int, UUID, datetime, ...",
            )


def _slot(cls: type[Model], index: Index, sort_key: Sequence[Field[Any]], count: int) -> int:
    if index.include is not None or index.sparse:
        raise _wrong(
            cls,
            index,
            "include= and sparse= are only for models with their own table (table=)",
            hint="remove them: a shared index holds whole items, and only those that have all its fields",
        )
    if index.slot is None and count > 1:
        raise _wrong(
            cls, index, "a model with several indexes needs a slot for each", hint="add slot=1, slot=2, …"
        )
    slot = 1 if index.slot is None else index.slot
    if isinstance(slot, bool) or not isinstance(slot, int) or not 1 <= slot <= _SLOTS:
        raise _wrong(cls, index, f"slot must be a whole number from 1 to {_SLOTS}, not {slot!r}")
    for field in sort_key:
        if field.codec.kind not in _ORDERED:
            raise _wrong(cls, index, f"{field.name} has no order, so it cannot be part of a sort key")
    return slot


def _plain(
    cls: type[Model],
    index: Index,
    key: tuple[Field[Any], ...],
    sort_key: tuple[Field[Any], ...],
    fields: Mapping[str, Field[Any]],
    form: KeyForm,
) -> PlainIndex:
    _check_own(cls, index)
    own = sort_key if index.local else (*key, *sort_key)  # of a local index, the layout has checked the key
    for field in own:
        if field.codec.kind not in ("S", "N", "B"):
            raise _wrong(cls, index, f"{field.name} is not stored as a string, a number or binary")
    if index.include is not None and not form.is_plain:
        raise _wrong(
            cls,
            index,
            "include= cannot be used with a Template: its rows need the attributes that identify an item",
            hint="leave out include=; the index in the table must hold all attributes (ALL)",
        )
    keys = form.table_keys() if index.local else None
    partitions = [plain_attribute(field) for field in key] if keys is None else [keys[0]]
    projection = projection_of(_list_included(cls, index, fields))
    return PlainIndex(index, key, sort_key, partitions, projection)


def _check_own(cls: type[Model], index: Index) -> None:
    if index.collection is not None:
        raise _wrong(cls, index, "collection= is for models in the database's table", hint="leave it out")
    if index.slot is not None:
        raise _wrong(
            cls, index, "slot= does not apply to a model with its own table (table=)", hint="remove slot="
        )


def _list_included(cls: type[Model], index: Index, fields: Mapping[str, Field[Any]]) -> list[str] | None:
    """The attributes that ``include`` names; None for all."""
    if index.include is None:
        return None
    for name in index.include:
        if name not in fields:
            raise _wrong(
                cls,
                index,
                f"include= names {name!r}, which is not a field",
                hint=suggest_name(name, fields, "fields"),
            )
        if fields[name].is_key:
            raise _wrong(cls, index, f"include= names {name!r}, which is part of the key and always included")
    return [fields[name].stored for name in index.include]


def projection_of(included: Sequence[str] | None) -> Projection:
    """What an index keeps besides the keys: all, nothing, or these attributes."""
    if included is None:
        return Projection()
    return Projection("INCLUDE", tuple(included)) if included else Projection("KEYS_ONLY")


def _foreign(
    cls: type[Model],
    index: Index,
    key: tuple[Field[Any], ...],
    sort_key: tuple[Field[Any], ...],
    fields: Mapping[str, Field[Any]],
) -> ForeignIndex:
    _check_own(cls, index)
    for field in (*key, *sort_key):
        if field.codec.nullable and not index.sparse:
            raise _wrong(
                cls,
                index,
                f"{field.name} is optional, so some items would not be in the index",
                hint="if that is intended, set sparse=True",
            )
    included = _list_included(cls, index, fields)
    keys = tuple(field for field in fields.values() if field.is_key and not field.is_sort_key)
    sort_keys = tuple(field for field in fields.values() if field.is_sort_key)
    return ForeignIndex(index, key, sort_key, keys, sort_keys, included)


def _check_apart(cls: type[Model], bound: Sequence[BoundIndex]) -> None:
    """Check that no two indexes use the same slot, and that no derived attribute would hold two different values."""
    slots: dict[int, BoundIndex] = {}
    made_up: dict[str, tuple[str, ...]] = {}
    for index in bound:
        if isinstance(index, SlotIndex):
            if index.slot in slots:
                raise _wrong(
                    cls, index.declared, f"slot {index.slot} is already used by {slots[index.slot].name!r}"
                )
            slots[index.slot] = index
        if isinstance(index, PlainIndex):
            continue
        for attribute, part in zip(index.schema.keys, (index.key, index.sort_key), strict=False):
            names = tuple(sorted(field.name for field in part))
            if attribute.name.startswith("_c_") and made_up.setdefault(attribute.name, names) != names:
                raise _wrong(
                    cls, index.declared, f"the attribute {attribute.name} would hold two different values"
                )


def _check_definitions(cls: type[Model], bound: Sequence[BoundIndex], form: KeyForm) -> None:
    """Check names, keys and projections in a model's own table against DynamoDB's rules."""
    keys = form.table_keys()
    if keys is None:
        return
    for indexes in ((), *((index.schema,) for index in bound)):
        try:
            check_schema(TableSchema("own", *keys, indexes))
        except ConfigurationError as error:
            problem = error.message.removeprefix("own: ")
            raise ModelDefinitionError(f"{cls.__name__}: {problem}", hint=error.hint) from None


def _wrong(cls: type, index: Index, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    return ModelDefinitionError(f"{cls.__name__}: the index {index.name!r}: {problem}", hint=hint)
