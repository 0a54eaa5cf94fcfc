"""Handles: what a caller can do with a field beyond reading and assigning it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest
from annotated_types import Ge, Le

from holdall import Key, Model, field
from holdall.errors import FrozenItemError, InvalidFieldError
from holdall.models.marks import FROZEN, Marks
from holdall.models.model import build_instance


class Count(Model):
    name: Key[str]
    total: Annotated[int, Ge(0), Le(10)] = 1
    share: float = 0.5
    price: Decimal = Decimal("1.10")
    maybe: int | None = None
    fixed: int = field(default=1, read_only=True)
    mail: int = field(default=0, unique=True)
    words: list[str] = field(default_factory=list)
    at: datetime = datetime(2026, 1, 31, tzinfo=UTC)


class Keeper:
    """A keeper that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def touch(self, item: Model) -> None:
        self.calls.append("touched")

    def allow_change(self, item: Model) -> None:
        self.calls.append("change")


def build_kept(**attributes: Any) -> Count:
    """An item that belongs to a keeper."""
    marks = Marks(Keeper())
    item: Count = build_instance(Count, {"name": {"S": "a"}, "total": {"N": "5"}, **attributes}, marks, None)
    return item


def marks_of(item: Model) -> Marks:
    assert isinstance(item._marks, Marks)
    return item._marks


def test_a_handle_for_a_misspelt_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(
        InvalidFieldError, match=r"^Count\.totl: the model has no such field\nhint: did you mean 'total'\?"
    ):
        Count(name="a").field("totl")


# --- increments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "amount", "total"),
    [
        ("total", 3, 4),
        ("total", -1, 0),
        ("share", 1, 1.5),
        ("share", 0.25, 0.75),
        ("share", Decimal("0.5"), 1.0),
        ("price", 1, Decimal("2.10")),
        ("price", Decimal("0.05"), Decimal("1.15")),
        ("price", 0.1, Decimal("1.20")),  # by the float's shortest text, not its binary value
    ],
)
def test_an_increment_of_a_detached_item_is_an_assignment_of_the_sum(
    name: str, amount: Any, total: Any
) -> None:
    item = Count(name="a")
    item.field(name).increment_by(amount)
    value = getattr(item, name)
    assert value == total
    assert type(value) is type(total)


def test_an_increment_of_a_kept_item_is_marked_as_one_and_adds_up() -> None:
    item = build_kept()
    item.field("total").increment_by(2)
    item.field("total").increment_by(1)
    assert item.total == 8
    assert marks_of(item).increments == {"total": 3}
    assert marks_of(item).written == set()


def test_an_increment_notifies_the_keeper() -> None:
    item = build_kept()
    item.field("total").increment_by(2)
    keeper = marks_of(item).keeper
    assert isinstance(keeper, Keeper)
    assert keeper.calls == ["change", "touched"]


def test_an_assignment_absorbs_increments_before_and_after_it() -> None:
    item = build_kept()
    item.field("total").increment_by(2)
    item.total = 1
    item.field("total").increment_by(3)
    assert item.total == 4
    assert marks_of(item).increments == {}
    assert marks_of(item).written == {"total"}


def test_a_unique_field_is_assigned_rather_than_incremented() -> None:
    item = build_kept(mail={"N": "1"})
    item.field("mail").increment_by(1)
    assert item.mail == 2
    assert (marks_of(item).increments, marks_of(item).written) == ({}, frozenset({"mail"}))


@pytest.mark.parametrize("amount", [6, -6])
def test_an_increment_beyond_the_bounds_is_refused_and_changes_nothing(amount: int) -> None:
    for item in (build_kept(), Count(name="a", total=5)):
        with pytest.raises(InvalidFieldError, match=r"^Count\.total: "):
            item.field("total").increment_by(amount)
        assert item.total == 5
        assert item._marks is None or not marks_of(item).increments


@pytest.mark.parametrize(
    ("name", "amount", "message"),
    [
        ("words", 1, "it is not a number, so it cannot be incremented"),
        ("name", 1, "it is not a number, so it cannot be incremented"),
        ("at", 1, "it is not a number, so it cannot be incremented"),
        ("fixed", 1, "it cannot be changed"),
        ("maybe", 1, "it has no value to increment"),
        ("total", "1", "it can be incremented only by a number, not by '1'"),
        ("total", True, "it can be incremented only by a number, not by True"),
        ("total", None, "it can be incremented only by a number, not by None"),
        ("total", 0.5, "Input should be a valid integer"),
        ("share", float("nan"), ""),
        ("share", float("inf"), ""),
    ],
)
def test_an_impossible_increment_is_refused(name: str, amount: Any, message: str) -> None:
    for item in (Count(name="a"), build_kept()):
        before = item.to_dict()
        with pytest.raises(InvalidFieldError, match=rf"^Count\.{name}: {message}"):
            item.field(name).increment_by(amount)
        assert item.to_dict() == before


def test_a_frozen_item_cannot_be_incremented() -> None:
    item: Count = build_instance(Count, {"name": {"S": "a"}, "total": {"N": "5"}}, FROZEN, None)
    with pytest.raises(FrozenItemError):
        item.field("total").increment_by(1)
    assert item.total == 5


# --- inspection -----------------------------------------------------------------------------------------


def test_validate_checks_the_inside_of_a_value_and_marks_nothing() -> None:
    item = build_kept(words={"L": [{"S": "x"}]})
    item.field("words").validate()
    assert vars(item) == {}
    item.words.append(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidFieldError, match=r"^Count\.words: \[1\]: "):
        item.field("words").validate()


def test_validate_finds_a_stored_value_that_does_not_fit() -> None:
    with pytest.raises(InvalidFieldError, match=r"^Count\.total: the stored value"):
        build_kept(total={"N": "11"}).field("total").validate()


def test_a_field_is_accessed_once_it_is_read_or_written() -> None:
    item = build_kept()
    assert not item.field("total").accessed
    assert item.total == 5
    assert item.field("total").accessed
    assert not item.field("share").accessed
    item.share = 1.0
    assert item.field("share").accessed


def test_a_field_is_changed_if_its_value_differs_from_the_stored_one() -> None:
    item = build_kept(words={"L": [{"S": "x"}]})
    for name in ("total", "words", "share", "maybe"):
        assert not item.field(name).changed
    item.total = 5
    item.words.append("y")
    item.share = 0.5
    assert not item.field("total").changed
    assert item.field("words").changed
    assert not item.field("share").changed
    item.share = 0.75
    item.maybe = 1
    assert item.field("share").changed
    assert item.field("maybe").changed


def test_reading_changed_marks_nothing() -> None:
    item = build_kept()
    assert not item.field("total").changed
    assert vars(item) == {}


def test_every_field_of_a_new_item_is_changed() -> None:
    assert Count(name="a").field("total").changed


def test_replacing_a_stored_value_that_does_not_fit_is_a_change() -> None:
    item = build_kept(total={"S": "five"})
    assert not item.field("total").changed
    item.total = 5
    assert item.field("total").changed
