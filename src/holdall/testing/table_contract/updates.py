"""Updates: every action, alone and together, and actions that do not fit the item."""

from __future__ import annotations

from decimal import Decimal

from holdall.core.expressions import (
    Add,
    Compare,
    Delete,
    Exists,
    IfNotExists,
    ListAppend,
    Minus,
    Plus,
    Remove,
    Set,
    Update,
    UpdateAction,
    path,
    value,
)
from holdall.core.requests import UpdateItem
from holdall.core.values import encode_item
from holdall.errors import (
    ConditionFailedError,
    InvalidExpressionError,
    InvalidKeyError,
    InvalidRequestError,
)
from holdall.testing.table_contract.check import Store, check, refused

ITEM = {"n": 5, "s": "text", "l": [1, 2, 3], "m": {"a": 1, "inner": {"x": 1}}, "ss": {"a", "b"}}


async def _update_item(store: Store, *actions: UpdateAction) -> dict[str, object]:
    table = await store.table()
    await store.put(table, pk="a", **ITEM)
    shown = await store.update(table, {"pk": "a"}, *actions)
    assert shown == await store.get(table, pk="a")
    assert shown is not None
    return {k: v for k, v in shown.items() if ITEM.get(k) != v and k != "pk"} | {
        name: None for name in ITEM if name not in shown
    }


@check()
async def set_puts_values_at_names_and_paths(store: Store) -> None:
    actions = (
        Set(path("new"), value([1])),
        Set(path("m", "inner", "y"), value("z")),
        Set(path("l", 1), value(9)),
    )
    assert await _update_item(store, *actions) == {
        "new": [1],
        "m": {"a": 1, "inner": {"x": 1, "y": "z"}},
        "l": [1, 9, 3],
    }


@check()
async def set_copies_adds_and_subtracts_exactly(store: Store) -> None:
    actions = (
        Set(path("copy"), path("s")),
        Set(path("n"), Plus(path("n"), value(Decimal("0.1")))),
        Set(path("less"), Minus(value(1), path("m", "a"))),
        Set(path("big"), Plus(value(Decimal("1E+37")), value(1))),
    )
    assert await _update_item(store, *actions) == {
        "copy": "text",
        "n": Decimal("5.1"),
        "less": 0,
        "big": 10**37 + 1,
    }


@check()
async def if_not_exists_and_list_append_nest(store: Store) -> None:
    actions = (
        Set(path("count"), Plus(IfNotExists(path("count"), value(0)), value(1))),
        Set(path("n"), IfNotExists(path("n"), value(0))),
        Set(path("log"), ListAppend(IfNotExists(path("log"), value([])), value(["x"]))),
        Set(path("l"), ListAppend(value([0]), path("l"))),
    )
    assert await _update_item(store, *actions) == {"count": 1, "log": ["x"], "l": [0, 1, 2, 3]}


@check()
async def every_step_sees_the_item_as_it_was(store: Store) -> None:
    actions = Set(path("n"), path("m", "a")), Set(path("old"), path("n")), Remove(path("m"))
    assert await _update_item(store, *actions) == {"n": 1, "old": 5, "m": None}


@check()
async def list_places_mean_the_list_as_it_was(store: Store) -> None:
    assert await _update_item(store, Set(path("l", 7), value(7)), Set(path("l", 5), value(5))) == {
        "l": [1, 2, 3, 5, 7]
    }
    assert await _update_item(store, Set(path("l", 0), value(9)), Remove(path("l", 1))) == {"l": [9, 3]}
    assert await _update_item(store, Remove(path("l", 0)), Remove(path("l", 1)), Remove(path("l", 9))) == {
        "l": [3]
    }
    assert await _update_item(store, Set(path("l", 9), value(9)), Remove(path("l", 0))) == {"l": [2, 3, 9]}


@check()
async def remove_ignores_missing_attributes(store: Store) -> None:
    actions = Remove(path("s")), Remove(path("gone")), Remove(path("m", "inner")), Remove(path("m", "no"))
    assert await _update_item(store, *actions) == {"s": None, "m": {"a": 1}}


@check()
async def add_counts_and_grows_sets(store: Store) -> None:
    actions = (
        Add(path("n"), value(-7)),
        Add(path("fresh"), value(2)),
        Add(path("ss"), value({"b", "c"})),
        Add(path("tags"), value({1})),
        Add(path("m", "a"), value(1)),
    )
    assert await _update_item(store, *actions) == {
        "n": -2,
        "fresh": 2,
        "ss": {"a", "b", "c"},
        "tags": {1},
        "m": {"a": 2, "inner": {"x": 1}},
    }


