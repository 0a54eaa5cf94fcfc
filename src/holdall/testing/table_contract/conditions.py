"""Conditions: each operator and function, on present and missing attributes."""

from __future__ import annotations

from holdall.core.expressions import (
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    In,
    Not,
    NotExists,
    Or,
    Size,
    TypeIs,
    path,
    value,
)
from holdall.core.requests import ConditionCheck, PutItem, TransactWrite
from holdall.core.values import encode_item
from holdall.errors import ConditionFailedError, InvalidExpressionError, TransactionCanceledError
from holdall.testing.table_contract.check import Store, check, refused

ITEM = {
    "pk": "a",
    "n": 5,
    "s": "a😀é",
    "b": b"\x01\x02",
    "t": True,
    "z": None,
    "l": [1, "x", [2]],
    "m": {"k": {"x": 7}},
    "ss": {"p", "q"},
    "ns": {1, 2},
    "bs": {b"\x01"},
}


async def _agrees(store: Store, true: list[Condition], false: list[Condition]) -> None:
    table = await store.table()
    await store.put(table, **ITEM)
    for condition in true:
        await _put_if(store, table, condition)
        with refused(ConditionFailedError):
            await _put_if(store, table, ~condition)
    for condition in false:
        await _put_if(store, table, ~condition)
        with refused(ConditionFailedError):
            await _put_if(store, table, condition)
    assert await store.get(table, pk="a") == ITEM


async def _put_if(store: Store, table: str, condition: Condition) -> None:
    try:
        await store.send(PutItem(table, encode_item(ITEM), condition))
    except ConditionFailedError as error:
        error.message += f" ({condition})"
        raise


@check()
async def comparisons_are_by_value_within_a_type(store: Store) -> None:
    n, s, b = path("n"), path("s"), path("b")
    await _agrees(
        store,
        true=[
            Compare("=", n, value(5)),
            Compare("<>", n, value(6)),
            Compare("<", n, value(10)),
            Compare("<=", n, value(5)),
            Compare(">", n, value(-7)),
            Compare(">=", n, value(5)),
            Compare("<", s, value("b")),
            Compare(">", s, value("a")),
            Compare(">", b, value(b"\x01")),
            Compare("<", b, value(b"\x02")),
            Compare("<>", n, value("5")),
            Compare("=", path("m", "k", "x"), value(7)),
            Compare("=", path("l", 0), value(1)),
            Compare("=", path("l", 2, 0), value(2)),
            Compare("<", path("l", 0), n),
        ],
        false=[
            Compare("=", n, value("5")),
            Compare("<", n, value("z")),
            Compare(">", n, value("")),
            Compare("<", s, value(b"zzz")),
            Compare("=", path("l", 9), value(1)),
            Compare("=", path("n", "x"), value(5)),
        ],
    )


