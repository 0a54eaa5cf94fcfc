"""Staged rollouts: a worker takes them from start to end, whatever happens in between."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from rig.colour import Awaited
from rig.files import bucket_service
from rig.jobs import Rig, Way, lose_after, open_rig

from holdall import Database
from holdall.artifacts import AsyncArtifacts
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.core.expressions import Set, Update, Value, path
from holdall.core.port import Backend, run
from holdall.core.requests import GetItem, PutItem, TransactWrite, UpdateItem
from holdall.errors import (
    AliasNotFoundError,
    ArtifactChangedError,
    ArtifactNotFoundError,
    InvalidArtifactError,
    InvalidOptionsError,
    OutcomeUnknown,
    ProtectedAliasError,
    RolloutError,
)
from holdall.jobs.lease import MARGIN

STAGES: list[tuple[int, float | timedelta]] = [(5, 60), (50, timedelta(hours=1))]
LEASE = 30.0


class Shop:
    """Artifacts with a worker: ``model`` has three versions, and the alias ``prod`` serves the first."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.artifacts = cast("AsyncArtifacts", Awaited(rig.db.artifacts))

    async def stock(self) -> None:
        for n in (1, 2, 3):
            await self.artifacts.put("model", b"%d" % n)
            await self.artifacts.publish("model")
        await self.artifacts.put_alias("model", "prod", 1)

    async def start(self, stages: Any = STAGES, version: Any = 2, **options: Any) -> Any:
        return await self.artifacts.start_rollout("model", "prod", version, stages, **options)

    async def weights(self) -> dict[str, int]:
        found: dict[str, int] = (await self.artifacts.alias("model", "prod")).describe()["weights"]
        return found

    async def state(self) -> str:
        return (await self.artifacts.rollout("model", "prod")).state

    async def after(self, seconds: float) -> int:
        """Let time pass, run a worker until nothing is due, and return how many jobs it finished."""
        self.rig.clock.forward(seconds)
        metrics = await self.rig.drain(lease=LEASE)
        assert metrics.failed == metrics.dead == 0
        return metrics.succeeded

    async def list_served(self) -> list[dict[str, int] | None]:
        """All weights that the alias ever had, oldest first."""
        history = await self.artifacts.alias_history("model", "prod")
        return [change.weights for change in reversed(history)]

    async def jobs(self) -> int:
        return len(await self.rig.jobs.list())


LIFE = [{"1": 100}, {"1": 95, "2": 5}, {"1": 50, "2": 50}, {"2": 100}]


@contextmanager
def shop_on(way: Way, directory: Path) -> Iterator[Shop]:
    service: Backend = MemoryService()
    if way.store == "file":
        service = DiskService(directory / "files")
    elif way.store == "ministack":
        service = bucket_service(f"rollouts/{uuid4().hex}")
    with open_rig(way, files={"main": service}) as rig:
        yield Shop(rig)


def carry_out(way: Way, directory: Path, test: Callable[[Shop], Any]) -> None:
    async def whole(shop: Shop) -> None:
        await shop.stock()
        await test(shop)

    with shop_on(way, directory) as shop:
        if way.colour == "blocking":
            run(whole(shop))
        else:
            asyncio.run(whole(shop))


def on(*ways: Way) -> Callable[[Callable[[Shop], Any]], Callable[..., None]]:
    def decorate(test: Callable[[Shop], Any]) -> Callable[..., None]:
        @pytest.mark.parametrize("way", ways, ids=str)
        def run_it(way: Way, tmp_path: Path) -> None:
            carry_out(way, tmp_path, test)

        run_it.__name__, run_it.__doc__ = test.__name__, test.__doc__
        return run_it

    return decorate


BOTH = (Way("memory", "blocking"), Way("memory", "awaiting"))
in_both = on(*BOTH)
in_one = on(BOTH[0])
in_the_other = on(BOTH[1])
everywhere = on(*BOTH, Way("file", "blocking"), Way("ministack", "awaiting"))


# --- from start to end ----------------------------------------------------------------------------------


