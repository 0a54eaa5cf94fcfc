"""Two processes change one artifact, with their requests in every order: no schedule loses anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import groupby, product
from random import Random
from typing import Any, NamedTuple

import pytest
from artifact_audit import Seen, State, audit, digest
from artifact_rig import open_store
from artifact_scenarios import trees
from artifact_stage import Actor, ContentEtags, Death, Flow, Scene, Stage
from rig.clock import Clock
from rig.torture import ROUNDS, SEED

from holdall.errors import (
    ArtifactChangedError,
    ArtifactInUseError,
    ArtifactNotFoundError,
    ContentionError,
)

pytestmark = pytest.mark.torture

NAME = "model"
ALL = 40
"""With this many rounds, as in `make torture`, every schedule is tried; otherwise a sample for each race."""

SHORT = ("put, put with other metadata", "publish after 2, publish after 2", "reindex, put")
"""Half of the schedules of these races always run, on the service whose etags come from the content: the harder one."""

EVEN = SHORT[:2]
"""In these races both processes do the same, so that it does not matter which of them begins."""

PATIENCE = 5.0
"""No actor pauses longer than this between two requests; purges of LATEST rely on a few seconds."""

TWO_DAYS = 2 * 24 * 3600.0
ONE, TWO, THREE, FOUR = b"one", b"two!", b"three", b"the fourth"


def call(method: str, *args: Any, **options: Any) -> Flow:
    """A flow that calls a method of ``db.artifacts``."""

    def flow(scene: Scene) -> Coroutine[Any, Any, Any]:
        found: Coroutine[Any, Any, Any] = getattr(scene.artifacts, method)(NAME, *args, **options)
        return found

    return flow


def publish_two(stage: Stage) -> None:
    for body in (ONE, TWO):
        stage.now.put(NAME, body)
        stage.now.publish(NAME)
    stage.now.put(NAME, THREE)


def put_prod(stage: Stage) -> None:
    publish_two(stage)
    stage.now.put_alias(NAME, "prod", 1, 2, 20)


def directory(stage: Stage) -> None:
    stage.now.put(NAME, stage.store.directory / "first")


def tree(name: str, method: str = "put") -> Flow:
    """A flow that puts a directory, or publishes it."""

    def flow(scene: Scene) -> Coroutine[Any, Any, Any]:
        return call(method, scene.directory / name)(scene)

    return flow


def reindex(scene: Scene) -> Coroutine[Any, Any, Any]:
    return scene.artifacts.reindex()


def put_and_purge(stage: Stage) -> None:
    """Leave the name listed, without any version."""
    stage.now.put(NAME, ONE)
    stage.now.purge(NAME, "LATEST")


def put_one(stage: Stage) -> None:
    stage.now.put(NAME, ONE)


def do_nothing(stage: Stage) -> None:
    pass


Verify = Callable[[Stage, Actor, Actor, State], None]


def verify_one_wins(stage: Stage, one: Actor, two: Actor, state: State) -> None:
    assert [each.error is None for each in (one, two)].count(True) == 1, "exactly one of the two must succeed"


def verify_published(*contents: bytes) -> Verify:
    """Check that each published content became a version of its own, whatever the other process did meanwhile."""

    def verify(stage: Stage, one: Actor, two: Actor, state: State) -> None:
        versions = [sha256 for sha256, _ in state.versions[NAME]]
        for sha256 in map(digest, contents):
            assert versions.count(sha256) >= [digest(each) for each in contents].count(sha256)
        assert all(actor.error is None for actor in (one, two))

    return verify


class Race(NamedTuple):
    """The initial state, the two flows, and a further check at the end."""

    name: str
    before: Callable[[Stage], None]
    first: Flow
    second: Flow
    verify: Verify = lambda stage, one, two, state: None

    def __str__(self) -> str:
        return self.name


RACES = [
    Race("put, put", put_one, call("put", TWO), call("put", THREE)),
    Race("put, put the same", put_one, call("put", TWO), call("put", TWO)),
    Race(
        "put, put with other metadata",
        put_one,
        call("put", TWO, metadata={"by": "a"}),
        call("put", TWO, metadata={"by": "b"}),
    ),
    Race("first put, put", do_nothing, call("put", TWO), call("put", THREE)),
    Race("put, publish", publish_two, call("put", TWO), call("publish")),
    Race("publish, publish", publish_two, call("publish"), call("publish")),
    Race("publish, publish by force", publish_two, call("publish", force=True), call("publish", force=True)),
    Race(
        "publish a content, put", publish_two, call("publish", FOUR), call("put", ONE), verify_published(FOUR)
    ),
    Race(
        "publish a content, publish another",
        publish_two,
        call("publish", FOUR, metadata={"by": "a"}),
        call("publish", FOUR, metadata={"by": "b"}),
        verify_published(FOUR, FOUR),
    ),
    Race("publish a content, purge all", publish_two, call("publish", THREE), call("purge")),
    Race(
        "publish a directory's content, put",
        directory,
        tree("second", "publish"),
        call("put", ONE),
    ),
    Race(
        "publish after 2, publish a content after 2",
        publish_two,
        call("publish", force=True, expect_version=2),
        call("publish", ONE, expect_version=2),
        verify_one_wins,
    ),
    Race("delete, put_alias", publish_two, call("delete", 1), call("put_alias", "prod", 1)),
    Race("delete LATEST, put_alias", publish_two, call("delete"), call("put_alias", "prod")),
    Race("delete, move alias", put_prod, call("delete", 1), call("put_alias", "prod", 2)),
    Race(
        "delete with aliases, move alias",
        put_prod,
        call("delete", 1, drop_aliases=True),
        call("put_alias", "prod", 2),
    ),
    Race("purge, put_alias", publish_two, call("purge", 1), call("put_alias", "prod", 1, 2, 10)),
    Race("purge LATEST, put_alias", publish_two, call("purge", "LATEST"), call("put_alias", "prod")),
    Race("purge LATEST, put the same", put_one, call("purge", "LATEST"), call("put", ONE)),
    Race("purge LATEST, put another", put_one, call("purge", "LATEST"), call("put", TWO)),
    Race("purge LATEST, publish", put_one, call("purge", "LATEST"), call("publish")),
    Race("purge LATEST twice", put_one, call("purge", "LATEST"), call("purge", "LATEST")),
    Race("purge all, publish", publish_two, call("purge"), call("publish")),
    Race("purge all, put", publish_two, call("purge"), call("put", ONE)),
    Race("purge, restore", publish_two, call("purge", 1), call("restore", 1)),
    Race("purge, purge", publish_two, call("purge", 1), call("purge", 1)),
    Race("delete LATEST, put the same", put_one, call("delete"), call("put", ONE)),
    Race("delete LATEST, put another", put_one, call("delete"), call("put", TWO)),
    Race("delete LATEST, publish", put_one, call("delete"), call("publish")),
    Race(
        "prune, put_alias",
        publish_two,
        call("prune", keep_last=0, older_than=0),
        call("put_alias", "prod", 1),
    ),
    Race(
        "put_alias, put_alias", publish_two, call("put_alias", "prod", 1), call("put_alias", "prod", 2, 1, 5)
    ),
    Race("put_alias, delete_alias", put_prod, call("put_alias", "prod", 1), call("delete_alias", "prod")),
    Race(
        "publish after 2, publish after 2",
        publish_two,
        call("publish", force=True, expect_version=2),
        call("publish", force=True, expect_version=2),
        verify_one_wins,
    ),
    Race(
        "put instead of one, put instead of one",
        put_one,
        call("put", TWO, expect_sha256=digest(ONE)),
        call("put", THREE, expect_sha256=digest(ONE)),
        verify_one_wins,
    ),
    Race("reindex, put", put_and_purge, reindex, call("put", TWO)),
    Race("reindex, publish", put_one, reindex, call("publish")),
    Race("reindex, purge all", publish_two, reindex, call("purge")),
    Race("put directory, put", directory, tree("second"), call("put", ONE)),
    Race("put directory, put directory", directory, tree("second"), tree("second")),
    Race("put directory, put another", do_nothing, tree("first"), tree("second")),
    Race("put directory, publish", directory, tree("second"), call("publish")),
    Race("put directory, purge LATEST", directory, tree("first"), call("purge", "LATEST")),
    Race("put directory, purge all", directory, tree("second"), call("purge")),
    Race("purge all, publish directory", directory, call("purge"), call("publish")),
]

EXPECTED = (ArtifactNotFoundError, ArtifactInUseError, ContentionError, ArtifactChangedError, Death)


@contextmanager
def open_stage(like_s3: bool) -> Iterator[Stage]:
    with open_store("memory") as store:
        trees(store.directory)
        if like_s3:
            store = replace(store, service=ContentEtags())
        yield Stage(store, Clock())


on_both = pytest.mark.parametrize("like_s3", [False, True], ids=["unique etags", "etags of content"])


@on_both
@pytest.mark.parametrize("race", RACES, ids=str)
def test_nothing_is_lost_in_any_order(race: Race, like_s3: bool) -> None:
    for schedule in schedules(race, like_s3, ROUNDS, short=like_s3):
        with open_stage(like_s3) as stage:
            play_out(stage, race, schedule)


@pytest.mark.parametrize("race", RACES, ids=str)
def test_nothing_is_lost_if_one_process_dies(race: Race) -> None:
    for number, schedule in enumerate(schedules(race, True, (ROUNDS + 1) // 2)):
        with open_stage(like_s3=True) as stage:
            play_out(stage, race, schedule, dying=number % 2)


@pytest.mark.parametrize("steps", range(8))
def test_content_with_an_expectation_is_published_or_not_put_at_all(steps: int) -> None:
    with open_stage(like_s3=False) as stage:
        publish_two(stage)
        expecting = stage.enter(call("publish", FOUR, expect_version=3))
        other = stage.enter(call("publish"))
        expecting.run(steps)
        other.run()
        expecting.run()
        state = audit(stage.store, stage.home)
    assert other.error is None
    assert (expecting.error is None) == (state.latest[NAME][0] == digest(FOUR))


class Schedule(NamedTuple):
    """How many steps each flow takes before the other's turn, and whether the second begins."""

    first: int
    second: int
    turned: bool

    def play(self, one: Actor, two: Actor) -> None:
        """Let each flow take its steps, then, in the same order, run to its end."""
        begun = [(one, self.first), (two, self.second)]
        order = begun[::-1] if self.turned else begun
        for actor, steps in order:
            actor.run(steps)
        for actor, _ in order:
            actor.run(patience=PATIENCE)  # it may have to wait for the other


