"""A request's transaction under ASGI: when it commits, when it is abandoned, and how the client is answered."""

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


# --- commits ----------------------------------------------------------------------------------------------


@run_awaiting
async def test_the_transaction_commits_before_the_first_byte_is_sent() -> None:
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
async def test_the_middleware_takes_a_sync_or_an_async_database() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction(AsyncTransaction))
        await send_answer(send)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(app, db))
        await Call().to(TransactionMiddleware(app, db.aio))
        assert count_of(db) == 2


@run_awaiting
async def test_a_request_that_does_not_use_its_transaction_sends_nothing_to_the_store() -> None:
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
async def test_scopes_other_than_http_are_passed_through_unchanged(kind: str) -> None:
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


# --- abandoned transactions -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500, 503])
@run_awaiting
async def test_an_error_response_abandons_the_transaction_and_is_sent_unchanged(status: int) -> None:
    failures: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await add_one(tx)
        tx.after_commit(pytest.fail)
        tx.after_failure(failures.append)
        await send_answer(send, status, b"so ", b"sorry")

    with open_counter() as db:
        call = await Call("GET").to(TransactionMiddleware(app, db))
        assert (call.status, call.body, count_of(db)) == (status, b"so sorry", 0)
    (error,) = failures
    assert isinstance(error, RequestAbandoned)
    assert error.status == status


@run_awaiting
async def test_an_exception_abandons_the_transaction_and_is_raised_unchanged() -> None:
    problem = ValueError("broken")
    failures: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await add_one(tx)
        tx.after_failure(failures.append)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise problem

    with open_counter() as db:
        call = Call()
        with pytest.raises(ValueError, match="broken") as caught:
            await call.to(TransactionMiddleware(app, db))
        assert caught.value is problem
        assert failures == [problem]
        assert call.sent == []  # so the server can still respond with 500
        assert count_of(db) == 0


@pytest.mark.parametrize("begun", [False, True])
@run_awaiting
async def test_without_a_response_nothing_is_committed(begun: bool) -> None:
    failures: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        current_transaction().after_failure(failures.append)
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})

    with open_counter() as db:
        call = await Call().to(TransactionMiddleware(app, db))
        assert count_of(db) == 0
    assert (
        call.sent == []
    )  # not even the status, which would be wrong; the server sees that there is no response
    assert isinstance(failures[0], RequestAbandoned)


@run_awaiting
async def test_nothing_is_sent_or_committed_after_the_client_disconnects() -> None:
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
            await current_transaction().get(Counter, "c")  # the transaction ends after the application
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


# --- streams and work after the response --------------------------------------------------------------------


@run_awaiting
async def test_a_stream_continues_after_the_commit_without_the_transaction() -> None:
    sent: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await add_one(tx)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (sent, count_of(db)) == ([], 0)
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        assert (sent, count_of(db)) == ([b"", b"one"], 1)
        with pytest.raises(TransactionClosedError):
            await tx.get(Counter, "c")
        with pytest.raises(NoTransactionError, match="has ended"):
            current_transaction()
        async with db.aio.transaction() as another:
            await add_one(another)
        await send({"type": "http.response.body", "body": b"two"})
        assert sent == [b"", b"one", b"two"]

    with open_counter() as db:
        call = Call(watch=lambda message: sent.append(message.get("body", b"")))
        await call.to(TransactionMiddleware(app, db))
        assert (call.body, count_of(db)) == (b"onetwo", 2)


@run_awaiting
async def test_a_stream_that_fails_after_its_first_chunk_is_still_committed() -> None:
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
async def test_messages_before_the_response_are_held_back_until_the_commit() -> None:
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


# --- failed commits ---------------------------------------------------------------------------------------


@run_awaiting
async def test_an_after_commit_handler_that_fails_does_not_change_the_response() -> None:
    runs: list[int] = []

    class TransientError(Exception):
        retryable = True

    def fail() -> None:
        raise TransientError

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
        assert isinstance(caught.value.__cause__, TransientError)
        assert (call.status, call.body, count_of(db), runs) == (200, b"done", 1, [1])


@run_awaiting
async def test_a_commit_with_an_unknown_outcome_raises_an_error_and_is_never_run_again() -> None:
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


async def expect_a_stale_value(tx: Any) -> None:
    tx.update(Counter, {"name": "c", "n": 7}, {"n": 8})


async def take_the_mail(tx: Any) -> None:
    tx.create(Person, name="bo", mail="ada@x")


async def create_again_and_take_the_mail(tx: Any) -> None:
    await create_again(tx)
    await take_the_mail(tx)


@pytest.mark.parametrize(
    "body", [create_again, expect_a_stale_value, take_the_mail, create_again_and_take_the_mail]
)
@run_awaiting
async def test_a_refused_condition_is_answered_with_a_conflict_and_not_run_again(
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
async def test_a_store_that_keeps_throttling_is_answered_with_503() -> None:
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
async def test_an_error_that_the_application_raises_itself_is_not_taken_for_one_of_the_request(
    error: Exception,
) -> None:
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


# --- nested and concurrent transactions -------------------------------------------------------------------


@run_awaiting
async def test_a_transaction_inside_a_request_is_separate() -> None:
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
async def test_each_of_many_concurrent_requests_has_its_own_transaction() -> None:
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