@everywhere
async def test_a_worker_takes_a_rollout_through_its_stages_to_the_end(shop: Shop) -> None:
    begun = await shop.start(by="ada", reason="faster")
    assert (begun.base, begun.version, begun.percent, begun.state) == ("1", "2", 5, "running")
    assert begun == await shop.artifacts.rollout("model", "prod")
    assert await shop.after(50) == 0
    assert await shop.weights() == {"1": 95, "2": 5}
    assert await shop.after(11) == 1
    assert await shop.weights() == {"1": 50, "2": 50}
    assert await shop.after(3500) == 0
    assert await shop.after(101) == 1
    ended = await shop.artifacts.rollout("model", "prod")
    assert (ended.state, ended.percent, ended.id, ended.due) == ("done", 100, begun.id, None)
    assert await shop.list_served() == LIFE
    history = await shop.artifacts.alias_history("model", "prod", limit=3)
    assert {(each.action, each.by, each.reason) for each in history} == {("rollout", "ada", "faster")}
    assert await shop.jobs() == 0


@in_both
async def test_users_only_ever_move_into_the_new_version(shop: Shop) -> None:
    async def find_moved() -> set[int]:
        alias = await shop.artifacts.alias("model", "prod")
        return {user for user in range(2000) if alias.resolve(user) == "2"}

    assert await find_moved() == set()
    await shop.start([(percent, 60) for percent in (1, 5, 20, 60, 99)])
    sizes, before = [], set[int]()
    for _ in range(6):
        now = await find_moved()
        assert before <= now
        sizes.append(len(now))
        before = now
        await shop.after(61)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 2000


@in_one
async def test_each_step_is_one_transaction_of_alias_rollout_history_and_job(shop: Shop) -> None:
    await shop.start()
    requests = shop.rig.recorder.requests
    requests.clear()
    await shop.artifacts.advance_rollout("model", "prod")
    (write,) = [each for each in requests if each.writes]
    assert isinstance(write, TransactWrite)
    kinds = {
        action.item["_type"]["S"]
        for action in write.actions
        if isinstance(action, PutItem) and "_type" in action.item
    }
    assert {
        "holdall.ArtifactAlias",
        "holdall.ArtifactAliasChange",
        "holdall.ArtifactRollout",
        "holdall.Job",
    } <= kinds


# --- manual steps ---------------------------------------------------------------------------------------


@in_both
async def test_a_stage_without_a_duration_waits_for_approval(shop: Shop) -> None:
    begun = await shop.start([(5, None), (50, 60)])
    assert (begun.state, begun.due, await shop.jobs()) == ("waiting", None, 0)
    approved = await shop.artifacts.advance_rollout("model", "prod", by="grace", reason="looks good")
    assert (approved.state, approved.percent) == ("running", 50)
    (change,) = await shop.artifacts.alias_history("model", "prod", limit=1)
    assert (change.by, change.reason) == ("grace", "looks good")
    assert await shop.after(61) == 1
    assert (await shop.state(), await shop.list_served()) == ("done", LIFE)


@in_one
async def test_a_rollout_that_needs_approval_waits_at_the_end_of_each_stage(shop: Shop) -> None:
    await shop.start(approve=True)
    assert await shop.after(61) == 1
    assert (await shop.state(), await shop.weights()) == ("waiting", {"1": 95, "2": 5})
    assert await shop.after(10_000) == 0
    assert (await shop.artifacts.advance_rollout("model", "prod")).state == "running"
    assert await shop.after(3601) == 1
    assert (await shop.state(), await shop.weights()) == ("waiting", {"1": 50, "2": 50})
    assert (await shop.artifacts.advance_rollout("model", "prod")).state == "done"
    assert await shop.list_served() == LIFE


@in_the_other
async def test_the_job_of_a_stage_that_was_cut_short_does_not_advance_the_rollout(shop: Shop) -> None:
    await shop.start()
    await shop.artifacts.advance_rollout("model", "prod")
    assert await shop.after(61) == 1
    assert await shop.weights() == {"1": 50, "2": 50}
    assert await shop.after(3600) == 1
    assert (await shop.state(), await shop.list_served()) == ("done", LIFE)


@in_one
async def test_an_approval_can_require_the_revision_that_was_reviewed(shop: Shop) -> None:
    seen = await shop.start([(5, None), (50, None)])
    await shop.artifacts.advance_rollout("model", "prod", expect_revision=seen.revision)
    with pytest.raises(ArtifactChangedError):
        await shop.artifacts.advance_rollout("model", "prod", expect_revision=seen.revision)
    assert await shop.weights() == {"1": 50, "2": 50}


