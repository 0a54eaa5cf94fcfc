"""Steps on one item become one action with the conditions of all; steps that cannot be combined are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from holdall.core.expressions import Add, ListAppend, Plus, Set, Value
from holdall.core.expressions.evaluation import holds
from holdall.core.requests import ConditionCheck, DeleteItem, PutItem, UpdateItem
from holdall.errors import InvalidRequestError
from holdall.tables.commit.change import Change
from holdall.tables.commit.plan import Step
from holdall.tables.layout import Address
from holdall.tables.record import Record
from holdall.tables.record_column import number, raw, text, texts


class Shelf(Record, type="test.MergedShelf"):
    name = text("name", None)
    count = number("count", 0)
    tags = texts("tags")
    odd = raw("odd")


KEY = {"pk": {"S": "shelf"}, "sk": {"S": "#"}}
SHELF = Shelf(Address("holdall", KEY, KEY))
ONE = Value({"N": "1"})
STOCKED, NAMED = Shelf.count.at_least(3), Shelf.name.equals("a")
NOTHING: Any = None  # a change needs no context before it is sent

Write: TypeAlias = Callable[[Change], object]


def merge(*writes: Write) -> Step:
    """The one step that several writes become."""
    change = Change(NOTHING)
    for write in writes:
        write(change)
    (step,) = change.plan.steps
    return step


def update(*actions: Any, **options: Any) -> Write:
    return lambda change: change.update(SHELF, *actions, **options)


def require(*conditions: Any, **options: Any) -> Write:
    return lambda change: change.require(SHELF, *conditions, **options)


def put(*expect: Any) -> Write:
    return lambda change: change.put(Shelf.new(SHELF.address, Shelf.name.set("a")), expect=expect)


def delete(*expect: Any) -> Write:
    return lambda change: change.delete(SHELF, expect=expect)


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (Shelf.count.add(1), Shelf.count.add(2), [Shelf.count.add(3)]),
        (Shelf.count.add(1), Shelf.count.add(1), [Shelf.count.add(2)]),
        (Shelf.tags.add(["a", "b"]), Shelf.tags.add(["b", "c"]), [Shelf.tags.add(["a", "b", "c"])]),
        (Shelf.tags.discard(["a"]), Shelf.tags.discard(["a"]), [Shelf.tags.discard(["a"])]),
        (Shelf.name.set("a"), Shelf.name.set("a"), [Shelf.name.set("a")]),
        (Shelf.name.set_if_absent("a"), Shelf.name.set_if_absent("a"), [Shelf.name.set_if_absent("a")]),
        (Shelf.name.set("a"), Shelf.count.add(1), [Shelf.name.set("a"), Shelf.count.add(1)]),
    ],
)
def test_updates_are_joined_and_additions_are_summed(first: Any, second: Any, merged: list[Any]) -> None:
    action = merge(update(first), update(second)).action
    assert isinstance(action, UpdateItem)
    assert list(action.update.actions) == merged


@pytest.mark.parametrize(
    "writes",
    [
        (update(Shelf.name.set("a")), update(Shelf.name.set("b"))),
        (update(Shelf.count.set(1)), update(Shelf.count.add(1))),
        (update(Shelf.tags.add(["a"])), update(Shelf.tags.discard(["a"]))),
        (update(Add(Shelf.odd.path, ONE)), update(Add(Shelf.odd.path, Value({"NS": ["1"]})))),
        [update(Set(Shelf.count.path, Plus(Shelf.count.path, ONE)))] * 2,
        [update(Set(Shelf.odd.path, ListAppend(Shelf.odd.path, Value({"L": []}))))] * 2,
        (put(), put()),
        (put(), update(Shelf.count.add(1))),
        (update(Shelf.count.add(1)), delete()),
        (delete(), put()),
    ],
)
def test_steps_that_cannot_be_combined_are_refused(writes: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"changes .* twice"):
        merge(*writes)


@pytest.mark.parametrize(
    ("writes", "kind"),
    [
        ((require(STOCKED), require(NAMED)), ConditionCheck),
        ((require(STOCKED), update(Shelf.tags.add(["a"]), expect=[NAMED])), UpdateItem),
        ((update(Shelf.tags.add(["a"]), expect=[STOCKED]), require(NAMED)), UpdateItem),
        ((update(Shelf.tags.add(["a"]), expect=[NAMED]), update(expect=[STOCKED])), UpdateItem),
        ((require(STOCKED), put(NAMED)), PutItem),
        ((require(STOCKED), delete(NAMED)), DeleteItem),
    ],
)
def test_the_action_has_the_conditions_of_all_steps(writes: Any, kind: type) -> None:
    step = merge(*writes)
    assert type(step.action) is kind
    assert step.writes is (kind is not ConditionCheck)
    assert step.action.condition is not None
    for name, count, passes in (("a", "3", True), ("b", "3", False), ("a", "2", False)):
        assert holds(step.action.condition, {**KEY, "name": {"S": name}, "count": {"N": count}}) is passes


@pytest.mark.parametrize("order", [1, -1])
def test_the_action_has_the_label_or_the_refusal_of_either_step(order: int) -> None:
    plain = update(Shelf.count.add(1), expect=[NAMED])
    step = merge(*(update(Shelf.count.add(1), expect=[STOCKED], label="stock"), plain)[::order])
    assert (step.label, step.refuse) == ("stock", None)
    assert step.action.item_on_failure
    error = LookupError("too few")
    step = merge(*(require(STOCKED, refused=lambda found: error), plain)[::order])
    assert step.action.item_on_failure
    assert step.refuse is not None
    assert step.refuse({**KEY, "name": {"S": "a"}}) is error
    assert step.refuse({**KEY, "count": {"N": "3"}}) is None, "the other step's condition failed"
    assert not merge(plain, plain).action.item_on_failure
