"""Updates of fields that need no read: ``col(Order.tags).add("x")``, ``col(Order.address)["city"].set("Paris")``.

Pure. An update checks its values by the field's type when it is made. The store carries it out in one of two ways. The
usual one is an action of DynamoDB, with conditions under which the action does exactly what the update means. If they
do not hold (an empty set is stored as a list, a default is not stored at all), `FieldUpdate.apply` computes the whole
field from its stored attribute, and the entry that writes the result locks the field to that attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Literal, TypeAlias, get_origin

from holdall.core.expressions import (
    Add,
    Compare,
    Condition,
    Delete,
    Exists,
    IfNotExists,
    ListAppend,
    NotExists,
    Or,
    Path,
    Plus,
    Remove,
    Set,
    Size,
    TypeIs,
    Update,
    UpdateAction,
    Value,
)
from holdall.core.expressions.application import apply_update
from holdall.core.expressions.evaluation import resolve
from holdall.core.internal import internal
from holdall.core.numbers import add, exact_number, number_text
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidFieldError, InvalidValueError
from holdall.models.codec.annotation import Bounds, Lengths, has_rules, lengths_of, peel
from holdall.models.codec.codec import codec_for
from holdall.models.codec.foreign_values import check_safe
from holdall.models.codec.member import Member, find_member
from holdall.models.codec.stored_form import show
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT

Verb: TypeAlias = Literal["set", "remove", "add", "discard", "append", "increment_by"]
"""What an update does with the value at its path."""

_SETS = (set, frozenset)


class FieldUpdate:
    """A change of a field, or of a value inside it, that does not depend on a read."""

    __slots__ = ("_lengths", "_member", "_ruled", "attribute", "field", "inside", "value", "verb")

    @internal
    def __init__(
        self, field: Field[Any], inside: tuple[str | int, ...], verb: Verb, values: Sequence[Any]
    ) -> None:
        self.field = field
        self.inside = inside
        self.verb: Verb = verb
        self.value: Any = None
        self.attribute: Attribute | None = None
        self._lengths = Lengths()
        if field.fixed:
            raise field.refuse_change()
        if field.codec.stored_as is not None and (inside or verb not in ("set", "remove")):
            raise field.refusal(
                f'it is stored in another program\'s form (stored="{field.codec.stored_as}"), '
                "so it can only be set as a whole",
                hint="use set(...), or read the item and change it",
            )
        self._member = Member(field.codec.annotation, field.absent_value() is ABSENT, False)
        self._ruled = False
        try:
            for part in inside:
                self._ruled = self._ruled or has_rules(self._member.annotation)
                self._member = find_member(self._member.annotation, part)
        except InvalidValueError as error:
            raise self._refuse(error) from None
        _PREPARATIONS[verb](self, values)

    @property
    @internal
    def path(self) -> Path:
        """Where the value is stored."""
        return Path((self.field.stored, *self.inside))

    @property
    @internal
    def is_whole(self) -> bool:
        """Whether it sets or removes the whole field, whatever its value was."""
        return not self.inside and self.verb in ("set", "remove")

    @internal
    def of(self, field: Field[Any]) -> FieldUpdate:
        """The same update of a field that a derived model declares anew."""
        values = self.value if self.verb in ("add", "discard", "append") else [self.value]
        return self if field is self.field else FieldUpdate(field, self.inside, self.verb, list(values))

    @internal
    def join(self, later: FieldUpdate) -> FieldUpdate | None:
        """Return one update that does the work of this one and a later one of the same field; None if there is none."""
        if later.verb != self.verb or self.verb not in ("add", "discard", "append"):
            return None
        return FieldUpdate(self.field, self.inside, self.verb, [*self.value, *later.value])

    def __repr__(self) -> str:
        where = "".join(f"[{part!r}]" for part in self.inside)
        several = self.verb in ("add", "discard", "append")
        shown = self.value if several else [self.value]
        values = ", ".join("…" if self.field.hidden else show(value) for value in shown)
        values = "" if self.verb == "remove" else values
        return f"col({self.field!r}){where}.{self.verb}({values})"

    # --- what the values must be ----------------------------------------------------------------------------

    def _prepare_set(self, values: Sequence[Any]) -> None:
        (value,) = values
        if (
            value is None
            and (not self.inside or self.field.foreign)
            and peel(self._member.annotation).nullable
        ):
            self.verb = "remove"
            return
        if not self.inside:
            self.value = self.field.validate(value)
            self.attribute = self.field.encode(self.value)
        else:
            self.value, self.attribute = value, self._encode(self._member.annotation, value)

    def _prepare_remove(self, values: Sequence[Any]) -> None:
        if self._member.required:
            raise self._refuse("it is required, so it cannot be removed")

    def _prepare_members(self, values: Sequence[Any]) -> None:
        base = self._container("set", _SETS)
        if self.inside:
            raise self._refuse(
                "DynamoDB adds to a set, and removes from it, only if the set is a whole attribute",
                hint="read the item and change the set, or make the set a field",
            )
        try:
            members = (frozenset if frozenset in (base, get_origin(base)) else set)(values)
        except TypeError as error:
            raise self._refuse(f"a value cannot be a member of a set: {error}") from None
        if not members:
            raise self._refuse(f"{self.verb} has no members", hint="pass at least one")
        self.attribute = self._encode(base, members)
        if next(iter(self.attribute)) not in ("SS", "NS", "BS"):
            raise self._refuse("its members are stored in a list", hint="read the item and change the set")
        self.value = codec_for(base).decode(self.attribute)

    def _prepare_append(self, values: Sequence[Any]) -> None:
        base = self._container("list", (list,))
        if not values:
            raise self._refuse("append has no values", hint="pass at least one")
        self.value, self.attribute = list(values), self._encode(base, list(values))

    def _container(self, noun: str, kinds: tuple[type, ...]) -> Any:
        """The type of a list or set without its notes, which must not demand more than a length of the whole."""
        form = peel(self._member.annotation)
        if form.base not in kinds and get_origin(form.base) not in kinds:
            raise self._refuse(f"{self.verb} is for a {noun}, which it is not")
        lengths = lengths_of(form)
        if lengths is None:
            raise self._refuse(
                "its type has rules that only the whole value can be checked against",
                hint="read the item and change the value",
            )
        self._lengths = lengths
        return form.base

    def _prepare_increment(self, values: Sequence[Any]) -> None:
        (amount,) = values
        if isinstance(amount, bool) or not isinstance(amount, int | float | Decimal):
            raise self._refuse(f"cannot be incremented by {self._show_given(amount)}")
        base, bounds = peel(self._member.annotation).base, self._bounds
        if bounds is None and base is not Any:
            raise self._refuse("only a number can be incremented")
        self._ruled = self._ruled or (bounds is not None and bounds.more)
        if base is int and not isinstance(amount, int):
            raise self._refuse(f"an int cannot be incremented by {self._show_given(amount)}")
        self.value = amount
        try:
            self.attribute = {"N": number_text(amount)}
        except InvalidValueError as error:
            raise self._refuse(error) from None

    @property
    def _bounds(self) -> Bounds | None:
        return codec_for(self._member.annotation).number

    def _encode(self, annotation: Any, value: Any) -> Attribute:
        try:
            attribute = codec_for(annotation).encode_checked(value)
            if self.field.foreign:
                check_safe(attribute)
        except InvalidValueError as error:
            raise self._refuse(error) from None
        return attribute

    def _refuse(self, problem: str | InvalidValueError, *, hint: str | None = None) -> InvalidFieldError:
        where = "".join(f"[{part!r}]" for part in self.inside)
        if isinstance(problem, InvalidValueError) and self.field.hidden:
            return self.field.refusal("the value does not fit the type")
        if isinstance(problem, InvalidValueError):
            where += f"{'.' if where and problem.place[:1] not in ('', '[') else ''}{problem.place}"
            hint, problem = problem.hint, problem.problem
        return self.field.refusal(f"{where}: {problem}" if where else problem, hint=hint)

    def _show_given(self, value: Any) -> str:
        return "this value" if self.field.hidden else show(value)

    def _show(self, attribute: Attribute) -> str:
        return "" if self.field.hidden else f" {show(dict(attribute))}"

    # --- the usual way --------------------------------------------------------------------------------------

    @internal
    def demands(self) -> list[Condition]:
        """The conditions on the stored item under which `action` does what the update means.

        No item meets them if the type has rules that only the whole value can be checked against.
        """
        path = self.path
        if self._ruled:
            return [Exists(path), NotExists(path)]
        found: list[Condition] = []
        if len(path.parts) > 1:
            if self.verb == "set" and isinstance(path.parts[-1], int):
                return [Exists(path)]  # past the end of a list, DynamoDB would append
            found.append(TypeIs(Path(path.parts[:-1]), "L" if isinstance(path.parts[-1], int) else "M"))
        if self.verb in ("set", "remove"):
            return found
        assert self.attribute is not None
        kind = next(iter(self.attribute))
        fits: list[Condition] = [TypeIs(path, kind), *self._room()]
        fit = fits[0] if len(fits) == 1 else reduce(lambda left, right: left & right, fits)
        return [*found, Or((NotExists(path), fit)) if self._may_be_absent() else fit]

    @internal
    def action(self) -> UpdateAction:
        """The action that makes the change, if the conditions hold."""
        path = self.path
        if self.attribute is None:
            return Remove(path)
        new = Value(self.attribute)
        match self.verb:
            case "add":
                return Add(path, new)
            case "discard":
                return Delete(path, new)
            case "append":
                return Set(path, ListAppend(self._or_start(path), new))
            case "increment_by":
                return Set(path, Plus(self._or_start(path), new))
        return Set(path, new)

    def _or_start(self, path: Path) -> Path | IfNotExists:
        start = self._start()
        return path if start is None else IfNotExists(path, Value(start))

    def _start(self) -> Attribute | None:
        """What is added to if nothing is stored; None if there must be something."""
        if self.inside:
            if not self._member.free:
                return None
            return {"N": "0"} if self.verb == "increment_by" else {"L": []}
        start = self.field.absent_value()
        if start is None or start is ABSENT:
            return None if self.verb == "increment_by" else {"L": []}
        return self.field.codec.encode(start)

    def _may_be_absent(self) -> bool:
        """Whether the action does what it should if nothing is stored."""
        start = self._start()
        if start is None:
            return False
        if self.verb in ("add", "discard"):
            return start == {"L": []} and (self.verb == "discard" or self._has_room(len(self.value)))
        outcome = self._outcome(None)
        assert outcome is not None
        try:
            self._check(self._member.annotation, outcome)
        except InvalidFieldError:
            return False
        return True

    def _has_room(self, count: int) -> bool:
        return self._lengths.most is None or count <= self._lengths.most

    def _room(self) -> list[Condition]:
        """The conditions under which a stored value of the right kind still fits its type afterwards."""
        path, count = self.path, 0 if self.verb == "increment_by" else len(self.value)
        match self.verb:
            case "add" | "append":
                most = self._lengths.most
                return [] if most is None else [_compare_size(path, "<=", most - count)]
            case "discard":
                least = self._lengths.least
                # an empty set would be removed, and mean something else
                if self.field.absent_value() != set():
                    least = max(least, 1)
                return [_compare_size(path, ">=", least + count)] if least else []
        limits = self._bounds or Bounds()
        upper: list[tuple[Any, Any]] = [("<=", limits.le), ("<", limits.lt)]
        lower: list[tuple[Any, Any]] = [(">=", limits.ge), (">", limits.gt)]
        return [
            Compare(
                comparator, path, Value({"N": number_text(exact_number(limit) - exact_number(self.value))})
            )
            for comparator, limit in (upper if self.value > 0 else lower)
            if limit is not None
        ]

    # --- the other way --------------------------------------------------------------------------------------

    @internal
    def apply(self, stored: Attribute | None) -> Attribute | None:
        """Return what the update makes of the field's stored attribute; None is an absent one.

        `InvalidFieldError` if the attribute has nothing to update, or if the result does not fit the field's type.
        """
        return apply_all([self], stored)

    def _settle(self, item: Item) -> list[UpdateAction]:
        """The action that stores the updated value; none if the value stays the same."""
        path = self.path
        present = resolve(path, item)
        if self.verb == "set" and isinstance(path.parts[-1], int) and present is None:
            raise self._refuse("there is nothing at this position")
        new = self._outcome(present)
        if new == present:
            return []
        around = resolve(Path(path.parts[:-1]), item) if self.inside else None
        if self.inside and ("L" if isinstance(path.parts[-1], int) else "M") not in (around or {}):
            raise self._refuse("the stored value has no member that could contain it")
        return [Remove(path) if new is None else Set(path, Value(new))]

    @internal
    def apply_to(self, value: Any) -> Any:
        """Return what the update makes of the field's value: a new set or list."""
        if self.verb == "append":
            return [*(value or ()), *self.value]
        kind = frozenset if isinstance(self.value, frozenset) else set
        members = kind(value or ())
        if self.verb == "discard":
            return None if value is None else members - self.value
        return members | self.value

    def _outcome(self, present: Attribute | None) -> Attribute | None:
        """The attribute at the path after the update."""
        if self.verb in ("set", "remove"):
            return self.attribute
        assert self.attribute is not None
        start = present or self._start()
        if start is None:
            raise self._refuse("it has no value to add to", hint="set it")
        if self.verb == "increment_by":
            if "N" not in start:
                raise self._refuse(f"the stored value{self._show(start)} is not a number")
            return {"N": add(start["N"], self.attribute["N"], sign=1)}
        if self.verb == "append":
            if "L" not in start:
                raise self._refuse(f"the stored value{self._show(start)} is not a list")
            return {"L": [*start["L"], *self.attribute["L"]]}
        if self.verb == "discard" and present is None and self.field.absent_value() in (None, ABSENT):
            return None
        return self.field.encode(self.apply_to(self.field.decode(start)))

    def _check(self, annotation: Any, attribute: Attribute, shown: str | None = None) -> None:
        try:
            codec_for(annotation).decode(attribute)
            if self.field.foreign:
                check_safe(attribute)
        except InvalidValueError as error:
            place = f"{error.place}: " if error.place else ""
            problem = "" if self.field.hidden else f": {place}{error.problem}"
            raise self._refuse(
                f"{shown or repr(self)} would leave a value that does not fit{problem}"
            ) from None