@in_both
async def test_a_paused_rollout_keeps_its_stage_and_its_remaining_time(shop: Shop) -> None:
    await shop.start()
    shop.rig.clock.forward(20)
    paused = await shop.artifacts.pause_rollout("model", "prod")
    assert paused.state == "paused"
    assert paused.due is None
    assert paused.left is not None
    assert 35 < paused.left <= 40
    assert await shop.after(1000) == 1  # the job from before the pause has nothing to do
    assert await shop.weights() == {"1": 95, "2": 5}
    assert (await shop.artifacts.resume_rollout("model", "prod")).state == "running"
    assert await shop.after(30) == 0
    assert await shop.after(11) == 1
    assert await shop.after(3601) == 1
    assert (await shop.state(), await shop.list_served()) == ("done", LIFE)


@in_one
async def test_after_a_pause_the_job_from_before_it_is_too_early(shop: Shop) -> None:
    await shop.start([(5, 60), (50, None)])
    await shop.artifacts.pause_rollout("model", "prod")
    shop.rig.clock.forward(30)
    await shop.artifacts.resume_rollout("model", "prod")
    assert await shop.after(31) == 1
    assert await shop.weights() == {"1": 95, "2": 5}
    assert await shop.after(31) == 1
    assert await shop.weights() == {"1": 50, "2": 50}


@in_one
async def test_a_rollout_that_waits_for_approval_still_waits_after_a_pause(shop: Shop) -> None:
    await shop.start([(5, None)])
    assert (await shop.artifacts.pause_rollout("model", "prod")).left is None
    assert (await shop.artifacts.resume_rollout("model", "prod")).state == "waiting"
    assert (await shop.artifacts.advance_rollout("model", "prod")).state == "done"


@in_both
async def test_an_aborted_rollout_restores_the_alias_for_good(shop: Shop) -> None:
    await shop.start()
    await shop.after(61)
    aborted = await shop.artifacts.abort_rollout("model", "prod", by="ada", reason="errors")
    assert (aborted.state, aborted.due) == ("aborted", None)
    assert await shop.weights() == {"1": 100}
    assert await shop.after(10_000) == 1
    assert (await shop.state(), await shop.weights()) == ("aborted", {"1": 100})
    assert (await shop.start(version=3)).percent == 5
    assert await shop.weights() == {"1": 95, "3": 5}


@in_one
async def test_a_rollout_of_another_id_is_left_alone(shop: Shop) -> None:
    artifacts = shop.artifacts
    first = await shop.start()
    await artifacts.pause_rollout("model", "prod", expect_id=first.id)
    await artifacts.resume_rollout("model", "prod", expect_id=first.id)
    await artifacts.abort_rollout("model", "prod", expect_id=first.id)
    second = await shop.start(version=3)
    for move in (artifacts.pause_rollout, artifacts.abort_rollout):
        with pytest.raises(ArtifactChangedError, match=second.id):
            await move("model", "prod", expect_id=first.id)
    await artifacts.pause_rollout("model", "prod")
    with pytest.raises(ArtifactChangedError, match=second.id):
        await artifacts.resume_rollout("model", "prod", expect_id=first.id)
    assert (await artifacts.rollout("model", "prod")).state == "paused"


@in_one
async def test_calls_that_do_not_fit_the_state_of_the_rollout_are_refused(shop: Shop) -> None:
    artifacts = shop.artifacts
    with pytest.raises(RolloutError):
        await artifacts.rollout("model", "prod")
    with pytest.raises(RolloutError):
        await artifacts.abort_rollout("model", "prod")
    await shop.start()
    with pytest.raises(RolloutError, match="is running"):
        await artifacts.resume_rollout("model", "prod")
    await artifacts.pause_rollout("model", "prod")
    for refused in (artifacts.pause_rollout, artifacts.advance_rollout):
        with pytest.raises(RolloutError, match="is paused"):
            await refused("model", "prod")
    await artifacts.abort_rollout("model", "prod")
    for refused in (
        artifacts.pause_rollout,
        artifacts.resume_rollout,
        artifacts.advance_rollout,
        artifacts.abort_rollout,
    ):
        with pytest.raises(RolloutError, match="is aborted"):
            await refused("model", "prod")
    assert await shop.list_served() == [{"1": 100}, {"1": 95, "2": 5}, {"1": 100}]


