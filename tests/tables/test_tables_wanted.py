"""What models need from tables, and the tables that are planned for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables_rig import settings

from holdall import Index, Key, Model, SortKey, field
from holdall.core import IndexSchema, KeyAttribute, Projection, TableSchema
from holdall.core.schema import TableNeeds
from holdall.errors import ConfigurationError
from holdall.models.needs import find_models
from holdall.tables.demand import WantedIndex, needs_of, plan_tables


class Plain(Model):
    name: str


class Order(Model, ttl="until", indexes=[Index("by_product", key=["product"], sort_key=["number"])]):
    customer: Key[str]
    number: SortKey[int]
    product: str
    until: datetime | None = None


class Item(
    Model,
    name="Thing",
    indexes=[Index("by_colour", ["colour"], slot=2), Index("by_size", ["size"], slot=1)],
):
    colour: str
    size: int


class Payout(
    Model,
    table="Payouts",
    ttl="gone",
    indexes=[
        Index("byAdmin", ["admin"], ["amount"], include=["note"]),
        Index("byBoth", ["player", "admin"]),
    ],
):
    player: Key[str]
    turn: SortKey[int]
    admin: str
    amount: float
    note: str = field(name="remark")
    gone: int = field(name="expiresAt")


class Base(Model, abstract=True):
    number: Key[int]


class Numbered(Base, table="Numbered"):
    pass


# --- what one model needs ---


def test_a_model_without_indexes_needs_only_the_databases_table() -> None:
    assert Plain.__table_needs__() == TableNeeds(None, None, None, (), None, "Plain")


def test_a_model_in_the_databases_table_needs_the_index_of_its_slot_and_expiry_by_ttl() -> None:
    gsi1 = IndexSchema("gsi1", KeyAttribute("gsi1_pk"), KeyAttribute("gsi1_sk"))
    assert Order.__table_needs__() == TableNeeds(None, None, None, (gsi1,), "_ttl", "Order")


def test_needs_have_the_name_that_the_model_has_in_the_store() -> None:
    needs = Item.__table_needs__()
    assert needs.model == "Thing"
    assert [index.name for index in needs.indexes] == ["gsi2", "gsi1"]


def test_a_model_with_its_own_table_needs_its_keys_its_indexes_and_expiry_by_the_field_itself() -> None:
    assert Payout.__table_needs__() == TableNeeds(
        "Payouts",
        KeyAttribute("_id"),
        KeyAttribute("_sk", "N"),
        (
            IndexSchema(
                "byAdmin",
                KeyAttribute("admin"),
                KeyAttribute("amount", "N"),
                Projection("INCLUDE", ("remark",)),
            ),
            IndexSchema("byBoth", KeyAttribute("_c_admin_player")),
        ),
        "expiresAt",
        "Payout",
    )


def test_a_key_of_one_number_is_stored_as_a_number() -> None:
    needs = Numbered.__table_needs__()
    assert (needs.partition, needs.sort, needs.ttl) == (KeyAttribute("_id", "N"), None, None)


@pytest.mark.parametrize("model", [Base, Model])
def test_an_abstract_model_has_no_needs(model: type[Model]) -> None:
    with pytest.raises(TypeError, match=f"{model.__name__} is abstract"):
        needs_of([model])


def test_a_class_that_is_not_a_model_is_refused_by_name() -> None:
    stranger: Any = int
    with pytest.raises(TypeError, match="<class 'int'> is not a model"):
        needs_of([stranger])


def test_a_model_that_is_passed_twice_counts_once() -> None:
    assert needs_of([Order, Plain, Order]) == needs_of([Order, Plain])


def test_the_models_of_a_module_are_the_concrete_ones_that_it_defines() -> None:
    names = {"Model": Model, "Base": Base, "Numbered": Numbered, "again": Numbered, "Order": Order, "x": 1}
    assert find_models(names, __name__) == [Numbered, Order]
    assert find_models(names, "elsewhere") == []


# --- tables ---


def test_without_models_only_the_databases_table_is_planned() -> None:
    (table,) = plan_tables(settings(), ())
    assert table.schema == TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"))
    assert (table.own, table.models, table.ttl, table.expiring) == (None, (), "_ttl", ())


def test_models_in_the_databases_table_share_its_indexes() -> None:
    (table,) = plan_tables(settings(), needs_of([Plain, Order, Item]))
    assert [index.name for index in table.schema.indexes] == ["gsi1", "gsi2"]
    assert {wanted.index.name: wanted.models for wanted in table.indexes} == {
        "gsi1": ("Order", "Thing"),
        "gsi2": ("Thing",),
    }
    assert (table.models, table.expiring) == (("Plain", "Order", "Thing"), ("Order",))


def test_own_tables_of_models_follow_the_databases_table_and_have_the_prefix() -> None:
    first, second, third = plan_tables(settings(table_prefix="test-"), needs_of([Payout, Plain, Numbered]))
    assert (first.name, first.models) == ("app", ("Plain",))
    assert (second.name, second.own, second.ttl, second.expiring) == (
        "test-Payouts",
        "Payouts",
        "expiresAt",
        ("Payout",),
    )
    assert (third.name, third.ttl) == ("test-Numbered", None)


def needs(model: str, **given: Any) -> TableNeeds:
    found = {"table": "Own", "partition": KeyAttribute("_id"), "sort": None, "indexes": (), "ttl": None}
    return TableNeeds(**{**found, **given}, model=model)


def index(*names: str, kind: Any = None, key: str = "a") -> IndexSchema:
    return IndexSchema(
        "byName", KeyAttribute(key), None, Projection(kind or ("INCLUDE" if names else "KEYS_ONLY"), names)
    )


projections = st.one_of(
    st.just(Projection()),
    st.just(Projection("KEYS_ONLY")),
    st.lists(st.sampled_from("abcd"), min_size=1, unique=True).map(lambda n: Projection("INCLUDE", tuple(n))),
)


@given(projections, projections)
def test_a_joined_projection_covers_both_and_nothing_else(one: Projection, other: Projection) -> None:
    joined = one.joined(other)
    assert joined.covers(one)
    assert joined.covers(other)
    if joined.kind == "INCLUDE":
        assert {*joined.names} == {*one.names, *other.names}
    else:
        assert joined in (one, other)


@given(projections, projections)
def test_a_projection_covers_another_if_it_holds_all_its_attributes(
    one: Projection, other: Projection
) -> None:
    def list_held(projection: Projection) -> set[str]:
        return {*"abcd", "the rest"} if projection.kind == "ALL" else {*projection.names}

    assert one.covers(other) == (list_held(one) >= list_held(other))


def test_an_index_that_two_models_share_holds_what_either_needs() -> None:
    first, second = needs("One", indexes=(index("x"),)), needs("Two", indexes=(index("y"),))
    (_, table) = plan_tables(settings(), [first, second])
    assert table.indexes == (WantedIndex(index("x", "y"), ("One", "Two")),)
    assert table.schema.indexes == (index("x", "y"),)


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"partition": KeyAttribute("_id", "N")}, "One and Two need different keys"),
        ({"sort": KeyAttribute("_sk")}, "One and Two need different keys"),
        ({"ttl": "later"}, "One and Two expire by different attributes"),
        ({"indexes": (index(key="b"),)}, "One and Two need different keys of the index byName"),
    ],
)
def test_conflicting_models_of_one_table_are_refused(other: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"table Own: {problem}"):
        plan_tables(settings(), [needs("One", ttl="soon", indexes=(index(),)), needs("Two", **other)])


def test_models_in_the_databases_table_cannot_have_a_numeric_sort_key() -> None:
    with pytest.raises(ConfigurationError, match=r"mode B .* so it cannot hold Order"):
        plan_tables(settings(), needs_of([Order, Payout]), "B")
    database, _ = plan_tables(settings(), needs_of([Payout]), "B")
    assert database.schema.sort == KeyAttribute("sk", "N")


def test_a_models_own_table_cannot_be_the_databases_table() -> None:
    with pytest.raises(ConfigurationError, match="Payout cannot have Payouts as its own table"):
        plan_tables(settings(table_name="Payouts"), needs_of([Payout]))


def test_a_table_that_dynamodb_would_refuse_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name of a table"):
        plan_tables(settings(table_prefix="x" * 250), needs_of([Payout]))
    short = IndexSchema("by", KeyAttribute("a"))
    with pytest.raises(ConfigurationError, match="'by' cannot be the name"):
        plan_tables(settings(), [needs("One", indexes=(short,))])
