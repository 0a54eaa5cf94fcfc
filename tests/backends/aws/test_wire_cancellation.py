"""A cancelled caller does not wait for long, and learns whether the outcome of its write is known."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from s3_rig import bucket
from scripted_server import ReceivedRequest, Step, refuse_with, reply_with, serve_script, silence
from wire_rig import GET, KEY, KEYS, PUT, describe_things

import holdall.transactions.run.flow  # noqa: F401 - not for the first time inside of a task
from holdall import AsyncDatabase, Key, Model, job
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.aws.limit import Limits
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.backends.s3 import S3Service
from holdall.core.objects import PutObject
from holdall.core.requests import BatchWrite, GetItem, TransactWrite
from holdall.errors import OutcomeUnknown

TRANSACTION = TransactWrite((PUT,), "token-1")


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdall.backends.aws.limit.GRACE_SECONDS", 0.1)


def database_of(url: str, **limits: Any) -> AsyncDatabase:
    endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=KEYS)
    backend = DynamoBackend(endpoint, find_credentials(environment=KEYS), limits=Limits(**limits))
    return AsyncDatabase(backend=backend, manage_table=False)


async def cancel_after_requests(server: Any, count: int, work: Any) -> asyncio.Future[Any]:
    """Cancel the work once the server has received ``count`` requests; return its task, which has ended."""
    task: asyncio.Future[Any] = asyncio.ensure_future(work)
    await asyncio.to_thread(server.wait_for_requests, count)
    task.cancel()
    await asyncio.wait([task])
    return task


@pytest.mark.parametrize("write", [PUT, TRANSACTION], ids=["plain", "token"])
def test_a_cancelled_write_without_a_reply_ends_soon_and_its_outcome_is_unknown(write: Any) -> None:
    async def main() -> None:
        async with database_of(server.url) as db:
            task = await cancel_after_requests(server, 2, db.send(write))
            assert not task.cancelled()
            unknown = task.exception()
            assert isinstance(unknown, OutcomeUnknown)
            assert isinstance(unknown.__cause__, asyncio.CancelledError)
            await db.send(GET)

    with serve_script(describe_things(), silence(), reply_with({"Item": KEY})) as server:
        asyncio.run(main())
    assert [received.connection for received in server.requests] == [1, 1, 2]  # no call receives a late reply


def test_a_timeout_around_a_write_without_a_reply_raises_outcome_unknown() -> None:
    async def main() -> None:
        async with database_of(server.url) as db:
            await db.send(GET)
            with pytest.raises(OutcomeUnknown):
                await asyncio.wait_for(db.send(PUT), 0.3)
            with pytest.raises(OutcomeUnknown):
                async with asyncio.timeout(0.3):
                    await db.send(PUT)
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    with serve_script(describe_things(), reply_with({}), silence(), silence()) as server:
        asyncio.run(main())


def test_a_failed_task_group_reports_the_unknown_outcome_of_a_write() -> None:
    async def fail() -> None:
        await asyncio.to_thread(server.wait_for_requests, 2)
        raise ValueError("give up")

    async def write_in_a_group(db: AsyncDatabase) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(db.send(PUT))
            group.create_task(fail())

    async def main() -> None:
        async with database_of(server.url) as db:
            with pytest.raises(ExceptionGroup) as failures:
                await write_in_a_group(db)
            assert {type(error) for error in failures.value.exceptions} == {ValueError, OutcomeUnknown}

    with serve_script(describe_things(), silence()) as server:
        asyncio.run(main())


def test_a_write_that_is_answered_within_the_grace_period_is_just_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdall.backends.aws.limit.GRACE_SECONDS", 60.0)
    gate = threading.Event()

    async def main() -> None:
        async with database_of(server.url) as db:
            task = asyncio.ensure_future(db.send(PUT))
            await asyncio.to_thread(server.wait_for_requests, 2)
            task.cancel()
            await asyncio.sleep(0)
            gate.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            await db.send(GET)

    with serve_script(describe_things(), reply_with({}, gate=gate), reply_with({"Item": KEY})) as server:
        asyncio.run(main())
    assert {received.connection for received in server.requests} == {1}  # its reply was read to the end


def test_a_write_that_waits_for_a_connection_is_just_cancelled_and_never_sent() -> None:
    async def main() -> None:
        async with database_of(server.url, max_connections=1) as db:
            await db.send(GET)
            reading = asyncio.ensure_future(db.send(GET))
            await asyncio.to_thread(server.wait_for_requests, 3)
            writing = asyncio.ensure_future(db.send(PUT))
            for _ in range(5):
                await asyncio.sleep(0)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            reading.cancel()
            await asyncio.wait([reading])

    with serve_script(describe_things(), reply_with({}), silence()) as server:
        asyncio.run(main())
    assert server.operations == ["DescribeTable", "GetItem", "GetItem"]


def test_a_write_that_waits_for_the_description_of_its_table_is_just_cancelled() -> None:
    async def main() -> None:
        async with database_of(server.url) as db:
            reading = asyncio.ensure_future(db.send(GET))
            await asyncio.to_thread(server.wait_for_requests, 1)
            writing = asyncio.ensure_future(db.send(PUT))
            for _ in range(5):
                await asyncio.sleep(0)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            reading.cancel()
            await asyncio.wait([reading])

    with serve_script(silence()) as server:
        asyncio.run(main())


def test_a_throttled_write_that_waits_for_its_next_attempt_is_just_cancelled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server only throttled it, so the write did not happen; the cancellation ends the pause."""
    monkeypatch.setattr("holdall.backends.aws.courier.BASE_SECONDS", 60.0)
    monkeypatch.setattr("holdall.backends.aws.courier.LONGEST_PAUSE", 60.0)
    monkeypatch.setattr("holdall.backends.aws.blocking.Clock.random", lambda self: 0.5)

    async def main() -> None:
        async with database_of(server.url) as db:
            task = asyncio.ensure_future(db.send(PUT))
            while "throttled" not in caplog.text:
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

    with serve_script(describe_things(), refuse_with("ThrottlingException")) as server:
        asyncio.run(main())