@in_one
async def test_an_invalid_rollout_is_refused_and_changes_nothing(shop: Shop) -> None:
    artifacts = shop.artifacts
    refused: list[tuple[type[Exception], Any, dict[str, Any]]] = [
        (InvalidOptionsError, STAGES, {"version": "LATEST"}),
        (InvalidOptionsError, [(5, -1)], {}),
        (InvalidArtifactError, STAGES, {"version": 0}),
        (ArtifactNotFoundError, STAGES, {"version": 9}),
        (RolloutError, STAGES, {"version": 1}),
        (ArtifactChangedError, STAGES, {"expect_revision": "another"}),
    ]
    for kind, stages, options in refused:
        with pytest.raises(kind):
            await shop.start(stages, **options)
    with pytest.raises(AliasNotFoundError):
        await artifacts.start_rollout("model", "nowhere", 2, STAGES)
    await artifacts.put_alias("model", "newest")
    with pytest.raises(RolloutError, match="LATEST"):
        await artifacts.start_rollout("model", "newest", 2, STAGES)
    await artifacts.put_alias("model", "split", 1, 2, 10)
    with pytest.raises(RolloutError, match="serves the versions 1, 2"):
        await artifacts.start_rollout("model", "split", 3, STAGES)
    assert (await shop.list_served(), await shop.jobs()) == ([{"1": 100}], 0)
    with pytest.raises(RolloutError):
        await artifacts.rollout("model", "prod")


@in_one
async def test_an_alias_with_a_canary_of_weight_zero_can_be_rolled_out(shop: Shop) -> None:
    await shop.artifacts.put_alias("model", "prod", 1, 2, 0)
    assert (await shop.start()).base == "1"
    assert await shop.weights() == {"1": 95, "2": 5}


@in_one
async def test_an_alias_has_one_rollout_at_a_time(shop: Shop) -> None:
    await shop.start()
    with pytest.raises(RolloutError, match="in progress"):
        await shop.start(version=3)
    await shop.artifacts.put_alias("model", "test", 2)
    await shop.artifacts.start_rollout("model", "test", 3, [(10, 60)])
    assert await shop.after(61) == 2
    assert await shop.state() == "running"
    assert (await shop.artifacts.rollout("model", "test")).state == "done"


@in_one
async def test_a_protected_alias_is_rolled_out_only_with_allow_protected(shop: Shop) -> None:
    await shop.artifacts.put_alias("model", "prod", 1, protected=True)
    with pytest.raises(ProtectedAliasError):
        await shop.start()
    await shop.start(allow_protected=True)
    for refused in (shop.artifacts.advance_rollout, shop.artifacts.abort_rollout):
        with pytest.raises(ProtectedAliasError):
            await refused("model", "prod")
    assert await shop.after(61) == 1
    assert await shop.weights() == {"1": 50, "2": 50}
    await shop.artifacts.abort_rollout("model", "prod", allow_protected=True)
    assert (await shop.artifacts.alias("model", "prod")).protected


# --- other changes of the alias -------------------------------------------------------------------------


@in_both
async def test_pointing_the_alias_elsewhere_supersedes_the_rollout(shop: Shop) -> None:
    await shop.start()
    await shop.artifacts.put_alias("model", "prod", 3)
    assert await shop.state() == "superseded"
    assert await shop.after(61) == 1
    assert (await shop.weights(), await shop.jobs()) == ({"3": 100}, 0)
    for refused in (shop.artifacts.advance_rollout, shop.artifacts.abort_rollout):
        with pytest.raises(RolloutError, match="superseded"):
            await refused("model", "prod")
    assert (await shop.artifacts.rollout("model", "prod")).problem
    assert (await shop.start(version=2)).base == "3"


@in_one
async def test_putting_the_alias_with_the_rollout_s_own_weights_supersedes_it_too(shop: Shop) -> None:
    await shop.start()
    await shop.artifacts.put_alias("model", "prod", 1, 2, 5)
    with pytest.raises(RolloutError, match="superseded"):
        await shop.artifacts.abort_rollout("model", "prod")
    await shop.after(61)
    assert await shop.weights() == {"1": 95, "2": 5}


