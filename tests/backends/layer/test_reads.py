"""A separate backend for reads: which requests it receives, and how stale data and failures affect callers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig.machine import strip_machine
from rig.wrapper import Wrapper

from holdall import AsyncDatabase, Database, Index, Key, Model, SortKey
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    BatchGet,
    BatchWrite,
    Compare,
    CreateTable,
    DeleteItem,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    KeyCondition,
    PutItem,
    Query,
    Scan,
    SetTtl,
    TransactGet,
    TransactWrite,
    Update,
    UpdateItem,
    Value,
    path,
)
from holdall.core.port import Backend, Send
from holdall.core.requests import Request
from holdall.errors import (
    ConfigurationError,
    ServiceUnavailableError,
    StoreClosedError,
    TableNotFoundError,
    TransactionFailedError,
)
from holdall.testing import Fault, FaultyBackend

TABLE = "holdall"
QUICK: Any = {"initial_backoff": 0.0}
COLOURS = ["blocking", "awaiting"]


class Account(Model, indexes=[Index("by_branch", key=["branch"])]):
    owner: Key[str]
    cents: int = 0
    branch: str = "north"


class Entry(Model):
    owner: Key[str]
    number: SortKey[int]
    cents: int = 0


class RecordingBackend(Wrapper):
    """A backend that records the kinds of its requests."""

    def __init__(self, inner: Backend | None = None) -> None:
        super().__init__(inner or EmbeddedBackend(None))
        self.kinds: list[str] = []
        self.closed = 0

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        self.kinds.append(type(request).__name__)
        return await send(self.inner, request)

    def close(self) -> None:
        self.closed += 1
        super().close()


class NamedBackend:
    """A backend whose reply is its own name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def send_blocking(self, request: Request[Any]) -> Any:
        return self.name

    async def send_awaiting(self, request: Request[Any]) -> Any:
        return self.name

    def close(self) -> None:
        pass


@contextmanager
def store_items(*items: Model) -> Iterator[RecordingBackend]:
    """A store with these items in the table of their models."""
    backend = RecordingBackend()
    db = Database(backend=backend)
    db.table.create(models=[Account, Entry])
    db.run(lambda tx: [tx.create(item) for item in items])
    backend.kinds.clear()
    try:
        yield backend
    finally:
        backend.close()


@contextmanager
def with_stale_cache() -> Iterator[tuple[Database, RecordingBackend, RecordingBackend]]:
    """A database with a stale cache: there Ada has 1 cent instead of 100, and Grace does not exist."""
    now = (Account(owner="ada", cents=100), Account(owner="grace", cents=5), Entry(owner="ada", number=1))
    with store_items(Account(owner="ada", cents=1)) as cache, store_items(*now) as main:
        db = Database(backend=main, reads=cache, manage_table=False)
        db.query(Account, index="by_branch", branch="south").all()  # the database describes its table
        main.kinds.clear()
        cache.kinds.clear()
        yield db, main, cache
        db.close()


# --- routing ----------------------------------------------------------------------------------------------


KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}
GET, STRONG = GetItem(TABLE, KEY), GetItem(TABLE, KEY, consistent=True)
PARTITION = KeyCondition("pk", {"S": "p"})
PUT, DELETE = PutItem(TABLE, KEY), DeleteItem(TABLE, KEY)
EVENTUALLY_CONSISTENT = [
    GET,
    BatchGet((GET, GET)),
    Query(TABLE, PARTITION),
    Query(TABLE, PARTITION, index="gsi1"),
    Scan(TABLE),
    Scan(TABLE, index="gsi1", segments=4),
]
FRESH = GetItem(TABLE, KEY, fresh=True)
FOR_THE_MAIN_BACKEND = [
    STRONG,
    FRESH,
    BatchGet((GET, STRONG)),
    BatchGet((GET, FRESH)),
    Query(TABLE, PARTITION, index="gsi1", fresh=True),
    Scan(TABLE, fresh=True),
    TransactGet((GET,)),
    Query(TABLE, PARTITION, consistent=True),
    Scan(TABLE, consistent=True),
    PUT,
    UpdateItem(TABLE, KEY, Update(()), Compare("=", path("a"), Value({"S": "b"}))),
    DELETE,
    TransactWrite((PUT,), "token"),
    BatchWrite((PUT, DELETE)),
    DescribeTable(TABLE),
    CreateTable(None),  # type: ignore[arg-type]
    DeleteTable(TABLE),
    DescribeTtl(TABLE),
    SetTtl(TABLE, "ttl"),
]