@check()
async def delete_shrinks_sets_and_removes_empty_ones(store: Store) -> None:
    assert await _update_item(store, Delete(path("ss"), value({"a", "z"}))) == {"ss": {"b"}}
    assert await _update_item(
        store, Delete(path("ss"), value({"a", "b"})), Delete(path("no"), value({"a"}))
    ) == {"ss": None}


@check()
async def an_update_creates_a_missing_item(store: Store) -> None:
    table = await store.table("S", "N")
    assert await store.update(table, {"pk": "a", "sk": 1}, Add(path("n"), value(1))) == {
        "pk": "a",
        "sk": 1,
        "n": 1,
    }
    assert await store.update(table, {"pk": "b", "sk": 1}) == {"pk": "b", "sk": 1}
    with refused(ConditionFailedError):
        await store.update(table, {"pk": "c", "sk": 1}, condition=Exists(path("pk")))
    assert await store.get(table, pk="c", sk=1) is None


@check()
async def an_update_returns_what_was_requested(store: Store) -> None:
    table = await store.table()
    step = Add(path("n"), value(1))
    assert await store.update(table, {"pk": "a"}, step, returns="old") is None
    assert await store.update(table, {"pk": "a"}, step, returns="old") == {"pk": "a", "n": 1}
    assert await store.update(table, {"pk": "a"}, step, returns="new") == {"pk": "a", "n": 3}
    assert await store.update(table, {"pk": "a"}, step, returns="none") is None


@check()
async def a_condition_and_an_update_go_together(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", n=1)
    once = Compare("=", path("n"), value(1))
    await store.update(table, {"pk": "a"}, Set(path("n"), value(2)), condition=once)
    request = UpdateItem(
        table,
        encode_item({"pk": "a"}),
        Update((Set(path("n"), value(3)),)),
        once,
        item_on_failure=True,
    )
    with refused(ConditionFailedError) as refusal:
        await store.send(request)
    assert refusal.error.item == encode_item({"pk": "a", "n": 2})


@check()
async def an_update_the_item_does_not_fit_changes_nothing(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", **ITEM)
    misfits: list[UpdateAction] = [
        Set(path("n"), path("gone")),
        Set(path("n"), Plus(path("n"), path("gone"))),
        Set(path("n"), Plus(path("n"), path("s"))),
        Set(path("q"), ListAppend(path("l"), path("s"))),
        Set(path("gone", "x"), value(1)),
        Set(path("n", "x"), value(1)),
        Set(path("m", 0), value(1)),
        Remove(path("gone", "x")),
        Remove(path("l", "x")),
        Add(path("s"), value(1)),
        Add(path("n"), value({"a"})),
        Delete(path("n"), value({"a"})),
        Delete(path("ss"), value({1})),
        Set(path("n"), Plus(path("n"), value(Decimal("1E-40")))),
    ]
    for action in misfits:
        with refused(InvalidRequestError):
            await store.update(table, {"pk": "a"}, Set(path("mark"), value(1)), action)
    assert await store.get(table, pk="a") == {"pk": "a", **ITEM}


@check()
async def invalid_updates_are_refused_at_once(store: Store) -> None:
    table = await store.table()
    senseless: list[tuple[UpdateAction, ...]] = [
        (Set(path("m", "a"), value(1)), Set(path("m"), value(1))),
        (Set(path("x"), value(1)), Remove(path("x"))),
        (Set(path("m", "a"), value(1)), Set(path("m", 0), value(1))),
        (Add(path("x"), value("text")),),
        (Delete(path("x"), value(1)),),
    ]
    for actions in senseless:
        with refused(InvalidExpressionError):
            await store.update(table, {"pk": "a"}, *actions)
    assert await store.get(table, pk="a") is None


@check()
async def a_key_cannot_be_updated(store: Store) -> None:
    table = await store.table("S", "S")
    for action in (Set(path("pk"), value("b")), Remove(path("sk"))):
        with refused(InvalidKeyError):
            await store.update(table, {"pk": "a", "sk": "b"}, action)
    assert await store.get(table, pk="a", sk="b") is None
