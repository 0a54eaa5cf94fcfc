"""Templates: the keys of single-table designs, texts made of literals and fields: ``CUSTOMER#{customer}``.

Pure. A text is rendered from fields and parsed back. No two items may have the same text, so a value whose text could
not be parsed back is refused when a key is made, and a template that can never be parsed back when a class is defined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import UUID

from holdall.core.expressions import BeginsWith, Compare, Path, Value
from holdall.core.frozen import dataclass
from holdall.core.internal import internal
from holdall.core.nearest_name import suggest_name
from holdall.core.schema import IndexSchema, KeyAttribute
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidKeyError, ModelDefinitionError, QueryNotSupported
from holdall.models.conditions import Clause, Term, terms
from holdall.models.indexes import BoundIndex, Index
from holdall.models.key_form import KeyForm, Keys
from holdall.models.keys import KeyPart, own_part
from holdall.models.peer_form import FIXED_WIDTH, UNORDERED
from holdall.models.ranges import EVERYTHING, Range, join_ends, sides_of, successor

if TYPE_CHECKING:
    from holdall.models.fields import Field, Key
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema

IndexTexts: TypeAlias = "tuple[str] | tuple[str, str] | Mapping[str, str]"
"""The templates of an index's partition and sort key; as a mapping, by the names of their attributes."""

_SLOT = re.compile(r"\{(\w+)(?::0(\d+)d)?\}")
_FIXED = (datetime, date, UUID)  # stored as texts of one length, in the order of the values


class Template:
    """The layout of a single-table design: ``Template(pk="CUSTOMER#{customer}", sk="ORDER#{number:010d}")``.

    ``pk`` and ``sk`` are the table's key attributes. If yours have other names, pass a mapping instead:
    ``Template({"PK": "CUSTOMER#{customer}", "SK": "ORDER#{number:010d}"})``. A template has literals and fields;
    ``{number:010d}`` pads a whole number with zeros, so that the texts sort as the numbers do. A key attribute can also
    be a field itself: ``Template({"id": "{id}"}, type="cls")``.

    ``type`` names the attribute that holds the model's name, by which items of different models are told apart. As a
    mapping, it also gives the name, and further attributes that every item of the model has:
    ``type={"__edb_e__": "order", "__edb_v__": "1"}``. ``casing`` stores keys in lower or upper case.

    Any other keyword is an index: its name, and the templates of its partition and sort key,
    ``gsi1=("STATUS#{status}", "{placed_at}")``, in the attributes ``gsi1pk`` and ``gsi1sk``; if they have other names,
    ``gsi1={"GSI1PK": "STATUS#{status}", "GSI1SK": "{placed_at}"}``. ``local`` has the local indexes, with the template
    of each one's sort key: ``local={"lsi1": "{placed_at}"}``, in the attribute ``lsi1sk``, or
    ``local={"lsi1": {"LSI1SK": "{placed_at}"}}``.
    """

    def __init__(
        self,
        key: Mapping[str, str] | None = None,
        /,
        *,
        pk: str | None = None,
        sk: str | None = None,
        type: str | Mapping[str, str] | None = None,
        casing: Literal["lower", "upper"] | None = None,
        local: Mapping[str, str | Mapping[str, str]] | None = None,
        **indexes: IndexTexts,
    ) -> None:
        texts = {name: text for name, text in (("pk", pk), ("sk", sk)) if text is not None}
        if (key is None) == (not texts):
            raise ModelDefinitionError(
                "a Template needs the templates of the table's key",
                hint='write Template(pk=..., sk=...), or Template({"PK": ..., "SK": ...}) for other names',
            )
        if casing not in (None, "lower", "upper"):
            raise ModelDefinitionError(f"casing is {casing!r:.60}", hint='it is "lower" or "upper"')
        self.type, self.type_name, self.constants = _split_type(type)
        self.casing = casing
        self.key = _check_texts("the key", texts if key is None else key)
        self.indexes = {name: _index_texts(name, given) for name, given in indexes.items()}
        self.local = {name: _local_text(name, given) for name, given in (local or {}).items()}
        if self.local and len(self.key) == 1:
            raise ModelDefinitionError(
                "Template: a table without a sort key cannot have local indexes",
                hint="add sk=, or remove local=",
            )

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
        texts = [KeyText(cls, name, text, fields, self.casing) for name, text in self.key.items()]
        _check_key(cls, texts, keys, sort_keys)
        indexes = [
            TemplateIndex(Index(name), [KeyText(cls, *pair, fields, self.casing) for pair in given.items()])
            for name, given in self.indexes.items()
        ]
        indexes += [
            TemplateIndex(
                Index(name, local=True), [texts[0], KeyText(cls, *_only(given), fields, self.casing)]
            )
            for name, given in self.local.items()
        ]
        reserved = [
            self.type,
            *self.constants,
            *self.key,
            *(name for given in (*self.indexes.values(), *self.local.values()) for name in given),
        ]
        itself = [text.only.name for text in texts if text.only is not None]
        for field in fields.values():
            if field.stored in reserved and field.name not in itself:
                raise ModelDefinitionError(
                    f"{cls.__name__}.{field.name}: the template stores something else under {field.stored!r}",
                    hint=f'store it under another name: field(name="{field.stored}_")',
                )
        return TemplateForm(keys, sort_keys, texts, indexes, self.type, self.constants)


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


