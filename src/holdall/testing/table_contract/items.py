"""Single items: put, get, delete, with exact values and typed replies."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from holdall.core.expressions import Compare, path, value
from holdall.core.requests import DeleteItem, GetItem, PutItem
from holdall.core.values import encode_item
from holdall.errors import ConditionFailedError
from holdall.testing.table_contract.check import Store, check, refused

EVERY_TYPE: dict[str, Any] = {
    "text": "Grüße 😀",
    "empty": "",
    "whole": 2**100,
    "exact": Decimal("-0.00012345678901234567890123456789012345678"),
    "half": Decimal("0.5"),
    "raw": b"\x00\xff",
    "no_bytes": b"",
    "yes": True,
    "no": False,
    "nothing": None,
    "list": [1, "two", [3, {"four": b"4"}], []],
    "map": {"nested": {"deep": [None, False]}, "empty": {}, "ü.-# ": 1},
    "strings": {"a", "", "ß"},
    "numbers": {1, Decimal("2.5"), -3},
    "binaries": {b"a", b"\x00"},
}


@check()
async def a_missing_item_is_none(store: Store) -> None:
    table = await store.table()
    assert (await store.send(GetItem(table, encode_item({"pk": "missing"})))).item is None


@check()
async def every_type_comes_back_exactly(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", **EVERY_TYPE)
    assert await store.get(table, pk="a") == {"pk": "a", **EVERY_TYPE}


@check()
async def a_number_comes_back_in_its_canonical_text(store: Store) -> None:
    table = await store.table()
    texts = {"a": "1.50", "b": "1E2", "c": "-0", "d": "007", "e": "1E-7", "f": "+3"}
    await store.send(PutItem(table, {"pk": {"S": "a"}, **{n: {"N": t} for n, t in texts.items()}}))
    item = (await store.send(GetItem(table, encode_item({"pk": "a"}), consistent=True))).item
    assert item is not None
    found = {name: item[name]["N"] for name in texts}
    assert found == {"a": "1.5", "b": "100", "c": "0", "d": "7", "e": "0.0000001", "f": "3"}


@check()
async def any_attribute_name_works(store: Store) -> None:
    table = await store.table()
    names = ["size", "a.b", "a-b", "#x", ":y", "with space", "ключ", "😀", "[0]", "_w", "x" * 255]
    await store.put(table, pk="a", **{name: position for position, name in enumerate(names)})
    projection = tuple(path(name) for name in names)
    reply = await store.send(GetItem(table, encode_item({"pk": "a"}), True, projection))
    assert reply.item == encode_item({name: position for position, name in enumerate(names)})


@check()
async def put_replaces_the_whole_item(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", old=1, kept=1)
    await store.put(table, pk="a", kept=2)
    assert await store.get(table, pk="a") == {"pk": "a", "kept": 2}


@check()
async def keys_of_every_type_find_their_item(store: Store) -> None:
    keys = {"S": ("a", "ä"), "N": (Decimal("1.5"), -2), "B": (b"\x00", b"\xff")}
    for kind, (first, second) in keys.items():
        table = await store.table(kind, kind)  # type: ignore[arg-type]
        await store.put(table, pk=first, sk=second, n=1)
        await store.put(table, pk=second, sk=first, n=2)
        assert (await store.get(table, pk=first, sk=second) or {})["n"] == 1
        assert (await store.get(table, pk=second, sk=first) or {})["n"] == 2


@check()
async def equal_numbers_are_the_same_key(store: Store) -> None:
    table = await store.table("N")
    await store.send(PutItem(table, {"pk": {"N": "10"}, "n": {"N": "1"}}))
    reply = await store.send(GetItem(table, {"pk": {"N": "1.0E1"}}, consistent=True))
    assert reply.item == {"pk": {"N": "10"}, "n": {"N": "1"}}


@check()
async def a_projection_picks_parts_of_an_item(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", n=1, m={"x": 1, "y": 2}, l=[10, 11, 12], other=True)
    wanted = (path("n"), path("m", "y"), path("l", 2), path("l", 0), path("missing"), path("m", "no", "way"))
    reply = await store.send(GetItem(table, encode_item({"pk": "a"}), True, wanted))
    assert reply.item == encode_item({"n": 1, "m": {"y": 2}, "l": [10, 12]})


@check()
async def a_projection_of_nothing_found_is_an_empty_item(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a")
    reply = await store.send(GetItem(table, encode_item({"pk": "a"}), True, (path("missing"),)))
    assert reply.item == {}


@check()
async def delete_removes_an_item_and_forgives_a_missing_one(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a")
    await store.delete(table, pk="a")
    await store.delete(table, pk="a")
    assert await store.get(table, pk="a") is None


@check()
async def put_and_delete_can_return_the_old_item(store: Store) -> None:
    table = await store.table()
    first, second = encode_item({"pk": "a", "n": 1}), encode_item({"pk": "a", "n": 2})
    assert (await store.send(PutItem(table, first, returns="old"))).item is None
    assert (await store.send(PutItem(table, second, returns="old"))).item == first
    key = encode_item({"pk": "a"})
    assert (await store.send(DeleteItem(table, key, returns="old"))).item == second
    assert (await store.send(DeleteItem(table, key, returns="old"))).item is None


@check()
async def a_failed_condition_can_return_the_stored_item(store: Store) -> None:
    table = await store.table()
    stored = encode_item({"pk": "a", "n": 1})
    await store.send(PutItem(table, stored))
    wrong = Compare("=", path("n"), value(2))
    with refused(ConditionFailedError) as refusal:
        await store.send(PutItem(table, stored, wrong, item_on_failure=True))
    assert refusal.error.item == stored
    with refused(ConditionFailedError) as refusal:
        await store.send(PutItem(table, stored, wrong))
    assert refusal.error.item is None
    with refused(ConditionFailedError) as refusal:
        await store.send(DeleteItem(table, encode_item({"pk": "b"}), wrong, item_on_failure=True))
    assert refusal.error.item is None


@check()
async def replies_to_parallel_requests_do_not_mix(store: Store) -> None:
    table = await store.table()

    async def round_trip(number: int) -> object:
        await store.put(table, pk=f"k{number}", n=number)
        return (await store.get(table, pk=f"k{number}") or {})["n"]

    outcomes = await store.port.gather([round_trip(number) for number in range(20)], limit=5)
    assert [outcome.result() for outcome in outcomes] == list(range(20))


@check("capacity")
async def a_reply_reports_what_it_cost(store: Store) -> None:
    table = await store.table()
    large = {"pk": "a", "text": "x" * 5000}
    assert (await store.send(PutItem(table, encode_item(large)))).capacity == 5
    key = encode_item({"pk": "a"})
    assert (await store.send(GetItem(table, key))).capacity == 1
    assert (await store.send(GetItem(table, key, consistent=True))).capacity == 2
    assert (await store.send(GetItem(table, encode_item({"pk": "b"})))).capacity == 0.5
    assert (await store.send(DeleteItem(table, key))).capacity == 5
