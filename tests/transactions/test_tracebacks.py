"""Tracebacks of Holdall's errors end at the method that the caller called; the caller's own errors keep all frames."""

from __future__ import annotations

import asyncio
import json
import sysconfig
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import pytest
from annotated_types import Ge

import holdall
from holdall import AsyncDatabase, AsyncTransaction, Database, Key, Model, Transaction, col
from holdall.core import GetItem, Scan
from holdall.core.settings import Tracebacks
from holdall.core.traceback import remove_frames
from holdall.errors import (
    AfterCommitError,
    ContentionError,
    HoldallError,
    InvalidFieldError,
    RecordNotFound,
    TransactionErrors,
    TransactionFailedError,
)

PACKAGE = str(Path(holdall.__file__).parent)


class Account(Model):
    owner: Key[str]
    cents: Annotated[int, Ge(0)] = 0


class Elsewhere(Model, table="missing"):
    id: Key[str]


class Checked(Model):
    owner: Key[str]

    def before_commit(self, tx: Transaction) -> None:
        tx.get_one(Account, "missing")


class Broken(Model):
    owner: Key[str]

    def before_commit(self, tx: Transaction) -> None:
        raise RuntimeError("mine")


class OutOfStock(HoldallError):
    code = "out-of-stock"


def list_frames(error: BaseException) -> list[str]:
    """Return the names of the functions in a traceback; those in Holdall's own files are in brackets."""
    found = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append(f"[{code.co_name}]" if code.co_filename.startswith(PACKAGE) else code.co_name)
        trace = trace.tb_next
    return found


