"""The capacity that replies report: it follows DynamoDB's rules, so that embedded use predicts the bill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdall import Database
from holdall.core import (
    BatchGet,
    BatchWrite,
    Compare,
    ConditionCheck,
    CreateTable,
    DeleteItem,
    Exists,
    GetItem,
    IndexSchema,
    Item,
    KeyAttribute,
    KeyCondition,
    Projection,
    PutItem,
    Query,
    Remove,
    Scan,
    Set,
    TableSchema,
    TransactGet,
    TransactWrite,
    Update,
    UpdateItem,
    encode_item,
    item_size,
    path,
    value,
)
from holdall.errors import ConditionFailedError

KB = 1024
PLAIN = TableSchema("Plain", KeyAttribute("pk"), KeyAttribute("sk", "N"))
INDEXED = TableSchema(
    "Indexed",
    KeyAttribute("pk"),
    indexes=(
        IndexSchema("by_colour", KeyAttribute("colour")),
        IndexSchema("by_shape", KeyAttribute("shape"), projection=Projection("KEYS_ONLY")),
        IndexSchema("by_owner", KeyAttribute("owner"), projection=Projection("INCLUDE", ("price",))),
    ),
)


@pytest.fixture
def db() -> Iterator[Database]:
    with Database("memory:") as db:
        db.send(CreateTable(PLAIN))
        db.send(CreateTable(INDEXED))
        yield db


def make_sized(size: int, number: int = 1) -> Item:
    """Make an item of table Plain with this size in bytes."""
    item = encode_item({"pk": "p", "sk": number, "text": ""})
    return {**item, "text": {"S": "x" * (size - item_size(item))}}


def key(number: int = 1) -> Item:
    return encode_item({"pk": "p", "sk": number})


@pytest.mark.parametrize(
    ("size", "blocks"), [(100, 1), (4 * KB, 1), (4 * KB + 1, 2), (8 * KB, 2), (400 * KB, 100)]
)
def test_a_get_costs_half_a_unit_per_4_kb_and_a_consistent_one_twice_that(
    db: Database, size: int, blocks: int
) -> None:
    db.send(PutItem("Plain", make_sized(size)))
    assert db.send(GetItem("Plain", key())).capacity == blocks * 0.5
    assert db.send(GetItem("Plain", key(), consistent=True)).capacity == blocks
    assert db.send(GetItem("Plain", key(), projection=(path("sk"),))).capacity == blocks * 0.5


def test_a_get_of_a_missing_item_costs_as_much_as_a_small_one(db: Database) -> None:
    assert db.send(GetItem("Plain", key())).capacity == 0.5
    assert db.send(GetItem("Plain", key(), consistent=True)).capacity == 1


def test_a_batch_costs_the_sum_of_its_gets_each_rounded_up(db: Database) -> None:
    db.send(PutItem("Plain", make_sized(4 * KB + 1, 1)))
    db.send(PutItem("Plain", make_sized(100, 2)))
    reads = tuple(GetItem("Plain", key(number)) for number in (1, 2, 3))
    assert db.send(BatchGet(reads)).capacity == 1 + 0.5 + 0.5


@pytest.mark.parametrize("consistent", [False, True])
def test_a_transaction_reads_at_two_units_per_4_kb(db: Database, consistent: bool) -> None:
    db.send(PutItem("Plain", make_sized(4 * KB + 1, 1)))
    reads = tuple(GetItem("Plain", key(number), consistent=consistent) for number in (1, 2))
    assert db.send(TransactGet(reads)).capacity == 4 + 2


def test_the_sizes_of_a_querys_items_are_added_up_before_rounding(db: Database) -> None:
    for number in range(3):
        db.send(PutItem("Plain", make_sized(2000, number)))
    query = Query("Plain", KeyCondition("pk", {"S": "p"}))
    assert db.send(query).capacity == 1  # 6,000 bytes are two blocks, not three
    assert db.send(Query("Plain", query.key, consistent=True)).capacity == 2
    assert db.send(Query("Plain", query.key, limit=2)).capacity == 0.5
    assert db.send(Scan("Plain")).capacity == 1


def test_a_query_costs_the_items_that_it_reads_before_the_filter(db: Database) -> None:
    for number in range(3):
        db.send(PutItem("Plain", make_sized(2000, number)))
    nothing = Compare("=", path("text"), value("y"))
    page = db.send(Query("Plain", KeyCondition("pk", {"S": "p"}), filter=nothing))
    assert (page.count, page.scanned, page.capacity) == (0, 3, 1)
    assert db.send(Scan("Plain", filter=nothing, count_only=True)).capacity == 1


def test_an_empty_page_costs_half_a_unit(db: Database) -> None:
    assert db.send(Query("Plain", KeyCondition("pk", {"S": "p"}))).capacity == 0.5
    assert db.send(Scan("Plain", consistent=True)).capacity == 1


def test_reading_an_index_counts_only_what_it_holds(db: Database) -> None:
    for number in range(3):
        thing = {"pk": f"{number}", "shape": "round", "colour": "red", "text": "x" * 4 * KB}
        db.send(PutItem("Indexed", encode_item(thing)))
    assert db.send(Query("Indexed", KeyCondition("shape", {"S": "round"}), index="by_shape")).capacity == 0.5
    assert db.send(Query("Indexed", KeyCondition("colour", {"S": "red"}), index="by_colour")).capacity == 2
    assert db.send(Scan("Indexed", index="by_shape")).capacity == 0.5


# --- writes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "units"), [(100, 1), (KB, 1), (KB + 1, 2), (10 * KB, 10), (400 * KB, 400)])
def test_a_write_costs_a_unit_per_kb(db: Database, size: int, units: int) -> None:
    assert db.send(PutItem("Plain", make_sized(size))).capacity == units
    assert db.send(DeleteItem("Plain", key())).capacity == units


def test_a_write_costs_the_larger_of_the_old_and_the_new_item(db: Database) -> None:
    db.send(PutItem("Plain", make_sized(3 * KB)))
    assert db.send(PutItem("Plain", make_sized(100))).capacity == 3
    assert db.send(PutItem("Plain", make_sized(5 * KB))).capacity == 5
    assert db.send(UpdateItem("Plain", key(), Update((Remove(path("text")),)))).capacity == 5
    grown = Update((Set(path("text"), value("x" * 2 * KB)),))
    assert db.send(UpdateItem("Plain", key(), grown)).capacity == 3


def test_deleting_a_missing_item_costs_a_unit(db: Database) -> None:
    assert db.send(DeleteItem("Plain", key())).capacity == 1


def test_a_batch_costs_the_sum_of_its_writes(db: Database) -> None:
    puts = BatchWrite((PutItem("Plain", make_sized(KB + 1, 1)), PutItem("Plain", make_sized(100, 2))))
    assert db.send(puts).capacity == 3
    assert db.send(BatchWrite((DeleteItem("Plain", key(1)), DeleteItem("Plain", key(3))))).capacity == 3


def test_a_transaction_costs_twice_as_much_as_its_writes(db: Database) -> None:
    db.send(PutItem("Plain", make_sized(100, 3)))
    actions = (
        PutItem("Plain", make_sized(KB + 1, 1)),
        UpdateItem("Plain", key(2), Update((Set(path("text"), value("x")),))),
        ConditionCheck("Plain", key(3), Exists(path("pk"))),
    )
    assert db.send(TransactWrite(actions, "token")).capacity == 4 + 2 + 2


def test_a_refused_write_does_not_add_to_the_cost_of_the_next(db: Database) -> None:
    impossible = PutItem("Plain", make_sized(9 * KB), condition=Exists(path("pk")))
    with pytest.raises(ConditionFailedError):
        db.send(impossible)
    assert db.send(PutItem("Plain", make_sized(100))).capacity == 1


# --- writes with indexes --------------------------------------------------------------------------------


def put_indexed(**values: object) -> PutItem:
    return PutItem("Indexed", encode_item({"pk": "a", **values}))


def test_an_item_in_no_index_costs_nothing_extra(db: Database) -> None:
    assert db.send(put_indexed(text="x")).capacity == 1


def test_every_index_that_an_item_enters_or_leaves_costs_a_write(db: Database) -> None:
    assert db.send(put_indexed(colour="red")).capacity == 1 + 1
    assert db.send(put_indexed(colour="red", shape="round", owner="ada")).capacity == 1 + 1 + 1 + 1
    assert db.send(DeleteItem("Indexed", {"pk": {"S": "a"}})).capacity == 1 + 3


def test_moving_within_an_index_costs_two_writes_there(db: Database) -> None:
    db.send(put_indexed(shape="round"))
    assert db.send(put_indexed(shape="square")).capacity == 1 + 2


def test_changing_an_attribute_that_an_index_does_not_hold_costs_nothing_there(db: Database) -> None:
    db.send(put_indexed(shape="round", owner="ada", price=1))
    assert db.send(put_indexed(shape="round", owner="ada", price=1, text="x")).capacity == 1
    assert db.send(put_indexed(shape="round", owner="ada", price=2, text="x")).capacity == 1 + 1


def test_a_write_to_an_index_costs_the_size_of_the_projected_attributes(db: Database) -> None:
    large = "x" * 3 * KB
    assert db.send(put_indexed(colour="red", shape="round", text=large)).capacity == 4 + 4 + 1
    assert db.send(DeleteItem("Indexed", {"pk": {"S": "a"}})).capacity == 4 + 4 + 1


def test_writes_to_indexes_also_cost_twice_as_much_in_a_transaction(db: Database) -> None:
    assert db.send(TransactWrite((put_indexed(colour="red"),), "token")).capacity == 2 * (1 + 1)


def test_writing_the_same_item_again_costs_nothing_in_indexes(db: Database) -> None:
    db.send(put_indexed(colour="red", shape="round"))
    assert db.send(put_indexed(colour="red", shape="round")).capacity == 1
