"""Events of artifacts: each change calls each handler once, through a worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from rig.colour import Awaited
from rig.jobs import Rig, Way, lose_after, open_rig

from holdall import AsyncTransaction, Database, Key, Model, Transaction, current_job
from holdall.artifacts import ArtifactEvent, AsyncArtifacts, on
from holdall.artifacts.event import EventKind
from holdall.backends.memory import MemoryService
from holdall.core.port import run
from holdall.core.requests import TransactWrite
from holdall.errors import (
    ArtifactChangedError,
    ArtifactInUseError,
    ArtifactNotFoundError,
    JobDefinitionError,
    OutcomeUnknown,
    ProtectedAliasError,
)
from holdall.jobs.declaration import declared_jobs

KINDS: list[EventKind] = ["published", "alias_moved", "deleted", "restored"]


class Tally(Model):
    name: Key[str]
    n: int = 0


class Hall:
    """Artifacts with a worker, and the events that its handlers received."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.artifacts = cast("AsyncArtifacts", Awaited(rig.db.artifacts))
        self.received: list[ArtifactEvent] = []

    def listen(self, *kinds: EventKind, **options: Any) -> None:
        """Register a handler that records its events."""
        on(*(kinds or KINDS), name="listener", **options)(self.received.append)

    async def publish(self, content: bytes = b"one", name: str = "model") -> Any:
        await self.artifacts.put(name, content)
        return await self.artifacts.publish(name)

    async def drain_events(self) -> list[tuple[str, str | None, str | None]]:
        """Run a worker until its queue is empty, and return the events received since the last call, oldest first."""
        metrics = await self.rig.drain()
        assert metrics.failed == metrics.dead == 0
        found = sorted(self.received, key=lambda event: event.at)
        self.received.clear()
        return [(event.kind, event.version, event.alias) for event in found]

    async def jobs(self) -> int:
        return len(await self.rig.jobs.list())


def on_ways(*ways: Way) -> Callable[[Callable[[Hall], Any]], Callable[..., None]]:
    def decorate(test: Callable[[Hall], Any]) -> Callable[..., None]:
        @pytest.mark.parametrize("way", ways, ids=str)
        def run_it(way: Way) -> None:
            with open_rig(way, files={"main": MemoryService()}) as rig:
                if way.colour == "blocking":
                    run(test(Hall(rig)))
                else:
                    asyncio.run(test(Hall(rig)))

        run_it.__name__ = test.__name__
        return cast("Callable[..., None]", run_it)

    return decorate


BOTH = (Way("memory", "blocking"), Way("memory", "awaiting"))
in_both = on_ways(*BOTH)
in_one = on_ways(BOTH[0])
everywhere = on_ways(*BOTH, Way("file", "awaiting"), Way("ministack", "blocking"))


# --- events that are sent -------------------------------------------------------------------------------


@everywhere
async def test_handlers_receive_one_event_for_each_change(hall: Hall) -> None:
    hall.listen()
    artifacts = hall.artifacts
    await hall.publish(b"one")
    await hall.publish(b"two")
    await artifacts.put_alias("model", "prod", 1)
    await artifacts.put_alias("model", "prod", 1, 2, 10)
    await artifacts.delete_alias("model", "prod")
    await artifacts.delete("model", 1)
    await artifacts.restore("model", 1)
    await artifacts.delete("model")
    assert await hall.drain_events() == [
        ("published", "1", None),
        ("published", "2", None),
        ("alias_moved", None, "prod"),
        ("alias_moved", None, "prod"),
        ("alias_moved", None, "prod"),
        ("deleted", "1", None),
        ("restored", "1", None),
        ("deleted", "LATEST", None),
    ]
    assert await hall.drain_events() == []


@in_both
async def test_an_event_describes_its_change_completely(hall: Hall) -> None:
    hall.listen()
    before = hall.rig.clock.now()
    published = await hall.publish()
    await hall.publish(b"two")
    await hall.artifacts.put_alias("model", "prod", 1)
    await hall.artifacts.put_alias("model", "prod", weights={2: 7, 1: 3})
    await hall.artifacts.delete_alias("model", "prod")
    await hall.rig.drain()
    first, _, made, moved, gone = sorted(hall.received, key=lambda event: event.at)
    assert (first.name, first.version, first.sha256) == ("model", "1", published.sha256)
    assert (first.alias, first.before, first.after) == (None, None, None)
    assert (made.name, made.alias, made.version, made.sha256) == ("model", "prod", None, None)
    assert (made.before, made.after) == (None, {"1": 100})
    assert (moved.before, moved.after) == ({"1": 100}, {"2": 7, "1": 3})
    assert (gone.before, gone.after) == ({"2": 7, "1": 3}, None)
    assert len({event.id for event in hall.received}) == 5
    assert all(before <= event.at <= hall.rig.clock.now() for event in hall.received)