def test_a_batch_that_is_never_processed_ends_soon_after_its_caller_is_cancelled() -> None:
    def answer(received: ReceivedRequest) -> Step:
        if received.operation == "DescribeTable":
            return describe_things()
        return reply_with({"UnprocessedItems": received.payload["RequestItems"]})

    async def main() -> None:
        async with database_of(server.url) as db:
            task = await cancel_after_requests(server, 3, db.send(BatchWrite((PUT,))))
            assert task.cancelled()

    with serve_script(answer=answer) as server:
        asyncio.run(main())


def test_a_cancelled_read_inside_port_finish_ends_soon_too() -> None:
    async def main() -> None:
        async with database_of(server.url) as db:
            task = await cancel_after_requests(server, 2, db.port.finish(db.send(GET)))
            assert task.cancelled()

    with serve_script(describe_things(), silence()) as server:
        asyncio.run(main())


def test_a_task_that_outlives_cancelled_work_has_the_full_time_for_its_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work started the task and was cancelled; the short deadline of that cancellation does not apply to it."""
    monkeypatch.setattr("holdall.backends.aws.limit.GRACE_SECONDS", 0.0)
    gate = threading.Event()
    left: list[asyncio.Task[Any]] = []
    go = asyncio.Event()

    async def main() -> None:
        async with database_of(server.url) as db:

            async def read_later() -> Any:
                await go.wait()
                return await db.send(GET)

            async def leave_behind() -> None:
                left.append(asyncio.create_task(read_later()))
                await db.send(PUT)

            await cancel_after_requests(server, 2, db.port.finish(leave_behind()))
            go.set()
            await asyncio.to_thread(server.wait_for_requests, 3)
            gate.set()
            assert (await left[0]).item == KEY

    with serve_script(describe_things(), silence(), reply_with({"Item": KEY}, gate=gate)) as server:
        asyncio.run(main())


class Thing(Model):
    name: Key[str]
    size: int


TABLE = {
    "TableName": "holdall",
    "TableStatus": "ACTIVE",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
}


def test_a_cancelled_transaction_runs_neither_its_body_nor_its_handlers_again() -> None:
    runs: list[str] = []

    async def body(tx: Any) -> None:
        runs.append("body")
        tx.create(Thing, name="a", size=1)
        tx.after_commit(lambda: runs.append("after commit"))
        tx.after_failure(lambda error: runs.append("after failure"))

    async def main() -> None:
        endpoint = resolve_endpoint("dynamodb", endpoint=server.url, environment=KEYS)
        backend = DynamoBackend(endpoint, find_credentials(environment=KEYS))
        async with AsyncDatabase(backend=backend, manage_table=False) as db:
            task = await cancel_after_requests(server, 2, db.run(body))
            unknown = task.exception()
            assert isinstance(unknown, OutcomeUnknown)

    with serve_script(reply_with({"Table": TABLE}), silence()) as server:
        asyncio.run(main())
    assert runs == ["body"]


def test_a_cancelled_creation_of_an_object_ends_soon_and_its_outcome_is_unknown() -> None:
    async def main() -> None:
        endpoint = resolve_endpoint("s3", endpoint=server.url, environment=KEYS)
        service = S3Service("things", endpoint, find_credentials(environment=KEYS), conditional_puts=True)
        async with AsyncDatabase("memory:", files=service) as db:
            put = PutObject("default", "a", b"bytes", if_absent="our-id")
            task = await cancel_after_requests(server, 1, db.send(put))
            assert isinstance(task.exception(), OutcomeUnknown)

    with bucket(answer=lambda received: silence()) as server:
        asyncio.run(main())


def test_reads_are_cancelled_at_once() -> None:
    async def main() -> None:
        async with database_of(server.url) as db:
            task = await cancel_after_requests(server, 2, db.send(GetItem("things", KEY)))
            assert task.cancelled()

    with serve_script(describe_things(), silence()) as server:
        asyncio.run(main())


@job("tick", every=3600)
def tick() -> None:
    """A recurring job, which this test never enqueues."""


def test_a_worker_stops_even_if_one_of_its_writes_is_never_answered() -> None:
    writing = threading.Event()

    def answer(received: ReceivedRequest) -> Step:
        if received.operation == "DescribeTable":
            return reply_with({"Table": TABLE})
        if received.operation == "Query":
            return reply_with({"Items": [], "Count": 0, "ScannedCount": 0})
        if received.operation != "TransactWriteItems":
            return reply_with({})
        writing.set()
        return silence()

    async def main() -> None:
        db = database_of(server.url, total_timeout=600.0, read_timeout=600.0)
        async with db, db.worker(jobs=[tick], concurrency=1):
            assert await asyncio.to_thread(writing.wait, 20)

    with serve_script(answer=answer) as server:
        asyncio.run(asyncio.wait_for(main(), 20))
