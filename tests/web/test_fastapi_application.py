"""A typical FastAPI application: dependencies, async and sync endpoints, streams, background tasks."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Annotated, Any

import pytest
from fastapi import BackgroundTasks, Body, Depends, FastAPI, HTTPException, WebSocket
from fastapi.responses import PlainTextResponse, StreamingResponse
from httpx import Client, Response
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from web_rig import Counter, ask_app, bump, count_of, open_counter, run_awaiting, serve_asgi

from holdall import AsyncTransaction, Database, Transaction, current_transaction
from holdall.errors import ConfigurationError, NoTransactionError, TransactionClosedError
from holdall.web import TransactionMiddleware, retry_on_contention
from holdall.web.fastapi import blocking_transaction, transaction

Tx = Annotated[AsyncTransaction, Depends(transaction)]
BlockingTx = Annotated[Transaction, Depends(blocking_transaction)]


class Application:
    """Endpoints that use a counter; in the next ``contended`` runs, another writer changes the counter first."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.events: list[Any] = []
        self.contended = 0
        self.done = threading.Event()
        self.app = FastAPI()
        self.app.add_middleware(TransactionMiddleware, db=db)
        self.app.get("/count")(self.count)
        self.app.post("/add")(self.add)
        self.app.post("/add-again")(self.add_again)
        self.app.post("/add-in-thread")(self.add_in_thread)
        self.app.post("/fail")(self.fail)
        self.app.post("/refuse")(self.refuse)
        self.app.post("/create", status_code=201)(self.create)
        self.app.get("/stream")(self.stream)
        self.app.post("/background")(self.background)
        self.app.post("/mixed")(self.count_in_both)

    def contend(self) -> None:
        self.events.append("run")
        if self.contended:
            self.contended -= 1
            bump(self.db)

    async def count(self, tx: Tx) -> int:
        counter = await tx.get_one(Counter, "c")
        self.contend()
        counter.n += 1  # like a page that counts its visitors
        return counter.n

    async def add(self, tx: Tx, by: Annotated[int, Body(embed=True)] = 1) -> int:
        counter = await tx.get_one(Counter, "c")
        self.contend()
        counter.n += by
        return counter.n

    @staticmethod
    def add_without_dependency(by: int) -> None:
        current_transaction(Transaction).get_one(Counter, "c").n += by

    @property
    def add_again(self) -> Callable[..., Awaitable[int]]:
        @retry_on_contention
        async def endpoint(tx: Tx, by: Annotated[int, Body(embed=True)] = 1) -> int:
            return await self.add(tx, by)

        return endpoint

    @property
    def add_in_thread(self) -> Callable[..., int]:
        @retry_on_contention
        def endpoint(tx: BlockingTx, by: Annotated[int, Body(embed=True)] = 1) -> int:
            assert threading.current_thread() is not threading.main_thread()
            assert current_transaction() is tx
            counter: Counter = tx.get_one(Counter, "c")
            self.contend()
            self.add_without_dependency(by)
            return counter.n

        return endpoint

    async def fail(self, tx: Tx) -> None:
        (await tx.get_one(Counter, "c")).n += 1
        raise ValueError("broken")

    async def refuse(self, tx: Tx) -> None:
        (await tx.get_one(Counter, "c")).n += 1
        raise HTTPException(418, "no coffee here")

    async def create(self, tx: Tx, name: Annotated[str, Body(embed=True)]) -> str:
        return tx.create(Counter, name=name).name

    async def stream(self, tx: Tx) -> StreamingResponse:
        (await tx.get_one(Counter, "c")).n += 1
        self.contend()

        async def chunks() -> AsyncIterator[bytes]:
            self.events.append(count_of(self.db))
            yield b"one "
            self.events.append(count_of(self.db))
            with pytest.raises(TransactionClosedError):
                await tx.get(Counter, "c")
            yield b"two"

        return StreamingResponse(chunks())

    async def background(self, tx: Tx, tasks: BackgroundTasks) -> str:
        (await tx.get_one(Counter, "c")).n += 1

        async def later() -> None:
            with pytest.raises(NoTransactionError):
                current_transaction()
            self.events.append(count_of(self.db))
            self.done.set()

        tasks.add_task(later)
        self.contend()
        return "done"

    async def count_in_both(self, tx: Tx, blocking_tx: BlockingTx) -> int:
        def in_thread() -> None:
            blocking_tx.get_one(Counter, "c").n += 1

        counter = await tx.get_one(Counter, "c")
        await asyncio.to_thread(in_thread)
        counter.n += 1
        return counter.n


