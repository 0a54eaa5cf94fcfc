"""Marks: what a keeper of items is told, and when."""

from __future__ import annotations

from typing import Any

import pytest

from holdall import Key, Model, SortKey, field
from holdall.core.values import Item
from holdall.errors import FrozenItemError
from holdall.models.marks import FROZEN, Marks
from holdall.models.model import build_instance


class Thing(Model):
    k: Key[str]
    s: SortKey[int]
    x: int = 1
    words: list[str] = ["a"]  # noqa: RUF012 - a default, copied for each item
    maybe: str | None = None
    fixed: int = field(default=1, read_only=True)

    def sum(self) -> int:
        return self.x + self.fixed


class Keeper:
    """Keeps items, says what it was told, and may refuse changes."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.told: list[str] = []
        self.refuses = refuses

    def touch(self, item: Model) -> None:
        self.told.append("touched")

    def allow_change(self, item: Model) -> None:
        if self.refuses:
            raise FrozenItemError("no")
        self.told.append("change")


STORED: Item = {"k": {"S": "a"}, "s": {"N": "1"}, "x": {"N": "5"}}


def build_kept(keeper: Keeper, **attributes: Any) -> tuple[Thing, Marks]:
    marks = Marks(keeper)
    return build_instance(Thing, {**STORED, **attributes}, marks, None), marks


def test_the_first_look_at_a_field_is_told_once() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    assert (keeper.told, marks.held) == ([], False)
    assert item.sum() == 6
    assert item.x == 5
    assert (keeper.told, marks.held) == (["touched"], True)
    assert {*vars(item)} == {"x", "fixed"}


def test_reading_the_key_is_no_look() -> None:
    keeper = Keeper()
    item, _ = build_kept(keeper)
    assert (item.k, item.s, item.key.components) == ("a", 1, {"k": "a", "s": 1})
    assert keeper.told == []


def test_showing_comparing_and_peeking_are_no_looks() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    shown = repr(item), item.to_dict(), item.to_dict(initial=True), hash(item), item == Thing(k="a", s=1)
    assert shown[-1]
    assert item.field("x").changed is False
    item.field("words").validate()
    assert (keeper.told, vars(item), marks.shown) == ([], {}, {})


def test_an_assignment_is_told_before_it_happens_and_marked() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    item.x = 7
    item.maybe = None
    assert keeper.told == ["change", "touched", "change"]
    assert marks.written == {"x", "maybe"}
    assert vars(item) == {"x": 7, "maybe": None}


def test_a_refused_change_leaves_no_mark() -> None:
    keeper = Keeper(refuses=True)
    item, marks = build_kept(keeper)
    with pytest.raises(FrozenItemError):
        item.x = 7
    with pytest.raises(FrozenItemError):
        item.field("x").increment_by(1)
    assert (vars(item), marks.written, marks.increments) == ({}, frozenset(), {})


def test_a_value_that_does_not_fit_is_not_even_told() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    with pytest.raises(ValueError, match=r"Thing\.x"):
        item.x = "seven"  # type: ignore[assignment]
    assert (keeper.told, marks.written, vars(item)) == ([], frozenset(), {})


def test_a_default_that_can_be_changed_in_place_is_remembered_as_it_was_shown() -> None:
    item, marks = build_kept(Keeper())
    assert item.words == ["a"]
    item.words.append("b")
    assert item.maybe is None
    assert marks.shown == {"words": {"L": [{"S": "a"}]}}


def test_a_stored_value_is_not_remembered_twice() -> None:
    item, marks = build_kept(Keeper(), words={"L": []})
    assert item.words == []
    assert marks.shown == {}


def test_a_frozen_item_can_be_read_and_not_changed() -> None:
    item: Thing = build_instance(Thing, STORED, FROZEN, None)
    assert (item.x, item.words, item.sum()) == (5, ["a"], 6)
    with pytest.raises(FrozenItemError, match=r"^Thing\(k='a', s=1\) was read outside a transaction"):
        item.x = 7
    assert item.x == 5
    assert (FROZEN.written, FROZEN.increments) == (frozenset(), {})