def catch(call: Callable[[], object]) -> Exception:
    """Return the error of a call; its first two frames are ``catch`` and the test's own function."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any error
        return error
    raise AssertionError("the call raised no error")


async def catch_async(call: Callable[[], Awaitable[object]]) -> Exception:
    try:
        await call()
    except Exception as error:  # noqa: BLE001 - any error
        return error
    raise AssertionError("the call raised no error")


@pytest.fixture
def db() -> Iterator[Database]:
    with Database("memory:", manage_table=False) as database:
        database.table.create()
        database.create(Account, owner="eve")
        yield database


def list_calls(db: Any) -> dict[str, Callable[[], Any]]:
    return {
        "get_one": lambda: db.get_one(Account, "missing"),
        "get": lambda: db.get(Account, owner=7),
        "get_all": lambda: db.get_all([Account.key("ada")] * 101),
        "first": lambda: db.query(Elsewhere, id="a").first(),
        "count": lambda: db.query(Elsewhere, id="a").count(),
        "exists": lambda: db.scan(Elsewhere).exists(),
        "send": lambda: db.send(GetItem("missing", {"pk": {"S": "a"}})),
        "migrate": lambda: db.migrate(Account, segments=0),
        "enqueue": lambda: db.jobs.enqueue("send-receipt", object()),
        "retry": lambda: db.jobs.retry("missing"),
        "alias": lambda: db.artifacts.alias("my-app", "prod"),
        "publish": lambda: db.artifacts.publish("my-app"),
        "query": lambda: db.query(Account, nobody="ada"),
        "scan": lambda: db.scan(Account, segments=0),
        "move": lambda: db.move(Account, object),
        "bulk": lambda: db.bulk(object),
        "worker": lambda: db.worker(concurrency=0),
        "copy_to": lambda: db.copy_to(object()),
        "create_buckets": lambda: db.create_buckets("missing"),
        "saving": lambda: db.saving(object()),
        "destroying": lambda: db.destroying(object()),
        "head": lambda: db.files.head("missing"),
        "put": lambda: db.files.put("", b"x"),
        "create": lambda: db.create(Account, owner="ada", cents=-1),
        "create an unknown field": lambda: db.create(Account, owner="ada", dollars=1),
        "create an item that exists": lambda: db.create(Account, owner="eve"),
        "put a class": lambda: db.put(Account),
        "put on a condition": lambda: db.put(Account(owner="eve"), where=col(Account.cents) > 1),
        "update": lambda: db.update(Account.key("missing"), cents=1),
        "update to an invalid value": lambda: db.update(Account.key("eve"), cents=-1),
        "update without a key": lambda: db.update(Account, col(Account.cents).increment_by(1)),
        "update without reading": lambda: db.update(
            Account.key("missing"), col(Account.cents).increment_by(1)
        ),
        "delete": lambda: db.delete("eve"),
        "delete on a condition": lambda: db.delete(Account.key("eve"), where=col(Account.cents) > 1),
        "run": lambda: db.run(None),
        "transaction": lambda: db.transaction(retries=3),
        "transactional": lambda: db.transactional(retries=-1),
        "run with an unknown option": lambda: db.run(print, attempts=3),
        "get_by": lambda: db.get_by(Account, cents=1),
        "update_all": lambda: db.update_all(Account, {"cents": -1}, owner="eve"),
        "delete_all": lambda: db.delete_all(Account, chunk=0, owner="eve"),
    }


NAMES = sorted(list_calls(None))


@pytest.mark.parametrize("name", NAMES)
def test_the_traceback_of_an_error_ends_at_the_called_method(db: Database, name: str) -> None:
    error = catch(list_calls(db)[name])
    assert isinstance(error, HoldallError)
    assert list_frames(error) == ["catch", "<lambda>", f"[{name.partition(' ')[0]}]"]


@pytest.mark.parametrize("name", NAMES)
def test_the_traceback_of_an_async_error_ends_at_the_called_method(db: Database, name: str) -> None:
    error = asyncio.run(catch_async(list_calls(db.aio)[name]))
    assert isinstance(error, HoldallError)
    # methods that are not awaited fail in the lambda
    frames = [each for each in list_frames(error) if each != "<lambda>"]
    assert frames == ["catch_async", f"[{name.partition(' ')[0]}]"]


def test_tracebacks_of_pages_and_iterations_are_short_too(db: Database) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: next(db.pages(Scan("missing"))),
        lambda: list(db.query(Elsewhere, id="a")),
        lambda: list(db.scan(Elsewhere)),
        lambda: list(db.files["missing"].list()),
        lambda: db.files.open("missing").__enter__(),
    ]
    for call in calls:
        error = catch(call)
        assert isinstance(error, HoldallError)
        assert len(list_frames(error)) == 3, list_frames(error)


def test_a_setting_keeps_every_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    given: Tracebacks = "full"
    with Database("memory:", tracebacks=given) as db:
        db.table.create()
        error = catch(lambda: db.get_one(Account, "missing"))
        assert list_frames(error) == ["catch", "<lambda>", "[get_one]", "[run]", "[get_one]"]
        assert len(list_frames(catch(lambda: db.query(Account, nobody="ada")))) > 3
    monkeypatch.setenv("HOLDALL_TRACEBACKS", "full")
    with Database("memory:") as db:
        db.table.create()
        error = asyncio.run(catch_async(lambda: db.aio.get_one(Account, "missing")))
        assert list_frames(error) == ["catch_async", "[get_one]", "[get_one]"]


def test_the_traceback_of_an_error_inside_a_transaction_shows_the_body(db: Database) -> None:
    def body(tx: Transaction) -> None:
        tx.get_one(Account, "missing")

    def write(tx: Transaction) -> None:
        tx.create(Account, owner="ada", cents=-1)

    async def get_missing(tx: AsyncTransaction) -> None:
        await tx.get_one(Account, "missing")

    assert list_frames(catch(lambda: db.run(body))) == [*("catch", "<lambda>", "[run]", "body", "[get_one]")]
    assert list_frames(catch(lambda: db.run(write)))[-2:] == ["write", "[create]"]
    error = asyncio.run(catch_async(lambda: db.aio.run(get_missing)))
    assert list_frames(error) == ["catch_async", "[run]", "get_missing", "[get_one]"]


def test_the_traceback_of_an_error_inside_a_block_shows_the_block(db: Database) -> None:
    def block() -> None:
        with db.transaction() as tx:
            tx.create(Account, owner="ada", cents=-1)

    async def async_block() -> None:
        async with db.aio.transaction() as tx:
            await tx.get_one(Account, "missing")

    assert list_frames(catch(block)) == ["catch", "block", "[create]"]
    assert list_frames(asyncio.run(catch_async(async_block))) == ["catch_async", "async_block", "[get_one]"]


def test_the_traceback_of_a_failed_commit_ends_at_the_end_of_the_block(db: Database) -> None:
    def block() -> None:
        with db.transaction() as tx:
            account = tx.get_one(Account, "ada")
            account.cents += 1
            with db.transaction() as other:
                other.get_one(Account, "ada").cents += 5

    db.run(lambda tx: tx.create(Account, owner="ada"))
    error = catch(block)
    assert isinstance(error, TransactionFailedError)
    assert list_frames(error) == ["catch", "block", "[__exit__]"]
    assert isinstance(error.__cause__, ContentionError)
    assert list_frames(error.__cause__) == []


def test_the_errors_of_a_group_have_no_frames(db: Database) -> None:
    def body(tx: Transaction) -> None:
        tx.create(Account, owner="ada")
        tx.create(Account, owner="bob")

    db.run(body)
    error = catch(lambda: db.run(body))
    assert isinstance(error, TransactionErrors)
    assert [list_frames(each) for each in error.exceptions] == [[], []]


@pytest.mark.parametrize("kind", [ValueError, OutOfStock, RecordNotFound])
def test_an_error_of_the_callers_own_code_keeps_all_its_frames(db: Database, kind: type[Exception]) -> None:
    def deeper() -> None:
        raise kind("mine")

    def body(tx: Transaction) -> None:
        deeper()

    async def call_deeper(tx: AsyncTransaction) -> None:
        deeper()

    sync = list_frames(catch(lambda: db.run(body)))
    assert sync[-2:] == ["body", "deeper"]
    assert "[run_transaction]" in sync
    awaited_frames = list_frames(asyncio.run(catch_async(lambda: db.aio.run(call_deeper))))
    assert awaited_frames[-2:] == ["call_deeper", "deeper"]
    assert "[run_transaction]" in awaited_frames


def test_an_error_of_the_callers_handler_keeps_all_its_frames_as_a_cause(db: Database) -> None:
    def handler() -> None:
        raise RuntimeError("mine")

    def body(tx: Transaction) -> None:
        tx.create(Account, owner="ada")
        tx.after_commit(handler)

    error = catch(lambda: db.run(body))
    assert isinstance(error, AfterCommitError)
    assert list_frames(error) == ["catch", "<lambda>", "[run]"]
    assert error.__cause__ is not None
    assert list_frames(error.__cause__)[-1] == "handler"
    assert len(list_frames(error.__cause__)) > 2


def test_an_error_that_the_standard_library_raises_in_a_handler_keeps_all_its_frames(db: Database) -> None:
    def body(tx: Transaction) -> None:
        tx.create(Account, owner="ada")
        tx.after_commit(json.loads, "no JSON")

    cause = catch(lambda: db.run(body)).__cause__
    assert cause is not None
    assert list_frames(cause)[-1] == "raw_decode"
    assert "[collect_error]" in list_frames(cause)


def test_installed_packages_count_as_callers(db: Database) -> None:
    names: dict[str, Any] = {"key": Account.key("missing")}
    source = "def find(tx):\n    return tx.get_one(key)\n"
    exec(compile(source, f"{sysconfig.get_path('stdlib')}/site-packages/installed.py", "exec"), names)
    error = catch(lambda: db.run(names["find"]))
    assert list_frames(error) == ["catch", "<lambda>", "[run]", "find", "[get_one]"]


def test_the_context_of_an_error_inside_holdall_is_shortened_too() -> None:
    names: dict[str, Any] = {}
    source = "def fail(first, second):\n    try:\n        raise first\n    finally:\n        raise second\n"
    exec(compile(source, f"{PACKAGE}/made_up.py", "exec"), names)
    error = catch(lambda: names["fail"](RecordNotFound("none"), OutOfStock("none")))
    assert error.__context__ is not None
    assert list_frames(error.__context__) == ["[fail]"]
    remove_frames(error)
    assert list_frames(error.__context__) == []


def test_the_traceback_of_an_error_inside_a_handler_shows_the_handler_and_the_called_method(
    db: Database,
) -> None:
    def handler() -> None:
        db.get_one(Account, "missing")

    def body(tx: Transaction) -> None:
        tx.create(Account, owner="ada")
        tx.after_commit(handler)

    cause = catch(lambda: db.run(body)).__cause__
    assert isinstance(cause, RecordNotFound)
    assert list_frames(cause) == ["handler", "[get_one]"]


def test_holdalls_errors_inside_a_hook_are_shortened_and_other_errors_keep_all_frames(db: Database) -> None:
    def block() -> None:
        with db.transaction() as tx:
            tx.create(Checked, owner="ada")

    refused = ["before_commit", "[get_one]"]
    run = ["catch", "<lambda>", "[run]"]
    assert list_frames(catch(lambda: db.run(lambda tx: tx.create(Checked, owner="ada")))) == [*run, *refused]
    assert list_frames(catch(block)) == ["catch", "block", "[__exit__]", *refused]
    found = list_frames(catch(lambda: db.run(lambda tx: tx.create(Broken, owner="ada"))))
    assert found[-1] == "before_commit"
    assert "[run_transaction]" in found


class Source:
    """A stream whose reads return or raise whatever the function does."""

    def __init__(self, read: Callable[[], object]) -> None:
        self._read = read

    def read(self, size: int) -> object:
        return self._read()


def raise_own() -> None:
    raise RuntimeError("mine")


def test_errors_inside_a_stream_show_its_frames_and_a_refused_stream_shows_none(db: Database) -> None:
    refusing: Any = Source(lambda: db.get_one(Account, "missing"))
    failing: Any = Source(raise_own)
    text: Any = Source(lambda: "text")
    run = ["catch", "<lambda>", "[put]"]
    assert list_frames(catch(lambda: db.files.put("a", refusing))) == [*run, "read", "<lambda>", "[get_one]"]
    found = list_frames(catch(lambda: db.files.put("a", failing)))
    assert found[-2:] == ["read", "raise_own"]
    assert found.count("[read]") == 1, "the port's"
    assert list_frames(catch(lambda: db.files.put("a", text))) == run
    assert list_frames(catch(lambda: db.artifacts.put("app", text))) == run
    error = asyncio.run(catch_async(lambda: db.aio.files.put("a", text)))
    assert list_frames(error) == ["catch_async", "[put]"]


def test_the_context_of_an_error_in_the_callers_code_is_not_shortened(db: Database) -> None:
    def handle() -> Exception:
        try:
            raise OutOfStock("mine")
        except OutOfStock:
            return catch(lambda: db.get_one(Account, "missing"))

    first = handle().__context__
    assert isinstance(first, OutOfStock)
    assert list_frames(first) == ["handle"]


def test_an_invalid_option_is_reported_at_the_line_of_the_call(db: Database) -> None:
    def body(tx: Transaction) -> None:
        tx.get(Account, "ada", consistent="yes")  # type: ignore[call-overload]

    error = catch(lambda: db.run(body))
    assert isinstance(error, HoldallError)
    assert not isinstance(error, InvalidFieldError)
    assert list_frames(error)[-2:] == ["body", "[get]"]


def test_errors_from_holdalls_threads_are_shortened_too(tmp_path: Path) -> None:
    async def call_async() -> None:
        async with AsyncDatabase("memory:") as db:
            await db.files.put("a", b"x")
            error = await catch_async(lambda: db.files.download("a", tmp_path))  # a directory
            assert list_frames(error) == ["catch_async", "[download]"]
        async with AsyncDatabase(f"embedded:{tmp_path}/store.db") as db:
            await db.table.create()
            error = await catch_async(lambda: db.send(Scan("missing")))  # scans run in the engine's threads
            assert list_frames(error) == ["catch_async", "[send]"]

    asyncio.run(call_async())
