"""Single-table designs: the generated models have templates, read every sampled item and write the same keys."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall import Database
from holdall.cli.inspect.source import write_source
from holdall.cli.inspect.table_sample import TableSample
from holdall.cli.inspect.template_guess import TYPE_ATTRIBUTES, find_designs
from holdall.core import (
    CreateTable,
    GetItem,
    IndexSchema,
    Item,
    KeyAttribute,
    PutItem,
    Scan,
    TableSchema,
    encode_item,
)

INDEX = IndexSchema("GSI1", KeyAttribute("GSI1PK"), KeyAttribute("GSI1SK"))
SCHEMA = TableSchema("app", KeyAttribute("PK"), KeyAttribute("SK"), (INDEX,))
SHOP = [
    {"PK": f"CUSTOMER#{name}", "SK": "PROFILE", "entity": "customer", "name": name, "city": city}
    for name, city in (("ada", "London"), ("bob", "Paris"))
] + [
    {
        "PK": f"CUSTOMER#{name}",
        "SK": f"ORDER#{number:06d}",
        "GSI1PK": f"STATUS#{status}",
        "GSI1SK": f"2026-01-0{number}T00:00:00.000000Z",
        "entity": "Order",
        "customer": name,
        "number": number,
        "status": status,
        "placed_at": f"2026-01-0{number}T00:00:00.000000Z",
        "created_at": 1767355200,
    }
    for (name, number), status in zip(
        product(["ada", "bob"], [1, 2]), ["open", "open", "paid", "open"], strict=True
    )
]
CASE = Path(__file__).with_name("inspected_design.py")


def sample(items: list[dict[str, Any]], schema: TableSchema = SCHEMA) -> TableSample:
    return TableSample("app", schema, None, [encode_item(item) for item in items], complete=True)


def load(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "designed"}
    exec(source, names)
    return names


def test_each_kind_of_item_has_a_model_with_its_template() -> None:
    assert write_source(sample(SHOP), "App") == CASE.read_text(encoding="utf-8")


def test_the_models_read_the_items_and_write_the_same_keys() -> None:
    models = load(CASE.read_text(encoding="utf-8"))
    order, customer = models["Order"], models["Customer"]
    with Database("memory:") as db:
        db.send(CreateTable(SCHEMA))
        for item in SHOP:
            db.send(PutItem("app", encode_item(item)))
        assert db.table.plan(models=[order, customer]).ok
        assert [each.city for each in db.query(customer, name="ada")] == ["London"]
        assert [each.number for each in db.query(order, customer="bob")] == [1, 2]
        assert db.query(order, index="GSI1", status="open").count() == 3
        with db.transaction() as tx:
            tx.get_one(order, customer="ada", number=1).status = "paid"
        changed = db.send(GetItem("app", encode_item({"PK": "CUSTOMER#ada", "SK": "ORDER#000001"}))).item
        assert changed is not None
        assert changed["GSI1PK"] == {"S": "STATUS#paid"}


def sort_key(item: Item) -> str:
    return f"{item['pk']} {item['sk']}"


WORDS = st.sampled_from(["a", "b", "tea", "x-y", "10", "A"])
NUMBERS = st.integers(0, 99)


@given(
    st.lists(st.tuples(WORDS, NUMBERS), min_size=2, max_size=6, unique=True),
    st.sampled_from("#|:/"),
    st.sampled_from(TYPE_ATTRIBUTES[2:]),
)
def test_writing_the_items_again_restores_the_same_items(
    pairs: list[tuple[str, int]], separator: str, kind: str
) -> None:
    def text(*parts: object) -> str:
        return separator.join(map(str, parts))

    items: list[dict[str, Any]] = []
    for word, number in pairs:
        items.append(
            {"pk": text("USER", word), "sk": text("V", f"{number:03d}"), "user": word, "rank": number}
        )
        items.append(
            {"pk": text("RANK", number), "sk": text("x", f"by_{word}"), "user": word, "rank": number}
        )
        items[-2][kind], items[-1][kind] = "User", "rank"
    schema = TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"))
    with Database("memory:") as db:
        db.send(CreateTable(schema))
        for item in items:
            db.send(PutItem("app", encode_item(item)))
        before = db.send(Scan("app")).items
        source = write_source(sample(items, schema), "App")
        models = load(source)
        assert "Template(" in source
        kinds = [models["User"], models["Rank"]]
        found = [item for model in kinds for item in db.scan(model)]
        assert len(found) == len({(item["pk"], item["sk"]) for item in items})
        db.delete(*(item.key for item in found))
        assert db.send(Scan("app")).items == ()
        for item in found:
            db.put(type(item)(**item.to_dict()))
        after = db.send(Scan("app")).items
        assert sorted(after, key=sort_key) == sorted(before, key=sort_key)


@pytest.mark.parametrize(
    "change",
    [
        lambda item: item | {"SK": "P#a" if item["PK"].endswith("ada") else "P#a#b"},
        lambda item: item | {"entity": "two words"},
        lambda item: {name: value for name, value in item.items() if name != "name"},
        lambda item: item | {"GSI1PK": "x", "GSI1SK": "q" if item["PK"].endswith("ada") else "zz"},
        lambda item: item | {"GSI1PK": "open", "GSI1SK": "EUR"},
        lambda item: item | {"name": 5} if item.get("name") == "ada" else item,
        lambda item: item | {"PK": item.get("name") or item.get("customer"), "SK": "x{" + item["PK"]},
    ],
    ids=[
        "uneven keys",
        "no type",
        "value not stored",
        "unexplained index",
        "constant index",
        "mixed types",
        "braces",
    ],
)
def test_a_design_without_a_clear_pattern_stays_plain(change: Any) -> None:
    given = sample([change(item) for item in SHOP])
    assert find_designs(given.schema, given.items) == []
    assert 'layout="plain"' in write_source(given, "App")


def test_keys_of_electrodb_are_explained() -> None:
    index = IndexSchema("gsi1", KeyAttribute("gsi1pk"), KeyAttribute("gsi1sk"))
    schema = TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"), (index,))
    items = [
        {
            "pk": f"$store#customer_{customer.lower()}",
            "sk": f"$account#order_1#number_{number:010d}",
            "gsi1pk": "$store#status_open",
            "gsi1sk": f"$order_1#placedat_{number}",
            "__edb_e__": "order",
            "__edb_v__": "1",
            "customer": customer,
            "number": number,
            "status": "open",
            "placedAt": number,
        }
        for customer, number in (("Ada", 7), ("bob", 12))
    ]
    source = write_source(sample(items, schema), "Order")
    assert source.partition("class ")[2] == (
        "Order(\n"
        "    Model,\n"
        '    table="app",\n'
        "    layout=Template(\n"
        '        pk="$store#customer_{customer}",\n'
        '        sk="$account#order_1#number_{number:010d}",\n'
        '        gsi1=("$store#status_{status}", "$order_1#placedat_{placedAt}"),\n'
        '        type={"__edb_e__": "order", "__edb_v__": "1"},\n'
        '        casing="lower",\n'
        "    ),\n"
        "):\n"
        "    customer: Key[str]\n"
        "    number: SortKey[int]\n"
        "    placedAt: int\n"
        "    status: str\n"
    )
    order = load(source)["Order"]
    with Database("memory:") as db:
        db.send(CreateTable(schema))
        for item in items:
            db.send(PutItem("app", encode_item(item)))
        assert [each.number for each in db.query(order, customer="Ada")] == [7]
        db.create(order(customer="Eve", number=3, placedAt=3, status="paid"))
        (found,) = [item for item in db.send(Scan("app")).items if item["customer"]["S"] == "Eve"]
        assert found["pk"] == {"S": "$store#customer_eve"}
        assert (found["gsi1pk"], found["__edb_v__"]) == ({"S": "$store#status_paid"}, {"S": "1"})


def test_local_indexes_are_explained() -> None:
    local = IndexSchema("lsi-1", KeyAttribute("pk"), KeyAttribute("lsi1sk"), local=True)
    schema = TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"), (local,))
    items = [
        {
            "pk": "USER#ada",
            "sk": f"{number}",
            "lsi1sk": f"R#{rank}",
            "user": "ada",
            "id": number,
            "rank": rank,
        }
        for number, rank in ((1, 8), (2, 7))
    ]
    source = write_source(sample(items, schema), "Rank")
    assert 'local={"lsi-1": {"lsi1sk": "R#{rank}"}}' in source
    model = load(source)["Rank"]
    with Database("memory:") as db:
        db.send(CreateTable(schema))
        for item in items:
            db.send(PutItem("app", encode_item(item)))
        assert db.table.plan(models=[model]).ok
        found = db.query(model, index="lsi-1", user="ada", consistent=True)
        assert [each.id for each in found] == [2, 1]


def test_numeric_keys_are_fields_and_indexes_with_other_names_are_explained() -> None:
    index = IndexSchema("by-unit", KeyAttribute("unit_key"), KeyAttribute("value", "N"))
    schema = TableSchema("app", KeyAttribute("PK"), KeyAttribute("SK", "N"), (index,))
    items = [
        {
            "PK": f"SENSOR#{sensor}",
            "SK": number,
            "sensor": sensor,
            "unit_key": "U#V",
            "unit": "V",
            "value": 2,
            "type": kind,
        }
        for kind in ("Signal", "Alarm")
        for number, sensor in ((1, "a"), (20, "b"))
    ]
    source = write_source(sample(items, schema), "App")
    assert '{"PK": "SENSOR#{sensor}", "SK": "{SK}"}' in source
    assert 'indexes={"by-unit": {"unit_key": "U#{unit}", "value": "{value}"}}' in source
    models = load(source)
    with Database("memory:") as db:
        db.send(CreateTable(schema))
        for item in items[2:]:
            db.send(PutItem("app", encode_item(item)))
        assert db.table.plan(models=[models["Signal"], models["Alarm"]]).ok
        assert [each.SK for each in db.query(models["Alarm"], sensor="b")] == [20]
        assert [each.sensor for each in db.query(models["Alarm"], index="by-unit", unit="V")] == ["a", "b"]


def test_a_table_of_one_kind_needs_no_type() -> None:
    schema = TableSchema("app", KeyAttribute("pk"))
    items = [{"pk": f"USER#{number}", "id": number} for number in range(2)]
    assert 'class App(Model, table="app", layout=Template(pk="USER#{id}")):' in write_source(
        sample(items, schema), "App"
    )
    assert find_designs(schema, sample(items[:1], schema).items) == []
    plain = [{"pk": f"{number}", "id": number} for number in range(2)]
    assert find_designs(schema, sample(plain, schema).items) == []
