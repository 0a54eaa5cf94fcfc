"""Ranges of sort keys: turns conditions on the components of a sort key into a range of the stored text or number.

Pure. A sort key of several components is their texts joined by U+0000, so the first components can be fixed and the
next one compared: ``(Order.year == 2026) & (Order.month >= 3)``. A fixed part ``P`` ends with U+0000, or with ``#`` in
a collection. Every text that begins with it lies between ``P`` and its successor, which is ``P`` with the next
character as its last; no key equals the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from holdall.core.expressions import BeginsWith, Between, Compare, Operand, Path, Value
from holdall.core.frozen import dataclass, replace
from holdall.core.numbers import number_text
from holdall.core.schema import KeyAttribute
from holdall.core.values import Attribute, Item, encode
from holdall.errors import InvalidFieldError, QueryNotSupported
from holdall.models.codec.codec import codec_for
from holdall.models.fields.conditions import All, Clause, Term, terms
from holdall.models.fields.field import Field
from holdall.models.fields.options import FieldOptions
from holdall.models.keys.part import foreign_part, own_part, sort_piece

_SEPARATOR = "\x00"
_AFTER = "\x01"


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a sort key.

    ``excluded`` are stored keys inside the range that do not count, because DynamoDB has no range that excludes both
    ends. ``empty``: no key can be in the range. ``fixed`` are the values of attributes that precede the one in the
    condition, if the sort key has several.
    """

    condition: Compare | Between | BeginsWith | None = None
    excluded: tuple[Attribute, ...] = ()
    empty: bool = False
    fixed: tuple[tuple[str, Attribute], ...] = ()

    def admits(self, item: Item) -> bool:
        """Whether an item that meets the condition is not excluded."""
        if not self.excluded or self.condition is None:
            return True
        subject = self.condition.operands[0]
        assert isinstance(subject, Path)
        return item[str(subject.parts[0])] not in self.excluded


EVERYTHING = Range()
NOTHING = Range(empty=True)


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a sort key is stored.

    ``piece`` returns the text of a component; ``ordered`` returns whether these texts sort like the values. If the key
    is a single number or binary, ``piece`` returns that. ``compact``: UUIDs have no hyphens. ``head`` precedes the text
    of the first component.
    """

    attribute: KeyAttribute
    fields: tuple[Field[Any], ...]
    piece: Callable[[Field[Any], Any], Any]
    ordered: Callable[[Field[Any]], bool]
    compact: bool = False
    head: str = ""

    @property
    def path(self) -> Path:
        """The attribute in conditions."""
        return Path((self.attribute.name,))

    @property
    def is_text(self) -> bool:
        """Whether the key is a text, which may have several components."""
        return self.attribute.type == "S"


def list_terms(clause: Clause | None) -> list[Term]:
    """Return the comparisons of a condition on a sort key; `QueryNotSupported` if it is not a single range."""
    found = [] if clause is None else terms(clause)
    if found is None:
        raise QueryNotSupported(
            "a condition on a sort key must be a single range",
            hint="combine comparisons with & in sort=, and pass all other conditions as where=",
        )
    return found


def range_of(clause: Clause | None, spelling: Spelling) -> Range:
    """Return the range that a condition describes; `QueryNotSupported` says why a condition is not a range."""
    if clause is None:
        return Range(BeginsWith(spelling.path, _value(spelling.head))) if spelling.head else EVERYTHING
    given = list_terms(clause)
    _check_fields(given, [field.name for field in spelling.fields])
    fixed: list[Any] = []
    for position, field in enumerate(spelling.fields):
        mine = [term for term in given if term.field.name == field.name]
        given = [term for term in given if term.field.name != field.name]
        if len(mine) == 1 and mine[0].operator == "=":
            fixed.append(spelling.piece(field, field.validate(mine[0].values[0])))
            if given:
                continue
            return _fix(spelling, fixed)
        if given:
            raise _explain_order(given[0], field, spelling.fields)
        return _compare(spelling, fixed, field, mine, last=position == len(spelling.fields) - 1)
    raise AssertionError("every term uses one of the fields")


def range_of_shared(
    clause: Clause | None, fields: tuple[Field[Any], ...], attribute: KeyAttribute, head: str = ""
) -> Range:
    """A range of the order-preserving texts of these fields, which follow a head."""
    alone = len(fields) == 1

    def spell(field: Field[Any], value: Any) -> str:
        return sort_piece(field, value, alone=alone)

    return range_of(clause, Spelling(attribute, fields, spell, lambda field: True, compact=True, head=head))


def range_of_ancestor(
    clause: Clause | None, fields: tuple[Field[Any], ...], attribute: KeyAttribute
) -> Range:
    """A range of texts that are joined in the order of the fields' names, or of one number."""
    from holdall.models.codec.ecmascript import utf16_order

    number = attribute.type == "N"

    def spell(field: Field[Any], value: Any) -> Any:
        if attribute.name == field.stored:
            return own_part(field, value)
        return foreign_part((field,), {field.name: value}, numeric=number)

    ordered = tuple(sorted(fields, key=lambda field: utf16_order(field.stored)))
    return range_of(
        clause, Spelling(attribute, ordered, spell, lambda field: number or field.codec.kind == "S")
    )