@pytest.fixture
def application() -> Iterator[Application]:
    with open_counter() as db:
        yield Application(db)


Ask = Callable[..., Response]


@pytest.fixture(params=["in process", "over HTTP"])
def ask(request: pytest.FixtureRequest, application: Application) -> Iterator[Ask]:
    """Send a request to the application; its exceptions become responses with status 500."""
    if request.param == "over HTTP":
        with serve_asgi(application.app) as url, Client(base_url=url, trust_env=False) as client:
            yield client.request
        return

    yield partial(ask_app, application.app)


# --- endpoints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/add", "/add-again", "/add-in-thread"])
def test_changes_are_committed_when_the_endpoint_returns(
    ask: Ask, application: Application, path: str
) -> None:
    assert ask("POST", path, json={"by": 3}).json() == 3
    assert ask("POST", path).json() == 4
    assert count_of(application.db) == 4


def test_the_async_and_the_sync_dependency_share_one_transaction(ask: Ask, application: Application) -> None:
    assert ask("POST", "/mixed").json() == 2
    assert count_of(application.db) == 2


@pytest.mark.parametrize(("path", "status"), [("/fail", 500), ("/refuse", 418), ("/nowhere", 404)])
def test_an_error_commits_nothing(ask: Ask, application: Application, path: str, status: int) -> None:
    assert ask("POST", path).status_code == status
    assert count_of(application.db) == 0


def test_fastapi_still_rejects_invalid_input(ask: Ask, application: Application) -> None:
    assert ask("POST", "/add", json={"by": "x"}).status_code == 422
    assert application.events == []


def test_creating_twice_is_a_conflict(ask: Ask) -> None:
    assert ask("POST", "/create", json={"name": "new"}).status_code == 201
    again = ask("POST", "/create", json={"name": "new"})
    assert (again.status_code, "retry-after" in again.headers) == (409, False)


def test_the_commit_precedes_the_first_chunk_of_a_stream(ask: Ask, application: Application) -> None:
    assert ask("GET", "/stream").text == "one two"
    assert application.events == ["run", 0, 1]


def test_a_stream_that_has_not_begun_can_be_run_again(ask: Ask, application: Application) -> None:
    application.contended = 1
    assert ask("GET", "/stream").text == "one two"
    assert application.events == ["run", 100, "run", 100, 101]


def test_background_tasks_run_after_the_commit(ask: Ask, application: Application) -> None:
    assert ask("POST", "/background").json() == "done"
    assert application.done.wait(10)  # over HTTP, the response arrives first
    assert application.events == ["run", 1]


def test_background_tasks_of_a_request_that_did_not_commit_do_not_run(
    ask: Ask, application: Application
) -> None:
    application.contended = 1
    assert ask("POST", "/background").status_code == 409
    assert application.events == ["run"]


# --- contention -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/add-again", "/add-in-thread"])
def test_an_endpoint_that_asks_for_it_is_run_again_with_its_body(
    ask: Ask, application: Application, path: str
) -> None:
    application.contended = 2
    assert ask("POST", path, json={"by": 3}).json() == 203
    assert (application.events, count_of(application.db)) == (["run"] * 3, 203)


def test_a_get_request_is_run_again(ask: Ask, application: Application) -> None:
    application.contended = 1
    assert ask("GET", "/count").json() == 101
    assert application.events == ["run"] * 2


def test_an_endpoint_that_does_not_ask_for_retries_is_run_once(ask: Ask, application: Application) -> None:
    application.contended = 1
    refused = ask("POST", "/add")
    assert (refused.status_code, refused.headers["retry-after"]) == (409, "1")
    assert (application.events, count_of(application.db)) == (["run"], 100)


# --- other middlewares and applications -------------------------------------------------------------------


async def pass_on(request: Any, call_next: Any) -> Any:
    response = await call_next(request)
    response.headers["x-passed"] = "yes"
    return response


