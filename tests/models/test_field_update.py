"""Updates of fields without reading them: what they refuse, and that both ways to apply them agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pytest
from annotated_types import Ge, Le, MaxLen, MinLen, MultipleOf
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, model_validator
from typing_extensions import TypedDict

from holdall import Key, Model, col, field
from holdall.core.expressions import Update
from holdall.core.expressions.application import apply_update
from holdall.core.expressions.evaluation import holds
from holdall.core.values import Attribute
from holdall.errors import InvalidFieldError
from holdall.models import FieldUpdate
from holdall.models.fields.options import ABSENT
from holdall.models.fields.update import apply_all, find_overlap


class Address(BaseModel):
    city: str
    zip_code: Annotated[str, MinLen(5)] | None = Field(default=None, alias="zip")


@dataclass
class Size:
    width: Annotated[int, Ge(1)]
    height: int = 1


class Span(BaseModel):
    first: int
    last: int

    @model_validator(mode="after")
    def check(self) -> Span:
        if self.first > self.last:
            raise ValueError("first comes after last")
        return self


class Extra(TypedDict, total=False):
    color: str


def _short(members: list[str]) -> list[str]:
    return members


class Thing(Model):
    id: Key[str]
    made: int = field(default=1, read_only=True)
    left: Annotated[int, Ge(0), Le(10)] = 5
    price: Decimal = Decimal("1.5")
    number: int | None = None
    tags: set[str] = field(default_factory=set)
    few: Annotated[set[int], MinLen(1), MaxLen(3)] = field(default_factory=lambda: {1})
    maybe: frozenset[str] | None = None
    log: list[str] = field(default_factory=list)
    last: Annotated[list[int], MaxLen(2)] = field(default_factory=list)
    ruled: Annotated[list[str], AfterValidator(_short)] = field(default_factory=list)
    pairs: set[tuple[int, int]] = field(default_factory=set)
    address: Address | None = None
    size: Size | None = None
    extra: Extra = field(default_factory=Extra)
    counts: dict[str, int] = field(default_factory=dict)
    lists: dict[str, list[int]] = field(default_factory=dict)
    free: Any = None
    even: Annotated[int, MultipleOf(2)] = 0
    ranks: Annotated[dict[str, int], MinLen(1), MaxLen(2)] = field(default_factory=lambda: {"a": 1})
    pair: Annotated[list[int], MinLen(2)] = field(default_factory=lambda: [1, 2])
    span: Span = field(default_factory=lambda: Span(first=1, last=2))
    note: str | None = None
    json: dict[str, int] = field(default_factory=dict, stored="json")
    name: str


# --- refusals, before anything is sent --------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[], FieldUpdate], str]] = {
    "a key": (lambda: col(Thing.id).set("b"), "part of the key"),
    "a read-only field": (lambda: col(Thing.made).set(2), "read-only"),
    "a value of another type": (lambda: col(Thing.left).set("x"), "valid integer"),  # type: ignore[arg-type]
    "a value out of bounds": (lambda: col(Thing.left).set(11), "less than or equal to 10"),
    "removing a required field": (lambda: col(Thing.name).remove(), "required"),
    "None for a required field": (lambda: col(Thing.name).set(None), "valid string"),  # type: ignore[arg-type]
    "a member of another type": (lambda: col(Thing.tags).add(1), "valid string"),  # type: ignore[arg-type]
    "no members": (lambda: col(Thing.tags).add(), "no members"),
    "a member without a hash": (lambda: col(Thing.tags).add([]), "unhashable"),  # type: ignore[arg-type]
    "a set of lists": (lambda: col(Thing.pairs).add((1, 2)), "stored in a list"),
    "adding to a list": (lambda: col(Thing.log).add("x"), "add is for a set"),  # type: ignore[call-overload,misc]
    "appending to a set": (lambda: col(Thing.tags).append("x"), "append is for a list"),  # type: ignore[call-overload,misc]
    "appending nothing": (lambda: col(Thing.log).append(), "no values"),
    "rules of the whole list": (lambda: col(Thing.ruled).append("x"), "only the whole value"),
    "incrementing a text": (lambda: col(Thing.name).increment_by(1), "only a number"),  # type: ignore[misc]
    "a fraction for an int": (lambda: col(Thing.left).increment_by(0.5), "an int cannot"),  # type: ignore[arg-type]
    "a boolean amount": (lambda: col(Thing.left).increment_by(True), "incremented by True"),
    "not a number": (lambda: col(Thing.price).increment_by(Decimal("NaN")), "NaN"),
    "setting a size": (lambda: col(Thing.tags).size.set(1), "size"),
    "a member that is not declared": (lambda: col(Thing.address)["town"].set("x"), "city, zip"),
    "a member of a wrong type": (lambda: col(Thing.address)["city"].set(1), r"\['city'\]: .*valid string"),
    "a member that breaks its rule": (lambda: col(Thing.address)["zip"].set("1"), r"\['zip'\]"),
    "removing a required member": (lambda: col(Thing.address)["city"].remove(), "required"),
    "a member of a dataclass": (lambda: col(Thing.size)["width"].set(0), r"\['width'\]"),
    "a member of a typed dict": (lambda: col(Thing.extra)["color"].set(1), r"\['color'\]"),
    "a position in a dict": (lambda: col(Thing.counts)[0].set(1), "only a list has positions"),
    "a name in a list": (lambda: col(Thing.log)["x"].set("y"), "positions, not the name"),
    "a member of a text": (lambda: col(Thing.name)["x"].set("y"), "does not declare"),
    "a part of a JSON text": (lambda: col(Thing.json)["x"].set(1), 'stored="json"'),
    "a nested number of another type": (lambda: col(Thing.counts)["x"].set("y"), "valid integer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_update_that_does_not_fit_the_type_is_refused_when_it_is_built(case: str) -> None:
    build, text = REFUSED[case]
    with pytest.raises(InvalidFieldError, match=text):
        build()


def test_a_set_inside_another_value_cannot_be_added_to() -> None:
    class Holder(Model):
        id: Key[str]
        sets: dict[str, set[str]]

    with pytest.raises(InvalidFieldError, match="whole attribute"):
        col(Holder.sets)["x"].add("y")


def test_updates_of_one_value_overlap() -> None:
    city, zip_code = col(Thing.address)["city"].set("x"), col(Thing.address)["zip"].set("12345")
    assert find_overlap([city, zip_code, col(Thing.note).remove()]) is None
    assert find_overlap([zip_code, col(Thing.address).remove()]) is not None
    assert find_overlap([col(Thing.log).append("x"), col(Thing.log).append("y")]) is not None


def test_the_repr_of_an_update_is_the_call_that_built_it() -> None:
    assert repr(col(Thing.address)["city"].set("Rome")) == "col(Thing.address)['city'].set('Rome')"
    assert repr(col(Thing.log).append("a", "b")) == "col(Thing.log).append('a', 'b')"
    assert repr(col(Thing.note).set(None)) == "col(Thing.note).remove()"


# --- both ways to apply an update agree -------------------------------------------------------------------

TAGS = st.sets(st.sampled_from("abc"))
STORED: dict[str, st.SearchStrategy[Any]] = {
    "left": st.integers(0, 10),
    "number": st.integers(-3, 3),
    "tags": TAGS,
    "few": st.sets(st.integers(1, 4), min_size=1, max_size=3),
    "maybe": TAGS.map(frozenset),
    "log": st.lists(st.sampled_from("ab"), max_size=3),
    "last": st.lists(st.integers(0, 3), max_size=2),
    "counts": st.dictionaries(st.sampled_from("ab"), st.integers(0, 3)),
    "lists": st.dictionaries(st.sampled_from("ab"), st.lists(st.integers(0, 3), max_size=2)),
    "address": st.builds(Address, city=st.sampled_from(["Rome", "Oslo"])),
    "even": st.sampled_from([0, 2, 4]),
    "ranks": st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), min_size=1, max_size=2),
    "pair": st.lists(st.integers(0, 3), min_size=2, max_size=3),
    "span": st.integers(1, 3).map(lambda n: Span(first=n, last=n + 1)),
}
SOME = st.lists(st.sampled_from("abc"), min_size=1, max_size=2)
NUMBERS = st.lists(st.integers(1, 4), min_size=1, max_size=2)
UPDATES: dict[str, st.SearchStrategy[FieldUpdate]] = {
    "left": st.integers(-6, 6).map(lambda n: col(Thing.left).increment_by(n)),
    "number": st.integers(-6, 6).map(lambda n: col(Thing.number).increment_by(n)),
    "tags": st.one_of(
        SOME.map(lambda x: col(Thing.tags).add(*x)), SOME.map(lambda x: col(Thing.tags).discard(*x))
    ),
    "few": st.one_of(
        NUMBERS.map(lambda x: col(Thing.few).add(*x)), NUMBERS.map(lambda x: col(Thing.few).discard(*x))
    ),
    "maybe": st.one_of(
        SOME.map(lambda x: col(Thing.maybe).add(*x)), SOME.map(lambda x: col(Thing.maybe).discard(*x))
    ),
    "log": SOME.map(lambda x: col(Thing.log).append(*x)),
    "last": NUMBERS.map(lambda x: col(Thing.last).append(*x)),
    "counts": st.one_of(
        st.integers(-3, 3).map(lambda n: col(Thing.counts)["a"].increment_by(n)),
        st.integers(0, 3).map(lambda n: col(Thing.counts)["b"].set(n)),
        st.just(col(Thing.counts)["a"].remove()),
    ),
    "lists": st.one_of(
        NUMBERS.map(lambda x: col(Thing.lists)["a"].append(*x)),
        st.integers(0, 2).map(lambda n: col(Thing.lists)["a"][n].set(7)),
        st.integers(0, 2).map(lambda n: col(Thing.lists)["a"][n].remove()),
    ),
    "address": st.one_of(
        st.just(col(Thing.address)["city"].set("Kyiv")),
        st.sampled_from([None, "12345"]).map(lambda zip_code: col(Thing.address)["zip"].set(zip_code)),
    ),
    "even": st.integers(-3, 3).map(lambda n: col(Thing.even).increment_by(n)),
    "ranks": st.one_of(st.just(col(Thing.ranks)["a"].set(7)), st.just(col(Thing.ranks)["a"].remove())),
    "pair": st.integers(0, 2).map(lambda n: col(Thing.pair)[n].remove()),
    "span": st.integers(1, 3).map(lambda n: col(Thing.span)["first"].set(n)),
}


def expect(update: FieldUpdate, value: Any) -> Any:
    """The value after an update, computed in plain Python; raises an error if the update is impossible."""
    if update.inside:
        return _expect_inside(update, value)
    match update.verb:
        case "increment_by":
            return value + update.value
        case "append":
            return [*(value or []), *update.value]
        case "add":
            return (value or type(update.value)()) | update.value
        case "discard":
            return None if value is None else value - update.value
    raise AssertionError(update.verb)


def _expect_inside(update: FieldUpdate, value: Any) -> Any:
    first, *rest = update.inside
    place: Any = rest[0] if rest else None
    if isinstance(value, Address):
        return value.model_copy(update={"city" if first == "city" else "zip_code": update.value})
    if isinstance(value, Span):
        return {"first": update.value, "last": value.last}
    if isinstance(value, list):
        return [member for at, member in enumerate(value) if at != first]
    found = dict(value)
    if rest and update.verb == "remove" and first not in found:
        return value
    if rest:
        members = list(found[first])
        if update.verb == "set":
            members[place] = update.value
        else:
            del members[place : place + 1]
        found[first] = members
    elif update.verb == "increment_by":
        found[first] = found.get(first, 0) + update.value
    elif update.verb == "append":
        found[first] = [*found.get(first, []), *update.value]
    elif update.verb == "set":
        found[first] = update.value
    else:
        found.pop(first, None)
    return found


@given(
    st.sampled_from(sorted(UPDATES)).flatmap(lambda name: st.tuples(UPDATES[name], st.none() | STORED[name]))
)
def test_the_stores_action_and_the_computed_value_agree_with_plain_python(
    case: tuple[FieldUpdate, Any],
) -> None:
    update, value = case
    stored: Attribute | None = None if value is None else update.field.codec.encode(value)
    start = update.field.absent_value() if value is None else value
    try:
        assert start is not ABSENT
        wanted = expect(update, start)
        if wanted is not None:
            wanted = update.field.validate(wanted)
    except (InvalidFieldError, TypeError, KeyError, IndexError):
        with pytest.raises(InvalidFieldError):
            update.apply(stored)
        wanted = ABSENT
    else:
        assert decode(update, update.apply(stored)) == wanted
    item = {} if stored is None else {update.field.stored: stored}
    if all(holds(demand, item) for demand in update.demands()):
        after = apply_update(Update((update.action(),)), item)
        assert decode(update, after.get(update.field.stored)) == wanted


def decode(update: FieldUpdate, attribute: Attribute | None) -> Any:
    return update.field.absent_value() if attribute is None else update.field.decode(attribute)


def test_updates_of_several_members_apply_to_the_stored_value_and_are_checked_together() -> None:
    def after(*updates: FieldUpdate, **start: Any) -> Any:
        field = updates[0].field
        return decode(updates[0], apply_all(updates, field.codec.encode(start[field.name])))

    assert after(col(Thing.log)[0].remove(), col(Thing.log)[1].remove(), log=["a", "b", "c", "d"]) == [
        "c",
        "d",
    ]
    assert after(col(Thing.log)[0].remove(), col(Thing.log)[1].set("x"), log=["a", "b", "c"]) == ["x", "c"]
    first, last = col(Thing.span)["first"].set(5), col(Thing.span)["last"].set(9)
    assert after(first, last, span=Span(first=1, last=2)) == Span(first=5, last=9)
    swap = col(Thing.ranks)["c"].set(3), col(Thing.ranks)["a"].remove()
    assert after(*swap, ranks={"a": 1, "b": 2}) == {"b": 2, "c": 3}
    with pytest.raises(InvalidFieldError, match=r"\.set\(3\) and .* would leave a value that does not fit"):
        after(swap[0], col(Thing.ranks)["d"].set(4), ranks={"a": 1})