@in_one
async def test_deleting_or_rolling_back_the_alias_supersedes_the_rollout(shop: Shop) -> None:
    await shop.start()
    await shop.artifacts.rollback_alias("model", "prod")
    assert (await shop.state(), await shop.after(61)) == ("superseded", 1)
    assert await shop.weights() == {"1": 100}
    await shop.start()
    await shop.artifacts.delete_alias("model", "prod")
    assert (await shop.state(), await shop.after(61)) == ("superseded", 1)
    with pytest.raises(AliasNotFoundError):
        await shop.artifacts.alias("model", "prod")


@in_one
async def test_a_rollback_treats_a_rollout_as_one_change(shop: Shop) -> None:
    artifacts = shop.artifacts
    await shop.start()
    await artifacts.advance_rollout("model", "prod")
    assert await shop.weights() == {"1": 50, "2": 50}
    assert (await artifacts.rollback_alias("model", "prod")).versions == ("1",), (
        "the version before the rollout"
    )
    await shop.start()
    for _ in STAGES:
        await artifacts.advance_rollout("model", "prod")
    await shop.start(version=3)
    await artifacts.put_alias("model", "prod", 1, 3, 20)
    assert (await artifacts.rollback_alias("model", "prod")).versions == ("2",), (
        "the version that the first rollout ended with"
    )
    assert (await artifacts.rollback_alias("model", "prod")).versions == ("1",)
    await shop.start()
    await artifacts.delete_alias("model", "prod")
    assert (await artifacts.rollback_alias("model", "prod")).versions == ("1",)
    stage = next(each for each in await artifacts.alias_history("model", "prod") if each.is_stage)
    back = await artifacts.rollback_alias("model", "prod", to=stage.number)
    assert back.describe()["weights"] == stage.weights, "an explicit rollback can go to any stage"


@in_one
async def test_the_job_of_an_older_rollout_does_not_affect_the_newer_one(shop: Shop) -> None:
    older = await shop.start()
    await shop.artifacts.put_alias("model", "prod", 1)
    newer = await shop.start([(10, 600)])
    assert older.id != newer.id
    assert await shop.after(61) == 1
    assert await shop.weights() == {"1": 90, "2": 10}
    assert await shop.after(600) == 1
    assert await shop.state() == "done"


@in_both
async def test_duplicate_jobs_take_one_step(shop: Shop) -> None:
    begun = await shop.start()
    for _ in range(3):
        await shop.rig.enqueue("holdall.rollout", "model", "prod", begun.id, begun.turn)
    assert await shop.after(61) == 4
    assert await shop.weights() == {"1": 50, "2": 50}
    assert await shop.jobs() == 1


@in_both
async def test_a_job_that_runs_early_is_enqueued_again(shop: Shop) -> None:
    begun = await shop.start()
    (record,) = await shop.rig.list_waiting()
    await shop.rig.jobs.delete(record.id)
    await shop.rig.enqueue("holdall.rollout", "model", "prod", begun.id, begun.turn)
    assert await shop.after(0) == 1
    assert await shop.weights() == {"1": 95, "2": 5}
    assert await shop.after(61) == 1
    assert await shop.weights() == {"1": 50, "2": 50}


@in_one
async def test_jobs_of_unknown_rollouts_end(shop: Shop) -> None:
    await shop.rig.enqueue("holdall.rollout", "model", "prod", "none", 1)
    await shop.rig.enqueue("holdall.rollout", "nothing", "nowhere", "none", 1)
    assert await shop.after(0) == 2