def find_answering(request: Request[Any]) -> set[object]:
    with Database(backend=NamedBackend("main"), reads=NamedBackend("reads")) as db:
        return {db.send(request), asyncio.run(db.aio.send(request))}


@pytest.mark.parametrize("request_", EVENTUALLY_CONSISTENT, ids=repr)
def test_an_eventually_consistent_read_goes_to_the_backend_for_reads(request_: Request[Any]) -> None:
    assert find_answering(request_) == {"reads"}


@pytest.mark.parametrize("request_", FOR_THE_MAIN_BACKEND, ids=repr)
def test_all_other_requests_go_to_the_main_backend(request_: Request[Any]) -> None:
    assert find_answering(request_) == {"main"}


def test_only_eventually_consistent_reads_of_models_go_to_the_cache() -> None:
    with with_stale_cache() as (db, main, cache):
        db.get(Account, "ada")
        db.get_all([Account.key("ada")])
        db.query(Entry, owner="ada").all()
        assert (main.kinds, cache.kinds) == (["GetItem", "TransactGet", "Query"], [])
        main.kinds.clear()
        db.get(Account.key("ada"), consistent=False)
        db.get_all([Account.key("ada")], consistent=False)
        db.query(Entry, owner="ada", consistent=False).all()
        db.query(Account, index="by_branch", branch="north").all()
        db.scan(Account, segments=1).all()
        assert (main.kinds, cache.kinds) == ([], ["GetItem", "BatchGet", "Query", "Query", "Scan"])


# --- sync, async and closing ------------------------------------------------------------------------------


def test_the_async_database_shares_the_cache_and_closing_closes_both_backends() -> None:
    main, cache = RecordingBackend(), RecordingBackend()
    db = Database(backend=main, reads=cache)
    with pytest.raises(TableNotFoundError):
        asyncio.run(db.aio.send(GET))
    assert (main.kinds, cache.kinds) == ([], ["GetItem"])
    asyncio.run(db.aio.close())
    assert (main.closed, cache.closed) == (1, 1)
    for request in (GET, STRONG):
        with pytest.raises(StoreClosedError):
            db.send(request)


def test_an_async_database_accepts_a_cache_and_its_sync_database_shares_it() -> None:
    main, cache = RecordingBackend(), RecordingBackend()
    adb = AsyncDatabase(backend=main, reads=cache)
    with pytest.raises(TableNotFoundError):
        adb.sync.send(GET)
    assert (main.kinds, cache.kinds) == ([], ["GetItem"])
    adb.sync.close()
    assert (main.closed, cache.closed) == (1, 1)


def test_the_main_backend_is_closed_even_if_closing_the_cache_fails() -> None:
    class Unclosable(RecordingBackend):
        def close(self) -> None:
            super().close()
            raise OSError("cannot be closed")

    main = RecordingBackend()
    db = Database(backend=main, reads=Unclosable())
    with pytest.raises(OSError, match="cannot be closed"):
        db.close()
    assert main.closed == 1


# --- a stale cache ----------------------------------------------------------------------------------------


def cents(item: Account | None) -> int | None:
    return None if item is None else item.cents