def range_of_plain(clause: Clause | None, fields: tuple[Field[Any], ...], attribute: KeyAttribute) -> Range:
    """A range of the values of a field that is the sort key itself."""
    return range_of(clause, Spelling(attribute, fields, own_part, lambda field: True))


def range_of_several(
    clause: Clause | None, fields: Sequence[Field[Any]], attributes: Sequence[KeyAttribute]
) -> Range:
    """The range of a sort key of several attributes: the first ones are fixed with ==, and the next one is compared."""
    given = list_terms(clause)
    _check_fields(given, [field.name for field in fields])
    fixed: list[tuple[str, Attribute]] = []
    for field, attribute in zip(fields, attributes, strict=True):
        mine = [term for term in given if term.field.name == field.name]
        given = [term for term in given if term.field.name != field.name]
        found = range_of_plain(All(tuple(mine)) if mine else None, (field,), attribute)
        if not given:
            return replace(found, fixed=tuple(fixed))
        if len(mine) != 1 or mine[0].operator != "=":
            raise _explain_order(given[0], field, fields)
        if found.empty:
            return NOTHING
        assert isinstance(found.condition, Compare)
        assert isinstance(found.condition.right, Value)
        fixed.append((attribute.name, found.condition.right.attribute))
    raise AssertionError("every term uses one of the fields")


def _explain_order(term: Term, field: Field[Any], fields: Sequence[Field[Any]]) -> QueryNotSupported:
    names = ", ".join(field.name for field in fields)
    return QueryNotSupported(
        f"{term.field!r} can be compared only if {field!r}, which precedes it in the sort key, is fixed with ==",
        hint=f"the order of the sort key is: {names}",
    )


def _check_fields(given: Sequence[Term], names: Sequence[str]) -> None:
    for term in given:
        if term.field.name not in names or term.inside or term.sized:
            there = ", ".join(names) or "none"
            raise QueryNotSupported(
                f"{term!r} is not a condition on the sort key ({there})", hint="pass it as where="
            )
        if term.operator not in ("=", "<", "<=", ">", ">=", "between", "begins_with"):
            raise QueryNotSupported(
                f"a sort key cannot be queried with {term.operator}", hint="pass the condition as where="
            )


def _fix(spelling: Spelling, pieces: list[Any]) -> Range:
    """Return the range in which all components, or the first of them, are fixed."""
    path = spelling.path
    if len(pieces) == len(spelling.fields):
        whole = spelling.head + _SEPARATOR.join(pieces) if spelling.is_text else pieces[0]
        return Range(Compare("=", path, _value(whole))) if whole not in ("", b"") else NOTHING
    return Range(BeginsWith(path, _value(spelling.head + _prefix(pieces))))


def _compare(
    spelling: Spelling, pieces: list[Any], field: Field[Any], given: list[Term], *, last: bool
) -> Range:
    """Return the range in which one component is compared, after fixed ones."""
    prefix = spelling.head + _prefix(pieces)
    if any(term.operator == "begins_with" for term in given):
        return _begin_with(spelling, prefix, field, given)
    if not spelling.ordered(field):
        raise QueryNotSupported(
            f"{field!r} is part of a key that is stored as text, where 10 comes before 9",
            hint="use only == in sort=, and compare in where= or in your code",
        )
    low: list[tuple[Any, bool]] = []
    high: list[tuple[Any, bool]] = []
    for term in given:
        for operator, value in sides_of(term):
            text = spelling.piece(field, value)
            whole = prefix + text if spelling.is_text else text
            below = operator in ("<", "<=")
            strict = operator in ("<", ">")
            if not last:  # more components follow: keys with exactly this one come right after its text
                whole = whole + _AFTER if operator in (">", "<=") else whole
                strict = False
            (high if below else low).append((whole, strict))
    return _between(spelling, prefix, low, high)


def sides_of(term: Term) -> list[tuple[str, Any]]:
    """The ends that a comparison sets: each an operator and a value."""
    exact = term.operator != "="
    values = [_comparable(term.field, value, exact=exact) for value in term.values]
    if term.operator == "between":
        return [(">=", values[0]), ("<=", values[1])]
    return [(term.operator, values[0])] if term.operator != "=" else [(">=", values[0]), ("<=", values[0])]