def schedules(race: Race, like_s3: bool, some: int, *, short: bool = False) -> list[Schedule]:
    """All schedules, or a sample; ``short`` chooses half of them for the short races."""
    steps, other_steps = lengths(race, like_s3)
    turns = (False,) if race.name in EVEN else (False, True)
    found = [Schedule(*each) for each in product(range(steps + 1), range(other_steps + 1), turns)]
    if ROUNDS >= ALL:
        return found
    wanted = len(found) // 2 if short and race.name in SHORT else min(len(found), some)
    return sorted(Random(f"{SEED} {race} {like_s3}").sample(found, wanted))


@cache
def lengths(race: Race, like_s3: bool) -> tuple[int, int]:
    found = []
    for flow in (race.first, race.second):
        with open_stage(like_s3) as stage:
            race.before(stage)
            actor = stage.enter(flow)
            actor.run()
            found.append(len(actor.port.sent))
    return found[0], found[1]


def play_out(stage: Stage, race: Race, schedule: Schedule, dying: int | None = None) -> None:
    """Run a schedule to its end and check everything; with ``dying``, one of the two flows dies on the way."""
    race.before(stage)
    seen = Seen()
    audit(stage.store, stage.home, seen=seen)
    one, two = both = stage.enter(race.first), stage.enter(race.second)
    if dying is not None:
        both[dying].run(schedule[dying])
        both[1 - dying].run(schedule[1 - dying])
        both[dying].kill()
    else:
        schedule.play(one, two)
    one.run()
    two.run()
    try:
        state = check(stage, one, two, seen)
        if dying is None:
            race.verify(stage, one, two, state)
    except AssertionError as error:
        error.add_note(f"{race}: {schedule} of {trace(one)}, {trace(two)}")
        raise


def trace(actor: Actor) -> str:
    ended = repr(actor.error) if actor.error else "done"
    sent = [
        f"{name} x{len(list(same))}"
        for name, same in groupby(type(each).__name__ for each in actor.port.sent)
    ]
    return f"[{', '.join(sent)}] ({ended:.100})"


def check(stage: Stage, one: Actor, two: Actor, seen: Seen) -> State:
    for each in (one, two):
        assert each.error is None or isinstance(each.error, EXPECTED), repr(each.error)
    audit(stage.store, stage.home, seen=seen, healed=False)
    with suppress(ArtifactNotFoundError):
        stage.now.get(NAME, deleted=True)
    state = audit(stage.store, stage.home, seen=seen)
    clean(stage, seen)
    return state


def clean(stage: Stage, seen: Seen) -> None:
    """Check that the next publish and purge remove all expired marks, and a purge of everything frees all bytes."""
    stage.clock.forward(TWO_DAYS)
    stage.now.put(NAME, b"the last")
    stage.now.publish(NAME)
    stage.now.purge(NAME, 999)
    audit(stage.store, stage.home, seen=seen, settled=True)
    stage.now.purge(NAME, drop_aliases=True)
    assert not stage.store.objects(), "bytes are left"
