"""Key texts: the template of one key attribute, literals and fields: ``CUSTOMER#{customer}``.

Pure. A text is rendered from fields, parsed back, and compared in ranges. No two items may have the same text: a value
whose text could not be parsed back is refused when a key is made, and a template that can never be parsed back when a
class is defined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from holdall.core.expressions import BeginsWith, Compare, Path, Value
from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.core.schema import KeyAttribute
from holdall.core.values import Attribute
from holdall.errors import InvalidKeyError, ModelDefinitionError, QueryNotSupported
from holdall.models.codec.peer_form import FIXED_WIDTH, UNORDERED
from holdall.models.fields.conditions import Clause, Term
from holdall.models.keys.form import encode_key_field, plain_attribute
from holdall.models.keys.part import own_part
from holdall.models.keys.ranges import (
    EVERYTHING,
    Range,
    join_ends,
    list_terms,
    range_of_plain,
    sides_of,
    successor,
)

if TYPE_CHECKING:
    from holdall.models.fields.field import Field
    from holdall.models.model import Model

_SLOT = re.compile(r"\{(\w+)(?::0(\d+)d)?\}")
_FIXED = {datetime: r".{26}Z?", date: ".{10}", UUID: ".{36}"}
"""The types whose texts have one length and sort as the values do, with its pattern; a time without a zone has no Z."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The place of a field in a template; ``width`` is the number of its digits, if it is padded."""

    field: Field[Any]
    width: int | None

    @property
    def is_fixed(self) -> bool:
        """Whether all its texts have one length, so that they sort as the values do whatever follows them."""
        return self.fixed_pattern is not None

    @property
    def fixed_pattern(self) -> str | None:
        """The regular expression of its texts if they all have one length."""
        if self.width is not None:
            return rf"[0-9]{{{self.width}}}"
        form = self.field.codec.stored_as
        if form is None:
            return _FIXED.get(self.field.codec.annotation)
        return f".{{{FIXED_WIDTH[form]}}}" if form in FIXED_WIDTH else None

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

    def pattern(self, follower: str | Placeholder | None) -> str:
        """The regular expression of its texts. Other programs may spell times with fewer digits, but not if only their
        length shows where the next placeholder begins."""
        if self.width is not None or isinstance(follower, Placeholder):
            return f"({self.fixed_pattern})"
        return "(-?[0-9]+)" if self.field.codec.kind == "N" else "(.+?)"

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
        self.text = text
        self._casing = casing
        pieces: list[str | Placeholder] = []
        end = 0
        for match in _SLOT.finditer(text):
            pieces += [literal] if (literal := self._case(text[end : match.start()])) else []
            pieces.append(_parse_placeholder(cls, text, fields, *match.groups()))
            end = match.end()
        pieces += [self._case(text[end:])] if text[end:] else []
        self.pieces = tuple(pieces)
        self.placeholders = tuple(piece for piece in pieces if isinstance(piece, Placeholder))
        if "{" in _SLOT.sub("", text) or "}" in _SLOT.sub("", text):
            raise refuse_template(
                cls,
                f"the template {text!r} has braces that name no field",
                hint="write {name} or {name:010d}",
            )
        for first, second in pairwise(pieces):
            if isinstance(first, Placeholder) and isinstance(second, Placeholder) and not first.is_fixed:
                raise refuse_template(
                    cls,
                    f"in the template {text!r}, nothing separates {first.field.name} from {second.field.name}",
                    hint="put a literal between them, such as #",
                )
        patterns = (
            re.escape(piece) if isinstance(piece, str) else piece.pattern(follower)
            for piece, follower in zip(pieces, (*pieces[1:], None), strict=True)
        )
        self._pattern = re.compile("".join(patterns), re.DOTALL)

    @property
    def only(self) -> Field[Any] | None:
        """The field that the key attribute itself stores, as it is; None if the key is another text."""
        if len(self.pieces) > 1 or not self.placeholders or self._casing is not None:
            return None
        field = self.placeholders[0].field
        return field if (field.stored, field.codec.kind) == (self.attribute.name, "S") else None

    def _case(self, text: str) -> str:
        return {"lower": text.lower(), "upper": text.upper()}.get(self._casing or "", text)

    def spell(self, placeholder: Placeholder, value: Any) -> str:
        """A field's text in the key."""
        return self._case(placeholder.spell(value))

    def render(self, values: Mapping[str, Any]) -> str:
        """The key of these values; refuses values whose text could not be parsed back."""
        texts = [self.spell(placeholder, values[placeholder.field.name]) for placeholder in self.placeholders]
        if "" in texts:
            raise self.placeholders[texts.index("")].field.refusal("a part of a key cannot be empty")
        left = iter(texts)
        whole = "".join(piece if isinstance(piece, str) else next(left) for piece in self.pieces)
        match = self._pattern.fullmatch(whole)
        if match is None or list(match.groups()) != texts:
            parsed = [None] * len(texts) if match is None else match.groups()
            pairs = zip(self.placeholders, texts, parsed, strict=True)
            placeholder = next(placeholder for placeholder, text, found in pairs if text != found)
            raise placeholder.field.refusal(
                f"{values[placeholder.field.name]!r:.60} makes the key {whole!r:.100}, which other values make, too",
                hint="a value must not contain what separates the parts of the key",
            )
        return whole

    def encode(self, values: Mapping[str, Any]) -> Attribute:
        """The key attribute of these values."""
        return {self.attribute.type: self.render(values)}

    def parse(self, stored: Attribute) -> dict[str, Any]:
        """The values of a key; `InvalidKeyError` if it is not of this template."""
        found = self.match(stored)
        if found is None:
            raise InvalidKeyError(f"{next(iter(stored.values()))!r:.100} is not a key of this model")
        return found

    def match(self, stored: Attribute) -> dict[str, Any] | None:
        """The values of a key; None if it is not of this template."""
        pieces = self.split(stored)
        if pieces is None:
            return None
        return {
            each.field.name: each.parse(piece) for each, piece in zip(self.placeholders, pieces, strict=True)
        }

    def split(self, stored: Attribute) -> Sequence[str] | None:
        """The texts of the placeholders in a key; None if it is not of this template."""
        match = self._pattern.fullmatch(stored.get("S", ""))
        return None if match is None else match.groups()

    def range(self, clause: Clause | None, known: Mapping[str, Any]) -> Range:
        """The range of keys that a condition describes, where some fields are known."""
        given = list_terms(clause)
        names = [each.field.name for each in self.placeholders if each.field.name not in known]
        for term in given:
            if term.field.name not in names or term.inside or term.sized:
                raise QueryNotSupported(
                    f"{term!r} is not a condition on the sort key ({', '.join(names) or 'it has no fields'})",
                    hint="put it into where=",
                )
        prefix = ""
        for position, piece in enumerate(self.pieces):
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
                return self._compare(prefix, piece, mine, last=position == len(self.pieces) - 1)
        return Range(Compare("=", Path((self.attribute.name,)), Value({"S": prefix})))

    def _compare(self, prefix: str, placeholder: Placeholder, given: Sequence[Term], *, last: bool) -> Range:
        path = Path((self.attribute.name,))
        if not given:
            return Range(BeginsWith(path, Value({"S": prefix}))) if prefix else EVERYTHING
        if given[0].operator == "begins_with":
            (start,) = given[0].values
            if len(given) > 1 or placeholder.field.codec.kind != "S" or not isinstance(start, str):
                raise QueryNotSupported(f"{placeholder.field!r} can only begin with one text")
            return Range(BeginsWith(path, Value({"S": prefix + self._case(start)})))
        if not (placeholder.is_fixed or (last and placeholder.is_ordered)):
            raise QueryNotSupported(
                f"{placeholder.field!r} is stored in the key as text that does not sort as its values do",
                hint=f"ask for == only, or pad numbers in the template: {{{placeholder.field.name}:010d}}",
            )
        low: list[tuple[str, bool]] = [(prefix, False)] if prefix else []
        high: list[tuple[str, bool]] = [(successor(prefix), True)] if prefix else []
        for term in given:
            for operator, value in sides_of(term):
                # the value lies between two texts: what is less than the value is at most the first of them
                if placeholder.keep(value) != value:
                    operator = {">=": ">", "<": "<="}.get(operator, operator)
                text = prefix + self.spell(placeholder, value)
                after = operator in (">", "<=")  # keys that begin with the text come right after it
                end = text if last or not after else successor(text)
                strict = operator in ("<", ">") if last else operator in ("<", "<=")
                (high if operator in ("<", "<=") else low).append((end, strict))
        return join_ends(path, low, high)