@in_both
async def test_a_version_that_versioned_deleted_fails_the_rollout_until_it_is_advanced(shop: Shop) -> None:
    for gone in ("000002", "000001"):
        await shop.start()
        await mark_deleted(shop, gone, True)
        assert await shop.after(61) == 1
        failed = await shop.artifacts.rollout("model", "prod")
        assert (failed.state, failed.due) == ("failed", None)
        assert f"no version {int(gone)}" in (failed.problem or "")
        assert (await shop.weights(), await shop.jobs()) == ({"1": 95, "2": 5}, 0)
        with pytest.raises(ArtifactNotFoundError):
            await shop.artifacts.advance_rollout("model", "prod")
        with pytest.raises(RolloutError, match="in progress"):
            await shop.start(version=3)
        await mark_deleted(shop, gone, False)
        assert (await shop.artifacts.advance_rollout("model", "prod")).problem is None
        await shop.artifacts.abort_rollout("model", "prod")
        assert await shop.after(3601) == 1
    await shop.start()
    await shop.after(61)
    await mark_deleted(shop, "000001", True)
    assert await shop.after(3601) == 1  # the last stage does not need it
    assert await shop.state() == "done"


async def mark_deleted(shop: Shop, sk: str, deleted: bool) -> None:
    """Mark a version as versioned does, without a condition."""
    layout = await shop.rig.now(shop.rig.db.table.layout())
    step = Set(path("is_deleted"), Value({"BOOL": deleted}))
    key = {layout.partition.name: {"S": "model"}, layout.sort.name: {"S": sk}}
    backend = shop.rig.recorder.inner
    backend.send_blocking(UpdateItem(layout.table, key, Update((step,))))


@in_one
async def test_deleting_a_version_with_its_aliases_supersedes_the_rollout(shop: Shop) -> None:
    await shop.start()
    await shop.artifacts.delete("model", 2, drop_aliases=True)
    assert await shop.state() == "superseded"
    assert await shop.after(61) == 1


# --- concurrent changes ---------------------------------------------------------------------------------


def other(shop: Shop) -> Any:
    """The artifacts as seen by another process, whose requests the recorder does not see."""
    rig = shop.rig
    service = rig.db._services.service("main")
    return Database("memory:", backend=rig.recorder.inner, files={"main": service}).artifacts


def act_before_next_write(shop: Shop, act: Callable[[Any], Any]) -> None:
    """Let another process act just before the next transaction."""

    def interfere(request: Any) -> None:
        if isinstance(request, TransactWrite):
            shop.rig.recorder.before = lambda request: None
            act(other(shop))

    shop.rig.recorder.before = interfere


@in_both
async def test_two_concurrent_advances_take_one_step(shop: Shop) -> None:
    await shop.start()
    act_before_next_write(shop, lambda artifacts: artifacts.advance_rollout("model", "prod"))
    assert (await shop.artifacts.advance_rollout("model", "prod")).percent == 50
    assert await shop.weights() == {"1": 50, "2": 50}


@in_one
async def test_a_read_during_a_step_sees_the_step_and_not_a_superseded_rollout(shop: Shop) -> None:
    await shop.start()

    def interfere(request: Any) -> None:
        if isinstance(request, GetItem):
            shop.rig.recorder.after = lambda request: None
            other(shop).advance_rollout("model", "prod")

    shop.rig.recorder.after = interfere
    seen = await shop.artifacts.rollout("model", "prod")
    assert (seen.state, seen.percent) == ("running", 50)


@in_one
async def test_a_pause_just_before_the_job_s_write_stops_it(shop: Shop) -> None:
    await shop.start()
    shop.rig.clock.forward(61)
    writes: list[Any] = []

    def interfere(request: Any) -> None:
        if isinstance(request, TransactWrite) and not writes:
            writes.append(request)
            other(shop).pause_rollout("model", "prod")

    shop.rig.recorder.before = interfere
    assert await shop.after(0) == 1
    assert writes
    assert (await shop.state(), await shop.weights()) == ("paused", {"1": 95, "2": 5})


@in_one
async def test_a_change_of_the_alias_just_before_the_write_is_not_overwritten(shop: Shop) -> None:
    for act in (shop.artifacts.advance_rollout, shop.artifacts.abort_rollout):
        await shop.start()
        act_before_next_write(shop, lambda artifacts: artifacts.put_alias("model", "prod", 3))
        with pytest.raises(RolloutError, match="superseded"):
            await act("model", "prod")
        assert await shop.weights() == {"3": 100}
        await shop.after(61)
    await shop.start()
    act_before_next_write(shop, lambda artifacts: artifacts.put_alias("model", "prod", 1))
    assert await shop.after(61) == 1
    assert (await shop.state(), await shop.weights()) == ("superseded", {"1": 100})