@check()
async def strings_compare_by_their_utf8_bytes(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", s="\uffff")
    await store.put(table, Compare("<", path("s"), value("😀")), pk="a", s="\uffff")


@check()
async def a_missing_operand_is_only_unequal(store: Store) -> None:
    gone = path("gone")
    await _agrees(
        store,
        true=[Compare("<>", gone, value(1)), Compare("<>", gone, path("gone2")), NotExists(gone)],
        false=[
            Compare("=", gone, value(1)),
            Compare("=", gone, path("gone2")),
            Compare("<", gone, value(1)),
            Compare(">=", gone, value(1)),
            Between(gone, value(0), value(9)),
            In(gone, (value(1),)),
            BeginsWith(gone, value("a")),
            Contains(gone, value("a")),
            TypeIs(gone, "S"),
            Compare("=", Size(gone), value(0)),
            Exists(gone),
        ],
    )


@check()
async def equality_looks_inside_documents_and_ignores_the_order_of_sets(store: Store) -> None:
    await _agrees(
        store,
        true=[
            Compare("=", path("l"), value([1, "x", [2]])),
            Compare("=", path("m"), value({"k": {"x": 7}})),
            Compare("=", path("ss"), value({"q", "p"})),
            Compare("=", path("ns"), value({2, 1})),
            Compare("=", path("t"), value(True)),
            Compare("=", path("z"), value(None)),
        ],
        false=[
            Compare("=", path("l"), value(["x", 1, [2]])),
            Compare("=", path("m"), value({"k": {"x": 7, "y": 1}})),
            Compare("=", path("ss"), value({"p"})),
            Compare("=", path("t"), value(False)),
        ],
    )


@check()
async def between_and_in_take_values_and_paths(store: Store) -> None:
    n = path("n")
    await _agrees(
        store,
        true=[
            Between(n, value(5), value(5)),
            Between(n, path("l", 0), value(9)),
            Between(path("s"), value("a"), value("b")),
            In(n, (value(4), value(5))),
            In(value(1), (path("l", 0),)),
            In(n, tuple(value(number) for number in range(100))),
        ],
        false=[
            Between(n, value(6), value(9)),
            Between(n, value("a"), value("z")),
            In(n, (value(4), value("5"))),
        ],
    )


@check()
async def functions_know_strings_binaries_sets_and_lists(store: Store) -> None:
    await _agrees(
        store,
        true=[
            BeginsWith(path("s"), value("a😀")),
            BeginsWith(path("b"), value(b"\x01")),
            Contains(path("s"), value("😀é")),
            Contains(path("b"), value(b"\x02")),
            Contains(path("ss"), value("p")),
            Contains(path("ns"), value(2)),
            Contains(path("bs"), value(b"\x01")),
            Contains(path("l"), value([2])),
            Contains(path("l"), value("x")),
        ],
        false=[
            BeginsWith(path("n"), value("5")),
            BeginsWith(path("s"), value("😀")),
            Contains(path("ss"), value("z")),
            Contains(path("ss"), value(1)),
            Contains(path("n"), value(5)),
            Contains(path("m"), value("k")),
        ],
    )


@check()
async def conditions_can_use_sizes_and_types(store: Store) -> None:
    sizes = {"s": 4, "b": 2, "l": 3, "m": 1, "ss": 2, "ns": 2, "bs": 1}
    kinds = {"s": "S", "n": "N", "b": "B", "t": "BOOL", "z": "NULL", "l": "L", "m": "M", "ss": "SS"}
    kinds |= {"ns": "NS", "bs": "BS"}
    await _agrees(
        store,
        true=[
            *(Compare("=", Size(path(name)), value(size)) for name, size in sizes.items()),
            *(TypeIs(path(name), kind) for name, kind in kinds.items()),
            Compare("<>", Size(path("t")), value(1)),
        ],
        false=[
            Compare("=", Size(path("n")), value(1)),
            *(TypeIs(path(name), "N") for name in kinds if name != "n"),
        ],
    )


@check()
async def conditions_combine(store: Store) -> None:
    yes, no = Exists(path("n")), Exists(path("gone"))
    await _agrees(
        store,
        true=[yes & yes, yes | no, ~no, (no & no) | yes, ~(yes & no), And((yes, Or((no, yes)), Not(no)))],
        false=[yes & no, no | no, (yes | yes) & no, no & (yes | yes)],
    )


@check()
async def a_condition_on_a_missing_item_sees_no_attributes(store: Store) -> None:
    table = await store.table()
    with refused(ConditionFailedError):
        await store.put(table, Exists(path("pk")), pk="a")
    await store.put(table, NotExists(path("pk")), pk="a", n=1)
    with refused(ConditionFailedError):
        await store.put(table, NotExists(path("pk")), pk="a", n=2)
    assert await store.get(table, pk="a") == {"pk": "a", "n": 1}


@check()
async def conditions_guard_deletes_and_checks_too(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", n=1)
    with refused(ConditionFailedError):
        await store.delete(table, Compare(">", path("n"), value(1)), pk="a")
    guard = ConditionCheck(table, encode_item({"pk": "a"}), Compare("=", path("n"), value(2)))
    with refused(TransactionCanceledError):
        await store.send(TransactWrite((guard,), store.port.new_id()))
    await store.delete(table, Compare("=", path("n"), value(1)), pk="a")
    assert await store.get(table, pk="a") is None


@check()
async def literals_of_the_wrong_type_are_refused_at_once(store: Store) -> None:
    table = await store.table()
    senseless: list[Condition] = [
        Compare("<", path("n"), value(True)),
        Compare(">", path("n"), value([1])),
        Between(path("n"), value(9), value(1)),
        Between(path("n"), value(1), value("x")),
        Between(path("n"), value(None), value(None)),
        BeginsWith(path("s"), value(5)),
        TypeIs(path("s"), "Q"),
        In(path("n"), ()),
        In(path("n"), tuple(value(number) for number in range(101))),
        And(()),
    ]
    for condition in senseless:
        with refused(InvalidExpressionError):
            await store.put(table, condition, pk="a")
    assert await store.get(table, pk="a") is None