def _comparable(field: Field[Any], value: Any, *, exact: bool) -> Any:
    """Return a value to compare with; it may be outside the field's bounds, but must have its type."""
    try:
        return field.comparable(value) if exact else field.validate(value)
    except InvalidFieldError:
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        if field.codec.number is not None and number:
            return codec_for(type(value)).validate(value)
        raise


def _begin_with(spelling: Spelling, prefix: str, field: Field[Any], given: list[Term]) -> Range:
    kind = field.codec.kind
    if (
        len(given) > 1
        or spelling.attribute.type == "N"
        or kind not in ("S", "B")
        or not spelling.ordered(field)
    ):
        raise QueryNotSupported(
            f"begins_with must be the only condition on {field!r}, which must hold text or bytes"
        )
    (start,) = given[0].values
    if not isinstance(start, str if kind == "S" else bytes):
        raise field.refusal(f"it cannot begin with {start!r:.60}")
    # the beginning of a time or UUID is not itself a time or UUID, so it is written as text
    if spelling.compact and isinstance(start, str) and _is_uuid(field):
        start = start.replace("-", "").lower()
    spelt: Field[Any] = Field(field.model, field.name, codec_for(type(start)), FieldOptions())
    piece = spelling.piece(spelt, start)
    text = prefix + piece if spelling.is_text else piece
    return Range(BeginsWith(spelling.path, _value(text))) if text else EVERYTHING


def _is_uuid(field: Field[Any]) -> bool:
    return getattr(field.codec.annotation, "__name__", None) == "UUID"


def _between(
    spelling: Spelling, prefix: str, low: list[tuple[Any, bool]], high: list[tuple[Any, bool]]
) -> Range:
    """Return the range from the highest lower bound to the lowest upper bound, within the fixed part."""
    if prefix and not low:
        low = [(prefix, False)]
    if prefix and not high:
        high = [(successor(prefix), False)]
    return join_ends(spelling.path, low, high)


def join_ends(path: Path, low: Sequence[tuple[Any, bool]], high: Sequence[tuple[Any, bool]]) -> Range:
    """The range from the highest low end to the lowest high end; each with whether it is excluded."""
    bottom = max(low, key=lambda end: (_order(end[0]), end[1])) if low else None
    top = min(high, key=lambda end: (_order(end[0]), not end[1])) if high else None
    if top is not None and top[0] in ("", b""):
        return NOTHING  # keys are never empty, and none comes before the empty text
    if bottom is not None and bottom[0] in ("", b""):
        bottom = None
    if bottom is None:
        return EVERYTHING if top is None else Range(Compare("<" if top[1] else "<=", path, _value(top[0])))
    if top is None:
        return Range(Compare(">" if bottom[1] else ">=", path, _value(bottom[0])))
    if _order(bottom[0]) > _order(top[0]):
        return NOTHING
    excluded = tuple(_value(end).attribute for end, strict in (bottom, top) if strict)
    return Range(Between(path, _value(bottom[0]), _value(top[0])), excluded)


def span(ranges: Sequence[Range]) -> Range:
    """The smallest range that contains these, which are single texts, beginnings of texts, or everything."""
    ends = [end for each in ranges if (end := _ends_of(each)) is not None]
    if len(ends) < len(ranges):
        return EVERYTHING
    path, low, high = ends[0]
    for _, bottom, top in ends[1:]:
        low, high = min(low, bottom, key=_order), max(high, top, key=_order)
    return Range(Between(path, _value(low), _value(high)))


def _ends_of(each: Range) -> tuple[Path, str, str] | None:
    """The first text of a range, and one after which nothing of it comes."""
    condition = each.condition
    if isinstance(condition, BeginsWith):
        text = _text_of(condition.prefix)
        return condition.path, text, successor(text)
    if isinstance(condition, Compare) and isinstance(condition.left, Path):
        text = _text_of(condition.right)
        return condition.left, text, text
    return None


def _text_of(operand: Operand) -> str:
    assert isinstance(operand, Value)
    return str(operand.attribute["S"])


def successor(text: str) -> str:
    """The first text after all that begin with this one."""
    last = ord(text[-1])
    return text[:-1] + chr(0xE000 if last == 0xD7FF else min(last + 1, 0x10FFFF))


def _prefix(pieces: Sequence[str]) -> str:
    return "".join(f"{piece}{_SEPARATOR}" for piece in pieces)


def _order(end: Any) -> Any:
    return end.encode() if isinstance(end, str) else end


def _value(end: Any) -> Value:
    if isinstance(end, bytes):
        return Value(encode(end))
    return Value({"S": end} if isinstance(end, str) else {"N": number_text(end)})