_PREPARATIONS: dict[Verb, Any] = {
    "set": FieldUpdate._prepare_set,
    "remove": FieldUpdate._prepare_remove,
    "add": FieldUpdate._prepare_members,
    "discard": FieldUpdate._prepare_members,
    "append": FieldUpdate._prepare_append,
    "increment_by": FieldUpdate._prepare_increment,
}


def apply_all(updates: Sequence[FieldUpdate], stored: Attribute | None) -> Attribute | None:
    """Return what updates that do not overlap make of their field's stored attribute; None is an absent one.

    `InvalidFieldError` if the attribute has nothing to update, or if the result does not fit the field's type.
    """
    first, field = updates[0], updates[0].field
    if first.is_whole:
        return first.attribute
    start = field.absent_value() if stored is None and first.inside else None
    if start is not None and start is not ABSENT:
        item = {field.stored: field.codec.encode(start)}
    else:
        item = {} if stored is None else {field.stored: stored}
    actions = [action for update in updates for action in update._settle(item)]
    if not actions:
        return stored
    new = apply_update(Update(tuple(actions)), item).get(field.stored)
    if new is not None:
        first._check(field.codec.annotation, new, " and ".join(map(repr, updates)))
    return new


def find_overlap(updates: Sequence[FieldUpdate]) -> tuple[FieldUpdate, FieldUpdate] | None:
    """Return two updates of the same value, or of a value and a part of it, which the store refuses."""
    known: dict[tuple[str | int, ...], FieldUpdate] = {}
    for update in sorted(updates, key=lambda each: len(each.inside)):
        parts = update.path.parts
        for length in range(1, len(parts) + 1):
            if (other := known.get(parts[:length])) is not None:
                return other, update
        known[parts] = update
    return None


def _compare_size(path: Path, comparator: Any, count: int) -> Condition:
    return Compare(comparator, Size(path), Value({"N": str(count)}))