@pytest.mark.parametrize("place", ["inside", "around"])
def test_the_transaction_works_inside_and_around_other_middlewares(place: str) -> None:
    with open_counter() as db:
        application = Application(db)
        app = application.app
        others = [(BaseHTTPMiddleware, {"dispatch": pass_on}), (GZipMiddleware, {"minimum_size": 0})]

        @app.get("/letters")
        async def letters(tx: Tx) -> StreamingResponse:
            (await tx.get_one(Counter, "c")).n += 1
            return StreamingResponse(iter("abc"))

        if place == "inside":
            mine = app.user_middleware.pop()
        for kind, options in others:
            app.add_middleware(kind, **options)  # type: ignore[arg-type]
        if place == "inside":
            app.user_middleware.insert(0, mine)
        application.contended = 1
        answer = ask_app(app, "POST", "/add-again", json={"by": 3})
        assert (answer.json(), answer.headers["x-passed"]) == (103, "yes")
        assert answer.headers["content-encoding"] == "gzip"
        application.contended = 1
        assert ask_app(app, "POST", "/background").status_code == 409
        assert ask_app(app, "GET", "/letters").text == "abc"
        assert count_of(db) == 204


def test_a_request_to_a_mounted_application_can_be_run_again() -> None:
    with open_counter() as db:
        inner = Application(db)
        outer = FastAPI()
        outer.add_middleware(TransactionMiddleware, db=db)
        outer.mount("/inner", inner.app)
        inner.contended = 1
        assert ask_app(outer, "GET", "/inner/count").json() == 101
    assert inner.events == ["run"] * 2


def test_dependencies_of_an_abandoned_run_are_cleaned_up() -> None:
    events: list[str] = []

    async def resource() -> AsyncIterator[str]:
        events.append("taken")
        try:
            yield "resource"
        except asyncio.CancelledError:
            events.append("cancelled")
            raise
        finally:
            events.append("released")

    with open_counter() as db:
        application = Application(db)

        @application.app.get("/held")
        async def count_holding(tx: Tx, resource: Annotated[str, Depends(resource)]) -> int:
            return await application.count(tx)

        application.contended = 1
        assert ask_app(application.app, "GET", "/held").json() == 101
    assert events == ["taken", "cancelled", "released", "taken", "released"]


def test_a_transaction_that_a_dependency_opens_is_the_current_one() -> None:
    with open_counter() as db:
        application = Application(db)

        async def another() -> AsyncIterator[AsyncTransaction]:
            async with db.aio.transaction() as tx:
                yield tx

        @application.app.get("/two")
        async def two(inner: Annotated[AsyncTransaction, Depends(another)], outer: Tx) -> bool:
            return current_transaction() is inner and inner is not outer

        assert ask_app(application.app, "GET", "/two").json() is True


# --- without the middleware -------------------------------------------------------------------------------


def test_without_the_middleware_the_error_hints_at_add_middleware() -> None:
    app = FastAPI()

    @app.get("/")
    async def find(tx: Tx) -> None: ...

    @app.get("/blocking")
    def find_blocking(tx: BlockingTx) -> None: ...

    for path in ("/", "/blocking"):
        with pytest.raises(ConfigurationError, match="no transaction") as caught:
            ask_app(app, "GET", path, raising=True)
        assert "add_middleware" in str(caught.value.hint)


@run_awaiting
async def test_a_websocket_has_no_transaction() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    with open_counter() as db:
        application = Application(db)

        @application.app.websocket("/socket")
        async def socket(websocket: WebSocket) -> None:
            await websocket.accept()
            try:
                current_transaction()
            except NoTransactionError as error:
                await websocket.send_text(error.message)

        scope = {"type": "websocket", "path": "/socket", "query_string": b"", "headers": []}
        await application.app(scope, receive, send)
    assert sent[1]["text"] == "no transaction is running here"


def test_starlette_endpoints_use_current_transaction() -> None:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.routing import Route

    async def add(request: Request) -> PlainTextResponse:
        counter = await current_transaction(AsyncTransaction).get_one(Counter, "c")
        counter.n += int(await request.body())
        return PlainTextResponse(str(counter.n))

    def add_in_thread(request: Request) -> PlainTextResponse:
        counter = current_transaction(Transaction).get_one(Counter, "c")
        counter.n += 1
        return PlainTextResponse(str(counter.n))

    routes = [Route("/add", add, methods=["POST"]), Route("/add-in-thread", add_in_thread, methods=["POST"])]
    with open_counter() as db:
        app = TransactionMiddleware(Starlette(routes=routes), db)
        assert ask_app(app, "POST", "/add", content="5").text == "5"
        assert ask_app(app, "POST", "/add-in-thread").text == "6"
        assert count_of(db) == 6
