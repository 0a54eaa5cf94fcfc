"""Scenarios with a fork, each run in its own process: ``fork_scenarios.py NAME DIRECTORY ROUNDS``.

A scenario makes assertions, and its process ends with 0 if they hold. A process that hangs prints its stack traces and
ends, and so do its children; each child that ends is a sign of life.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import multiprocessing
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from holdall import Database
from holdall.core import (
    CreateTable,
    GetItem,
    GetReply,
    KeyAttribute,
    PutItem,
    Scan,
    TableSchema,
    TransactWrite,
    run,
)
from holdall.errors import StoreError

MARKS = TableSchema("Marks", KeyAttribute("mark"))
HANGS_AFTER = 15

Work = Callable[[], None]


def make_put(text: str) -> PutItem:
    return PutItem(MARKS.name, {"mark": {"S": text}})


def make_read(text: str) -> GetItem:
    return GetItem(MARKS.name, {"mark": {"S": text}}, consistent=True)


def marks(db: Database) -> set[str]:
    pages = db.pages(Scan(MARKS.name, consistent=True))
    return {item["mark"]["S"] for page in pages for item in page.items}


def fork_child(work: Work) -> int:
    """Fork a child that does the work and ends; return its process id."""
    child = os.fork()
    if child == 0:
        _end_with(work)
    return child


def _end_with(work: Work) -> NoReturn:
    signal.alarm(HANGS_AFTER)  # an alarm is not inherited
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - whatever happens, a child must never return into the parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def show_life() -> None:
    """Postpone the alarm, and print a line so that the test keeps waiting."""
    signal.alarm(HANGS_AFTER + 5)
    print("alive", flush=True)


def reap(*children: int) -> None:
    """Wait for the children and check that they succeeded."""
    endings = {}
    for child in children:
        endings[child] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        show_life()
    assert set(endings.values()) <= {0}, f"children ended with {endings}"


@contextmanager
def busy(*works: Callable[[int], None]) -> Iterator[list[int]]:
    """Repeat each work in a thread of its own, with the turn as its argument; yield the number of turns of each."""
    stop = threading.Event()
    turns = [0] * len(works)
    failures: list[BaseException] = []

    def repeat(place: int) -> None:
        try:
            while not stop.is_set():
                works[place](turns[place])
                turns[place] += 1
        except BaseException as error:  # noqa: BLE001 - raised again by the main thread
            failures.append(error)

    threads = [threading.Thread(target=repeat, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    try:
        yield turns
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def open_db(directory: Path) -> Database:
    db = Database(f"embedded:{directory / 'store.db'}", durability="normal")
    db.send(CreateTable(MARKS))
    return db


def check_that_no_file_is_open(directory: Path) -> None:
    """Check that no descriptor of this process refers to a file in the directory."""
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = descriptor.readlink()
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
        assert directory not in target.parents, f"descriptor {descriptor.name} is {target}"


# --- scenarios ------------------------------------------------------------------------------------------


def no_connection_is_inherited(directory: Path, rounds: int) -> None:
    """Not even a surplus connection that a thread is just closing."""
    pause = threading.Event()

    def read(turn: int) -> None:
        for _ in range(3):
            _read(db, "none")
        pause.wait(random.random() / 50)  # so that the number of connections rises and falls

    with open_db(directory) as db:
        writers = [lambda turn: _put(db, f"{turn % 10}") for _ in range(2)]
        with busy(*[read] * 40, *writers):
            for _ in range(10 * rounds):
                reap(fork_child(lambda: check_that_no_file_is_open(directory)))


def close_in_the_parent_after_a_fork(directory: Path, rounds: int) -> None:
    """The parent must notice that the child has the store open, and not delete the log that the child writes to."""
    pause = threading.Event()

    def read(turn: int) -> None:
        for _ in range(3):
            _read(db, "none")
        pause.wait(random.random() / 50)

    def child(closed: int, number: int) -> None:
        _put(db, f"{number} before")
        os.read(closed, 1)
        _put(db, f"{number} after")

    open_db(directory).close()
    for number in range(5 * rounds):
        closed, close = os.pipe()
        with Database(f"embedded:{directory / 'store.db'}") as db, busy(*[read] * 40) as turns:
            while sum(turns) < 40:
                pass
            process = fork_child(partial(child, closed, number))
        os.write(close, b"!")
        reap(process)
        os.close(closed)
        os.close(close)
    with Database(f"embedded:{directory / 'store.db'}") as db:
        expected = {f"{number} {when}" for number in range(5 * rounds) for when in ("before", "after")}
        assert marks(db) == expected, f"lost: {sorted(expected - marks(db))}"


def no_connection_is_inherited_while_stores_open_and_close(directory: Path, rounds: int) -> None:
    def open_and_close(turn: int) -> None:
        with Database(f"embedded:{directory / 'store.db'}") as other:
            _read(other, "none")

    with open_db(directory), busy(open_and_close, open_and_close):
        for _ in range(25 * rounds):
            reap(fork_child(lambda: check_that_no_file_is_open(directory)))


def parent_and_children_keep_working(directory: Path, rounds: int) -> None:
    """Threads of the parent keep writing; each child writes too, and forks a child of its own."""

    def write(name: str) -> None:
        for number in range(20):
            db.send(make_put(f"{name}.{number}"))

    def child(name: str) -> None:
        write(name)
        reap(fork_child(lambda: write(f"{name}.grandchild")))
        assert f"{name}.grandchild.19" in marks(db)

    names = [f"child{number}" for number in range(2 * rounds)]
    together = 6
    with open_db(directory) as db:
        with busy(*(lambda turn, w=w: _put(db, f"thread{w}.{turn}") for w in range(3))) as turns:
            for at in range(0, len(names), together):
                reap(*(fork_child(partial(child, name)) for name in names[at : at + together]))
        expected = {f"thread{w}.{turn}" for w, done in enumerate(turns) for turn in range(done)}
        for name in (*names, *(f"{name}.grandchild" for name in names)):
            expected |= {f"{name}.{number}" for number in range(20)}
        assert marks(db) == expected


def a_child_killed_while_writing_does_not_disturb_the_parent(directory: Path, rounds: int) -> None:
    def keep_writing() -> None:
        number = 0
        while True:
            db.send(
                TransactWrite((make_put(f"a{number}"), make_put(f"b{number}")), f"{os.getpid()} {number}")
            )
            number += 1

    with open_db(directory) as db:
        with busy(lambda turn: _put(db, f"parent{turn}")) as turns:
            for _ in range(rounds):
                before = turns[0]
                child = fork_child(keep_writing)
                while turns[0] < before + 20:
                    pass
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                show_life()
        found = marks(db)
        assert {f"parent{turn}" for turn in range(turns[0])} <= found
        assert {m[1:] for m in found if m[0] == "a"} == {m[1:] for m in found if m[0] == "b"}


def a_child_that_closes_its_store_leaves_the_parents_open(directory: Path, rounds: int) -> None:
    with open_db(directory) as db:
        db.send(make_put("before"))
        reap(fork_child(db.close))
        db.send(make_put("after"))
        assert marks(db) == {"before", "after"}


def use_multiprocessing(directory: Path, rounds: int) -> None:
    """Fork processes and a pool while a thread writes."""
    global _shared
    fork = multiprocessing.get_context("fork")
    with open_db(directory) as _shared:
        db = _shared
        with busy(lambda turn: _put(db, f"thread{turn}")) as turns:
            processes = [fork.Process(target=_mark_shared, args=(f"process{n}",)) for n in range(rounds)]
            for process in processes:
                process.start()
            for process in processes:
                process.join(HANGS_AFTER)
                show_life()
            assert [process.exitcode for process in processes] == [0] * rounds
            with fork.Pool(2) as pool:
                pool.map_async(_mark_shared, [f"pool{n}" for n in range(20)]).get(HANGS_AFTER)
        expected = {f"thread{turn}" for turn in range(turns[0])}
        expected |= {f"process{n}" for n in range(rounds)} | {f"pool{n}" for n in range(20)}
        assert marks(db) == expected


_shared: Database


def _mark_shared(text: str) -> None:
    _shared.send(make_put(text))


def a_memory_store_is_copied(directory: Path, rounds: int) -> None:
    with Database("memory:") as db:
        db.send(CreateTable(MARKS))
        db.send(make_put("before"))
        theirs, ours = os.pipe()

        def child() -> None:
            db.send(make_put("child"))
            os.read(theirs, 1)  # by now the parent has written its mark
            assert marks(db) == {"before", "child"}
            with db.aio.sync as twin:
                assert marks(twin) == {"before", "child"}

        process = fork_child(child)
        db.send(make_put("parent"))
        os.write(ours, b"!")
        reap(process)
        assert marks(db) == {"before", "parent"}


def a_memory_store_with_busy_threads_is_copied(directory: Path, rounds: int) -> None:
    """At the fork, readers wait for the only connection; afterwards readers in both processes still get it."""

    def read() -> None:
        for _ in range(20):
            _read(db, "none")

    def child() -> None:
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with Database("memory:") as db:
        db.send(CreateTable(MARKS))
        readers = [lambda turn: _read(db, "none") for _ in range(4)]
        for _ in range(5 * rounds):
            with busy(*readers, lambda turn: _put(db, f"{turn % 10}")) as turns:
                while sum(turns) < 10:
                    pass
                reap(fork_child(child))


def forks_do_not_wait_for_readers_to_pause(directory: Path, rounds: int) -> None:
    with open_db(directory) as db, busy(*[lambda turn: _read(db, "none")] * 6) as turns:
        for _ in range(5 * rounds):
            reap(fork_child(lambda: _read(db, "none")))
        assert min(turns) > 0


def threads_may_fork_at_once(directory: Path, rounds: int) -> None:
    def fork(turn: int) -> None:
        reap(fork_child(lambda: _put(db, f"{os.getpid()}")))

    with open_db(directory) as db:
        with Database("memory:"), busy(fork, fork, lambda turn: _put(db, "thread")) as turns:
            while min(turns) < 10 * rounds:
                pass
        assert len(marks(db)) > 1


def gather_works_in_the_child(directory: Path, rounds: int) -> None:
    async def write_all(name: str) -> list[bool]:
        await db.port.gather([db.port.send(make_put(f"{name}{n}")) for n in range(20)])
        found = await db.port.gather([_send(db, f"{name}{n}") for n in range(20)])
        return [outcome.result().item is not None for outcome in found]

    def child() -> None:
        assert run(write_all("child")) == [True] * 20

    with open_db(directory) as db:
        assert run(write_all("parent")) == [True] * 20
        reap(fork_child(child))
        assert run(write_all("again")) == [True] * 20
        assert len(marks(db)) == 60


async def _send(db: Database, text: str) -> GetReply:
    return await db.port.send(make_read(text))


def the_async_database_works_in_the_child(directory: Path, rounds: int) -> None:
    async def write_all(name: str) -> None:
        await asyncio.gather(*(db.aio.send(make_put(f"{name}{n}")) for n in range(20)))
        replies = await asyncio.gather(*(db.aio.send(make_read(f"{name}{n}")) for n in range(20)))
        assert all(reply.item is not None for reply in replies)

    with open_db(directory) as db:
        asyncio.run(write_all("parent"))
        reap(fork_child(lambda: asyncio.run(write_all("child"))))
        asyncio.run(write_all("again"))
        assert len(marks(db)) == 60


def a_fork_inside_an_event_loop_waits_for_its_writes(directory: Path, rounds: int) -> None:
    async def write_and_fork() -> None:
        writes = [asyncio.ensure_future(db.aio.send(make_put(f"task{n}"))) for n in range(200)]
        await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
        reap(fork_child(lambda: _put(db, "child")))
        await asyncio.gather(*writes)

    with open_db(directory) as db:
        asyncio.run(write_and_fork())
        assert marks(db) == {"child", *(f"task{n}" for n in range(200))}


def a_fork_that_python_does_not_see_is_refused(directory: Path, rounds: int) -> None:
    def child() -> None:
        for attempt in (_read, _put):
            with pytest.raises(StoreError, match="fork"):
                attempt(db, "before")

    with open_db(directory) as db:
        db.send(make_put("before"))
        process = ctypes.PyDLL(None).fork()
        if process == 0:
            _end_with(child)
        reap(process)
        db.send(make_put("after"))
        assert marks(db) == {"before", "after"}


def _put(db: Database, text: str) -> None:
    db.send(make_put(text))


def _read(db: Database, text: str) -> None:
    db.send(make_read(text))


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        no_connection_is_inherited,
        no_connection_is_inherited_while_stores_open_and_close,
        close_in_the_parent_after_a_fork,
        parent_and_children_keep_working,
        a_child_killed_while_writing_does_not_disturb_the_parent,
        a_child_that_closes_its_store_leaves_the_parents_open,
        use_multiprocessing,
        a_memory_store_is_copied,
        a_memory_store_with_busy_threads_is_copied,
        forks_do_not_wait_for_readers_to_pause,
        threads_may_fork_at_once,
        gather_works_in_the_child,
        the_async_database_works_in_the_child,
        a_fork_inside_an_event_loop_waits_for_its_writes,
        a_fork_that_python_does_not_see_is_refused,
    )
}


def main(name: str, directory: str, rounds: str) -> None:
    faulthandler.register(
        signal.SIGALRM, chain=True
    )  # prints the stack of every thread, then ends the process
    show_life()
    SCENARIOS[name](Path(directory), int(rounds))


if __name__ == "__main__":
    main(*sys.argv[1:])
