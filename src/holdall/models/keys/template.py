"""Templates: the keys of single-table designs, each attribute a text of literals and fields (`text`).

Pure. A template also describes indexes, and the attributes by which the items of different models are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from holdall.core.internal import internal
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import ModelDefinitionError
from holdall.models.fields.conditions import Clause
from holdall.models.indexes import BoundIndex, Index, quote
from holdall.models.keys.form import KeyForm, Keys
from holdall.models.keys.part import KeyPart
from holdall.models.keys.ranges import EVERYTHING, Range
from holdall.models.keys.text import KeyText, make_key_text, refuse_template

if TYPE_CHECKING:
    from holdall.models.fields.field import Field, Key
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema

IndexTexts: TypeAlias = "tuple[str] | tuple[str, str] | Mapping[str, str]"
"""The templates of an index's partition and sort key; as a mapping, by the names of their attributes."""

Casing: TypeAlias = Literal["lower", "upper"]
"""The case in which a key is stored."""


class Template:
    """The layout of a single-table design: ``Template(pk="CUSTOMER#{customer}", sk="ORDER#{number:010d}")``.

    ``pk`` and ``sk`` are the table's key attributes. If yours have other names, pass a mapping instead:
    ``Template({"PK": "CUSTOMER#{customer}", "SK": "ORDER#{number:010d}"})``. A template has literals and fields;
    ``{number:010d}`` pads a whole number with zeros, so that the texts sort as the numbers do. A key attribute can also
    be a field itself, which may be a number or binary: ``Template({"id": "{id}"}, type="cls")``.

    ``type`` names the attribute that holds the model's name, by which items of different models are told apart. As a
    mapping, it also gives the name, and further attributes that every item of the model has:
    ``type={"__edb_e__": "order", "__edb_v__": "1"}``. ``casing`` stores keys in lower or upper case; a mapping gives it
    for some attributes: ``casing={"pk": "lower", "sk": "lower"}``.

    Any other keyword is an index: its name, and the templates of its partition and sort key, ``gsi1=("STATUS#{status}",
    "{placed_at}")``, in the attributes ``gsi1pk`` and ``gsi1sk``; if they have other names, ``gsi1={"GSI1PK":
    "STATUS#{status}", "GSI1SK": "{placed_at}"}``. ``indexes`` has those whose names cannot be keywords:
    ``indexes={"status-index": {"GSI1PK": "STATUS#{status}"}}``. ``local`` has the local indexes, with the template of
    each one's sort key: ``local={"lsi1": "{placed_at}"}``, in the attribute ``lsi1sk``, or ``local={"lsi1": {"LSI1SK":
    "{placed_at}"}}``.
    """

    def __init__(
        self,
        key: Mapping[str, str] | None = None,
        /,
        *,
        pk: str | None = None,
        sk: str | None = None,
        type: str | Mapping[str, str] | None = None,
        casing: Casing | Mapping[str, Casing] | None = None,
        local: Mapping[str, str | Mapping[str, str]] | None = None,
        indexes: Mapping[str, IndexTexts] | None = None,
        **named: IndexTexts,
    ) -> None:
        texts = {name: text for name, text in (("pk", pk), ("sk", sk)) if text is not None}
        if (key is None) == (not texts) or not isinstance(key, Mapping | None):
            raise ModelDefinitionError(
                "a Template needs the templates of the table's key",
                hint='write Template(pk=..., sk=...), or Template({"PK": ..., "SK": ...}) for other names',
            )
        self.type, self.type_name, self.constants = _split_type(type)
        self.key = _check_texts("the key", texts if key is None else key)
        given_indexes = {**named, **_check_names(indexes, named)}
        self.indexes = {name: _index_texts(name, given) for name, given in given_indexes.items()}
        self.local = {name: _local_text(name, given) for name, given in (local or {}).items()}
        if self.local and len(self.key) == 1:
            raise ModelDefinitionError(
                "Template: a table without a sort key cannot have local indexes",
                hint="add sk=, or remove local=",
            )
        groups = (self.key, *self.indexes.values(), *self.local.values())
        self.attributes = [name for group in groups for name in group]
        self.casing = _read_casing(self.attributes, casing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Template({self.key})"

    @internal
    def bind(
        self,
        cls: type[Model],
        fields: Mapping[str, Field[Any]],
        keys: Sequence[Key[Any]],
        sort_keys: Sequence[Key[Any]],
    ) -> TemplateForm:
        """The template with the fields of a class; `ModelDefinitionError` says why they do not go together."""

        def bind_texts(given: Mapping[str, str]) -> list[KeyText]:
            return [
                make_key_text(cls, name, text, fields, self.casing.get(name)) for name, text in given.items()
            ]

        texts = bind_texts(self.key)
        _check_key(cls, texts, keys, sort_keys)
        self._check_same(cls)
        indexes = [self._bind_index(Index(name), bind_texts(given)) for name, given in self.indexes.items()]
        indexes += [
            self._bind_index(Index(name, local=True), [texts[0], *bind_texts(given)])
            for name, given in self.local.items()
        ]
        reserved = [self.type, *self.constants, *self.attributes]
        every = (*texts, *(text for index in indexes for text in index.texts))
        itself = {text.only.name for text in every if text.only is not None}
        for field in fields.values():
            if field.stored in reserved and field.name not in itself:
                raise ModelDefinitionError(
                    f"{cls.__name__}.{field.name}: the template stores something else under {field.stored!r}",
                    hint=f'store it under another name: field(name="{field.stored}_")',
                )
        return TemplateForm(keys, sort_keys, texts, indexes, self.type, self.constants)

    def _check_same(self, cls: type[Model]) -> None:
        """Refuse an attribute that would hold two texts: two indexes, or an index and the table, may share one."""
        seen: dict[str, str] = {}
        for group in (self.key, *self.indexes.values(), *self.local.values()):
            for name, text in group.items():
                if seen.setdefault(name, text) != text:
                    raise refuse_template(
                        cls, f"the attribute {name!r} has two templates, {seen[name]!r} and {text!r}"
                    )

    def _bind_index(self, index: Index, texts: Sequence[KeyText]) -> TemplateIndex:
        """An index, with the attributes that are stored for it alone, and whether another index has them, too."""
        names = [text.attribute.name for text in texts if text.only is None]
        derived = {name: self.attributes.count(name) > 1 for name in names if name not in self.key}
        return TemplateIndex(index, texts, derived)


def _check_names(
    indexes: Mapping[str, IndexTexts] | None, named: Mapping[str, IndexTexts]
) -> Mapping[str, IndexTexts]:
    """The indexes that are given by name; refused if they are not a mapping, or a keyword gives one of them, too."""
    if not isinstance(indexes, Mapping | None) or (indexes is not None and indexes.keys() & named.keys()):
        raise ModelDefinitionError(
            f"Template: indexes is {indexes!r:.80}",
            hint='it has the templates of further indexes by name: indexes={"status-index": ("STATUS#{status}",)}',
        )
    return indexes or {}


def _read_casing(attributes: Sequence[str], given: Casing | Mapping[str, Casing] | None) -> dict[str, Casing]:
    """The casing of each attribute that has one."""
    if given is None:
        return {}
    found = dict(given) if isinstance(given, Mapping) else dict.fromkeys(attributes, given)
    if not {*found.values()} <= {"lower", "upper"} or not found.keys() <= {*attributes}:
        raise ModelDefinitionError(
            f"Template: casing is {given!r:.80}",
            hint='it is "lower" or "upper", or a mapping with the casing of some of the attributes: '
            + ", ".join(attributes),
        )
    return found


def _split_type(
    given: str | Mapping[str, str] | None,
) -> tuple[str | None, str | None, dict[str, Attribute]]:
    """The attribute with the model's name, the name if it was given, and the other attributes that were."""
    if given is None or isinstance(given, str):
        return given, None, {}
    if not given or not all(isinstance(text, str) and text and " " not in text for text in given.values()):
        raise ModelDefinitionError(
            f"Template: type is {given!r:.80}",
            hint='name the attribute, or give every attribute a text without spaces: type={"entity": "order"}',
        )
    (attribute, name), *others = given.items()
    return attribute, name, {other: {"S": text} for other, text in others}


def _check_texts(what: str, texts: Mapping[str, str]) -> dict[str, str]:
    if not 1 <= len(texts) <= 2 or not all(isinstance(text, str) and text for text in texts.values()):
        raise ModelDefinitionError(
            f"Template: {what} is {texts!r:.80}", hint="give one or two templates, none of them empty"
        )
    return dict(texts)


def _index_texts(name: str, given: IndexTexts) -> dict[str, str]:
    if isinstance(given, Mapping):
        return _check_texts(name, given)
    if not isinstance(given, tuple):
        raise ModelDefinitionError(
            f"Template: {name} is {given!r:.60}",
            hint=f'an index is {name}=("STATUS#{{status}}", "{{placed_at}}")',
        )
    return _check_texts(name, dict(zip((f"{name}pk", f"{name}sk"), given, strict=False)))


def _local_text(name: str, given: str | Mapping[str, str]) -> dict[str, str]:
    texts = _check_texts(name, {f"{name}sk": given} if isinstance(given, str) else given)
    if len(texts) > 1:
        raise ModelDefinitionError(
            f"Template: the local index {name} is {texts!r:.80}",
            hint="give only the template of its sort key: it has the table's partition key",
        )
    return texts


def _check_key(
    cls: type[Model], texts: Sequence[KeyText], keys: Sequence[Key[Any]], sort_keys: Sequence[Key[Any]]
) -> None:
    placeholders = [placeholder for text in texts for placeholder in text.placeholders]
    for placeholder in placeholders:
        if not placeholder.field.is_key:
            raise refuse_template(
                cls, f"{placeholder.field.name} is in the key's template, but is not a Key or SortKey"
            )
    for placeholder in texts[0].placeholders:
        if placeholder.field.is_sort_key:
            raise refuse_template(
                cls, f"{placeholder.field.name} is a SortKey, but is in the template of the partition key"
            )
    named = {placeholder.field.name for placeholder in placeholders}
    for field in (*keys, *sort_keys):
        if field.name not in named:
            raise refuse_template(cls, f"{field.name} is part of the key, but not in its templates")


class TemplateForm(KeyForm):
    """In a table whose key attributes are texts of a template."""

    is_parsed = True

    def __init__(
        self,
        keys: Sequence[Key[Any]],
        sort_keys: Sequence[Key[Any]],
        texts: Sequence[KeyText],
        indexes: Sequence[TemplateIndex],
        type: str | None,
        constants: Mapping[str, Attribute],
    ) -> None:
        super().__init__(keys, sort_keys)
        self._partition = texts[0]
        self._sort = texts[1] if len(texts) == 2 else None
        self.key_names = tuple(text.attribute.name for text in texts)
        self._indexes = tuple(indexes)
        self.type_attribute = type
        self.constants = constants
        self.shares_partitions = type is not None
        self.is_known_by_key = type is None

    def table_keys(self) -> Keys:
        """The attributes that the template names."""
        return self._partition.attribute, None if self._sort is None else self._sort.attribute

    def encode(self, components: Mapping[str, Any]) -> tuple[KeyPart, KeyPart | None]:
        """Both texts."""
        sort = None if self._sort is None else self._sort.render(components)
        return self._partition.render(components), sort

    def partition(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The text of the partition key."""
        return self._partition.encode(components)

    def components(self, partition: Attribute, sort: Attribute | None) -> dict[str, Any]:
        """The fields in both texts."""
        found = self._partition.parse(partition)
        return found if sort is None or self._sort is None else found | self._sort.parse(sort)

    def parse_partition(self, partition: Attribute) -> dict[str, Any] | None:
        """The fields in the partition key."""
        return self._partition.match(partition)

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of texts of the template."""
        if self._sort is None:
            return EVERYTHING
        return self._sort.range(clause, components)

    def indexes(self) -> Sequence[BoundIndex]:
        """The template's indexes."""
        return self._indexes

    def advise(self, found: TableSchema) -> str:
        """The template with the table's names."""
        texts = [self._partition] if self._sort is None else [self._partition, self._sort]
        return f"declare the table's key: Template({_rename(texts, found.keys)})"

    def advise_type(self, found: KeyAttribute) -> str:
        """A field in place of a text."""
        field = f"field(name={quote(found.name)})"
        return f'make it a field of a type that is stored as {found.type}, with {field} and the template "{{name}}"'

    def model_of(self, schema: ModelSchema, item: Item, sort: object) -> ModelSchema | None:
        """By the type attribute; without one, by the key."""
        if self.type_attribute is None:
            return schema if self._has_key(item) else None
        if any(item.get(name) != attribute for name, attribute in self.constants.items()):
            return None
        return super().model_of(schema, item, sort)

    def _has_key(self, item: Item) -> bool:
        """Whether an item has a key of this template; a field that is twice in it has the same text in both places."""
        found: dict[tuple[str, int | None], str] = {}
        for text in (self._partition, self._sort):
            if text is None or text.attribute.name not in item:
                continue
            pieces = text.split(item[text.attribute.name])
            if pieces is None:
                return False
            for placeholder, piece in zip(text.placeholders, pieces, strict=True):
                if found.setdefault((placeholder.field.name, placeholder.width), piece) != piece:
                    return False
        return True


class TemplateIndex(BoundIndex):
    """An index whose key attributes are texts of a template."""

    is_of_layout = True
    fetches = True

    def __init__(self, index: Index, texts: Sequence[KeyText], derived: Mapping[str, bool]) -> None:
        partition, sort = texts[0], texts[1] if len(texts) == 2 else None
        key = {each.field.name: each.field for each in partition.placeholders}
        sort_key = {} if sort is None else {each.field.name: each.field for each in sort.placeholders}
        rest = [field for name, field in sort_key.items() if name not in key]
        schema = IndexSchema(
            index.name, partition.attribute, None if sort is None else sort.attribute, local=index.local
        )
        super().__init__(index, tuple(key.values()), tuple(rest), schema)
        self.texts = tuple(texts)
        self._derived = [(text, derived[name]) for text in texts if (name := text.attribute.name) in derived]

    def partition(self, values: Mapping[str, Any]) -> Attribute:
        """The text of the index's partition key."""
        return self.texts[0].encode(values)

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Both texts; none if a field has no value, because the item is then not in the index. A text that another
        index also uses is stored if its own fields have values."""
        lacking = {field.name for field in self.components if values.get(field.name) is None}

        def is_absent(text: KeyText, shared: bool) -> bool:
            return any(each.field.name in lacking for each in text.placeholders) if shared else bool(lacking)

        return {
            text.attribute.name: None if is_absent(text, shared) else text.encode(values)
            for text, shared in self._derived
        }

    def parse_partition(self, partition: Attribute) -> dict[str, Any] | None:
        """The fields in the index's partition key."""
        return self.texts[0].match(partition)

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of texts of the template."""
        return self.texts[1].range(clause, components) if len(self.texts) == 2 else EVERYTHING

    def advise(self, found: IndexSchema, fields: Iterable[Field[Any]]) -> str | None:
        """The template with the names of the table's index; None if its keys are not texts."""
        if any(key.type != "S" for key in found.keys):
            return None
        if found.local:
            return f"local={{{quote(self.name)}: {_rename(self.texts[1:] or self.texts, found.sorts)}}}"
        texts = _rename(self.texts, found.keys)
        return (
            f"{self.name}={texts}" if self.name.isidentifier() else f"indexes={{{quote(self.name)}: {texts}}}"
        )


def _rename(texts: Sequence[KeyText], keys: Sequence[KeyAttribute]) -> str:
    """Templates under the names that a table has, as they are written in Python; ... for one that is missing."""
    pairs = zip_longest(keys, texts[: len(keys)])
    members = ", ".join(f"{quote(key.name)}: {quote(text.text) if text else '...'}" for key, text in pairs)
    return f"{{{members}}}"
