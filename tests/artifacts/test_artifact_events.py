"""Events of artifacts: what happened reaches each handler, as often as it happened, by way of a worker."""

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
    """Artifacts with a worker, and what its handlers heard."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.artifacts = cast("AsyncArtifacts", Awaited(rig.db.artifacts))
        self.heard: list[ArtifactEvent] = []

    def listen(self, *kinds: EventKind, **options: Any) -> None:
        """Have a handler that notes what it hears."""
        on(*(kinds or KINDS), name="listener", **options)(self.heard.append)

    async def publish(self, content: bytes = b"one", name: str = "model") -> Any:
        await self.artifacts.put(name, content)
        return await self.artifacts.publish(name)

    async def heard_of(self) -> list[tuple[str, str | None, str | None]]:
        """Let a worker do its work; what was heard since, in the order in which it happened."""
        metrics = await self.rig.drain()
        assert metrics.failed == metrics.dead == 0
        found = sorted(self.heard, key=lambda event: event.at)
        self.heard.clear()
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


# --- what is heard --------------------------------------------------------------------------------------


@everywhere
async def test_handlers_hear_of_all_that_happened_as_often_as_it_did(hall: Hall) -> None:
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
    assert await hall.heard_of() == [
        ("published", "1", None),
        ("published", "2", None),
        ("alias_moved", None, "prod"),
        ("alias_moved", None, "prod"),
        ("alias_moved", None, "prod"),
        ("deleted", "1", None),
        ("restored", "1", None),
        ("deleted", "LATEST", None),
    ]
    assert await hall.heard_of() == []


@in_both
async def test_an_event_tells_all_there_is_to_tell(hall: Hall) -> None:
    hall.listen()
    before = hall.rig.clock.now()
    published = await hall.publish()
    await hall.publish(b"two")
    await hall.artifacts.put_alias("model", "prod", 1)
    await hall.artifacts.put_alias("model", "prod", weights={2: 7, 1: 3})
    await hall.artifacts.delete_alias("model", "prod")
    await hall.rig.drain()
    first, _, made, moved, gone = sorted(hall.heard, key=lambda event: event.at)
    assert (first.name, first.version, first.sha256) == ("model", "1", published.sha256)
    assert (first.alias, first.before, first.after) == (None, None, None)
    assert (made.name, made.alias, made.version, made.sha256) == ("model", "prod", None, None)
    assert (made.before, made.after) == (None, {"1": 100})
    assert (moved.before, moved.after) == ({"1": 100}, {"2": 7, "1": 3})
    assert (gone.before, gone.after) == ({"2": 7, "1": 3}, None)
    assert len({event.id for event in hall.heard}) == 5
    assert all(before <= event.at <= hall.rig.clock.now() for event in hall.heard)


@in_both
async def test_a_handler_hears_of_its_kinds_only(hall: Hall) -> None:
    hall.listen("deleted", "restored")
    await hall.publish()
    await hall.artifacts.put_alias("model", "prod")
    assert await hall.jobs() == 0
    await hall.artifacts.delete("model", 1)
    assert await hall.heard_of() == [("deleted", "1", None)]


@in_both
async def test_what_changes_nothing_is_not_told(hall: Hall) -> None:
    await hall.publish()
    hall.listen()
    await hall.artifacts.publish("model")
    await hall.artifacts.restore("model", 1)
    await hall.artifacts.delete_alias("model", "prod")
    await hall.artifacts.delete("model", 7)
    assert await hall.jobs() == 0


@in_one
async def test_aliases_that_go_with_a_version_are_told_of_too(hall: Hall) -> None:
    await hall.publish()
    await hall.artifacts.put_alias("model", "prod", 1)
    await hall.artifacts.put_alias("model", "test", 1)
    hall.listen()
    await hall.artifacts.delete("model", 1, drop_aliases=True)
    assert Counter(await hall.heard_of()) == Counter(
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
    assert [event.after for event in sorted(hall.heard, key=lambda event: event.at)] == [
        {"1": 95, "2": 5},
        {"2": 100},
        {"1": 100},
    ]


# --- what is not ----------------------------------------------------------------------------------------


@in_both
async def test_nothing_is_enqueued_where_nobody_listens(hall: Hall) -> None:
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
async def test_a_change_that_is_tried_again_is_told_once_and_as_it_became(hall: Hall) -> None:
    for content in (b"one", b"two"):
        await hall.publish(content)
    await hall.artifacts.put_alias("model", "prod", 1)
    hall.listen("alias_moved")
    writes: list[Any] = []

    def come_in(request: Any) -> None:
        if isinstance(request, TransactWrite):
            writes.append(request)
            if len(writes) == 1:
                rig = hall.rig
                files = {"main": rig.db._services.service("main")}
                other = Database("memory:", backend=rig.meddler.inner, files=files)
                other.artifacts.put_alias("model", "prod", 2)

    hall.rig.meddler.before = come_in
    await hall.artifacts.put_alias("model", "prod", 1, 2, 50)
    assert len(writes) == 2
    hall.rig.meddler.before = lambda request: None
    await hall.rig.drain()
    moves = sorted(hall.heard, key=lambda event: event.at)
    assert [(event.before, event.after) for event in moves] == [
        ({"1": 100}, {"2": 100}),
        ({"2": 100}, {"1": 50, "2": 50}),
    ]


@in_one
async def test_a_change_whose_reply_is_lost_is_told_if_it_happened(hall: Hall) -> None:
    await hall.publish()
    hall.listen()
    hall.rig.meddler.after = lose_after(TransactWrite)
    with pytest.raises(OutcomeUnknown):
        await hall.artifacts.put_alias("model", "prod", 1)
    assert await hall.heard_of() == [("alias_moved", None, "prod")]


# --- handlers -------------------------------------------------------------------------------------------


@in_both
async def test_a_handler_that_fails_is_tried_again_and_keeps_no_other_from_hearing(hall: Hall) -> None:
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
    (heard,) = hall.heard
    assert attempts == [(heard.id, 1), (heard.id, 2), (heard.id, 3)]
    assert await hall.jobs() == 0


@in_both
async def test_handlers_of_both_colours_hear_in_a_worker_of_either(hall: Hall) -> None:
    heard: list[str] = []

    @on("published", name="plain")
    def plain(event: ArtifactEvent) -> None:
        heard.append(f"plain {event.version}")

    @on("published", name="async", queue="slow")
    async def hear_async(event: ArtifactEvent) -> None:
        await asyncio.sleep(0)
        heard.append(f"async {event.version}")

    await hall.publish()
    await hall.rig.drain()
    assert heard == ["plain 1"]
    await hall.rig.drain(queues=["slow"])
    assert heard == ["plain 1", "async 1"]


@in_both
async def test_a_transactional_handler_writes_exactly_once_though_it_is_tried_again(hall: Hall) -> None:
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
async def test_one_function_can_hear_of_several_kinds_and_is_still_the_function_it_was(hall: Hall) -> None:
    heard: list[str] = []

    @on("published")
    @on("deleted", "deleted")
    def both(event: ArtifactEvent) -> str:
        heard.append(event.kind)
        return event.kind

    await hall.publish()
    await hall.artifacts.delete("model", 1)
    await hall.rig.drain()
    assert sorted(heard) == ["deleted", "published"]
    assert both(ArtifactEvent("id", "restored", "model", hall.rig.clock.now())) == "restored"


@in_one
async def test_handlers_without_a_name_are_told_apart_by_where_they_are_defined(hall: Hall) -> None:
    heard: list[str] = []

    @on("published")
    def first(event: ArtifactEvent) -> None:
        heard.append("first")

    @on("published")
    def second(event: ArtifactEvent) -> None:
        heard.append("second")

    await hall.publish()
    await hall.rig.drain()
    assert sorted(heard) == ["first", "second"]


@in_one
async def test_a_handler_can_have_any_name_that_a_function_can(hall: Hall) -> None:
    heard: list[str] = []

    @on("published")
    def geändert(event: ArtifactEvent) -> None:
        heard.append("one")

    @on("published")
    def geöndert(event: ArtifactEvent) -> None:
        heard.append("other")

    await hall.publish()
    await hall.rig.drain()
    assert sorted(heard) == ["one", "other"]


@in_one
async def test_an_object_that_is_called_and_awaited_can_be_a_handler(hall: Hall) -> None:
    class Handler:
        async def __call__(self, event: ArtifactEvent) -> None:
            hall.heard.append(event)

    on("published")(Handler())
    await hall.publish()
    assert await hall.heard_of() == [("published", "1", None)]


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
