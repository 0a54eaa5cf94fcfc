"""A request's transaction under ASGI: when it commits, when it is given up, and what the client is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from web_rig import Call, Counter, Counting, add_one, bump, count_of, open_counter, run_awaiting, send_answer

from holdall import AsyncTransaction, Key, Model, Transaction, current_transaction, field
from holdall.backends.embedded import EmbeddedBackend
from holdall.errors import (
    AfterCommitError,
    ModelAlreadyExistsError,
    NoTransactionError,
    OutcomeUnknown,
    RequestAbandoned,
    TransactionClosedError,
    TransactionFailedError,
)
from holdall.testing import Fault, FaultyBackend
from holdall.web import TransactionMiddleware


class Person(Model):
    name: Key[str]
    mail: str | None = field(default=None, unique=True)


# --- committed --------------------------------------------------------------------------------------------


@run_awaiting
async def test_the_commit_is_done_before_the_first_byte_goes_out() -> None:
    stored: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction(AsyncTransaction))
        assert count_of(db) == 0
        await send_answer(send, 200, b"done")

    with open_counter() as db:
        call = Call(watch=lambda message: stored.append(count_of(db)))
        await call.to(TransactionMiddleware(app, db))
    assert stored == [1, 1]
    assert (call.status, call.body) == (200, b"done")


@pytest.mark.parametrize("status", [200, 201, 204, 302, 304, 399])
@run_awaiting
async def test_a_response_below_400_commits(status: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        await send_answer(send, status)

    with open_counter() as db:
        call = await Call().to(TransactionMiddleware(app, db))
        assert (call.status, count_of(db)) == (status, 1)


@run_awaiting
async def test_a_database_of_either_colour_will_do() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction(AsyncTransaction))
        await send_answer(send)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
        await Call().to(TransactionMiddleware(app, db.aio))
        assert count_of(db) == 2


@run_awaiting
async def test_a_request_that_does_not_use_its_transaction_asks_nothing_of_the_store() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        current_transaction()
        await send_answer(send)

    store = Counting()
    with open_counter(store) as db:
        store.requests = 0
        call = await Call().to(TransactionMiddleware(app, db))
        assert (call.status, store.requests) == (200, 0)


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
@run_awaiting
async def test_what_is_no_http_request_is_left_alone(kind: str) -> None:
    seen: list[Any] = []

    async def app(*given: Any) -> None:
        seen.extend(given)
        with pytest.raises(NoTransactionError):
            current_transaction()

    async def receive() -> Any: ...
    async def send(message: Any) -> None: ...

    scope = {"type": kind}
    with open_counter() as db:
        await TransactionMiddleware(app, db)(scope, receive, send)
    assert [*map(id, seen)] == [*map(id, (scope, receive, send))]
    assert scope == {"type": kind}


# --- given up ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500, 503])
@run_awaiting
async def test_an_error_response_gives_the_transaction_up_and_is_sent_as_it_is(status: int) -> None:
    told: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await add_one(tx)
        tx.after_commit(pytest.fail)
        tx.after_failure(told.append)
        await send_answer(send, status, b"so ", b"sorry")

    with open_counter() as db:
        call = await Call("GET").to(TransactionMiddleware(app, db))
        assert (call.status, call.body, count_of(db)) == (status, b"so sorry", 0)
    (error,) = told
    assert isinstance(error, RequestAbandoned)
    assert error.status == status


@run_awaiting
async def test_an_exception_gives_the_transaction_up_and_is_raised_as_it_is() -> None:
    problem = ValueError("broken")
    told: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await add_one(tx)
        tx.after_failure(told.append)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise problem

    with open_counter() as db:
        call = Call()
        with pytest.raises(ValueError, match="broken") as caught:
            await call.to(TransactionMiddleware(app, db))
        assert caught.value is problem
        assert told == [problem]
        assert call.sent == []  # so the server can still say 500
        assert count_of(db) == 0


@pytest.mark.parametrize("begun", [False, True])
@run_awaiting
async def test_without_a_response_nothing_is_committed(begun: bool) -> None:
    told: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        current_transaction().after_failure(told.append)
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})

    with open_counter() as db:
        call = await Call().to(TransactionMiddleware(app, db))
        assert count_of(db) == 0
    assert call.sent == []  # not even the status, which is a lie; the server sees that there is no response
    assert isinstance(told[0], RequestAbandoned)


@run_awaiting
async def test_a_client_that_has_gone_gets_nothing_and_nothing_is_committed() -> None:
    ended: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await add_one(tx)
        tx.after_failure(lambda error: ended.append(error.message))
        while (await receive())["type"] != "http.disconnect":
            pass
        try:
            await send_answer(send)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with open_counter() as db:
        call = await Call("GET", gone=True).to(TransactionMiddleware(app, db))
        assert (call.sent, count_of(db)) == ([], 0)
    assert ended == ["the client has disconnected", "cancelled"]


@run_awaiting
async def test_a_cancelled_request_ends_its_application_and_commits_nothing() -> None:
    arrived = asyncio.Event()
    ended: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            await current_transaction().get(Counter, "c")  # its transaction ends after it
            ended.append("cleaned up")

    with open_counter() as db:
        task = asyncio.ensure_future(Call("GET").to(TransactionMiddleware(app, db)))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["cleaned up"]
        assert count_of(db) == 0


@run_awaiting
async def test_a_request_cancelled_while_it_commits_is_committed_and_sends_nothing() -> None:
    committing = asyncio.Event()
    ended: list[str] = []

    class Slow(Counting):
        async def send_awaiting(self, request: Any) -> Any:
            if request.writes:
                committing.set()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            return await super().send_awaiting(request)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        try:
            await send_answer(send)
        finally:
            ended.append("cleaned up")

    with open_counter(Slow()) as db:
        call = Call("GET")
        task = asyncio.ensure_future(call.to(TransactionMiddleware(app, db)))
        await committing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (call.sent, ended, count_of(db)) == ([], ["cleaned up"], 1)


# --- streams and what comes after ---------------------------------------------------------------------------


@run_awaiting
async def test_a_stream_goes_on_after_the_commit_without_the_transaction() -> None:
    gone_out: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await add_one(tx)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (gone_out, count_of(db)) == ([], 0)
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        assert (gone_out, count_of(db)) == ([b"", b"one"], 1)
        with pytest.raises(TransactionClosedError):
            await tx.get(Counter, "c")
        with pytest.raises(NoTransactionError, match="has ended"):
            current_transaction()
        async with db.aio.transaction() as another:
            await add_one(another)
        await send({"type": "http.response.body", "body": b"two"})
        assert gone_out == [b"", b"one", b"two"]

    with open_counter() as db:
        call = Call(watch=lambda message: gone_out.append(message.get("body", b"")))
        await call.to(TransactionMiddleware(app, db))
        assert (call.body, count_of(db)) == (b"onetwo", 2)


@run_awaiting
async def test_a_stream_that_breaks_off_is_committed_all_the_same() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        raise ValueError("broken")

    with open_counter() as db:
        call = Call("GET")
        with pytest.raises(ValueError, match="broken"):
            await call.to(TransactionMiddleware(app, db))
        assert (call.body, count_of(db)) == (b"one", 1)


@run_awaiting
async def test_work_after_the_response_runs_after_the_commit() -> None:
    found: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        await send_answer(send)
        found.append(count_of(db))

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
    assert found == [1]


@run_awaiting
async def test_messages_of_several_tasks_keep_their_order() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        parts = [{"type": "http.response.body", "body": b"%d" % n, "more_body": True} for n in range(5)]
        await asyncio.gather(*map(send, parts))
        await send({"type": "http.response.body", "body": b"."})

    with open_counter() as db:
        call = await Call().to(TransactionMiddleware(app, db))
    assert call.body == b"01234."


@run_awaiting
async def test_what_is_said_before_the_response_is_held_back_with_it() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        await send({"type": "http.response.early_hint", "links": []})
        await send_answer(send)

    stored: list[int] = []
    with open_counter() as db:
        call = Call(watch=lambda message: stored.append(count_of(db)))
        await call.to(TransactionMiddleware(app, db))
    assert [message["type"] for message in call.sent] == [
        "http.response.early_hint",
        "http.response.start",
        "http.response.body",
    ]
    assert stored == [1, 1, 1]


# --- commits that fail ------------------------------------------------------------------------------------


@run_awaiting
async def test_a_handler_that_fails_after_the_commit_does_not_change_the_answer() -> None:
    runs: list[int] = []

    class Passing(Exception):
        retryable = True

    def fail() -> None:
        raise Passing

    async def app(scope: Any, receive: Any, send: Any) -> None:
        runs.append(1)
        tx = current_transaction()
        await add_one(tx)
        tx.after_commit(fail)
        await send_answer(send, 200, b"done")

    with open_counter() as db:
        call = Call("GET")
        with pytest.raises(AfterCommitError) as caught:
            await call.to(TransactionMiddleware(app, db))
        assert isinstance(caught.value.__cause__, Passing)
        assert (call.status, call.body, count_of(db), runs) == (200, b"done", 1, [1])


@run_awaiting
async def test_a_commit_of_which_nobody_knows_is_raised_and_never_run_again() -> None:
    runs: list[int] = []
    store = FaultyBackend(EmbeddedBackend(None))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        runs.append(1)
        await add_one(current_transaction())
        store.inject(Fault.LOST_AFTER)
        await send_answer(send)

    with open_counter(store) as db:
        call = Call("GET")
        with pytest.raises(OutcomeUnknown):
            await call.to(TransactionMiddleware(app, db))
        assert (call.sent, runs, count_of(db)) == ([], [1], 1)


async def create_again(tx: Any) -> None:
    tx.create(Counter, name="c")


async def guess_wrong(tx: Any) -> None:
    tx.update(Counter, {"name": "c", "n": 7}, {"n": 8})


async def take_the_mail(tx: Any) -> None:
    tx.create(Person, name="bo", mail="ada@x")


async def all_of_it(tx: Any) -> None:
    await create_again(tx)
    await take_the_mail(tx)


@pytest.mark.parametrize("body", [create_again, guess_wrong, take_the_mail, all_of_it])
@run_awaiting
async def test_what_does_not_go_with_what_is_stored_is_a_conflict_and_not_worth_another_try(
    body: Any,
) -> None:
    runs: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        runs.append(1)
        await body(current_transaction())
        await send_answer(send, 201)

    with open_counter() as db:
        db.run(lambda tx: tx.create(Person, name="ada", mail="ada@x"))
        call = await Call("GET").to(TransactionMiddleware(app, db))
        assert (call.status, runs) == (409, [1])
        assert b"retry-after" not in call.headers
        assert b"ada" not in call.body
        assert db.get(Person, "bo") is None


@run_awaiting
async def test_a_store_that_stays_busy_is_told_as_such() -> None:
    store = FaultyBackend(EmbeddedBackend(None))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        store.inject(Fault.THROTTLE)
        await send_answer(send)

    with open_counter(store) as db:
        call = await Call("GET").to(TransactionMiddleware(app, db, retries=1))
        assert (call.status, call.headers[b"retry-after"], count_of(db)) == (503, b"1", 0)


class Refusing(Model):
    name: Key[str]

    def before_commit(self, tx: Any) -> None:
        raise LookupError("not like this")


@run_awaiting
async def test_any_other_error_of_the_commit_is_raised() -> None:
    ended: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        current_transaction().create(Refusing, name="x")
        try:
            await send_answer(send)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with open_counter() as db:
        call = Call()
        with pytest.raises(LookupError, match="not like this"):
            await call.to(TransactionMiddleware(app, db))
    assert (call.sent, ended) == ([], ["cancelled"])


@pytest.mark.parametrize(
    "error",
    [AfterCommitError("of another"), TransactionFailedError("of another"), ModelAlreadyExistsError("own")],
    ids=lambda error: type(error).__name__,
)
@run_awaiting
async def test_an_error_of_a_transaction_inside_is_the_applications_own(error: Exception) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        raise error

    with open_counter() as db:
        call = Call("GET")
        with pytest.raises(type(error)) as caught:
            await call.to(TransactionMiddleware(app, db))
        assert caught.value is error
        assert not hasattr(error, "__notes__")
        assert (call.sent, count_of(db)) == ([], 0)


# --- inner and outer --------------------------------------------------------------------------------------


@run_awaiting
async def test_a_run_inside_of_a_request_is_a_transaction_of_its_own() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        outer = current_transaction()
        bump(db)
        assert current_transaction() is outer
        async with db.aio.transaction() as inner:
            assert current_transaction() is inner
        assert current_transaction() is outer
        await send_answer(send, 500)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
        assert count_of(db) == 100


@run_awaiting
async def test_each_of_many_requests_at_once_has_a_transaction_of_its_own() -> None:
    together = asyncio.Barrier(30)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        for _ in range(3):
            await together.wait()
            assert current_transaction() is tx
            assert (await asyncio.to_thread(current_transaction, Transaction))._unit is tx._unit
        tx.create(Counter, name=str(id(tx)))
        await send_answer(send, 200, str(id(tx)).encode())

    with open_counter() as db:
        middleware = TransactionMiddleware(app, db)
        calls = await asyncio.gather(*(Call().to(middleware) for _ in range(30)))
        names = {call.body.decode() for call in calls}
        assert len(names) == 30
        assert None not in db.get_all([Counter.key(name) for name in names])
        with pytest.raises(NoTransactionError):
            current_transaction()