@in_both
async def test_a_handler_receives_only_events_of_its_kinds(hall: Hall) -> None:
    hall.listen("deleted", "restored")
    await hall.publish()
    await hall.artifacts.put_alias("model", "prod")
    assert await hall.jobs() == 0
    await hall.artifacts.delete("model", 1)
    assert await hall.drain_events() == [("deleted", "1", None)]


@in_both
async def test_calls_that_change_nothing_send_no_event(hall: Hall) -> None:
    await hall.publish()
    hall.listen()
    await hall.artifacts.publish("model")
    await hall.artifacts.restore("model", 1)
    await hall.artifacts.delete_alias("model", "prod")
    await hall.artifacts.delete("model", 7)
    assert await hall.jobs() == 0


@in_one
async def test_aliases_deleted_with_their_version_send_events_too(hall: Hall) -> None:
    await hall.publish()
    await hall.artifacts.put_alias("model", "prod", 1)
    await hall.artifacts.put_alias("model", "test", 1)
    hall.listen()
    await hall.artifacts.delete("model", 1, drop_aliases=True)
    assert Counter(await hall.drain_events()) == Counter(
        [("alias_moved", None, "prod"), ("alias_moved", None, "test"), ("deleted", "1", None)]
    )


@in_one
async def test_a_rollback_and_each_stage_of_a_rollout_move_the_alias(hall: Hall) -> None:
    await hall.publish(b"one")
    await hall.publish(b"two")
    await hall.artifacts.put_alias("model", "prod", 1)
    hall.listen("alias_moved")
    await hall.artifacts.start_rollout("model", "prod", 2, [(5, 60)])
    hall.rig.clock.forward(61)
    await hall.rig.drain()
    await hall.artifacts.rollback_alias("model", "prod")
    await hall.rig.drain()
    assert [event.after for event in sorted(hall.received, key=lambda event: event.at)] == [
        {"1": 95, "2": 5},
        {"2": 100},
        {"1": 100},
    ]


# --- changes without events -----------------------------------------------------------------------------


@in_both
async def test_nothing_is_enqueued_without_a_handler(hall: Hall) -> None:
    await hall.publish()
    await hall.artifacts.put_alias("model", "prod", 1)
    await hall.artifacts.delete("model", 1, drop_aliases=True)
    await hall.artifacts.restore("model", 1)
    assert await hall.jobs() == 0
    assert await hall.rig.jobs.queues() == []


@in_both
async def test_a_change_that_fails_enqueues_nothing(hall: Hall) -> None:
    await hall.publish()
    await hall.artifacts.put_alias("model", "prod", 1, protected=True)
    hall.listen()
    artifacts = hall.artifacts
    await artifacts.put("model", b"two")
    failing: list[tuple[type[Exception], Any]] = [
        (ArtifactNotFoundError, lambda: artifacts.put_alias("model", "new", 9)),
        (ProtectedAliasError, lambda: artifacts.put_alias("model", "prod", 1)),
        (ProtectedAliasError, lambda: artifacts.delete_alias("model", "prod")),
        (ArtifactInUseError, lambda: artifacts.delete("model", 1)),
        (ArtifactChangedError, lambda: artifacts.publish("model", expect_version=7)),
        (ArtifactNotFoundError, lambda: artifacts.publish("nothing")),
        (ArtifactNotFoundError, lambda: artifacts.restore("model", 9)),
    ]
    for kind, change in failing:
        with pytest.raises(kind):
            await change()
    assert await hall.jobs() == 0


@in_both
async def test_a_retried_change_sends_one_event_with_the_state_it_replaced(hall: Hall) -> None:
    for content in (b"one", b"two"):
        await hall.publish(content)
    await hall.artifacts.put_alias("model", "prod", 1)
    hall.listen("alias_moved")
    writes: list[Any] = []

    def interfere(request: Any) -> None:
        if isinstance(request, TransactWrite):
            writes.append(request)
            if len(writes) == 1:
                rig = hall.rig
                files = {"main": rig.db._services.service("main")}
                other = Database("memory:", backend=rig.recorder.inner, files=files)
                other.artifacts.put_alias("model", "prod", 2)

    hall.rig.recorder.before = interfere
    await hall.artifacts.put_alias("model", "prod", 1, 2, 50)
    assert len(writes) == 2
    hall.rig.recorder.before = lambda request: None
    await hall.rig.drain()
    moves = sorted(hall.received, key=lambda event: event.at)
    assert [(event.before, event.after) for event in moves] == [
        ({"1": 100}, {"2": 100}),
        ({"2": 100}, {"1": 50, "2": 50}),
    ]


@in_one
async def test_a_change_whose_reply_is_lost_sends_its_event(hall: Hall) -> None:
    await hall.publish()
    hall.listen()
    hall.rig.recorder.after = lose_after(TransactWrite)
    with pytest.raises(OutcomeUnknown):
        await hall.artifacts.put_alias("model", "prod", 1)
    assert await hall.drain_events() == [("alias_moved", None, "prod")]


# --- handlers -------------------------------------------------------------------------------------------