@in_one
async def test_one_of_two_concurrent_starts_is_refused(shop: Shop) -> None:
    act_before_next_write(shop, lambda artifacts: artifacts.start_rollout("model", "prod", 3, [(7, None)]))
    with pytest.raises(RolloutError, match="in progress"):
        await shop.start()
    assert await shop.weights() == {"1": 93, "3": 7}


# --- deaths ---------------------------------------------------------------------------------------------


class DiedError(Exception):
    """The process died: its requests no longer arrive."""


def die_after(shop: Shop, requests: int, *, counting: bool = True) -> Callable[[], bool]:
    """Lose all requests after this many; the returned function ends that, and returns whether a request was lost.

    Without ``counting``, the count begins with the first write: reading the queues changes nothing.
    """
    recorder, sent, lost = shop.rig.recorder, 0, False

    def die(request: Any) -> None:
        nonlocal sent, lost, counting
        counting = counting or request.writes
        if sent >= requests and counting:
            lost = True
            raise DiedError
        sent += counting

    def revive() -> bool:
        recorder.before = lambda request: None
        return lost

    recorder.before = die
    return revive


@pytest.mark.parametrize("way", BOTH, ids=str)
def test_if_a_worker_dies_after_any_request_the_next_finishes_the_rollout(way: Way, tmp_path: Path) -> None:
    async def test(shop: Shop) -> None:
        died = 0
        while True:
            await shop.artifacts.put_alias("model", "prod", 1)
            await shop.start([(5, 60), (50, 60)])
            shop.rig.events.clear()
            shop.rig.clock.forward(61)
            revive = die_after(shop, died, counting=False)
            with suppress(DiedError):
                await shop.rig.drain(lease=LEASE)
            if not revive():
                break
            died += 1
            await shop.after(LEASE + MARGIN.total_seconds() + 1)
            await shop.after(61)
            assert (await shop.state(), await shop.jobs()) == ("done", 0)
            assert (await shop.list_served())[-4:] == LIFE
        assert died > 6

    carry_out(way, tmp_path, test)


@in_both
async def test_a_process_that_dies_while_it_starts_a_rollout_starts_all_or_nothing(
    shop: Shop,
) -> None:
    before, died = await shop.list_served(), 0
    while True:
        revive = die_after(shop, died)
        with suppress(DiedError):
            await shop.start([(5, 60), (50, 60)])
        if not revive():
            break
        died += 1
        assert (await shop.list_served(), await shop.jobs()) == (before, 0)
    assert died > 3
    assert (await shop.after(61), await shop.after(61)) == (1, 1)
    assert (await shop.state(), await shop.list_served()) == ("done", LIFE)


@in_both
async def test_a_step_whose_reply_is_lost_is_taken_once(shop: Shop) -> None:
    await shop.start()
    shop.rig.recorder.after = lose_after(TransactWrite)
    shop.rig.clock.forward(61)
    assert (await shop.rig.drain(lease=LEASE)).failed == 1
    assert await shop.weights() == {"1": 50, "2": 50}
    assert await shop.after(10) == 1
    assert (await shop.weights(), await shop.jobs()) == ({"1": 50, "2": 50}, 1)
    assert await shop.after(3601) == 1
    assert (await shop.state(), await shop.list_served()) == ("done", LIFE)


@in_one
async def test_a_rollout_whose_start_lost_its_reply_runs_to_its_end(shop: Shop) -> None:
    shop.rig.recorder.after = lose_after(TransactWrite)
    with pytest.raises(OutcomeUnknown):
        await shop.start()
    assert (await shop.after(61), await shop.after(3601)) == (1, 1)
    assert (await shop.state(), await shop.list_served()) == ("done", LIFE)


@pytest.mark.parametrize("opened", ["Database", "AsyncDatabase"])
def test_a_worker_knows_the_rollout_job_without_importing_artifacts(opened: str) -> None:
    program = f"""
import asyncio
from holdall import {opened}
from holdall.jobs.declaration import declared_jobs
worker = {opened}("memory:").worker()
drained = worker.drain()
if asyncio.iscoroutine(drained):
    asyncio.run(drained)
assert "holdall.rollout" in declared_jobs()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
