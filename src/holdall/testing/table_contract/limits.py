"""Limits and invalid input: refused with a message, before anything is written."""

from __future__ import annotations

from typing import Any

from holdall.core.expressions import (
    Add,
    Compare,
    Exists,
    In,
    Not,
    NotExists,
    Or,
    Plus,
    Set,
    Update,
    path,
    value,
)
from holdall.core.measure import item_size
from holdall.core.requests import (
    BatchWrite,
    ConditionCheck,
    GetItem,
    PutItem,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.values import encode_item
from holdall.errors import (
    InvalidExpressionError,
    InvalidKeyError,
    InvalidRequestError,
    InvalidValueError,
    ItemTooLargeError,
    TransactionTooLarge,
)
from holdall.testing.table_contract.check import Store, check, refused

LONG = 380 * 1024


@check()
async def an_item_may_have_400_kb_and_not_a_byte_more(store: Store) -> None:
    table = await store.table()
    room = 400 * 1024 - item_size(encode_item({"pk": "a", "text": ""}))
    with refused(ItemTooLargeError):
        await store.put(table, pk="a", text="x" * (room + 1))
    assert await store.get(table, pk="a") is None
    await store.put(table, pk="a", text="x" * room)
    with refused(ItemTooLargeError):
        await store.update(table, {"pk": "a"}, Set(path("n"), value(1)))
    assert (await store.get(table, pk="a") or {}).keys() == {"pk", "text"}


@check()
async def keys_have_their_own_limits(store: Store) -> None:
    table = await store.table("S", "S")
    await store.put(table, pk="p" * 2048, sk="s" * 1024)
    for pk, sk in (("p" * 2049, "s"), ("ü" * 1025, "s"), ("p", "s" * 1025)):
        with refused(InvalidKeyError):
            await store.put(table, pk=pk, sk=sk)
        with refused(InvalidKeyError):
            await store.get(table, pk=pk, sk=sk)


@check()
async def keys_are_complete_typed_and_not_empty(store: Store) -> None:
    table = await store.table("S", "B")
    wrongs: list[dict[str, Any]] = [
        {"pk": "a"},
        {"sk": b"a"},
        {"pk": 1, "sk": b"a"},
        {"pk": "a", "sk": "a"},
        {"pk": "", "sk": b"a"},
        {"pk": "a", "sk": b""},
        {"pk": None, "sk": b"a"},
    ]
    for wrong in wrongs:
        with refused(InvalidKeyError):
            await store.put(table, **wrong)
        with refused(InvalidKeyError):
            await store.get(table, **wrong)
    with refused(InvalidKeyError):
        await store.get(table, pk="a", sk=b"a", more=1)


@check()
async def values_outside_the_types_are_refused(store: Store) -> None:
    table = await store.table()
    malformed: list[Any] = [
        {"N": "NaN"},
        {"N": "Infinity"},
        {"N": "1" * 39},
        {"N": "1E126"},
        {"N": "1E-131"},
        {"N": "text"},
        {"N": ""},
        {"N": 5},
        {"S": 5},
        {"B": "not base64!"},
        {"BOOL": "yes"},
        {"NULL": False},
        {"SS": []},
        {"SS": ["a", "a"]},
        {"NS": ["1", "1.0"]},
        {"SS": "ab"},
        {"L": "ab"},
        {"M": []},
        {"X": "unknown"},
        {"S": "two", "N": "1"},
        {},
        "bare",
        {"M": {"": {"S": "nameless"}}},
        {"S": "\ud800"},
    ]
    for attribute in malformed:
        with refused(InvalidValueError) as refusal:
            await store.send(PutItem(table, {"pk": {"S": "a"}, "bad": attribute}))
        assert "bad" in str(refusal.error)
    assert await store.get(table, pk="a") is None


@check()
async def documents_nest_32_levels_deep(store: Store) -> None:
    table = await store.table()

    def nest(levels: int) -> Any:
        inner: Any = 1
        for _ in range(levels):
            inner = [inner]
        return inner

    await store.put(table, pk="a", deep=nest(31))
    with refused(InvalidValueError):
        await store.put(table, pk="b", deep=nest(32))


@check()
async def expressions_have_300_operators_at_the_most(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", n=1)
    one = Compare("=", path("n"), value(1))
    await store.put(table, Or((one,) * 150), pk="a", n=1)
    with refused(InvalidExpressionError):
        await store.put(table, Or((one,) * 151), pk="a", n=2)
    assert await store.get(table, pk="a") == {"pk": "a", "n": 1}


@check()
async def expressions_have_4_kb_of_text_at_the_most(store: Store) -> None:
    table = await store.table()
    many = tuple(Set(path(f"n{number}"), value(number)) for number in range(250))
    await store.update(table, {"pk": "a"}, *many)
    with refused(InvalidExpressionError):
        await store.update(table, {"pk": "b"}, *(Set(path(f"n{n}"), value(n)) for n in range(500)))
    assert await store.get(table, pk="b") is None


@check()
async def expressions_have_2_mb_of_names_and_values_at_the_most(store: Store) -> None:
    table = await store.table()
    options = tuple(value(f"{number}{'x' * LONG}") for number in range(6))
    with refused(TransactionTooLarge):
        await store.put(table, Not(In(path("text"), options)), pk="a")
    assert await store.get(table, pk="a") is None
    await store.put(table, Not(In(path("text"), options[:2])), pk="a")


@check()
async def a_transaction_has_4_mb_at_the_most_with_the_values_of_its_conditions(store: Store) -> None:
    table = await store.table()
    new = Or((NotExists(path("pk")), Compare("=", path("text"), value("x" * LONG))))
    checks = tuple(ConditionCheck(table, encode_item({"pk": str(number)}), new) for number in range(11))
    put = PutItem(table, encode_item({"pk": "a"}))
    with refused(TransactionTooLarge):
        await store.transact(put, *checks)
    assert await store.get(table, pk="a") is None
    await store.transact(put, *checks[:10])


@check()
async def stored_items_do_not_count_in_the_size_of_a_transaction(store: Store) -> None:
    table = await store.table()
    keys = [encode_item({"pk": str(number)}) for number in range(11)]
    for key in keys:
        await store.send(PutItem(table, {**key, "text": {"S": "x" * LONG}}))
    count = Update((Add(path("n"), value(1)),))
    updates = tuple(UpdateItem(table, key, count, Exists(path("text"))) for key in keys)
    await store.transact(*updates)


@check()
async def malformed_paths_are_refused(store: Store) -> None:
    table = await store.table()
    for parts in ((), ("",), (0,), ("a", -1), ("a", ""), ("a",) * 33):
        with refused(InvalidExpressionError):
            await store.send(GetItem(table, encode_item({"pk": "a"}), projection=(path(*parts),)))


@check()
async def only_an_update_can_return_the_new_item(store: Store) -> None:
    table = await store.table()
    with refused(InvalidRequestError):
        await store.send(PutItem(table, encode_item({"pk": "a"}), returns="new"))
    assert await store.get(table, pk="a") is None


@check()
async def an_invalid_expression_or_action_is_refused_and_changes_nothing(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", n=1)
    plain: list[Any] = [
        Set(path("n"), 5),  # type: ignore[arg-type]
        Set(path("n"), Plus(path("n"), 5)),  # type: ignore[arg-type]
        Add(path("n"), 5),  # type: ignore[arg-type]
        Set("n", value(5)),  # type: ignore[arg-type]
        "n",
    ]
    for action in plain:
        with refused(InvalidExpressionError):
            await store.update(table, {"pk": "a"}, action)
    with refused(InvalidExpressionError):
        await store.put(table, Compare("=", path("n"), 1), pk="a")  # type: ignore[arg-type]
    key = encode_item({"pk": "a"})
    with refused(InvalidExpressionError):
        single: Any = Set(path("n"), value(5))
        await store.send(UpdateItem(table, key, Update(single)))
    update: Any = UpdateItem(table, key, Update((Set(path("n"), value(5)),)))
    read: Any = GetItem(table, key)
    with refused(InvalidRequestError):
        await store.send(BatchWrite((update,)))
    with refused(InvalidRequestError):
        await store.transact(read)
    with refused(InvalidRequestError):
        await store.send(TransactGet((update,)))
    with refused(InvalidRequestError):
        number: Any = 5
        await store.send(TransactWrite((update,), number))
    assert await store.get(table, pk="a") == {"pk": "a", "n": 1}


@check()
async def options_outside_their_range_are_refused(store: Store) -> None:
    table = await store.table()
    limits: list[Any] = [0, -1, 1.5, True, "3"]
    for limit in limits:
        with refused(InvalidRequestError):
            await store.query(table, "a", limit=limit)
    returns: Any = "olld"
    with refused(InvalidRequestError):
        await store.send(PutItem(table, encode_item({"pk": "a"}), returns=returns))
    assert await store.get(table, pk="a") is None
