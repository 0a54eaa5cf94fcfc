"""Concurrent use of one backend: threads, tasks, event loops, forks and cancelled tasks."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rig.colour import finish
from scripted_server import ReceivedRequest, Step, refuse_with, reply_with, serve_script
from wire_rig import GET, KEY, KEYS, PUT, client, describe_things

from holdall import AsyncDatabase, Database, Key, Model
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.core.requests import BatchGet, GetItem, TransactWrite
from holdall.errors import InvalidRequestError, StoreClosedError, TableNotFoundError

CROWD = 40


def backend_of(url: str) -> DynamoBackend:
    return DynamoBackend(
        resolve_endpoint("dynamodb", endpoint=url, environment=KEYS), find_credentials(environment=KEYS)
    )


def echo(received: ReceivedRequest) -> Step:
    """Return the requested key as the item."""
    if received.operation == "DescribeTable":
        return describe_things(received.payload["TableName"])
    return reply_with({"Item": received.payload["Key"]})


def key(number: int) -> dict[str, dict[str, str]]:
    return {"pk": {"S": f"k{number}"}}


def test_each_of_many_threads_gets_its_own_reply() -> None:
    with serve_script(answer=echo) as server, Database(backend=backend_of(server.url)) as db:

        def ask(number: int) -> bool:
            return all(db.send(GetItem("things", key(number))).item == key(number) for _ in range(20))

        with ThreadPoolExecutor(CROWD) as threads:
            assert all(threads.map(ask, range(CROWD)))
        assert server.operations.count("DescribeTable") == 1
        assert server.connections <= CROWD


def test_each_of_many_tasks_gets_its_own_reply() -> None:
    async def main() -> None:
        async with AsyncDatabase(backend=backend_of(server.url)) as db:

            async def ask(number: int) -> bool:
                replies = [await db.send(GetItem("things", key(number))) for _ in range(20)]
                return all(reply.item == key(number) for reply in replies)

            assert all(await asyncio.gather(*map(ask, range(CROWD))))

    with serve_script(answer=echo) as server:
        asyncio.run(main())
        assert server.operations.count("DescribeTable") == 1
        assert server.connections <= CROWD


def test_threads_and_event_loops_share_one_backend() -> None:
    with serve_script(answer=echo) as server, Database(backend=backend_of(server.url)) as db:

        async def ask_often(number: int) -> bool:
            replies = await asyncio.gather(*(db.aio.send(GetItem("things", key(number))) for _ in range(5)))
            return all(reply.item == key(number) for reply in replies)

        def ask(number: int) -> bool:
            if number % 2:
                return asyncio.run(ask_often(number))
            return db.send(GetItem("things", key(number))).item == key(number)

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(ask, range(40)))


def test_each_event_loop_closes_its_connections_when_it_ends() -> None:
    with serve_script(answer=echo) as server:
        backend = backend_of(server.url)
        for number in range(3):
            assert asyncio.run(backend.send_awaiting(GetItem("things", key(number)))).item == key(number)
            server.wait_for_ends(number + 1)
        backend.close()
    assert server.connections == 3


def test_an_event_loop_that_has_ended_is_not_kept_in_memory() -> None:
    with serve_script(answer=echo) as server:
        backend = backend_of(server.url)
        loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

        async def ask() -> None:
            loops.append(weakref.ref(asyncio.get_running_loop()))
            await asyncio.gather(*(backend.send_awaiting(GetItem("things", key(n))) for n in range(3)))

        asyncio.run(ask())
        gc.collect()
        assert loops[0]() is None
        backend.close()


def test_closing_ends_the_kept_connections_of_sync_and_async_calls() -> None:
    async def main() -> None:
        async with AsyncDatabase(backend=backend) as db:
            await db.send(GET)
        await asyncio.to_thread(server.wait_for_ends, 2)
        with pytest.raises(StoreClosedError):
            await db.send(GET)

    with serve_script(answer=echo) as server:
        backend = backend_of(server.url)
        backend.send_blocking(GET)
        asyncio.run(main())
        with pytest.raises(StoreClosedError):
            backend.send_blocking(GET)


def test_a_request_that_ends_after_closing_leaves_no_connection() -> None:
    gate = threading.Event()
    with serve_script(describe_things(), reply_with({"Item": KEY}, gate=gate)) as server:
        backend = backend_of(server.url)
        asking = threading.Thread(target=backend.send_blocking, args=(GET,))
        asking.start()
        server.wait_for_requests(2)
        backend.close()
        gate.set()
        asking.join()
        server.wait_for_ends(1)


# --- descriptions of tables under concurrent requests ---


def test_an_invalid_request_does_not_disturb_another_that_is_being_checked() -> None:
    """The invalid one requests the description again; the other one has it and waits for that of another table."""
    gate = threading.Event()

    def answer(received: ReceivedRequest) -> Step:
        if received.operation != "DescribeTable":
            return reply_with({"Responses": {}})
        name = received.payload["TableName"]
        return describe_things(name, gate=gate) if name == "others" else describe_things(name)

    async def main() -> None:
        with client("awaiting", server.url) as ours:
            await ours.send(GET)
            both = BatchGet((GetItem("things", KEY), GetItem("others", KEY)))
            valid = asyncio.ensure_future(ours.send(both))
            await asyncio.to_thread(server.wait_for_requests, 3)
            invalid = asyncio.ensure_future(ours.send(GetItem("things", {"pk": {"N": "1"}})))
            await asyncio.sleep(0)
            gate.set()
            with pytest.raises(InvalidRequestError):
                await invalid
            assert (await valid).items == (None, None)

    with serve_script(answer=answer) as server:
        finish("awaiting", main())


def test_invalid_requests_in_one_thread_do_not_disturb_valid_ones_in_others() -> None:
    with serve_script(answer=echo) as server, Database(backend=backend_of(server.url)) as db:

        def ask(number: int) -> None:
            for _ in range(50):
                if number % 2:
                    with pytest.raises(InvalidRequestError):
                        db.send(GetItem("things", {"pk": {"N": "1"}}))
                else:
                    assert db.send(GetItem("things", key(number))).item == key(number)

        with ThreadPoolExecutor(8) as threads:
            for outcome in [threads.submit(ask, number) for number in range(8)]:
                outcome.result()


class Thing(Model):
    name: Key[str]


def test_a_new_process_requests_the_description_of_its_table_once() -> None:
    table = {
        "TableName": "things",
        "TableStatus": "ACTIVE",
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    }
    with (
        serve_script(reply_with({"Table": table}), reply_with({})) as server,
        Database("dynamodb://things", backend=backend_of(server.url)) as db,
    ):
        db.get(Thing, "a")
    assert server.operations == ["DescribeTable", "GetItem"]


def test_the_description_of_a_missing_table_is_requested_again_each_time() -> None:
    missing = refuse_with("ResourceNotFoundException")
    with (
        serve_script(missing, describe_things(), reply_with({"Item": KEY})) as server,
        client("blocking", server.url) as ours,
    ):
        with pytest.raises(TableNotFoundError):
            ours.ask(GET)
        assert ours.ask(GET).item == KEY


# --- cancellation ---


def test_a_cancelled_read_closes_its_connection_and_the_next_read_gets_its_own_reply() -> None:
    gate = threading.Event()

    async def main() -> Any:
        async with AsyncDatabase(backend=backend_of(server.url)) as db:
            waiting = asyncio.ensure_future(db.send(GetItem("things", key(1))))
            await asyncio.to_thread(server.wait_for_requests, 2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            gate.set()
            return (await db.send(GetItem("things", key(2)))).item

    late = reply_with({"Item": key(1)}, gate=gate)
    with serve_script(describe_things(), late, reply_with({"Item": key(2)})) as server:
        assert asyncio.run(main()) == key(2)
    assert [received.connection for received in server.requests] == [1, 1, 2]


@pytest.mark.parametrize("write", [PUT, TransactWrite((PUT,), "token-1")], ids=["plain", "token"])
def test_a_cancelled_write_is_completed(write: Any) -> None:
    gate = threading.Event()

    async def main() -> None:
        async with AsyncDatabase(backend=backend_of(server.url)) as db:
            waiting = asyncio.ensure_future(db.send(write))
            await asyncio.to_thread(server.wait_for_requests, 2)
            waiting.cancel()
            await asyncio.sleep(0)
            assert not waiting.done()
            gate.set()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await db.send(GET)

    with serve_script(describe_things(), reply_with({}, gate=gate), reply_with({"Item": KEY})) as server:
        asyncio.run(main())
    assert [received.connection for received in server.requests] == [1, 1, 1]


def test_cancelling_many_reads_does_not_mix_up_replies() -> None:
    async def main() -> None:
        async with AsyncDatabase(backend=backend_of(server.url)) as db:
            for round_ in range(10):
                tasks = [
                    asyncio.ensure_future(db.send(GetItem("things", key(10 * round_ + n)))) for n in range(10)
                ]
                for _ in range(2 * round_):
                    await asyncio.sleep(0)
                for task in tasks[::2]:
                    task.cancel()
                replies = await asyncio.gather(*tasks, return_exceptions=True)
                for number, reply in enumerate(replies):
                    if not isinstance(reply, asyncio.CancelledError):
                        assert not isinstance(reply, BaseException)
                        assert reply.item == key(10 * round_ + number)

    with serve_script(answer=echo) as server:
        asyncio.run(main())


# --- fork ---


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.parametrize("scenario", ["keep_connection", "discovery_under_way", "inside_an_event_loop"])
def test_a_forked_child_has_its_own_connections(scenario: str) -> None:
    gate = threading.Event()

    def answer(received: ReceivedRequest) -> Step:
        if received.operation == "DescribeTable" and received.payload["TableName"] == "parents":
            return describe_things("parents", gate=gate)
        return echo(received)

    with serve_script(answer=answer) as server:
        program = Path(__file__).with_name("wire_fork_scenarios.py")
        done = subprocess.run(
            [sys.executable, "-W", "error", str(program), scenario, server.url],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        gate.set()
    assert (done.returncode, done.stderr) == (0, "")
    children = {received.connection for received in server.requests if b"child" in received.body}
    parents = {received.connection for received in server.requests if b"parent" in received.body}
    assert children
    assert parents
    assert not children & parents