class KeyField(KeyText):
    """A key attribute that is a field itself, stored as a number or binary."""

    def __init__(self, text: str, field: Field[Any]) -> None:
        self.attribute = plain_attribute(field)
        self.text = text
        self.placeholders = (Placeholder(field, None),)
        self.pieces = self.placeholders
        self._field = field

    @property
    def only(self) -> Field[Any]:
        """The field."""
        return self._field

    def render(self, values: Mapping[str, Any]) -> str:
        """The stored content of the field."""
        (content,) = encode_key_field(self._field, values).values()
        return str(content)

    def match(self, stored: Attribute) -> dict[str, Any] | None:
        """The field's value."""
        is_own = self.attribute.type in stored
        return {self._field.name: self._field.decode(stored)} if is_own else None

    def split(self, stored: Attribute) -> Sequence[str] | None:
        """The content of the attribute."""
        content = stored.get(self.attribute.type)
        return None if content is None else [content]

    def range(self, clause: Clause | None, known: Mapping[str, Any]) -> Range:
        """A range of the field's values."""
        if self._field.name in known:
            return Range(Compare("=", Path((self.attribute.name,)), Value(self.encode(known))))
        return range_of_plain(clause, (self._field,), self.attribute)


def make_key_text(
    cls: type[Model], attribute: str, text: str, fields: Mapping[str, Field[Any]], casing: str | None
) -> KeyText:
    """The template of a key attribute, with its fields; a field of this name can be the attribute itself."""
    match = _SLOT.fullmatch(text)
    field = fields.get(match[1]) if match is not None and match[2] is None else None
    if field is not None and (field.stored, casing, field.hidden) == (attribute, None, False):
        codec = field.codec
        if codec.kind in ("N", "B") and codec.stored_as not in UNORDERED:
            return KeyField(text, field)
    return KeyText(cls, attribute, text, fields, casing)


def _parse_placeholder(
    cls: type[Model], text: str, fields: Mapping[str, Field[Any]], name: str, width: str | None
) -> Placeholder:
    field = fields.get(name)
    if field is None:
        raise refuse_template(
            cls,
            f"the template {text!r} names {name}, which is not a field",
            hint=suggest_name(name, fields, "fields"),
        )
    if field.hidden:
        raise refuse_template(cls, f"{name} is hidden, so it cannot be in the template {text!r}")
    kind = field.codec.kind if field.codec.stored_as != "json" else None
    if kind not in ("S", "N") or (width is not None and kind != "N") or field.codec.annotation is float:
        raise refuse_template(
            cls,
            f"the template {text!r} cannot spell {name}",
            hint="a template spells texts, times, UUIDs and whole numbers; only those can be padded. A number or "
            "binary can be a key attribute itself, if the field is stored under its name",
        )
    return Placeholder(field, None if width is None else int(width))


def refuse_template(cls: type, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    """The error of a template that does not fit the class."""
    return ModelDefinitionError(f"{cls.__name__}: {problem}", hint=hint)