def test_a_stale_cache_only_affects_eventually_consistent_reads() -> None:
    with with_stale_cache() as (db, _, _):
        stale = [db.get(Account.key(owner), consistent=False) for owner in ("ada", "grace")]
        assert [cents(item) for item in stale] == [1, None]
        assert [item.owner for item in db.query(Account, index="by_branch", branch="north")] == ["ada"]
        now = db.get_all([Account.key("ada"), Account.key("grace")])
        assert [cents(item) for item in now] == [100, 5]
        db.run(lambda tx: tx.delete(Account.key("ada")))
        assert cents(db.get(Account.key("ada"), consistent=False)) == 1
        assert db.get(Account, "ada") is None


def double(tx: Any) -> Any:
    account = tx.get(Account.key("ada"), consistent=False)
    account.cents *= 2
    return account.cents


async def double_awaiting(tx: Any) -> Any:
    account = await tx.get(Account.key("ada"), consistent=False)
    account.cents *= 2
    return account.cents


@pytest.mark.parametrize("colour", COLOURS)
def test_a_transaction_that_read_stale_data_is_refused_and_retried_without_the_cache(colour: str) -> None:
    with with_stale_cache() as (db, main, cache):
        if colour == "blocking":
            assert db.run(double, **QUICK) == 200
        else:
            assert asyncio.run(db.aio.run(double_awaiting, **QUICK)) == 200
        assert cache.kinds == ["GetItem"]
        assert main.kinds == ["UpdateItem", "GetItem", "UpdateItem"]
        assert cents(db.get(Account, "ada")) == 200


def test_a_single_attempt_that_read_stale_data_fails_and_writes_nothing() -> None:
    with with_stale_cache() as (db, _, _):
        with pytest.raises(TransactionFailedError), db.transaction() as tx:
            double(tx)
        assert cents(db.get(Account, "ada")) == 100


def test_an_item_that_is_missing_in_the_cache_only_is_not_overwritten() -> None:
    def deposit(tx: Any) -> bool:
        account = tx.get(Account.key("grace"), consistent=False, create_if_missing=True)
        account.cents += 1
        return bool(account.is_new)

    with with_stale_cache() as (db, _, _):
        assert db.run(deposit, **QUICK) is False
        assert cents(db.get(Account, "grace")) == 6


def test_after_contention_an_index_is_read_from_the_main_backend() -> None:
    def collect(tx: Any) -> list[str]:
        found = []
        for account in tx.query(Account, index="by_branch", branch="north"):
            account.cents += 1
            found.append(account.owner)
        return sorted(found)

    with with_stale_cache() as (db, main, cache):
        assert db.run(collect, **QUICK) == ["ada", "grace"]
        assert cache.kinds == ["Query"]
        assert main.kinds == ["UpdateItem", "Query", "BatchGet", "TransactWrite"]
        assert [cents(db.get(Account, owner)) for owner in ("ada", "grace")] == [101, 6]


def test_after_contention_no_read_of_the_function_comes_from_the_cache() -> None:
    attempts: list[list[str]] = []

    def read_in_every_way(tx: Any) -> None:
        cache.kinds.clear()
        tx.query(Account, index="by_branch", branch="north", lock=False).all()
        tx.scan(Account, segments=1, lock=False).all()
        db.get(Account.key("ada"), consistent=False)
        db.get_all([Account.key("ada")], consistent=False)
        db.run(lambda inner: inner.get(Account.key("grace"), consistent=False))
        with db.transaction() as block:
            block.query(Account, index="by_branch", branch="north").all()
        attempts.append(cache.kinds[:])
        double(tx)

    with with_stale_cache() as (db, _, cache):
        db.run(read_in_every_way, **QUICK)
    assert attempts == [["Query", "Scan", "GetItem", "BatchGet", "GetItem", "Query"], []]


def test_reads_after_a_retried_transaction_go_to_the_cache_again() -> None:
    with with_stale_cache() as (db, _, cache):
        db.run(double, **QUICK)
        cache.kinds.clear()
        db.get(Account.key("ada"), consistent=False)
        assert cache.kinds == ["GetItem"]


def test_a_read_only_transaction_is_retried_after_inconsistent_reads() -> None:
    def total(tx: Any) -> int:
        return sum(cents(tx.get(Account.key(o), consistent=False)) or 0 for o in ("ada", "grace"))

    with with_stale_cache() as (db, _, _):
        assert db.run(total, read_only=True, **QUICK) == 105


