"""Clients that disconnect from a real server, before or after the commit was sent."""

import asyncio
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Annotated, Any
from urllib.parse import urlsplit

import pytest
from fastapi import Depends, FastAPI
from web_rig import (
    Call,
    Counter,
    Counting,
    add_one,
    count_of,
    open_counter,
    run_awaiting,
    send_answer,
    serve_asgi,
)

from holdall import AsyncTransaction, Transaction, current_transaction
from holdall.web import TransactionMiddleware
from holdall.web.fastapi import blocking_transaction, transaction

BODY = b'{"by": 1}'


class Meeting:
    """A handler pauses here after counting, and the test closes the client's socket; ``ends`` has the outcome."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.left = threading.Event()
        self.ends: SimpleQueue[str] = SimpleQueue()

    def meet(self) -> None:
        self.arrived.set()
        assert self.left.wait(30)

    def watch(self, tx: AsyncTransaction | Transaction) -> None:
        tx.after_commit(self.ends.put, "committed")
        tx.after_failure(lambda error: self.ends.put(str(error)))


def plain(meeting: Meeting, db: Any) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        meeting.watch(current_transaction())
        meeting.meet()  # blocks the event loop, which cannot notice that the socket closes
        await send_answer(send)

    return TransactionMiddleware(app, db)


def read_first(meeting: Meeting, db: Any) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == BODY
        await add_one(current_transaction())
        meeting.watch(current_transaction())
        await asyncio.to_thread(meeting.meet)
        await send_answer(send)

    return TransactionMiddleware(app, db)


def wait_first(meeting: Meeting, db: Any) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        listening = asyncio.ensure_future(receive())  # as streaming handlers do, to notice a disconnect
        await add_one(current_transaction())
        meeting.watch(current_transaction())
        await asyncio.to_thread(meeting.meet)
        await send_answer(send)
        listening.cancel()

    return TransactionMiddleware(app, db)


def fastapi(meeting: Meeting, db: Any) -> Any:
    app = FastAPI()
    app.add_middleware(TransactionMiddleware, db=db)

    @app.post("/")
    async def add(tx: Annotated[AsyncTransaction, Depends(transaction)]) -> None:
        await add_one(tx)
        meeting.watch(tx)
        await asyncio.to_thread(meeting.meet)

    return app


def fastapi_in_thread(meeting: Meeting, db: Any) -> Any:
    app = FastAPI()
    app.add_middleware(TransactionMiddleware, db=db)

    @app.post("/")
    def add(tx: Annotated[Transaction, Depends(blocking_transaction)]) -> None:
        tx.get_one(Counter, "c").n += 1
        meeting.watch(tx)
        meeting.meet()

    return app


def ask(url: str) -> socket.socket:
    """Open a connection and send a request."""
    client = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port))
    client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
    return client


@pytest.mark.parametrize("make_app", [plain, read_first, wait_first, fastapi, fastapi_in_thread])
def test_nothing_is_written_if_the_client_disconnects_before_the_commit_is_sent(
    make_app: Callable[[Meeting, Any], Any],
) -> None:
    meeting = Meeting()
    with open_counter() as db, serve_asgi(make_app(meeting, db)) as url:
        client = ask(url)
        assert meeting.arrived.wait(30)
        client.close()
        meeting.left.set()
        assert meeting.ends.get(timeout=30) == "the client has disconnected"
        assert count_of(db) == 0


@pytest.mark.parametrize("make_app", [plain, fastapi_in_thread])
def test_a_client_that_disconnects_after_the_commit_was_sent_does_not_undo_it(
    make_app: Callable[[Meeting, Any], Any],
) -> None:
    committing = Meeting()

    class Slow(Counting):
        async def send_awaiting(self, request: Any) -> Any:
            if request.writes:
                await asyncio.to_thread(committing.meet)
            return await super().send_awaiting(request)

    meeting = Meeting()
    meeting.left.set()
    with open_counter(Slow()) as db, serve_asgi(make_app(meeting, db)) as url:
        client = ask(url)
        assert committing.arrived.wait(30)
        client.close()
        committing.left.set()
        assert meeting.ends.get(timeout=30) == "committed"
        assert count_of(db) == 1


@pytest.mark.parametrize("make_app", [plain, read_first, wait_first, fastapi, fastapi_in_thread])
def test_a_client_that_stays_connected_gets_its_response(make_app: Callable[[Meeting, Any], Any]) -> None:
    meeting = Meeting()
    meeting.left.set()
    with open_counter() as db, serve_asgi(make_app(meeting, db)) as url, ask(url) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert (meeting.ends.get(timeout=30), count_of(db)) == ("committed", 1)


@run_awaiting
async def test_the_commit_does_not_ask_a_client_that_expects_100_continue_for_its_body() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await add_one(current_transaction())
        await send_answer(send)

    async def receive() -> Any:
        raise AssertionError("the commit requested the body")

    async def expect_continue(scope: Any, _: Any, send: Any) -> None:
        scope["headers"] = [(b"expect", b"100-continue")]
        await TransactionMiddleware(app, db)(scope, receive, send)

    with open_counter() as db:
        assert (await Call().to(expect_continue)).status == 200
        assert count_of(db) == 1
