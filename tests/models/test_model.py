"""Instances: new or loaded, read and assigned, compared, shown and copied. None of this does I/O."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from annotated_types import Ge, MaxLen
from pydantic import BaseModel

from holdall import Database, Key, Model, SortKey, field
from holdall.core.values import Item
from holdall.errors import FrozenItemError, HoldallError, InvalidFieldError
from holdall.models.marks import FROZEN
from holdall.models.model import build_instance

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Address(BaseModel):
    street: str
    number: int = 1


class Order(Model):
    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: Annotated[int, Ge(0)] = 1
    note: str | None = None
    tags: Annotated[list[str], MaxLen(3)] = field(default_factory=list)
    extra: dict[str, Any] = {"a": [1]}  # noqa: RUF012 - a default, copied for each item
    address: Address = Address(street="Main")
    placed_at: datetime = field(default=NOON, read_only=True)


def new(**values: Any) -> Order:
    return Order(**{"customer": "ada", "number": 1, "product": "tea", **values})


STORED: Item = {
    "customer": {"S": "ada"},
    "number": {"N": "1"},
    "product": {"S": "tea"},
    "quantity": {"N": "5"},
    "tags": {"L": [{"S": "x"}]},
}


def load_stored(**attributes: Any) -> Order:
    """A loaded item, as if read outside a transaction."""
    item: Order = build_instance(Order, {**STORED, **attributes}, FROZEN, None)
    return item


# --- new instances --------------------------------------------------------------------------------------


def test_an_instance_has_its_values_and_the_defaults_of_the_rest() -> None:
    order = new(quantity=2)
    assert (order.customer, order.number, order.product, order.quantity) == ("ada", 1, "tea", 2)
    assert (order.note, order.tags, order.extra, order.placed_at) == (None, [], {"a": [1]}, NOON)
    assert order.is_new


def test_a_detached_instance_can_be_changed() -> None:
    order = new()
    order.quantity = 7
    order.note = "soon"
    order.note = None
    assert (order.quantity, order.note) == (7, None)


def test_defaults_are_copied_for_each_item() -> None:
    one, two = new(), new()
    one.extra["a"].append(2)
    one.tags.append("x")
    one.address.number = 9
    assert (two.extra, two.tags, two.address.number) == ({"a": [1]}, [], 1)
    assert (new().extra, new().address) == ({"a": [1]}, Address(street="Main"))


def test_a_default_factory_is_called_for_each_item_and_its_value_checked() -> None:
    values = iter([1, 2, "three"])

    class Thing(Model):
        x: int = field(default_factory=lambda: next(values))

    assert (Thing().x, Thing().x) == (1, 2)
    with pytest.raises(InvalidFieldError, match=r"^Thing\.x: "):
        Thing()


def test_none_for_a_field_with_a_default_that_may_be_none_is_none() -> None:
    class Thing(Model):
        x: int | None = 3

    assert (Thing().x, Thing(x=None).x) == (3, None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"quantity": "1"}, r"^Order\.quantity: Input should be a valid integer \(got '1'\)"),
        ({"quantity": -1}, r"^Order\.quantity: Input should be greater than or equal to 0 \(got -1\)"),
        ({"quantity": None}, r"^Order\.quantity: "),
        ({"tags": ["x", 1]}, r"^Order\.tags: \[1\]: Input should be a valid string \(got 1\)"),
        ({"address": {"street": "Main", "number": "x"}}, r"^Order\.address: number: "),
        ({"customer": 5}, r"^Order\.customer: "),
        (
            {"quantitty": 5},
            r"^Order\.quantitty: the model has no such field\nhint: did you mean 'quantity'\?",
        ),
        ({"zzz": 5}, r"^Order\.zzz: the model has no such field\nhint: the fields are: customer, number, "),
        ({"_stored": {}}, r"^Order\._stored: the model has no such field"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message):
        new(**values)


def test_the_error_names_every_missing_value() -> None:
    with pytest.raises(
        InvalidFieldError, match=r"^Order\.customer: the value is missing \(also missing: number, product\)$"
    ):
        Order()  # type: ignore[call-arg]
    with pytest.raises(InvalidFieldError, match=r"^Order\.product: the value is missing$"):
        Order(customer="ada", number=1)  # type: ignore[call-arg]


def test_positional_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        Order("ada", 1, "tea")  # type: ignore[call-arg]


def test_an_error_has_the_model_the_field_and_the_problem() -> None:
    with pytest.raises(InvalidFieldError) as caught:
        new(quantity="1")
    error = caught.value
    assert (error.model, error.field, error.stored) == ("Order", "quantity", None)
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# --- assignment -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1", -1, 1.5, True, None, [1]])
def test_a_failed_assignment_changes_nothing(value: Any) -> None:
    order = new(quantity=4)
    with pytest.raises(InvalidFieldError, match=r"^Order\.quantity: "):
        order.quantity = value
    assert order.quantity == 4


def test_a_misspelt_assignment_is_refused_with_a_suggestion() -> None:
    order = new()
    with pytest.raises(InvalidFieldError, match=r"^Order\.quanttiy: .*\nhint: did you mean 'quantity'\?"):
        setattr(order, "quanttiy", 3)  # noqa: B010 - a type checker would find it
    assert not hasattr(order, "quanttiy")


def test_a_misspelt_read_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="quanttiy"):
        new().quanttiy  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("customer", "bob", "it is part of the key, so it cannot be changed"),
        ("number", 2, "it is part of the key, so it cannot be changed"),
        ("placed_at", NOON, "it is read-only"),
    ],
)
def test_keys_and_read_only_fields_cannot_be_assigned(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=rf"^Order\.{name}: {message}$"):
        setattr(new(), name, value)


@pytest.mark.parametrize("name", ["quantity", "note", "customer", "nothing"])
def test_a_field_cannot_be_deleted(name: str) -> None:
    with pytest.raises(InvalidFieldError, match=rf"^Order\.{name}: a field cannot be deleted"):
        delattr(new(), name)


@pytest.mark.parametrize("name", ["shout", "is_new", "key", "_schema", "to_dict"])
def test_only_fields_can_be_assigned(name: str) -> None:
    with pytest.raises((InvalidFieldError, AttributeError)):
        setattr(new(), name, 1)


def test_a_value_is_converted_to_its_type_or_refused() -> None:
    order = new(address={"street": "Side"})
    assert order.address == Address(street="Side")
    tags = ("x",)
    with pytest.raises(InvalidFieldError, match=r"^Order\.tags: "):
        order.tags = tags  # type: ignore[assignment]


def test_an_assigned_list_is_not_shared_with_the_caller() -> None:
    tags = ["x"]
    order = new(tags=tags)
    tags.append("y")
    assert order.tags == ["x"]


def test_a_change_inside_a_value_is_caught_by_validate_and_at_commit() -> None:
    order = new()
    order.tags.extend(["a", "b", "c", "d"])
    with pytest.raises(InvalidFieldError, match=r"^Order\.tags: "):
        order.field("tags").validate()
    with Database("memory:") as db:
        with pytest.raises(InvalidFieldError, match=r"^Order\.tags: "), db.transaction() as tx:
            tx.create(order)
        assert db.get(Order, customer="ada", number=1) is None


def test_a_change_inside_a_loaded_value_is_caught_at_commit() -> None:
    with Database("memory:") as db:
        db.run(lambda tx: tx.create(new()))
        with pytest.raises(InvalidFieldError, match=r"^Order\.address: number: "), db.transaction() as tx:
            tx.get_one(Order, customer="ada", number=1).address.number = "nine"  # type: ignore[assignment]
        assert db.get_one(Order, customer="ada", number=1).address.number == 1


def test_a_read_only_field_changed_in_place_is_caught_at_commit() -> None:
    class Thing(Model):
        k: Key[str]
        fixed: list[int] = field(default_factory=list, read_only=True)

    with Database("memory:") as db:
        db.run(lambda tx: tx.create(Thing, k="a"))
        with (
            pytest.raises(InvalidFieldError, match=r"^Thing\.fixed: it is read-only"),
            db.transaction() as tx,
        ):
            tx.get_one(Thing, "a").fixed.append(1)
        assert db.get_one(Thing, "a").fixed == []


# --- loaded items ---------------------------------------------------------------------------------------


def test_a_loaded_item_decodes_a_field_when_it_is_read() -> None:
    order = load_stored()
    assert vars(order) == {}
    assert order.quantity == 5
    assert vars(order) == {"quantity": 5}
    assert not order.is_new


def test_a_later_read_gives_the_same_object() -> None:
    order = load_stored()
    assert order.tags is order.tags


def test_a_missing_attribute_reads_as_none_or_the_default() -> None:
    order = load_stored()
    assert (order.note, order.extra, order.address, order.placed_at) == (
        None,
        {"a": [1]},
        Address(street="Main"),
        NOON,
    )
    order.extra["b"] = 1
    assert load_stored().extra == {"a": [1]}


def test_a_missing_attribute_of_a_field_that_may_be_none_is_none_whatever_the_default() -> None:
    class Thing(Model):
        k: Key[str]
        x: int | None = 3

    item: Thing = build_instance(Thing, {"k": {"S": "a"}}, FROZEN, None)
    assert item.x is None


def test_a_stored_null_is_none_where_none_is_allowed() -> None:
    assert load_stored(note={"NULL": True}).note is None
    with pytest.raises(InvalidFieldError, match=r"^Order\.quantity: the stored value"):
        load_stored(quantity={"NULL": True}).quantity  # noqa: B018


def test_a_missing_attribute_without_a_default_fails_when_it_is_read() -> None:
    order: Order = build_instance(Order, {"customer": {"S": "ada"}, "number": {"N": "1"}}, FROZEN, None)
    assert order.quantity == 1
    assert "product" not in order.to_dict()
    assert "product" not in repr(order)
    with pytest.raises(InvalidFieldError, match=r"^Order\.product: it has no value"):
        order.product  # noqa: B018


def test_a_stored_value_that_does_not_fit_fails_only_when_it_is_read_and_is_shown_raw() -> None:
    order = load_stored(quantity={"S": "many"})
    assert order.product == "tea"
    with pytest.raises(
        InvalidFieldError, match=r"^Order\.quantity: the stored value of .* does not fit.*\{'S': 'many'\}"
    ) as caught:
        order.quantity  # noqa: B018
    assert caught.value.stored == {"S": "many"}
    assert "quantity=<unreadable>" in repr(order)


def test_a_stored_value_out_of_bounds_does_not_fit_either() -> None:
    with pytest.raises(InvalidFieldError, match=r"^Order\.quantity: the stored value"):
        load_stored(quantity={"N": "-1"}).quantity  # noqa: B018


def test_attributes_without_a_field_are_ignored() -> None:
    assert "colour" not in load_stored(colour={"S": "red"}).to_dict()


def test_an_item_that_was_read_outside_a_transaction_is_frozen() -> None:
    order = load_stored()
    with pytest.raises(FrozenItemError, match="was read outside a transaction"):
        order.quantity = 1
    with pytest.raises(InvalidFieldError, match="valid integer"):  # the type is checked first
        order.quantity = "x"  # type: ignore[assignment]
    assert order.quantity == 5


# --- to_dict --------------------------------------------------------------------------------------------


def test_to_dict_has_every_value_and_marks_nothing_as_read() -> None:
    order = load_stored()
    found = order.to_dict()
    assert found == {
        "customer": "ada",
        "number": 1,
        "product": "tea",
        "quantity": 5,
        "note": None,
        "tags": ["x"],
        "extra": {"a": [1]},
        "address": Address(street="Main"),
        "placed_at": NOON,
    }
    assert vars(order) == {}


def test_dict_of_an_item_is_its_to_dict() -> None:
    order = load_stored()
    assert dict(order) == order.to_dict()
    assert vars(order) == {}


def test_changing_what_to_dict_returned_does_not_change_the_item() -> None:
    order = new()
    found = order.to_dict()
    found["extra"]["a"].append(2)
    found["tags"].append("x")
    assert (order.extra, order.tags) == ({"a": [1]}, [])


def test_initial_values_are_those_that_were_loaded() -> None:
    order: Order = build_instance(Order, STORED, None, None)
    order.quantity = 9
    order.tags.append("y")
    order.note = "late"
    assert {name: order.to_dict()[name] for name in ("quantity", "tags", "note")} == {
        "quantity": 9,
        "tags": ["x", "y"],
        "note": "late",
    }
    initial = order.to_dict(initial=True)
    assert {name: initial[name] for name in ("quantity", "tags", "note")} == {
        "quantity": 5,
        "tags": ["x"],
        "note": None,
    }


def test_a_new_item_has_no_initial_values() -> None:
    assert new().to_dict(initial=True) == {}


# --- equality, repr, copies -----------------------------------------------------------------------------


def test_items_are_equal_by_class_and_key() -> None:
    class Special(Order):
        pass

    assert new() == new(quantity=9)
    assert hash(new()) == hash(new(quantity=9))
    assert new() == load_stored()
    assert new() != new(number=2)
    assert new() != Special(customer="ada", number=1, product="tea")
    assert new() != "ada"
    assert len({new(), new(quantity=2), new(number=2)}) == 2


def test_comparing_marks_nothing_as_read() -> None:
    order = load_stored()
    assert order == load_stored()
    assert vars(order) == {}


def test_repr_shows_every_value_and_marks_nothing_as_read() -> None:
    class Thing(Model):
        k: Key[str]
        x: int = 1

    item: Thing = build_instance(Thing, {"k": {"S": "a"}, "x": {"N": "2"}}, FROZEN, None)
    assert repr(item) == "Thing(k='a', x=2)"
    assert vars(item) == {}
    assert repr(Thing(k="b")) == "Thing(k='b', x=1)"


def test_a_long_repr_is_cut() -> None:
    text = repr(new(product="x" * 5000))
    assert len(text) < 400
    assert text.endswith("…)")


def test_a_pickle_is_a_detached_item_with_the_same_values() -> None:
    for order in (new(tags=["x"]), load_stored()):
        again = pickle.loads(pickle.dumps(order))
        assert type(again) is Order
        assert again == order
        assert again.to_dict() == order.to_dict()
        assert again.is_new == order.is_new
        again.quantity = 3
        assert order.quantity != 3


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_detached_and_shares_nothing(copied: Any) -> None:
    order = load_stored()
    assert order.tags == ["x"]
    twin = copied(order)
    twin.quantity = 3
    twin.tags.append("y")
    assert (order.quantity, order.tags) == (5, ["x"])
    assert (twin.quantity, twin.tags, twin == order) == (3, ["x", "y"], True)


def test_every_error_of_a_model_is_ours() -> None:
    with pytest.raises(HoldallError) as caught:
        new(quantity=-1)
    assert caught.value.code == "invalid-field"
    assert not caught.value.retryable
