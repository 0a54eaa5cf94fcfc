"""Our models and ElectroDB 3.9's entities on one table, which both describe with key templates."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from rig.electrodb import ElectroDB, ElectroDBError, electrodb
from rig.servers import ENVIRONMENT, sign_in

from holdall import Database, Key, Model, SortKey, Template, Transaction, col, field
from holdall.core import GetItem, PutItem, Scan, decode_item, encode_item
from holdall.errors import ModelAlreadyExistsError, ModelMismatchError, TransactionFailedError

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
TIMES = 12

ENTITIES = """
const { Entity, Service } = require('electrodb')
const { DynamoDBClient, CreateTableCommand } = require('@aws-sdk/client-dynamodb')
const client = new DynamoDBClient({})
const keys = ['pk', 'sk', 'gsi1pk', 'gsi1sk', 'gsi2pk', 'gsi2sk']
const schema = (pk, sk) => [{ AttributeName: pk, KeyType: 'HASH' }, { AttributeName: sk, KeyType: 'RANGE' }]
await client.send(new CreateTableCommand({
  TableName: table,
  BillingMode: 'PAY_PER_REQUEST',
  AttributeDefinitions: keys.map(AttributeName => ({ AttributeName, AttributeType: 'S' })),
  KeySchema: schema('pk', 'sk'),
  GlobalSecondaryIndexes: ['gsi1', 'gsi2'].map(name => ({
    IndexName: name, KeySchema: schema(`${name}pk`, `${name}sk`), Projection: { ProjectionType: 'ALL' }
  }))
}))
const orders = new Entity({
  model: { service: 'Shop', entity: 'order', version: '1' },
  attributes: {
    customer: { type: 'string', required: true },
    number: { type: 'number', required: true, padding: { length: 10, char: '0' } },
    status: { type: ['open', 'paid', 'sent'], default: 'open' },
    placedAt: { type: 'string' },
    expiresAt: { type: 'number', field: 'ttl' },
    total: { type: 'number', default: 0 },
    gift: { type: 'boolean', default: false },
    tags: { type: 'set', items: 'string' },
    lines: { type: 'list', items: { type: 'map', properties: { sku: { type: 'string' }, n: { type: 'number' } } } }
  },
  indexes: {
    order: { pk: { field: 'pk', composite: ['customer'] }, sk: { field: 'sk', composite: ['number'] } },
    byStatus: {
      index: 'gsi1',
      pk: { field: 'gsi1pk', composite: ['status'] },
      sk: { field: 'gsi1sk', composite: ['placedAt', 'number'] }
    },
    byDay: {
      index: 'gsi2', type: 'clustered', collection: 'history',
      pk: { field: 'gsi2pk', composite: ['customer'] },
      sk: { field: 'gsi2sk', composite: ['placedAt'] }
    }
  }
}, { client, table })
const profiles = new Entity({
  model: { service: 'Shop', entity: 'profile', version: '1' },
  attributes: { customer: { type: 'string', required: true }, city: { type: 'string' } },
  indexes: { profile: { pk: { field: 'pk', composite: ['customer'] }, sk: { field: 'sk', composite: [] } } }
}, { client, table })
"""


class Order(
    Model,
    table="shop",
    ttl="expires_at",
    layout=Template(
        pk="$shop#customer_{customer}",
        sk="$order_1#number_{number:010d}",
        gsi1=("$shop#status_{status}", "$order_1#placedat_{placed_at}#number_{number:010d}"),
        gsi2=("$shop#customer_{customer}", "$history#placedat_{placed_at}#order_1"),
        type={"__edb_e__": "order", "__edb_v__": "1"},
        casing="lower",
    ),
):
    customer: Key[str]
    number: SortKey[int]
    status: str = "open"
    placed_at: datetime = field(default=NOON, stored="iso_ms", name="placedAt")
    expires_at: int | None = field(default=None, name="ttl")
    total: int = 0
    gift: bool = False
    tags: set[str] = field(default_factory=set)
    lines: list[dict[str, Any]] | None = None


class Profile(
    Model,
    table="shop",
    layout=Template(
        pk="$shop#customer_{customer}",
        sk="$profile_1",
        type={"__edb_e__": "profile", "__edb_v__": "1"},
        casing="lower",
    ),
):
    customer: Key[str]
    city: str | None = None


PREFIX = f"electrodb-{uuid4().hex}-"


@pytest.fixture(scope="module")
def their() -> ElectroDB:
    program = electrodb()
    program(ENTITIES, table=f"{PREFIX}shop")
    return program


@pytest.fixture(scope="module")
def db(their: ElectroDB) -> Iterator[Database]:
    with Database(
        f"dynamodb://unused?endpoint={their.url}&region={ENVIRONMENT['AWS_REGION']}",
        table_prefix=PREFIX,
        credentials=sign_in,
    ) as database:
        yield database


def raw(db: Database, customer: str, number: int) -> Any:
    """An order exactly as it is stored."""
    key = {"pk": f"$shop#customer_{customer.lower()}", "sk": f"$order_1#number_{number:010d}"}
    return db.send(GetItem(f"{PREFIX}shop", encode_item(key))).item


VALUES: dict[str, Any] = {
    "status": "paid",
    "total": 12,
    "gift": True,
    "lines": [{"sku": "tea", "n": 2}],
}


def test_both_programs_store_the_same_item(their: ElectroDB, db: Database) -> None:
    given = {**VALUES, "placedAt": "2026-01-02T12:00:00.000Z", "tags": ["a"], "expiresAt": 4070908800}
    their("await orders.create({ customer: 'Ada', number: 7, ...given }).go()", given=given)
    with db.transaction() as tx:
        tx.create(
            Order, customer="Ada", number=8, placed_at=NOON, tags={"a"}, expires_at=4070908800, **VALUES
        )
    theirs, ours = raw(db, "Ada", 7), raw(db, "Ada", 8)
    assert theirs["gsi2sk"] == {"S": "$history#placedat_2026-01-02t12:00:00.000z#order_1"}
    theirs |= {
        "sk": {"S": "$order_1#number_0000000008"},
        "gsi1sk": {"S": theirs["gsi1sk"]["S"].replace("7", "8")},
        "number": {"N": "8"},
    }
    assert theirs == ours


def test_we_read_change_and_delete_what_electrodb_wrote(their: ElectroDB, db: Database) -> None:
    placed = (NOON + timedelta(milliseconds=5)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    their(
        "await orders.put({ customer: 'Eve', number: 1, placedAt: placed, tags: ['x', 'y'], ...given }).go()",
        given=VALUES,
        placed=placed,
    )
    with db.transaction() as tx:
        order = tx.get_one(Order, customer="Eve", number=1)
        assert (order.placed_at, order.tags) == (NOON + timedelta(milliseconds=5), {"x", "y"})
        assert (order.status, order.total, order.gift, order.lines) == tuple(VALUES.values())
        order.status = "sent"
        order.total += 1
    found = their("return (await orders.query.byStatus({ status: 'sent' }).go()).data")
    assert [(order["customer"], order["number"], order["total"]) for order in found] == [("Eve", 1, 13)]
    found = their("return (await orders.query.byStatus({ status: 'paid' }).go()).data")
    assert "Eve" not in [order["customer"] for order in found]
    with db.transaction() as tx:
        tx.delete(tx.get_one(Order, customer="eve", number=1))
    assert their("return (await orders.get({ customer: 'Eve', number: 1 }).go()).data") is None


def test_electrodb_reads_changes_and_deletes_what_we_wrote(their: ElectroDB, db: Database) -> None:
    with db.transaction() as tx:
        tx.create(Profile, customer="Bob", city="Rome")
        for number in (9, 10, 11):
            tx.create(Order, customer="Bob", number=number, placed_at=NOON + timedelta(days=number))
    by_number = "return (await orders.query.order({ customer: 'Bob' }).gte({ number: 10 }).go()).data"
    assert [order["number"] for order in their(by_number)] == [10, 11]
    clustered = (
        "return (await orders.query.byDay({ customer: 'bob' }).gt({ placedAt: '2026-01-12' }).go()).data"
    )
    assert [order["number"] for order in their(clustered)] == [10, 11]
    assert their("return (await profiles.get({ customer: 'Bob' }).go()).data") == {
        "customer": "Bob",
        "city": "Rome",
    }
    assert their("return (await orders.scan.go()).data.filter(o => o.customer === 'Bob').length") == 3
    their(
        """
        await orders.patch({ customer: 'Bob', number: 9 }).set({ status: 'paid' }).add({ total: 3, tags: ['n'] }).go()
        await orders.update({ customer: 'Bob', number: 10 })
          .set({ placedAt: '2030-01-01T00:00:00.000Z' }).composite({ number: 10 }).go()
        await orders.remove({ customer: 'Bob', number: 11 }).go()
        """
    )
    assert [order.number for order in db.query(Order, customer="bob")] == [9, 10]
    first = db.get_one(Order, customer="Bob", number=9)
    assert (first.status, first.total, first.tags) == ("paid", 3, {"n"})
    new_year = datetime(2027, 1, 1, tzinfo=UTC)
    later = db.query(Order, index="gsi1", status="open", sort=col(Order.placed_at) > new_year)
    assert [(order.customer, order.number) for order in later] == [("Bob", 10)]
    assert [profile.city for profile in db.query(Profile, customer="bob")] == ["Rome"]
    assert [order.number for order in db.query(Order, index="gsi2", customer="Bob")] == [9, 10]


def test_each_program_refuses_to_create_an_item_that_the_other_created(
    their: ElectroDB, db: Database
) -> None:
    their("await orders.create({ customer: 'Kim', number: 1 , placedAt: '2026-01-02T12:00:00.000Z'}).go()")
    with pytest.raises(ModelAlreadyExistsError), db.transaction() as tx:
        tx.create(Order, customer="KIM", number=1)
    with db.transaction() as tx:
        tx.create(Order, customer="Kim", number=2)
    with pytest.raises(ElectroDBError, match="conditional request failed"):
        their("await orders.create({ customer: 'kim', number: 2, placedAt: 'x' }).go()")


def test_a_transaction_runs_again_if_electrodb_changes_its_item_first(their: ElectroDB, db: Database) -> None:
    with db.transaction() as tx:
        tx.create(Order, customer="Lea", number=1)
    attempts = []

    def postpone(tx: Transaction) -> None:
        order = tx.get_one(Order, customer="Lea", number=1)
        attempts.append(order.number)
        if len(attempts) == 1:
            their("await orders.patch({ customer: 'Lea', number: 1 }).set({ status: 'paid' }).go()")
        order.placed_at = NOON + timedelta(days=1)  # the index's key contains both

    db.run(postpone)
    assert len(attempts) == 2
    stored = raw(db, "Lea", 1)
    assert (stored["gsi1pk"], stored["gsi1sk"]) == (
        {"S": "$shop#status_paid"},
        {"S": "$order_1#placedat_2026-01-03t12:00:00.000z#number_0000000001"},
    )


# --- kinds of keys, and what the guide says about ElectroDB ----------------------------------------------------


class Reading(
    Model,
    table="shop",
    layout=Template(
        pk="$Shop#sensor_{sensor}#year_{year}",
        sk="$reading_2#at_{at:04d}#place_{place}",
        gsi1=("$shop$reading_2#place_{place}",),
        gsi2=("$shop#sensor_{sensor}", "$account#history#reading_2#at_{at:04d}"),
        gsi3=("$shop", "$Reading_2#at_{at:04d}"),
        gsi4=("SENSOR#{sensor}", "At-{at:04d}-{year}#{place}"),
        casing={
            "pk": "lower",
            "sk": "lower",
            "gsi1pk": "lower",
            "gsi2pk": "lower",
            "gsi2sk": "lower",
            "gsi3pk": "lower",
            "gsi3sk": "lower",
            "gsi4pk": "upper",
        },
    ),
):
    sensor: Key[str]
    year: Key[int]
    at: SortKey[int]
    place: SortKey[str]


READINGS = """
const key = (index, name, pk, sk, more) => ({
  index, pk: { field: `${name}pk`, ...pk }, ...(sk && { sk: { field: `${name}sk`, ...sk } }), ...more
})
const readings = new Entity({
  model: { service: 'Shop', entity: 'Reading', version: '2' },
  attributes: {
    sensor: { type: 'string' }, year: { type: 'number' }, place: { type: 'string' },
    at: { type: 'number', padding: { length: 4, char: '0' } }
  },
  indexes: {
    main: key(undefined, '', { composite: ['sensor', 'year'] }, { composite: ['at', 'place'] }),
    one: key('gsi1', 'gsi1', { composite: ['place'] }),
    two: key('gsi2', 'gsi2', { composite: ['sensor'] }, { composite: ['at'] }, { collection: ['account', 'history'] }),
    three: key('gsi3', 'gsi3', { composite: [] }, { composite: ['at'] }),
    four: key('gsi4', 'gsi4',
      { composite: ['sensor'], template: 'Sensor#${sensor}', casing: 'upper' },
      { composite: ['at', 'year', 'place'], template: 'At-${at}-${year}#${place}', casing: 'none' })
  }
}, { table })
"""


def test_every_kind_of_key_has_its_template(their: ElectroDB) -> None:
    their(READINGS, table=f"{PREFIX}shop")
    values: dict[str, Any] = {"sensor": "Roof", "year": 2026, "at": 7, "place": "Zürich"}
    item = their("return readings.put(values).params().Item", values=values)
    with Database("memory:") as database:
        database.create(Reading, **values)
        (found,) = database.send(Scan("shop")).items
    marks = {"__edb_e__": "Reading", "__edb_v__": "2"}
    assert item == {**decode_item(found), **marks}


def test_electrodb_behaves_as_the_guide_says(their: ElectroDB, db: Database) -> None:
    missing = "{ customer: 'Zoe', number: 1 }"
    their(f"await orders.update({missing}).set({{ total: 1 }}).go()")  # creates it
    assert raw(db, "Zoe", 1)["total"] == {"N": "1"}
    canceled = """
    const shop = new Service({ orders })
    const { canceled } = await shop.transaction.write(({ orders }) => [
      orders.patch({ customer: 'Zoe', number: 1 }).set({ total: 2 }).where((_, { gt }) => gt(_.total, 5)).commit(),
      orders.patch({ customer: 'Zoe', number: 99 }).set({ total: 2 }).commit()
    ]).go()
    return canceled
    """
    assert their(canceled) is True
    db.send(PutItem(f"{PREFIX}shop", {**raw(db, "Zoe", 1), "__edb_e__": {"S": "refund"}}))
    assert their(f"return (await orders.get({missing}).go()).data") is None
    with pytest.raises(ModelMismatchError):
        db.get(Order, customer="zoe", number=1)
    pairs = """
    const part = (field, composite) => ({ field, composite })
    const both = (name, pk, sk) => ({ pk: part(`${name}pk`, pk), sk: part(`${name}sk`, sk) })
    const pairs = new Entity({
      model: { service: 'shop', entity: 'pair', version: '1' },
      attributes: { a: { type: 'string' }, b: { type: 'string' }, c: { type: 'string' } },
      indexes: { main: both('', ['a', 'b'], []), more: { index: 'gsi1', ...both('gsi1', ['a'], ['c']) } }
    }, { table: 'shop' })
    return [['x#b_y', 'z'], ['x', 'y#b_z']].map(([a, b]) => pairs.put({ a, b }).params().Item)
    """
    one, other = their(pairs)
    assert (one["pk"], one["sk"]) == (other["pk"], other["sk"])
    assert one["gsi1sk"] == "$pair_1#c_"


ADD = """
let refused = 0
for (let left = times; left > 0;) {
  const { data } = await orders.get({ customer: 'Max', number: 1 }).go({ consistent: true })
  try {
    await orders.patch({ customer: 'Max', number: 1 }).set({ total: data.total + 1 })
      .where(({ total }, { eq }) => eq(total, data.total)).go()
    left -= 1
  } catch (error) {
    if (!/conditional request failed|TransactionConflict|conflict/i.test(error.message)) throw error
    refused += 1
  }
}
return refused
"""


def test_concurrent_changes_of_one_field_by_both_programs_lose_nothing(
    their: ElectroDB, db: Database
) -> None:
    with db.transaction() as tx:
        tx.create(Order, customer="Max", number=1)

    def add(tx: Transaction) -> None:
        tx.get_one(Order, customer="Max", number=1).total += 1

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(their, ADD, times=TIMES)
        done = 0
        while not (other.done() and done):
            try:
                db.run(add)
            except TransactionFailedError:
                continue  # the other program was faster every time
            done += 1
        other.result()
    assert db.get_one(Order, customer="Max", number=1).total == done + TIMES