@in_both
async def test_a_failing_handler_is_retried_and_does_not_affect_other_handlers(hall: Hall) -> None:
    hall.listen()
    attempts: list[tuple[str, int]] = []

    @on("published", name="failing", backoff=10)
    def fail_twice(event: ArtifactEvent) -> None:
        attempts.append((event.id, current_job().attempt))
        if len(attempts) < 3:
            raise ValueError("not today")

    await hall.publish()
    for _ in range(4):
        await hall.rig.drain()
        hall.rig.clock.forward(30)
    (received,) = hall.received
    assert attempts == [(received.id, 1), (received.id, 2), (received.id, 3)]
    assert await hall.jobs() == 0


@in_both
async def test_sync_and_async_handlers_run_in_workers_of_both_colours(hall: Hall) -> None:
    received: list[str] = []

    @on("published", name="plain")
    def plain(event: ArtifactEvent) -> None:
        received.append(f"plain {event.version}")

    @on("published", name="async", queue="slow")
    async def receive_async(event: ArtifactEvent) -> None:
        await asyncio.sleep(0)
        received.append(f"async {event.version}")

    await hall.publish()
    await hall.rig.drain()
    assert received == ["plain 1"]
    await hall.rig.drain(queues=["slow"])
    assert received == ["plain 1", "async 1"]


@in_both
async def test_a_transactional_handler_writes_exactly_once_despite_retries(hall: Hall) -> None:
    await hall.rig.create(Tally(name="plain"), Tally(name="async"))
    tries: list[str] = []

    def fail_first(name: str) -> None:
        tries.append(name)
        if tries.count(name) == 1:
            raise ValueError("after its write")

    @on("published", name="counting", transactional=True, backoff=1)
    def plain(tx: Transaction, event: ArtifactEvent) -> None:
        tx.get_one(Tally, "plain").n += int(event.version or 0)
        fail_first("plain")

    @on("published", name="counting-async", transactional=True, backoff=1)
    async def count_async(tx: AsyncTransaction, event: ArtifactEvent) -> None:
        (await tx.get_one(Tally, "async")).n += int(event.version or 0)
        fail_first("async")

    await hall.publish()
    for _ in range(3):
        await hall.rig.drain()
        hall.rig.clock.forward(10)
    assert Counter(tries) == {"plain": 2, "async": 2}
    assert [(await hall.rig.get(Tally, name)).n for name in ("plain", "async")] == [1, 1]


@in_one
async def test_a_handler_can_have_several_kinds_and_stays_callable(hall: Hall) -> None:
    received: list[str] = []

    @on("published")
    @on("deleted", "deleted")
    def both(event: ArtifactEvent) -> str:
        received.append(event.kind)
        return event.kind

    await hall.publish()
    await hall.artifacts.delete("model", 1)
    await hall.rig.drain()
    assert sorted(received) == ["deleted", "published"]
    assert both(ArtifactEvent("id", "restored", "model", hall.rig.clock.now())) == "restored"


@in_one
async def test_unnamed_handlers_are_distinguished_by_where_they_are_defined(hall: Hall) -> None:
    received: list[str] = []

    @on("published")
    def first(event: ArtifactEvent) -> None:
        received.append("first")

    @on("published")
    def second(event: ArtifactEvent) -> None:
        received.append("second")

    await hall.publish()
    await hall.rig.drain()
    assert sorted(received) == ["first", "second"]


@in_one
async def test_a_handler_s_function_can_have_any_valid_name(hall: Hall) -> None:
    received: list[str] = []

    @on("published")
    def geändert(event: ArtifactEvent) -> None:
        received.append("one")

    @on("published")
    def geöndert(event: ArtifactEvent) -> None:
        received.append("other")

    await hall.publish()
    await hall.rig.drain()
    assert sorted(received) == ["one", "other"]


@in_one
async def test_an_object_with_an_async_call_method_can_be_a_handler(hall: Hall) -> None:
    class Handler:
        async def __call__(self, event: ArtifactEvent) -> None:
            hall.received.append(event)

    on("published")(Handler())
    await hall.publish()
    assert await hall.drain_events() == [("published", "1", None)]


def test_unknown_kinds_and_options_are_refused_at_once() -> None:
    def handler(event: ArtifactEvent) -> None: ...

    wrong: list[Any] = [(), ("publish",), ("published", "moved"), (None,), (5,)]
    for kinds in wrong:
        with pytest.raises(JobDefinitionError, match="a handler names"):
            on(*kinds)(handler)
    with pytest.raises(JobDefinitionError):
        on("published", patience=3)(handler)
    assert not any(each.topics for each in declared_jobs().values())


def test_a_handler_that_cannot_take_an_event_is_refused_at_once() -> None:
    def do_nothing() -> None: ...

    def much(event: ArtifactEvent, more: int) -> None: ...

    for handler in (do_nothing, much):
        with pytest.raises(JobDefinitionError):
            on("published", name="wrong")(handler)
    with pytest.raises(JobDefinitionError):
        on("published", name="wrong", transactional=True)(lambda event: None)
    assert not any(each.topics for each in declared_jobs().values())
