"""Contention under ASGI: which requests are run again, and what an abandoned run can no longer do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from web_rig import Call, Counter, add_one, bump, count_of, open_counter, run_awaiting, send_answer

from holdall import AsyncDatabase, Database, current_transaction
from holdall.errors import ConfigurationError, InvalidOptionsError, TransactionFailedError
from holdall.web import TransactionMiddleware, retry_on_contention


class Contended:
    """An application that increments a counter; in its first ``times`` runs, another writer changes it first."""

    def __init__(self, db: Database, times: int = 1) -> None:
        self.runs = 0
        self.db = db
        self.times = times

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.runs += 1
        counter = await add_one(current_transaction())
        await self.handle(scope, receive)
        if self.runs <= self.times:
            bump(self.db)
        await send_answer(send, 200, b"%d" % counter.n)

    async def handle(self, scope: Any, receive: Any) -> None:
        """Overridden by applications that do more."""


# --- which requests are run again -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@run_awaiting
async def test_a_safe_method_is_run_again(method: str) -> None:
    with open_counter() as db:
        app = Contended(db)
        call = await Call(method).to(TransactionMiddleware(app, db))
        assert (call.status, call.body, app.runs, count_of(db)) == (200, b"101", 2, 101)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@run_awaiting
async def test_any_other_method_is_not_run_again_but_answered_with_a_conflict(method: str) -> None:
    with open_counter() as db:
        app = Contended(db)
        call = await Call(method).to(TransactionMiddleware(app, db))
        assert (call.status, app.runs, count_of(db)) == (409, 1, 100)
        assert call.headers[b"retry-after"] == b"1"
        assert call.headers[b"content-length"] == b"%d" % len(call.body)
        assert len(call.sent) == 2


class Asking(Contended):
    async def handle(self, scope: Any, receive: Any) -> None:
        retry_on_contention()


class Decorated(Contended):
    async def handle(self, scope: Any, receive: Any) -> None:
        assert await self.retry_awaiting(7) == 7

    @staticmethod
    @retry_on_contention
    async def retry_awaiting(number: int) -> int:
        return number


class Threaded(Contended):
    async def handle(self, scope: Any, receive: Any) -> None:
        assert await asyncio.to_thread(self.retry_blocking, number=7) == 7

    @staticmethod
    @retry_on_contention
    def retry_blocking(number: int) -> int:
        return number


@pytest.mark.parametrize("kind", [Asking, Decorated, Threaded])
@run_awaiting
async def test_a_handler_that_asks_for_it_is_run_again(kind: type[Contended]) -> None:
    with open_counter() as db:
        app = kind(db)
        call = await Call().to(TransactionMiddleware(app, db))
        assert (call.status, call.body, app.runs, count_of(db)) == (200, b"101", 2, 101)


@pytest.mark.parametrize(("path", "status"), [("/again", 200), ("/once", 409)])
@run_awaiting
async def test_a_retry_function_decides_by_the_scope(path: str, status: int) -> None:
    def set_path(app: Any) -> Any:
        return lambda scope, receive, send: app({**scope, "path": path}, receive, send)

    with open_counter() as db:
        app = Contended(db)
        middleware = TransactionMiddleware(app, db, retry=lambda scope: scope["path"] == "/again")
        call = await Call().to(set_path(middleware))
        assert (call.status, app.runs) == (status, 2 if status == 200 else 1)


@run_awaiting
async def test_a_run_that_asks_for_a_retry_does_not_ask_for_the_next_run_too() -> None:
    class OnlyOnce(Contended):
        async def handle(self, scope: Any, receive: Any) -> None:
            if self.runs == 1:
                retry_on_contention()

    with open_counter() as db:
        app = OnlyOnce(db, times=2)
        call = await Call().to(TransactionMiddleware(app, db))
        assert (call.status, app.runs, count_of(db)) == (409, 2, 200)


@pytest.mark.parametrize("retries", [0, 1, 3])
@run_awaiting
async def test_retries_end_and_failure_handlers_run_once(retries: int) -> None:
    failures: list[tuple[int, Exception]] = []

    class Failing(Contended):
        async def handle(self, scope: Any, receive: Any) -> None:
            run = self.runs
            current_transaction().after_failure(lambda error: failures.append((run, error)))

    with open_counter() as db:
        app = Failing(db, times=9)
        call = await Call("GET").to(TransactionMiddleware(app, db, retries=retries))
        assert (call.status, app.runs) == (409, retries + 1)
    ((run, error),) = failures
    assert run == retries + 1
    assert isinstance(error, TransactionFailedError)
    assert error.attempts == retries + 1


@run_awaiting
async def test_failure_handlers_run_if_the_request_is_not_run_again() -> None:
    failures: list[Exception] = []

    class Failing(Contended):
        async def handle(self, scope: Any, receive: Any) -> None:
            current_transaction().after_failure(failures.append)

    with open_counter() as db:
        await Call().to(TransactionMiddleware(Failing(db), db))
    (error,) = failures
    assert isinstance(error, TransactionFailedError)
    assert error.attempts == 1


# --- retryable errors ---------------------------------------------------------------------------------------


class TransientError(Exception):
    retryable = True


@pytest.mark.parametrize(("method", "runs"), [("GET", 3), ("POST", 1)])
@run_awaiting
async def test_a_retryable_error_of_the_application_is_retried_by_the_same_rule_and_raised_unchanged(
    method: str, runs: int
) -> None:
    raised: list[TransientError] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raised.append(TransientError())
        raise raised[-1]

    with open_counter() as db:
        call = Call(method)
        with pytest.raises(TransientError) as caught:
            await call.to(TransactionMiddleware(app, db, retries=2))
    assert caught.value is raised[-1]
    assert (len(raised), call.sent) == (runs, [])


@run_awaiting
async def test_contention_found_while_reading_is_answered_like_any_other() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        tx = current_transaction()
        await tx.get(Counter, "new")
        db.run(lambda other: other.create(Counter, name="new"))
        [_ async for _ in tx.query(Counter, name="new")]

    with open_counter() as db:
        call = await Call().to(TransactionMiddleware(app, db))
    assert call.status == 409


# --- bodies -----------------------------------------------------------------------------------------------


async def read_all(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    return body


class Reading(Asking):
    """An application that reads its whole body in each run, except that the first run reads ``first`` messages."""

    bodies: list[bytes]
    first: int | None = None

    async def handle(self, scope: Any, receive: Any) -> None:
        retry_on_contention()
        self.bodies = [] if self.runs == 1 else self.bodies
        if self.runs == 1 and self.first is not None:
            self.bodies.append(b"".join([(await receive())["body"] for _ in range(self.first)]))
        else:
            self.bodies.append(await read_all(receive))


@run_awaiting
async def test_each_run_can_read_the_whole_body() -> None:
    with open_counter() as db:
        app = Reading(db, times=2)
        call = await Call(chunks=[b"one ", b"two ", b"three"]).to(TransactionMiddleware(app, db))
        assert (call.status, app.bodies) == (200, [b"one two three"] * 3)


@pytest.mark.parametrize("first", [0, 1, 2])
@run_awaiting
async def test_after_a_partial_read_the_next_run_reads_the_body_from_its_beginning(first: int) -> None:
    with open_counter() as db:
        app = Reading(db)
        app.first = first
        call = await Call(chunks=[b"one ", b"two ", b"three"]).to(TransactionMiddleware(app, db))
        assert call.status == 200
        assert app.bodies == [b"".join([b"one ", b"two "][:first]), b"one two three"]


@pytest.mark.parametrize(("size", "status", "runs"), [(10, 200, 2), (11, 409, 1)])
@run_awaiting
async def test_a_request_whose_body_exceeds_the_limit_is_not_run_again(
    size: int, status: int, runs: int
) -> None:
    with open_counter() as db:
        app = Reading(db)
        call = Call(chunks=[b"x" * 6, b"x" * (size - 6)])
        await call.to(TransactionMiddleware(app, db, max_body=10))
        assert (call.status, app.runs) == (status, runs)
        assert app.bodies == [b"x" * size] * runs


@run_awaiting
async def test_the_application_receives_the_whole_of_a_large_body() -> None:
    with open_counter() as db:
        app = Reading(db, times=0)
        await Call(chunks=[b"x" * 700] * 3).to(TransactionMiddleware(app, db, max_body=1000))
        assert app.bodies == [b"x" * 2100]


@run_awaiting
async def test_the_body_can_be_read_after_the_response_has_begun() -> None:
    bodies: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        if not bodies:
            bodies.append(await read_all(receive))
            bump(db)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"you said: ", "more_body": True})
        bodies.append(await read_all(receive))
        await send({"type": "http.response.body", "body": bodies[-1]})

    with open_counter() as db:
        call = await Call("GET", chunks=[b"one ", b"two"]).to(TransactionMiddleware(app, db))
        assert (call.body, bodies) == (b"you said: one two", [b"one two"] * 2)


@run_awaiting
async def test_a_run_that_changes_a_message_does_not_affect_the_next_run() -> None:
    class Changing(Asking):
        async def handle(self, scope: Any, receive: Any) -> None:
            retry_on_contention()
            message = await receive()
            assert message == {"type": "http.request", "body": b"one", "more_body": False}
            message.clear()

    with open_counter() as db:
        app = Changing(db, times=2)
        call = await Call(chunks=[b"one"]).to(TransactionMiddleware(app, db))
        assert (call.status, app.runs) == (200, 3)


# --- abandoned runs ---------------------------------------------------------------------------------------


@run_awaiting
async def test_an_abandoned_run_is_cancelled_and_ends_before_the_next_begins() -> None:
    events: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        run = len(events)
        events.append("begun")
        await add_one(current_transaction())
        if run == 0:
            bump(db)
        try:
            await send_answer(send)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            events.append("cancelled")
            raise
        events.append("answered")

    with open_counter() as db:
        call = await Call("GET").to(TransactionMiddleware(app, db))
    assert events == ["begun", "cancelled", "begun", "answered"]
    assert len(call.sent) == 2


@run_awaiting
async def test_an_abandoned_run_that_ignores_its_cancellation_can_neither_send_nor_receive() -> None:
    refused: list[object] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        if refused:
            await send_answer(send, 200, b"second")
            return
        bump(db)
        try:
            await send_answer(send, 200, b"first")
        except asyncio.CancelledError:
            refused.append((await receive())["type"])
            with pytest.raises(ConnectionAbortedError):
                await send_answer(send, 200, b"first, again")

    with open_counter() as db:
        call = await Call("GET").to(TransactionMiddleware(app, db))
        assert (call.status, call.body, count_of(db)) == (200, b"second", 101)
    assert refused == ["http.disconnect"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@run_awaiting
async def test_an_error_while_an_abandoned_run_cleans_up_is_raised(method: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        bump(db)
        try:
            await send_answer(send)
        finally:
            raise ValueError("cleaning up failed")

    with open_counter() as db:
        call = Call(method)
        with pytest.raises(ValueError, match="cleaning up failed"):
            await call.to(TransactionMiddleware(app, db))
        assert (call.sent, count_of(db)) == ([], 100)


@run_awaiting
async def test_changes_to_the_scope_are_visible_to_outer_middleware_but_not_to_the_next_run() -> None:
    found: list[Any] = []

    class ScopeChanging(Contended):
        async def handle(self, scope: Any, receive: Any) -> None:
            found.append((scope.get("route"), dict(scope["state"])))
            scope["route"] = f"route {self.runs}"
            scope["state"]["user"] = self.runs

    with open_counter() as db:
        state = {"given": True}
        call = Call("GET", scope={"state": state})
        await call.to(TransactionMiddleware(ScopeChanging(db), db))
    assert found == [(None, {"given": True}), (None, {"given": True})]
    assert call.scope["route"] == "route 2"
    assert call.scope["state"] is state
    assert state == {"given": True, "user": 2}
    assert not any(name.startswith("holdall") for name in call.scope)


# --- nesting and options ------------------------------------------------------------------------------------


@run_awaiting
async def test_a_middleware_inside_another_joins_its_transaction() -> None:
    with open_counter() as db:
        app = Contended(db)
        inner = TransactionMiddleware(app, db.aio, retries=0)
        call = await Call("GET").to(TransactionMiddleware(inner, db))
        assert (call.status, app.runs, count_of(db)) == (200, 2, 101)


@run_awaiting
async def test_two_middlewares_of_different_databases_are_refused() -> None:
    with open_counter() as db, open_counter() as another:
        app = Contended(db)
        with pytest.raises(ConfigurationError, match="two TransactionMiddlewares"):
            await Call("GET").to(TransactionMiddleware(TransactionMiddleware(app, another), db))
        assert app.runs == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"retries": -1}, InvalidOptionsError),
        ({"retries": "3"}, InvalidOptionsError),
        ({"max_body": -1}, InvalidOptionsError),
        ({"max_body": 1.5}, InvalidOptionsError),
        ({"max_body": True}, InvalidOptionsError),
        ({"retry": True}, InvalidOptionsError),
        ({"db": "memory:"}, ConfigurationError),
    ],
)
def test_invalid_options_are_rejected_at_once(options: dict[str, Any], error: type[Exception]) -> None:
    with open_counter() as db, pytest.raises(error):
        TransactionMiddleware(**{"app": Contended(db), "db": db, **options})


@run_awaiting
async def test_a_retry_function_that_does_not_return_a_bool_is_rejected_before_the_request_runs() -> None:
    async def always(scope: Any) -> bool:
        return True

    with open_counter() as db:
        app = Contended(db)
        with pytest.raises(ConfigurationError, match="not coroutine"):
            await Call().to(TransactionMiddleware(app, db, retry=always))  # type: ignore[arg-type]
        assert app.runs == 0


@run_awaiting
async def test_retry_on_contention_has_no_effect_outside_a_request() -> None:
    retry_on_contention()
    assert await Decorated.retry_awaiting(7) == 7
    assert Threaded.retry_blocking(7) == 7


@run_awaiting
async def test_a_request_on_a_store_in_a_file_is_run_again(tmp_path: Any) -> None:
    async with AsyncDatabase(f"embedded:{tmp_path / 'a.db'}", durability="normal") as db:
        db.sync.run(lambda tx: tx.create(Counter, name="c"))
        app = Contended(db.sync)
        call = await Call("GET").to(TransactionMiddleware(app, db))
        assert (call.status, app.runs, count_of(db)) == (200, 2, 101)