def _only(texts: Mapping[str, str]) -> tuple[str, str]:
    ((name, text),) = texts.items()
    return name, text


def _check_key(
    cls: type[Model], texts: Sequence[KeyText], keys: Sequence[Key[Any]], sort_keys: Sequence[Key[Any]]
) -> None:
    partition, sort = texts[0], texts[1] if len(texts) == 2 else None
    in_sort = set() if sort is None else {slot.field.name for slot in sort.slots}
    for slot in (slot for text in texts for slot in text.slots):
        if not slot.field.is_key:
            raise _wrong(cls, f"{slot.field.name} is in the key's template, but is not a Key or SortKey")
    for slot in partition.slots:
        if slot.field.is_sort_key:
            raise _wrong(cls, f"{slot.field.name} is a SortKey, but is in the template of the partition key")
    for field in (*keys, *sort_keys):
        if field.name not in in_sort | {slot.field.name for slot in partition.slots}:
            raise _wrong(cls, f"{field.name} is part of the key, but not in its templates")


def _wrong(cls: type, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    return ModelDefinitionError(f"{cls.__name__}: {problem}", hint=hint)


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a field in a template; ``width`` is the number of its digits, if it is padded."""

    field: Field[Any]
    width: int | None

    @property
    def is_fixed(self) -> bool:
        """Whether all its texts have one length, so that they sort as the values do whatever follows them."""
        form = self.field.codec.stored_as
        fixed = self.field.codec.annotation in _FIXED if form is None else form in FIXED_WIDTH
        return self.width is not None or fixed

    @property
    def is_ordered(self) -> bool:
        """Whether its texts sort as the values do, at the end of a key."""
        codec = self.field.codec
        return self.is_fixed or (codec.kind == "S" and codec.stored_as not in UNORDERED)

    def spell(self, value: Any) -> str:
        """A value's text."""
        content = own_part(self.field, self.keep(value))
        if self.width is None:
            if self.field.codec.kind == "N" and not isinstance(content, int):
                raise self.field.refusal(f"{content} is not a whole number, so it cannot be part of this key")
            return str(content)
        if not isinstance(content, int) or content < 0 or len(str(content)) > self.width:
            raise self.field.refusal(f"{content} does not fit into {self.width} digits of the key")
        return f"{content:0{self.width}d}"

    def keep(self, value: Any) -> Any:
        """A value as the field would store it; another program may have stored a time with more digits."""
        return value if self.field.codec.stored_as is None else self.field.validate(value)

    @property
    def pattern(self) -> str:
        """The regular expression of its texts."""
        if self.width is not None:
            return rf"(\d{{{self.width}}})"
        return r"(-?\d+)" if self.field.codec.kind == "N" else "(.+?)"

    def parse(self, text: str) -> Any:
        """The value of a text."""
        if self.field.codec.kind == "N":
            return self.field.decode({"N": str(int(text))})
        return self.field.decode({"S": text.upper() if self.field.codec.is_time else text})  # T and Z


class KeyText:
    """A key attribute's template, with its fields."""

    def __init__(
        self,
        cls: type[Model],
        attribute: str,
        text: str,
        fields: Mapping[str, Field[Any]],
        casing: str | None,
    ) -> None:
        self.attribute = KeyAttribute(attribute)
        self._casing = casing
        pieces: list[str | Slot] = []
        end = 0
        for match in _SLOT.finditer(text):
            pieces += [literal] if (literal := self._case(text[end : match.start()])) else []
            pieces.append(_slot(cls, text, fields, *match.groups()))
            end = match.end()
        pieces += [self._case(text[end:])] if text[end:] else []
        self.pieces = tuple(pieces)
        self.slots = tuple(piece for piece in pieces if isinstance(piece, Slot))
        if "{" in _SLOT.sub("", text) or "}" in _SLOT.sub("", text):
            raise _wrong(
                cls,
                f"the template {text!r} has braces that name no field",
                hint="write {name} or {name:010d}",
            )
        for first, second in pairwise(pieces):
            if isinstance(first, Slot) and isinstance(second, Slot) and not first.is_fixed:
                raise _wrong(
                    cls,
                    f"in the template {text!r}, nothing separates {first.field.name} from {second.field.name}",
                    hint="put a literal between them, such as #",
                )
        patterns = (re.escape(piece) if isinstance(piece, str) else piece.pattern for piece in pieces)
        self._pattern = re.compile("".join(patterns), re.DOTALL)

    @property
    def only(self) -> Field[Any] | None:
        """The field that the key attribute itself stores, as it is; None if the key is another text."""
        field = self.pieces[0].field if len(self.pieces) == 1 and isinstance(self.pieces[0], Slot) else None
        is_same = field is not None and (field.stored, field.codec.kind) == (self.attribute.name, "S")
        return field if is_same and self._casing is None else None

    def _case(self, text: str) -> str:
        return {"lower": text.lower(), "upper": text.upper()}.get(self._casing or "", text)

    def spell(self, slot: Slot, value: Any) -> str:
        """A field's text in the key."""
        return self._case(slot.spell(value))

    def render(self, values: Mapping[str, Any]) -> str:
        """The key of these values; refuses values whose text could not be parsed back."""
        texts = [self.spell(slot, values[slot.field.name]) for slot in self.slots]
        left = iter(texts)
        whole = "".join(piece if isinstance(piece, str) else next(left) for piece in self.pieces)
        match = self._pattern.fullmatch(whole)
        if match is None or list(match.groups()) != texts:
            slot = next(
                (
                    slot
                    for slot, text, found in zip(self.slots, texts, match.groups(), strict=True)
                    if text != found
                )
                if match is not None
                else iter(self.slots)
            )
            raise slot.field.refusal(
                f"{values[slot.field.name]!r:.60} makes the key {whole!r:.100}, which other values make, too",
                hint="a value must not contain what separates the parts of the key",
            )
        return whole

    def parse(self, text: str) -> dict[str, Any]:
        """The values of a key; `InvalidKeyError` if it is not of this template."""
        found = self.match(text)
        if found is None:
            raise InvalidKeyError(f"{text!r:.100} is not a key of this model")
        return found

    def match(self, text: str) -> dict[str, Any] | None:
        """The values of a key; None if it is not of this template."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        return {
            slot.field.name: slot.parse(found) for slot, found in zip(self.slots, match.groups(), strict=True)
        }

    def range(self, clause: Clause | None, known: Mapping[str, Any]) -> Range:
        """The range of keys that a condition describes, where some fields are known."""
        given = [] if clause is None else terms(clause)
        if given is None:
            raise QueryNotSupported(
                "a condition on a sort key must describe one range",
                hint="join comparisons with & in sort=, and put the rest into where=",
            )
        names = [slot.field.name for slot in self.slots if slot.field.name not in known]
        for term in given:
            if term.field.name not in names or term.inside or term.sized:
                raise QueryNotSupported(
                    f"{term!r} is not a condition on the sort key ({', '.join(names) or 'it has no fields'})",
                    hint="put it into where=",
                )
        prefix = ""
        for place, piece in enumerate(self.pieces):
            if isinstance(piece, str):
                prefix += piece
                continue
            mine = [term for term in given if term.field.name == piece.field.name]
            given = [term for term in given if term.field.name != piece.field.name]
            if piece.field.name in known:
                prefix += self.spell(piece, known[piece.field.name])
            elif len(mine) == 1 and mine[0].operator == "=":
                prefix += self.spell(piece, piece.field.validate(mine[0].values[0]))
            elif given:
                raise QueryNotSupported(
                    f"{given[0].field!r} comes after {piece.field!r} in the sort key, which is not fixed by ==",
                    hint=f"the order is: {', '.join(names)}",
                )
            else:
                return self._compare(prefix, piece, mine, last=place == len(self.pieces) - 1)
        return Range(Compare("=", Path((self.attribute.name,)), Value({"S": prefix})))

    def _compare(self, prefix: str, slot: Slot, given: Sequence[Term], *, last: bool) -> Range:
        path = Path((self.attribute.name,))
        if not given:
            return Range(BeginsWith(path, Value({"S": prefix}))) if prefix else EVERYTHING
        if given[0].operator == "begins_with":
            (start,) = given[0].values
            if len(given) > 1 or slot.field.codec.kind != "S" or not isinstance(start, str):
                raise QueryNotSupported(f"{slot.field!r} can only begin with one text")
            return Range(BeginsWith(path, Value({"S": prefix + self._case(start)})))
        if not (slot.is_fixed or (last and slot.is_ordered)):
            raise QueryNotSupported(
                f"{slot.field!r} is stored in the key as text that does not sort as its values do",
                hint=f"ask for == only, or pad numbers in the template: {{{slot.field.name}:010d}}",
            )
        low: list[tuple[str, bool]] = [(prefix, False)] if prefix else []
        high: list[tuple[str, bool]] = [(successor(prefix), True)] if prefix else []
        for term in given:
            for operator, value in sides_of(term):
                if (
                    slot.keep(value) != value
                ):  # between two texts: what is less than it is not more than the first
                    operator = {">=": ">", "<": "<="}.get(operator, operator)
                text = prefix + self.spell(slot, value)
                after = operator in (">", "<=")  # keys that begin with the text come right after it
                end = text if last or not after else successor(text)
                strict = operator in ("<", ">") if last else operator in ("<", "<=")
                (high if operator in ("<", "<=") else low).append((end, strict))
        return join_ends(path, low, high)


def _slot(
    cls: type[Model], text: str, fields: Mapping[str, Field[Any]], name: str, width: str | None
) -> Slot:
    field = fields.get(name)
    if field is None:
        raise _wrong(
            cls,
            f"the template {text!r} names {name}, which is not a field",
            hint=suggest_name(name, fields, "fields"),
        )
    if field.hidden:
        raise _wrong(cls, f"{name} is hidden, so it cannot be in the template {text!r}")
    kind = field.codec.kind if field.codec.stored_as != "json" else None
    if kind not in ("S", "N") or (width is not None and kind != "N") or field.codec.annotation is float:
        raise _wrong(
            cls,
            f"the template {text!r} cannot spell {name}",
            hint="a template spells texts, times, UUIDs and whole numbers; only those can be padded",
        )
    return Slot(field, None if width is None else int(width))


class TemplateForm(KeyForm):
    """In a table whose key attributes are texts of a template."""

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
        self._indexes = tuple(indexes)
        self.type_attribute = type
        self.constants = constants
        self.shares_partitions = type is not None

    def table_keys(self) -> Keys:
        """The attributes that the template names."""
        return self._partition.attribute, None if self._sort is None else self._sort.attribute

    def encode(self, components: Mapping[str, Any]) -> tuple[KeyPart, KeyPart | None]:
        """Both texts."""
        return self._partition.render(components), None if self._sort is None else self._sort.render(
            components
        )

    def partition(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The text of the partition key."""
        return {"S": self._partition.render(components)}

    def sort(self, components: Mapping[str, Any], attribute: KeyAttribute) -> Attribute:
        """The text of the sort key."""
        assert self._sort is not None
        return {"S": self._sort.render(components)}

    def components(self, partition: Attribute, sort: Attribute | None) -> dict[str, Any]:
        """The fields in both texts."""
        found = self._partition.parse(partition["S"])
        return found if sort is None or self._sort is None else found | self._sort.parse(sort["S"])

    def parse_partition(self, partition: Attribute) -> dict[str, Any] | None:
        """The fields in the partition key."""
        return self._partition.match(partition["S"])

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of texts of the template."""
        if self._sort is None:
            return EVERYTHING
        return self._sort.range(clause, components)

    def indexes(self) -> Sequence[BoundIndex]:
        """The template's indexes."""
        return self._indexes

    def model_of(self, schema: ModelSchema, item: Item, sort: object) -> ModelSchema | None:
        """By the type attribute; without one, the key has told."""
        if any(item.get(name) != attribute for name, attribute in self.constants.items()):
            return None
        return schema if self.type_attribute is None else super().model_of(schema, item, sort)


class TemplateIndex(BoundIndex):
    """An index whose key attributes are texts of a template."""

    is_of_layout = True

    def __init__(self, index: Index, texts: Sequence[KeyText]) -> None:
        partition, sort = texts[0], texts[1] if len(texts) == 2 else None
        key = {slot.field.name: slot.field for slot in partition.slots}
        sort_key = {} if sort is None else {slot.field.name: slot.field for slot in sort.slots}
        rest = [field for name, field in sort_key.items() if name not in key]
        super().__init__(index, tuple(key.values()), tuple(rest))
        self._texts = tuple(texts)
        self._derived = self._texts[1:] if index.local else self._texts
        self._schema = IndexSchema(
            index.name, partition.attribute, None if sort is None else sort.attribute, local=index.local
        )

    @property
    def schema(self) -> IndexSchema:
        """The index of the table."""
        return self._schema

    def partition(self, values: Mapping[str, Any]) -> Attribute:
        """The text of the index's partition key."""
        return {"S": self._texts[0].render(values)}

    def attributes(self, values: Mapping[str, Any]) -> Mapping[str, Attribute | None]:
        """Both texts; none if a field has no value: then the item is not in the index."""
        if any(values.get(field.name) is None for field in self.components):
            return {text.attribute.name: None for text in self._derived}
        return {text.attribute.name: {"S": text.render(values)} for text in self._derived}

    def parse_partition(self, partition: Attribute) -> dict[str, Any] | None:
        """The fields in the index's partition key."""
        return self._texts[0].match(partition["S"])

    def range(self, clause: Clause | None, components: Mapping[str, Any], attribute: KeyAttribute) -> Range:
        """A range of texts of the template."""
        return self._texts[1].range(clause, components) if len(self._texts) == 2 else EVERYTHING
