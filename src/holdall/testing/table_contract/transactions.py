"""Transactions: all or nothing, in the caller's order, safe to repeat."""

from __future__ import annotations

from contextlib import suppress

from holdall.core.expressions import Add, Compare, Exists, NotExists, Plus, Set, Update, path, value
from holdall.core.requests import (
    ConditionCheck,
    DeleteItem,
    GetItem,
    PutItem,
    TransactAction,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.stamp import stamped
from holdall.core.values import encode_item
from holdall.errors import (
    ConditionFailedError,
    DuplicateItemError,
    HoldallError,
    InvalidRequestError,
    TableNotFoundError,
    TokenReusedError,
    TransactionCanceledError,
    TransactionTooLarge,
)
from holdall.testing.table_contract.check import Store, check, refused


def _put(table: str, pk: str, **values: object) -> PutItem:
    return PutItem(table, encode_item({"pk": pk, **values}))


def _count(table: str, pk: str, amount: int = 1) -> UpdateItem:
    return UpdateItem(table, encode_item({"pk": pk}), Update((Add(path("n"), value(amount)),)))


@check()
async def all_actions_happen_together(store: Store) -> None:
    first, second = await store.table(), await store.table()
    await store.put(first, pk="gone", n=1)
    await store.put(first, pk="guard", n=1)
    actions: tuple[TransactAction, ...] = (
        _put(first, "put", n=1),
        _count(second, "count", 5),
        DeleteItem(first, encode_item({"pk": "gone"})),
        ConditionCheck(first, encode_item({"pk": "guard"}), Exists(path("n"))),
    )
    await store.transact(*actions)
    assert await store.get(first, pk="put") == {"pk": "put", "n": 1}
    assert await store.get(second, pk="count") == {"pk": "count", "n": 5}
    assert await store.get(first, pk="gone") is None
    assert await store.get(first, pk="guard") == {"pk": "guard", "n": 1}


@check()
async def one_failed_condition_stops_everything_and_is_found_in_its_place(store: Store) -> None:
    table = await store.table()
    stored = encode_item({"pk": "b", "n": 1})
    await store.send(PutItem(table, stored))
    wrong = Compare("=", path("n"), value(2))
    actions: tuple[TransactAction, ...] = (
        _put(table, "a"),
        PutItem(table, encode_item({"pk": "b"}), wrong, item_on_failure=True),
        _count(table, "c"),
        DeleteItem(table, encode_item({"pk": "d"}), Exists(path("pk"))),
        ConditionCheck(table, encode_item({"pk": "e"}), NotExists(path("pk"))),
    )
    with refused(TransactionCanceledError) as refusal:
        await store.transact(*actions)
    codes = [reason.code for reason in refusal.error.reasons]
    assert codes == ["None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed", "None"]
    assert [reason.item for reason in refusal.error.reasons] == [None, stored, None, None, None]
    assert not refusal.error.retryable
    for pk in "acd":
        assert await store.get(table, pk=pk) is None


@check()
async def an_action_the_item_does_not_fit_cancels_the_rest(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="b", n="text")
    with refused(HoldallError):
        await store.transact(_put(table, "a"), _count(table, "b"))
    assert await store.get(table, pk="a") is None
    assert await store.get(table, pk="b") == {"pk": "b", "n": "text"}


@check()
async def the_same_token_takes_effect_once(store: Store) -> None:
    table = await store.table()
    request = TransactWrite((_count(table, "a"), _put(table, "b")), store.port.new_id())
    for _ in range(3):
        await store.send(request)
    assert await store.get(table, pk="a") == {"pk": "a", "n": 1}
    await store.transact(*request.actions)
    assert await store.get(table, pk="a") == {"pk": "a", "n": 2}


@check()
async def a_stamped_write_that_arrives_twice_has_happened_once(store: Store) -> None:
    table = await store.table()
    item = encode_item({"pk": "a", "n": 1})
    create = stamped(PutItem(table, item, NotExists(path("pk"))), store.port.new_id())
    change = UpdateItem(
        table,
        encode_item({"pk": "a"}),
        Update((Set(path("n"), value(2)), Add(path("changes"), value(1)))),
        Compare("=", path("n"), value(1)),
    )
    change = stamped(change, store.port.new_id())
    for write in (create, change):
        await store.send(write)
        await store.send(write)
    with refused(ConditionFailedError):  # its stamp is no longer there
        await store.send(create)
    found = await store.get(table, pk="a")
    assert found is not None
    assert (found["n"], found["changes"]) == (2, 1)


@check()
async def a_token_cannot_serve_two_transactions(store: Store) -> None:
    table = await store.table()
    token = store.port.new_id()
    await store.send(TransactWrite((_count(table, "a"),), token))
    with refused(TokenReusedError):
        await store.send(TransactWrite((_count(table, "a", 2),), token))
    assert await store.get(table, pk="a") == {"pk": "a", "n": 1}


@check()
async def a_token_whose_transaction_was_cancelled_is_free(store: Store) -> None:
    table = await store.table()
    token = store.port.new_id()
    guarded = UpdateItem(
        table, encode_item({"pk": "a"}), Update((Add(path("n"), value(1)),)), Exists(path("pk"))
    )
    with refused(TransactionCanceledError):
        await store.send(TransactWrite((guarded,), token))
    await store.put(table, pk="a", n=1)
    await store.send(TransactWrite((guarded,), token))
    assert await store.get(table, pk="a") == {"pk": "a", "n": 2}


@check()
async def a_transaction_reads_as_of_one_instant_in_order(store: Store) -> None:
    first, second = await store.table(), await store.table("N")
    await store.put(first, pk="a", n=1, more=True)
    await store.put(second, pk=7, n=2)
    reads = (
        GetItem(second, encode_item({"pk": 7})),
        GetItem(first, encode_item({"pk": "missing"})),
        GetItem(first, encode_item({"pk": "a"}), projection=(path("n"),)),
    )
    reply = await store.send(TransactGet(reads))
    assert reply.items == (encode_item({"pk": 7, "n": 2}), None, encode_item({"n": 1}))


@check()
async def concurrent_increments_all_count(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", n=0)

    async def increment() -> None:
        while True:
            try:
                await store.transact(_count(table, "a"))
            except HoldallError as error:
                if not error.retryable:
                    raise
                await store.port.sleep(0.01)
            else:
                return

    for outcome in await store.port.gather([increment() for _ in range(20)], limit=8):
        outcome.result()
    assert await store.get(table, pk="a") == {"pk": "a", "n": 20}


@check()
async def transfers_never_show_or_lose_money(store: Store) -> None:
    table = await store.table()
    for pk in "abc":
        await store.put(table, pk=pk, n=100)

    async def transfer(source: str, target: str) -> None:
        enough = Compare(">=", path("n"), value(10))
        take = UpdateItem(table, encode_item({"pk": source}), Update((Add(path("n"), value(-10)),)), enough)
        with suppress(
            TransactionCanceledError
        ):  # contention, or not enough money; the sums below must be right
            await store.transact(take, _count(table, target, 10))
        keys = tuple(GetItem(table, encode_item({"pk": pk})) for pk in "abc")
        try:
            reply = await store.send(TransactGet(keys))
        except TransactionCanceledError:
            return
        assert sum(int(item["n"]["N"]) for item in reply.items if item) == 300

    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")] * 6
    for outcome in await store.port.gather([transfer(*pair) for pair in pairs], limit=6):
        outcome.result()


@check()
async def a_hundred_actions_fit_and_one_more_does_not(store: Store) -> None:
    table = await store.table()
    hundred = tuple(_put(table, f"k{number}") for number in range(100))
    with refused(TransactionTooLarge):
        await store.transact(*hundred, _put(table, "one more"))
    assert await store.get(table, pk="k0") is None
    await store.transact(*hundred)
    assert await store.get(table, pk="k99") == {"pk": "k99"}
    with refused(TransactionTooLarge):
        key = encode_item({"pk": "k0"})
        await store.send(TransactGet(tuple(GetItem(table, key) for _ in range(101))))


@check()
async def one_item_cannot_take_part_twice(store: Store) -> None:
    table = await store.table("N")
    check_same = ConditionCheck(table, {"pk": {"N": "1.0"}}, NotExists(path("pk")))
    with refused(DuplicateItemError):
        await store.transact(PutItem(table, encode_item({"pk": 1})), check_same)
    assert await store.get(table, pk=1) is None
    read = GetItem(table, encode_item({"pk": 1}))
    with refused(DuplicateItemError):
        await store.send(TransactGet((read, read)))


@check()
async def malformed_transactions_are_refused(store: Store) -> None:
    table = await store.table()
    put = _put(table, "a")
    with refused(InvalidRequestError):
        await store.transact()
    with refused(InvalidRequestError):
        await store.send(TransactGet(()))
    for token in ("", "x" * 37):
        with refused(InvalidRequestError):
            await store.send(TransactWrite((put,), token))
    with refused(InvalidRequestError):
        returning = PutItem(table, put.item, returns="old")
        await store.transact(returning)
    with refused(TableNotFoundError):
        await store.transact(put, _put("holdall-missing", "a"))
    assert await store.get(table, pk="a") is None


@check()
async def arithmetic_in_a_transaction_reads_the_stored_item(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a", n=40)
    step = Set(path("n"), Plus(path("n"), value(2)))
    update = UpdateItem(table, encode_item({"pk": "a"}), Update((step,)))
    await store.transact(update)
    assert await store.get(table, pk="a") == {"pk": "a", "n": 42}


@check("capacity")
async def transactions_cost_double(store: Store) -> None:
    table = await store.table()
    reply = await store.transact(_put(table, "a"), _put(table, "b"))
    assert reply.capacity == 4
    got = await store.send(TransactGet((GetItem(table, encode_item({"pk": "a"})),)))
    assert got.capacity == 2
