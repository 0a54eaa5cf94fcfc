"""Many clients of real servers increment one counter: no update is lost, and every reported update is stored.

In each round all clients send a request at once, and no handler continues before all have read the counter. So
exactly one first run can commit; requests that may not be run again are answered with a conflict.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Protocol

import pytest
from fastapi import Depends, FastAPI, Header
from flask import Flask, request
from httpx import Client
from rig.torture import TORTURE
from web_rig import STORES, Counter, count_of, database, serve_asgi, serve_wsgi

from holdall import AsyncTransaction, Database, Transaction, current_transaction
from holdall.web import TransactionMiddleware, retry_on_contention, wsgi
from holdall.web.fastapi import blocking_transaction, transaction

CLIENTS = 4
ROUNDS = 4

Tx = Annotated[AsyncTransaction, Depends(transaction)]
BlockingTx = Annotated[Transaction, Depends(blocking_transaction)]
RequestId = Annotated[str, Header()]


class FirstRuns:
    """Recognizes each request's first run, which has to wait for the others of its round."""

    def __init__(self) -> None:
        self._met: set[str] = set()
        self.runs = 0
        self._lock = threading.Lock()

    def is_first(self, name: str) -> bool:
        with self._lock:
            self.runs += 1
            return bool(name) and not (name in self._met or self._met.add(name))  # type: ignore[func-returns-value]


class Serve(Protocol):
    def __call__(self, db: Database, first_runs: FirstRuns, again: bool) -> Any: ...


@contextmanager
def fastapi_awaiting(db: Database, first_runs: FirstRuns, again: bool) -> Iterator[str]:
    app = FastAPI()
    app.add_middleware(TransactionMiddleware, db=db, retries=30)
    barrier = asyncio.Barrier(CLIENTS)

    @app.post("/add")
    async def add(tx: Tx, x_request_id: RequestId = "") -> int:
        if again:
            retry_on_contention()
        counter = await tx.get_one(Counter, "c")
        seen = counter.n
        if first_runs.is_first(x_request_id):
            await barrier.wait()
        counter.n = seen + 1
        return counter.n

    with serve_asgi(app) as url:
        yield url


@contextmanager
def fastapi_blocking(db: Database, first_runs: FirstRuns, again: bool) -> Iterator[str]:
    app = FastAPI()
    app.add_middleware(TransactionMiddleware, db=db, retries=30)
    barrier = threading.Barrier(CLIENTS)

    @app.post("/add")
    def add(tx: BlockingTx, x_request_id: RequestId = "") -> int:
        return count(first_runs, barrier, x_request_id, again)

    with serve_asgi(app) as url:
        yield url


@contextmanager
def flask(db: Database, first_runs: FirstRuns, again: bool) -> Iterator[str]:
    app = Flask("counting")
    app.wsgi_app = wsgi.TransactionMiddleware(app.wsgi_app, db, retries=30)  # type: ignore[method-assign]
    barrier = threading.Barrier(CLIENTS)

    @app.post("/add")
    def add() -> str:
        return str(count(first_runs, barrier, request.headers.get("x-request-id", ""), again))

    with serve_wsgi(app) as url:
        yield url


def count(first_runs: FirstRuns, barrier: threading.Barrier, name: str, again: bool) -> int:
    if again:
        retry_on_contention()
    counter = current_transaction(Transaction).get_one(Counter, "c")
    seen = counter.n
    if first_runs.is_first(name):
        barrier.wait()
    counter.n = seen + 1
    return counter.n


SERVERS = [fastapi_awaiting, fastapi_blocking, flask]


def list_pairs(turn: int) -> list[tuple[Serve, str]]:
    """Pair each server with one store, another for each turn; under torture, with all stores."""
    numbered = product(enumerate(SERVERS), enumerate(STORES))
    return [(serve, store) for (i, serve), (j, store) in numbered if TORTURE or (i + j) % len(STORES) == turn]


def ask_all(url: str, requests: int, name: Callable[[int, int], str]) -> list[tuple[int, str]]:
    """Send that many rounds of requests, one request per client and round; return all answers."""
    with Client(base_url=url, trust_env=False, timeout=60) as client, ThreadPoolExecutor(CLIENTS) as pool:

        def ask(place: tuple[int, int]) -> tuple[int, str]:
            answer = client.post("/add", headers={"x-request-id": name(*place)})
            return answer.status_code, answer.text

        answers: list[tuple[int, str]] = []
        for number in range(requests):
            answers += pool.map(ask, [(number, client_number) for client_number in range(CLIENTS)])
        return answers


@pytest.mark.parametrize(("serve", "store"), list_pairs(0))
def test_without_retries_one_request_of_each_round_counts_and_the_others_are_conflicts(
    serve: Serve, store: str, tmp_path: Path
) -> None:
    first_runs = FirstRuns()
    with database(store, tmp_path) as db, serve(db, first_runs, False) as url:
        answers = ask_all(url, ROUNDS, lambda number, client: f"{number} {client}")
        assert count_of(db) == ROUNDS
    assert sorted(status for status, _ in answers) == [200] * ROUNDS + [409] * ROUNDS * (CLIENTS - 1)
    assert sorted(int(text) for status, text in answers if status == 200) == list(range(1, ROUNDS + 1))
    assert first_runs.runs == ROUNDS * CLIENTS


@pytest.mark.parametrize(("serve", "store"), list_pairs(1))
def test_with_retries_all_requests_count(serve: Serve, store: str, tmp_path: Path) -> None:
    first_runs = FirstRuns()
    total = ROUNDS * CLIENTS
    with database(store, tmp_path) as db, serve(db, first_runs, True) as url:
        answers = ask_all(url, ROUNDS, lambda number, client: f"{number} {client}")
        assert count_of(db) == total
    assert sorted((status, int(text)) for status, text in answers) == [(200, n + 1) for n in range(total)]
    assert first_runs.runs >= ROUNDS * (2 * CLIENTS - 1)  # all but one of each round contended


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("serve", SERVERS)
def test_exactly_the_reported_updates_are_stored(serve: Serve, again: bool, tmp_path: Path) -> None:
    with database("file", tmp_path) as db, serve(db, FirstRuns(), again) as url:
        answers = ask_all(url, 15, lambda number, client: "")
        reported = sorted(int(text) for status, text in answers if status == 200)
        assert reported == list(range(1, count_of(db) + 1))
    assert {status for status, _ in answers} <= {200, 409}
