"""Key forms: how the keys of a model's items are stored in its table.

Pure. A model in the database's table has the *shared* form, or that of a *collection*, whose models share partitions. A
model with ``table=`` names its own table: by default in the *ancestor's* form, which the JavaScript library reads, too;
with ``layout="plain"`` the key fields are the table's key attributes; with a `Template`, the key attributes are texts
made of literals and fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from holdall.core.schema import KeyAttribute, KeyType, TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import ModelDefinitionError
from holdall.models.codec.stored_form import plain
from holdall.models.keys.key import default_sort
from holdall.models.keys.part import (
    NO_SORT_KEY,
    KeyPart,
    decode_components,
    foreign_part,
    join_sort_text,
    numeric_part,
    part_attribute,
    partition_text,
)
from holdall.models.keys.ranges import Range, range_of_ancestor, range_of_plain, range_of_shared
from holdall.models.schema import TYPE

if TYPE_CHECKING:
    from holdall.models.fields.conditions import Clause
    from holdall.models.fields.field import Field, Key
    from holdall.models.indexes import BoundIndex
    from holdall.models.keys.template import Template
    from holdall.models.schema import ModelSchema

Keys = tuple[KeyAttribute, KeyAttribute | None]

Layout: TypeAlias = "Literal['plain'] | Template"
"""How a table that other programs use is laid out: ``"plain"``, or a `Template`."""


class KeyForm:
    """How a model's keys are stored.

    ``type_attribute`` names the attribute that holds the model's name, None if nothing does; ``constants`` are other
    attributes that every item of the model has. ``in_key_alone``: the key's components are stored in the key and
    nowhere else. ``is_parsed``: other programs may do the same, so components that are missing are parsed from the
    key. ``is_plain``: the components themselves are the key's attributes, which identify an item.
    ``foreign``: programs in JavaScript read the items, too.
    ``reserves_names``: names that begin with an underscore are Holdall's.
    ``shares_partitions``: items of other models may lie between those of one partition.
    ``is_known_by_key``: only the text of the key shows which items are of the model, and no store can check that.
    ``key_names`` are the key attributes of a table whose keys other programs make, too, and may spell otherwise.
    """

    type_attribute: str | None = None
    constants: Mapping[str, Attribute] = {}
    in_key_alone = False
    is_parsed = False
    is_plain = False
    foreign = False
    shares_partitions = False
    reserves_names = False
    is_known_by_key = False
    key_names: tuple[str, ...] = ()

    def __init__(self, keys: Sequence[Key[Any]], sort_keys: Sequence[Key[Any]]) -> None:
        self.keys = tuple(keys)
        self.sort_keys = tuple(sort_keys)

    def table_keys(self) -> Keys | None:
        """The key attributes that the table has to have; None in the database's table, which has its own."""
        raise NotImplementedError

    def encode(self, components: Mapping[str, Any]) -> tuple[KeyPart, KeyPart | None]:
        """The contents of both key attributes."""
        raise NotImplementedError

    def partition(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The partition key of items with these components."""
        raise NotImplementedError

    def components(self, partition: Attribute, sort: Attribute | None) -> dict[str, Any]:
        """The components of a stored key."""
        raise NotImplementedError

    def parse_partition(self, partition: Attribute) -> dict[str, Any] | None:
        """The components of a partition key that another model made; None if it is not one of this model."""
        return None

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """The range of the sort key that a condition describes, in the partition of these components."""
        raise NotImplementedError

    def indexes(self) -> Sequence[BoundIndex]:
        """The indexes that the layout itself describes."""
        return ()

    def advise(self, found: TableSchema) -> str | None:
        """What to declare for a table whose key attributes have other names."""
        return None

    def advise_type(self, found: KeyAttribute) -> str | None:
        """What to declare for a key attribute that has another type."""
        return None

    def model_of(self, schema: ModelSchema, item: Item, sort: object) -> ModelSchema | None:
        """The model of a stored item: this one or one derived from it; None if it is neither."""
        assert self.type_attribute is not None
        kind = item.get(self.type_attribute)
        name = None if kind is None else kind.get("S")
        if name == schema.name:
            return schema
        return next((each for each in schema.family() if each.name == name), None)


class SharedForm(KeyForm):
    """In the database's table, where the models share the partition and sort key.

    ``head`` is the text before the first ``#`` of the partition key, ``sort_head`` what precedes the sort key's own
    text, and ``unsorted`` the sort key of an item whose model has none.
    """

    type_attribute = TYPE
    reserves_names = True

    def __init__(self, root: str, keys: Sequence[Key[Any]], sort_keys: Sequence[Key[Any]]) -> None:
        super().__init__(keys, sort_keys)
        self.root = root
        self.head = root
        self.sort_head, self.unsorted = "", NO_SORT_KEY

    def table_keys(self) -> None:
        """None: the database's table has its own."""

    def encode(self, components: Mapping[str, Any]) -> tuple[str, str]:
        """Both texts."""
        sort_keys = self.sort_keys
        return (
            partition_text(self.head, self.keys, components),
            self.sort_head + join_sort_text(sort_keys, components) if sort_keys else self.unsorted,
        )

    def partition(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The text of the partition key."""
        return {"S": partition_text(self.head, self.keys, components)}

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of order-preserving texts."""
        return range_of_shared(clause, self.sort_keys, attribute, self.sort_head)


class CollectionForm(SharedForm):
    """In the database's table, in a partition that the models of a collection share.

    The partition key begins with the name of the collection, and the sort key with that of the model. ``_roots`` are
    the names of all models of each collection: a query filters out the items of those that lie between its own.
    """

    _roots: ClassVar[dict[str, set[str]]] = {}

    def __init__(
        self, collection: str, root: str, keys: Sequence[Key[Any]], sort_keys: Sequence[Key[Any]]
    ) -> None:
        super().__init__(root, keys, sort_keys)
        self.head = collection
        self.sort_head = self.unsorted = f"{root}#"
        self._roots.setdefault(collection, set()).add(root)

    def are_adjacent(self, asked: set[str]) -> bool:
        """Whether this program defines no other model whose items lie between the items of the requested models."""
        first, last = min(asked), max(asked)
        return all(root in asked or not first < root < last for root in self._roots[self.head])


class AncestorForm(KeyForm):
    """In a model's own table with the key ``_id`` and ``_sk``, as the JavaScript library has it."""

    in_key_alone = True
    foreign = True
    reserves_names = True

    def table_keys(self) -> Keys:
        """``_id``, and ``_sk`` for a model with a sort key; a key that is one number is stored as a number."""
        sort = KeyAttribute("_sk", _number_or_text(self.sort_keys)) if self.sort_keys else None
        return KeyAttribute("_id", _number_or_text(self.keys)), sort

    def encode(self, components: Mapping[str, Any]) -> tuple[KeyPart, KeyPart | None]:
        """The texts, or numbers."""
        partition = foreign_part(self.keys, components)
        return partition, foreign_part(self.sort_keys, components) if self.sort_keys else None

    def partition(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The partition key; one number as text, where the table was made when keys were always text."""
        return part_attribute(foreign_part(self.keys, components, numeric=attribute.type == "N"))

    def sort(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The sort key, in the same way."""
        return part_attribute(foreign_part(self.sort_keys, components, numeric=attribute.type == "N"))

    def components(self, partition: Attribute, sort: Attribute | None) -> dict[str, Any]:
        """The components, which are stored nowhere else."""
        found = decode_components(self.keys, plain(partition))
        return found if sort is None else found | decode_components(self.sort_keys, plain(sort))

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of texts, or of one number."""
        return range_of_ancestor(clause, self.sort_keys, attribute)

    def advise(self, found: TableSchema) -> str:
        """Another layout."""
        return (
            'if another program laid out the table, declare that with layout="plain" or layout=Template(...)'
        )

    def model_of(self, schema: ModelSchema, item: Item, sort: object) -> ModelSchema | None:
        """The model whose default for the sort key the item has; an item with none of the defaults is the root's."""
        for each in schema.family():
            default = default_sort(each)
            if default is not None and sort in (default, str(default)):  # a number may be kept as text
                return each
        return schema if schema.name == schema.root or default_sort(schema) is None else None


class PlainForm(KeyForm):
    """In a model's own table whose key attributes are the key fields themselves."""

    is_plain = True

    def __init__(self, keys: Sequence[Key[Any]], sort_keys: Sequence[Key[Any]]) -> None:
        super().__init__(keys, sort_keys)
        self.key_names = tuple(field.stored for field in (*keys, *sort_keys))

    def table_keys(self) -> Keys:
        """The key fields, under their stored names and types."""
        (partition,) = self.keys
        return plain_attribute(partition), plain_attribute(self.sort_keys[0]) if self.sort_keys else None

    def encode(self, components: Mapping[str, Any]) -> tuple[KeyPart, KeyPart | None]:
        """The contents as they are stored, numbers and bytes as texts."""
        (partition,) = encode_key_field(self.keys[0], components).values()
        if not self.sort_keys:
            return partition, None
        (sort,) = encode_key_field(self.sort_keys[0], components).values()
        return partition, sort

    def partition(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The key field's stored value."""
        return encode_key_field(self.keys[0], components)

    def components(self, partition: Attribute, sort: Attribute | None) -> dict[str, Any]:
        """The two values."""
        found = {self.keys[0].name: self.keys[0].decode(partition)}
        if sort is not None:
            found[self.sort_keys[0].name] = self.sort_keys[0].decode(sort)
        return found

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of the stored values of one field."""
        return range_of_plain(clause, self.sort_keys, attribute)

    def advise(self, found: TableSchema) -> str | None:
        """The names that the key fields should be stored under."""
        fields, names = (*self.keys, *self.sort_keys), [key.name for key in found.keys]
        if [field.stored for field in reversed(fields)] == names:
            return f"declare {fields[1].name} as the Key and {fields[0].name} as the SortKey"
        pairs = zip(fields, names, strict=False)
        renamed = [f'{field.name}: field(name="{name}")' for field, name in pairs if field.stored != name]
        advice = [f"store the key fields under the table's names: {', '.join(renamed)}"] if renamed else []
        if len(fields) < len(names):
            advice.append(f"declare a SortKey for {names[1]}")
        elif len(fields) > len(names):
            advice.append("declare no SortKey, because the table has none")
        return "; ".join(advice)

    def advise_type(self, found: KeyAttribute) -> str:
        """A type of the key field that is stored so."""
        fields = {field.stored: field for field in (*self.keys, *self.sort_keys)}
        return advise_type(fields[found.name], found.type)

    def model_of(self, schema: ModelSchema, item: Item, sort: object) -> ModelSchema | None:
        """The one model of the table."""
        return schema


_COLLECTION = re.compile(r"(?!holdall)[a-z][A-Za-z0-9_]*")


def check_collection(what: str, name: str | None) -> str | None:
    """Check the name of a collection. It begins with a small letter and a model's name with a capital, so that the keys
    of a collection and of a model never collide."""
    if name is None or (isinstance(name, str) and _COLLECTION.fullmatch(name)):
        return name
    raise ModelDefinitionError(
        f"{what}: {name!r:.60} cannot be the name of a collection",
        hint="use letters, digits and _, beginning with a small letter, but not with holdall",
    )


def explain_unfit(form: KeyForm, wanted: TableSchema, found: TableSchema) -> tuple[str, str | None] | None:
    """Why a table cannot hold items in this form, with advice if there is any; None if it can."""
    if [key.name for key in wanted.keys] != [key.name for key in found.keys]:
        return f"its key is {_key_names(found)}, not {_key_names(wanted)}", form.advise(found)
    for want, have in zip(wanted.keys, found.keys, strict=True):
        # a number kept as text is fine
        if have.type != want.type and not (form.foreign and have.type == "S"):
            problem = f"its key attribute {have.name} is of type {have.type}, not {want.type}"
            return problem, form.advise_type(have)
    return None


def advise_type(field: Field[Any], kind: KeyType) -> str:
    """How to declare a field that a table stores as a key of this type."""
    if field.codec.is_time and kind == "N":
        return f'{field.name}: store the time as a number, with field(stored="epoch") or field(stored="epoch_ms")'
    suitable = {"S": "str", "N": "int", "B": "bytes"}[kind]
    return f"{field.name}: declare a type that is stored as {kind}, such as {suitable}"


def _key_names(schema: TableSchema) -> str:
    return " and ".join(f"{key.name} ({key.type})" for key in schema.keys)


def plain_attribute(field: Field[Any]) -> KeyAttribute:
    """A field as a key attribute of a table or an index."""
    kinds: dict[str | None, KeyType] = {"S": "S", "N": "N", "B": "B"}
    return KeyAttribute(field.stored, kinds[field.codec.kind])


def encode_key_field(field: Field[Any], components: Mapping[str, Any]) -> Attribute:
    """The stored value of a field that is a key attribute itself."""
    attribute = field.encode(components[field.name])
    if attribute is None or "" in attribute.values():
        raise field.refusal("a key cannot be empty")
    return attribute


def _number_or_text(fields: Sequence[Field[Any]]) -> KeyType:
    return "N" if numeric_part(fields) else "S"
