"""One request whose code runs on the event loop and in threads shares one transaction, async and sync."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from web_rig import Call, Counter, add_one, bump, count_of, open_counter, run_awaiting, send_answer

from holdall import AsyncTransaction, Key, Model, Transaction, current_transaction
from holdall.errors import NoTransactionError
from holdall.web import TransactionMiddleware


def is_in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@run_awaiting
async def test_both_colours_are_one_transaction() -> None:
    def in_thread() -> None:
        tx = current_transaction(Transaction)
        assert tx is current_transaction()
        assert tx.get_one(Counter, "c").n == 1  # the event loop's change
        tx.get_one(Counter, "c").n += 1
        tx.create(Counter, name="from a thread")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        counter = await add_one(current_transaction(AsyncTransaction))
        await asyncio.to_thread(in_thread)
        assert counter.n == 2
        await send_answer(send)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
        assert count_of(db) == 2
        assert db.get(Counter, "from a thread") is not None


@run_awaiting
async def test_a_thread_of_a_retried_request_reads_again() -> None:
    runs: list[int] = []

    def in_thread() -> int:
        runs.append(1)
        counter = current_transaction().get_one(Counter, "c")
        counter.n += 1
        if len(runs) == 1:
            bump(db)
        return int(counter.n)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send_answer(send, 200, b"%d" % await asyncio.to_thread(in_thread))

    with open_counter() as db:
        call = await Call("GET").to(TransactionMiddleware(app, db))
        assert (call.body, len(runs), count_of(db)) == (b"101", 2, 101)


@run_awaiting
async def test_the_loop_gets_only_the_async_transaction_and_a_thread_only_the_sync_one() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        with pytest.raises(NoTransactionError, match="not of type Transaction"):
            current_transaction(Transaction)
        with pytest.raises(NoTransactionError, match="not of type AsyncTransaction"):
            await asyncio.to_thread(current_transaction, AsyncTransaction)
        await send_answer(send)

    with open_counter() as db:
        assert (await Call().to(TransactionMiddleware(app, db))).status == 200


@run_awaiting
async def test_another_event_loop_in_a_thread_gets_the_sync_transaction() -> None:
    async def on_another_loop() -> Any:
        return current_transaction()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert isinstance(await asyncio.to_thread(asyncio.run, on_another_loop()), Transaction)
        await send_answer(send)

    with open_counter() as db:
        assert (await Call().to(TransactionMiddleware(app, db))).status == 200


@run_awaiting
async def test_handlers_registered_in_a_thread_run_in_a_thread_and_those_of_the_loop_on_the_loop() -> None:
    seen: dict[str, bool] = {}

    async def note_thread() -> None:
        seen["awaiting, from a thread"] = is_in_main_thread()

    def in_thread() -> None:
        tx = current_transaction()
        tx.get_one(Counter, "c").n += 1
        tx.after_commit(lambda name: seen.update({name: is_in_main_thread()}), "from a thread")
        tx.after_commit(note_thread)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(in_thread)
        current_transaction().after_commit(lambda: seen.update({"from the loop": is_in_main_thread()}))
        await send_answer(send)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
    assert seen == {"from a thread": False, "awaiting, from a thread": True, "from the loop": True}


@run_awaiting
async def test_failure_handlers_registered_in_a_thread_run_in_a_thread() -> None:
    seen: list[tuple[bool, str]] = []

    def in_thread() -> None:
        current_transaction().after_failure(
            lambda error: seen.append((is_in_main_thread(), type(error).__name__))
        )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(in_thread)
        await send_answer(send, 404)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
    assert seen == [(False, "RequestAbandoned")]


# --- hooks ------------------------------------------------------------------------------------------------


class Checked(Model):
    """A model with a sync hook that reads."""

    name: Key[str]
    n: int = 0

    def before_commit(self, tx: Transaction) -> None:
        assert not is_in_main_thread()
        assert current_transaction(Transaction) is tx
        self.n = tx.get_one(Counter, "c").n


class AwaitingChecked(Model):
    name: Key[str]
    n: int = 0

    async def before_commit(self, tx: AsyncTransaction) -> None:
        assert is_in_main_thread()
        assert current_transaction(AsyncTransaction) is tx
        self.n = (await tx.get_one(Counter, "c")).n


class Recording(Model):
    name: Key[str]
    seen: str = ""

    def before_commit(self, tx: Any) -> None:
        self.seen = f"{is_in_main_thread()} {isinstance(tx, AsyncTransaction)}"


@run_awaiting
async def test_sync_hooks_get_the_sync_transaction_and_async_hooks_the_async_one() -> None:
    def in_thread() -> None:
        current_transaction().create(Checked, name="x")
        current_transaction().create(AwaitingChecked, name="x")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(in_thread)
        await send_answer(send)

    with open_counter() as db:
        bump(db)
        assert (await Call().to(TransactionMiddleware(app, db))).status == 200
        assert (db.get_one(Checked, "x").n, db.get_one(AwaitingChecked, "x").n) == (100, 100)


@run_awaiting
async def test_hooks_run_on_the_event_loop_if_no_thread_used_the_transaction() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        current_transaction().create(Recording, name="x")
        await send_answer(send)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
        assert db.get_one(Recording, "x").seen == "True True"