def test_no_update_is_lost_with_a_cache_that_is_never_updated() -> None:
    def deposit(tx: Any) -> None:
        tx.get(Account.key("ada"), consistent=False).cents += 1

    with with_stale_cache() as (db, _, _), ThreadPoolExecutor(8) as pool:
        done = [pool.submit(lambda: db.run(deposit, retries=1000, **QUICK)) for _ in range(80)]
        for each in done:
            each.result()
        assert cents(db.get(Account, "ada")) == 180


# --- a cache that fails -----------------------------------------------------------------------------------


@contextmanager
def with_failing_cache() -> Iterator[tuple[Database, RecordingBackend]]:
    faulty = FaultyBackend(EmbeddedBackend(None), {Fault.UNAVAILABLE: 1.0})
    with store_items(Account(owner="ada", cents=100)) as main:
        db = Database(backend=main, reads=faulty, manage_table=False)
        db.get(Account, "nobody")
        main.kinds.clear()
        yield db, main
        db.close()


def test_a_failing_cache_raises_an_error_and_the_main_backend_is_not_asked_instead() -> None:
    with with_failing_cache() as (db, main):
        for read in (db.send, lambda request: asyncio.run(db.aio.send(request))):
            with pytest.raises(ServiceUnavailableError) as caught:
                read(GET)
            (note,) = caught.value.__notes__
            assert "reads=" in note
            assert "consistent=True" in note
        assert main.kinds == []


def test_when_the_cache_fails_consistent_reads_and_writes_still_succeed() -> None:
    with with_failing_cache() as (db, _):
        db.run(lambda tx: tx.create(Account, owner="bo", cents=3))
        assert cents(db.get(Account, "bo")) == 3


@pytest.mark.parametrize("colour", COLOURS)
def test_when_the_cache_fails_the_next_attempt_of_a_transaction_does_not_use_it(colour: str) -> None:
    with with_failing_cache() as (db, main):
        if colour == "blocking":
            assert db.run(double, **QUICK) == 200
        else:
            assert asyncio.run(db.aio.run(double_awaiting, **QUICK)) == 200
        assert main.kinds == ["GetItem", "UpdateItem"]


# --- opening ----------------------------------------------------------------------------------------------


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strip_machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("database", [Database, AsyncDatabase])
def test_an_object_that_is_not_a_backend_is_refused_before_a_store_is_opened(
    database: Any, tmp_path: Path, bare_machine: None
) -> None:
    with pytest.raises(
        ConfigurationError, match="reads must be a backend or the endpoint of a DAX cluster, not a dict"
    ):
        database("embedded:app.db", reads={"daxs": "here"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["dynamodb://other", "dax:", "https://cluster", "daxs://user@host", "daxs://"]
)
def test_a_text_that_is_not_the_endpoint_of_a_cluster_is_refused(text: str, bare_machine: None) -> None:
    with pytest.raises(ConfigurationError, match="must be the endpoint of a DAX cluster") as caught:
        Database("dynamodb://my-app?region=eu-central-1", reads=text)
    assert "user" not in str(caught.value)


def test_an_embedded_store_ignores_a_cluster_in_the_environment(
    bare_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDALL_READS", "daxs://cluster")
    with Database("memory:") as db:
        assert isinstance(db._backend, EmbeddedBackend)


def test_the_main_store_is_closed_again_if_the_cache_refuses_it(bare_machine: None, tmp_path: Path) -> None:
    class RefusingBackend(RecordingBackend):
        def beside(self, main: Backend) -> None:
            self.main = main
            raise ConfigurationError("not with that store")

    cache = RefusingBackend()
    with pytest.raises(ConfigurationError, match="not with that store"):
        Database("embedded:app.db", reads=cache)
    with pytest.raises(StoreClosedError):
        cache.main.send_blocking(GET)
    cache.close()
