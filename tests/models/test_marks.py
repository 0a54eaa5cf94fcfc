"""Marks: which calls the keeper of an item receives, and when."""

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
    """A keeper that records its calls and can refuse changes."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.calls: list[str] = []
        self.refuses = refuses

    def touch(self, item: Model) -> None:
        self.calls.append("touched")

    def allow_change(self, item: Model) -> None:
        if self.refuses:
            raise FrozenItemError("no")
        self.calls.append("change")


STORED: Item = {"k": {"S": "a"}, "s": {"N": "1"}, "x": {"N": "5"}}


def build_kept(keeper: Keeper, **attributes: Any) -> tuple[Thing, Marks]:
    marks = Marks(keeper)
    return build_instance(Thing, {**STORED, **attributes}, marks, None), marks


def test_the_keeper_is_notified_only_of_the_first_read() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    assert (keeper.calls, marks.held) == ([], False)
    assert item.sum() == 6
    assert item.x == 5
    assert (keeper.calls, marks.held) == (["touched"], True)
    assert {*vars(item)} == {"x", "fixed"}


def test_reading_the_key_does_not_notify_the_keeper() -> None:
    keeper = Keeper()
    item, _ = build_kept(keeper)
    assert (item.k, item.s, item.key.components) == ("a", 1, {"k": "a", "s": 1})
    assert keeper.calls == []


def test_showing_comparing_and_validating_do_not_notify_the_keeper() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    shown = repr(item), item.to_dict(), item.to_dict(initial=True), hash(item), item == Thing(k="a", s=1)
    assert shown[-1]
    assert item.field("x").changed is False
    item.field("words").validate()
    assert (keeper.calls, vars(item), marks.shown) == ([], {}, {})


def test_the_keeper_is_asked_before_an_assignment_which_is_then_marked() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    item.x = 7
    item.maybe = None
    assert keeper.calls == ["change", "touched", "change"]
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


def test_the_keeper_is_not_asked_about_a_value_that_does_not_fit() -> None:
    keeper = Keeper()
    item, marks = build_kept(keeper)
    with pytest.raises(ValueError, match=r"Thing\.x"):
        item.x = "seven"  # type: ignore[assignment]
    assert (keeper.calls, marks.written, vars(item)) == ([], frozenset(), {})


def test_a_mutable_default_is_remembered_as_it_was_first_read() -> None:
    item, marks = build_kept(Keeper())
    assert item.words == ["a"]
    item.words.append("b")
    assert item.maybe is None
    assert marks.shown == {"words": {"L": [{"S": "a"}]}}


def test_a_stored_value_is_not_remembered_twice() -> None:
    item, marks = build_kept(Keeper(), words={"L": []})
    assert item.words == []
    assert marks.shown == {}


def test_a_frozen_item_can_be_read_but_not_changed() -> None:
    item: Thing = build_instance(Thing, STORED, FROZEN, None)
    assert (item.x, item.words, item.sum()) == (5, ["a"], 6)
    with pytest.raises(FrozenItemError, match=r"^Thing\(k='a', s=1\) was read outside a transaction"):
        item.x = 7
    assert item.x == 5
    assert (FROZEN.written, FROZEN.increments) == (frozenset(), {})
