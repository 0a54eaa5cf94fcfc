"""Cancelling a task wherever it waits: before the write, nothing happens; after it, everything is completed.

A transaction waits at *stops*: in its body, before and after each request, in its participant and its handler. The
tests cancel it at each of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from rig.wrapper import Wrapper
from transactions_rig import RecordedStore, Thing

from holdall import AsyncDatabase, Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.port import Port, Send
from holdall.core.requests import Request
from holdall.errors import ContentionError, HoldallError, ModelAlreadyExistsError, OutcomeUnknown
from holdall.tables.commit.change import Participant

SENT = "before TransactWrite"
"""The first stop after which the write is sent."""


class Stops:
    """The stops of a task. At the ``chosen`` one, counted from 0, the task waits until the test releases it."""

    def __init__(self, chosen: int | None = None) -> None:
        self.passed: list[str] = []
        self.reached = asyncio.Event()
        self.released = asyncio.Event()
        self._chosen = chosen

    async def at(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) - 1 == self._chosen:
            self.reached.set()
            await self.released.wait()
        else:
            await asyncio.sleep(0)


class StoppingStore(Wrapper):
    """A store with stops before and after each request; ``fails`` is raised in place of the write."""

    def __init__(self, stops: Stops, fails: Exception | None = None) -> None:
        super().__init__(EmbeddedBackend(None))
        self.stops: Stops | None = None
        self._later = stops
        self._fails = fails

    def begin(self) -> None:
        """Enable the stops."""
        self.stops = self._later

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if self.stops is None:
            return await send(self.inner, request)
        await self.stops.at(f"before {type(request).__name__}")
        if request.writes and self._fails is not None:
            await self.stops.at(f"after {type(request).__name__}")
            raise self._fails
        reply = await send(self.inner, request)
        await self.stops.at(f"after {type(request).__name__}")
        return reply


class StoppingParticipant(Participant):
    """A participant that stops in each of its methods, and records the calls."""

    def __init__(self, stops: Stops, events: list[str]) -> None:
        self._stops = stops
        self._events = events

    async def prepare(self, port: Port) -> None:
        self._events.append("prepare")
        await self._stops.at("prepare")

    async def settle(self, port: Port) -> None:
        await self._stops.at("settle")
        self._events.append("settle")

    async def abandon(self, port: Port) -> None:
        await self._stops.at("abandon")
        self._events.append("abandon")


class Scene:
    """A transaction of two items with a participant and a handler, and its effects."""

    def __init__(self, chosen: int | None, fails: Exception | None = None) -> None:
        self.stops = Stops(chosen)
        self.store = StoppingStore(self.stops, fails)
        self.db = AsyncDatabase(backend=self.store)
        self.events: list[str] = []
        self.bodies = 0

    async def body(self, tx: Any) -> str:
        self.bodies += 1
        thing = await tx.get_one(Thing, "a")
        await self.stops.at("body")
        thing.n += 1
        tx.create(Thing, name="b")
        tx.join(StoppingParticipant(self.stops, self.events))
        tx.after_commit(self._handler)
        tx.after_failure(lambda error: self.events.append("failure"))
        return "done"

    async def _handler(self) -> None:
        await self.stops.at("handler")
        self.events.append("handler")

    async def is_stored(self) -> bool:
        """Whether the transaction was written; half of it is an error."""
        self.store.stops = None
        found, created = await self.db.get_one(Thing, "a"), await self.db.get(Thing, "b")
        assert (found.n, created is None) in ((0, True), (1, False))
        return created is not None


@asynccontextmanager
async def open_scene(chosen: int | None, fails: Exception | None = None) -> AsyncIterator[Scene]:
    opened = Scene(chosen, fails)
    opened.db.sync.run(lambda tx: tx.create(Thing, name="a"))
    async with opened.db:
        opened.store.begin()
        yield opened


async def run_scene(it: Scene) -> Any:
    return await it.db.run(it.body, initial_backoff=0)


async def run_scene_in_block(it: Scene) -> Any:
    async with it.db.transaction() as tx:
        return await it.body(tx)


WAYS = [pytest.param(run_scene, id="run"), pytest.param(run_scene_in_block, id="with block")]
Way = Callable[[Scene], Awaitable[Any]]


def list_stops(way: Way, fails: Exception | None = None) -> list[str]:
    """Return every stop of a transaction that is not cancelled."""

    async def run_undisturbed() -> list[str]:
        async with open_scene(None, fails) as it:
            with suppress(HoldallError):
                await way(it)
            return list(it.stops.passed)

    return asyncio.run(run_undisturbed())


async def cancel_at(
    it: Scene, way: Way, times: int = 1, ends: type[BaseException] = asyncio.CancelledError
) -> None:
    """Cancel the transaction at its chosen stop, this many times, release it, and expect this error."""
    task = asyncio.ensure_future(way(it))
    await it.stops.reached.wait()
    for _ in range(times):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    it.stops.released.set()
    with pytest.raises(ends) as caught:
        await task
    assert isinstance(
        caught.value.__cause__ if ends is OutcomeUnknown else caught.value, asyncio.CancelledError
    )
    assert not asyncio.all_tasks() - {asyncio.current_task()}, "a task is still running"


def test_a_transaction_has_the_expected_stops() -> None:
    expected = ["before GetItem", "after GetItem", "body", "prepare", SENT, "after TransactWrite"]
    for way in (run_scene, run_scene_in_block):
        assert list_stops(way) == [*expected, "settle", "handler"]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_transaction_is_completed_if_its_write_was_sent_and_abandoned_otherwise(
    way: Way, times: int
) -> None:
    async def at(place: int, name: str, sent: bool) -> None:
        async with open_scene(place) as it:
            await cancel_at(it, way, times)
            assert await it.is_stored() == sent
            if sent:
                assert it.events == ["prepare", "settle", "handler"]
            else:
                assert it.events == (["prepare", "abandon"] if name == "prepare" else [])
            assert it.bodies == 1

    sent = False
    for place, name in enumerate(list_stops(way)):
        sent = sent or name == SENT
        asyncio.run(at(place, name, sent))
    assert sent


@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_transaction_with_an_unknown_outcome_is_reported_as_such_and_not_abandoned(
    way: Way,
) -> None:
    async def at(place: int) -> None:
        async with open_scene(place, OutcomeUnknown("lost")) as it:
            await cancel_at(it, way, ends=OutcomeUnknown)
            assert it.events == ["prepare"]
            assert it.bodies == 1

    stops = list_stops(way, OutcomeUnknown("lost"))
    for place in range(stops.index(SENT), len(stops)):
        asyncio.run(at(place))


@pytest.mark.parametrize("error", [ContentionError("outdated"), ModelAlreadyExistsError("there")], ids=repr)
@pytest.mark.parametrize("way", WAYS)
def test_a_refused_transaction_is_abandoned_without_a_retry_if_its_caller_is_cancelled(
    way: Way, error: Exception
) -> None:
    async def at(place: int) -> None:
        async with open_scene(place, error) as it:
            await cancel_at(it, way)
            assert it.bodies == 1
            assert it.events == ["prepare", "abandon"]

    stops = list_stops(way, error)
    for place in range(stops.index(SENT), stops.index(SENT) + 2):
        asyncio.run(at(place))


def test_a_run_that_is_cancelled_between_two_attempts_abandons_the_first() -> None:
    async def main() -> None:
        async with open_scene(None, ContentionError("outdated")) as it:
            task = asyncio.ensure_future(it.db.run(it.body, initial_backoff=3600, max_backoff=3600))
            while it.stops.passed[-1:] != ["after TransactWrite"]:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
            assert it.bodies == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert it.events == ["prepare", "abandon"]

    asyncio.run(main())


@pytest.mark.parametrize("place", ["prepare", SENT])
def test_a_time_limit_around_a_transaction_is_a_cancellation(place: str) -> None:
    async def main() -> None:
        async with open_scene(stops.index(place)) as it:

            async def run_limited() -> None:
                async with asyncio.timeout(None) as limit:
                    it.events.append("begun")
                    watch = asyncio.ensure_future(_expire(it, limit))
                    try:
                        await run_scene(it)
                    finally:
                        await watch

            with pytest.raises(TimeoutError):
                await run_limited()
            assert await it.is_stored() == (place == SENT)

    stops = list_stops(run_scene)
    asyncio.run(main())


async def _expire(it: Scene, limit: asyncio.Timeout) -> None:
    await it.stops.reached.wait()
    limit.reschedule(asyncio.get_running_loop().time())
    for _ in range(5):
        await asyncio.sleep(0)
    it.stops.released.set()


def test_one_of_several_concurrent_gets_can_be_cancelled_and_the_transaction_continues() -> None:
    async def main() -> None:
        async with open_scene(0) as it:

            async def body(tx: Any) -> None:
                slow = asyncio.ensure_future(tx.get(Thing, "a"))
                await it.stops.reached.wait()
                slow.cancel()
                with suppress(asyncio.CancelledError):
                    await slow
                (await tx.get_one(Thing, "a")).n += 1
                tx.create(Thing, name="b")

            await it.db.run(body)
            assert await it.is_stored()

    asyncio.run(main())


# --- interrupts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_an_interrupt_in_a_body_writes_nothing_and_calls_no_handler(error: BaseException) -> None:
    store = RecordedStore()
    events: list[str] = []

    def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        tx.after_commit(events.append, "handler")
        tx.after_failure(lambda error: events.append("failure"))
        raise error

    with Database(backend=store) as db:
        with pytest.raises(type(error)):
            db.run(body)
        with pytest.raises(type(error)), db.transaction() as tx:
            body(tx)
        assert store.writes == []
        assert db.get(Thing, "a") is None
    assert events == []


def test_an_interrupt_while_waiting_for_the_next_attempt_abandons_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    class FailingParticipant(StoppingParticipant):
        def __init__(self) -> None:
            pass

        async def prepare(self, port: Port) -> None:
            events.append("prepare")
            raise ContentionError("outdated")

        async def abandon(self, port: Port) -> None:
            events.append("abandon")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupt)
    with Database("memory:") as db, pytest.raises(KeyboardInterrupt):
        db.run(lambda tx: tx.join(FailingParticipant()))
    assert events == ["prepare", "abandon"]


def test_an_interrupt_in_an_async_body_writes_nothing() -> None:
    store = RecordedStore()

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        raise KeyboardInterrupt

    async def main() -> None:
        async with AsyncDatabase(backend=store) as db:
            await db.run(body)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert store.writes == []


def test_a_cancellation_inside_a_handler_abandons_nothing() -> None:
    """A task that the handler awaits can be cancelled; the transaction stays committed."""

    async def main() -> None:
        async with open_scene(None) as it:

            async def cancel_itself() -> None:
                raise asyncio.CancelledError

            async def body(tx: Any) -> None:
                await it.body(tx)
                tx.after_commit(cancel_itself)

            with pytest.raises(asyncio.CancelledError):
                await it.db.run(body)
            assert it.events == ["prepare", "settle", "handler"]
            assert await it.is_stored()

    asyncio.run(main())
