"""Beside a careless writer: what is ours keeps its bytes, and the next reader repairs LATEST.

One order of requests cannot be repaired: LATEST is purged between the object and the row of a foreign put. That row
then has no bytes, and `get` says so, until the next put.
"""

from __future__ import annotations

import pytest
from artifact_audit import State, digest
from artifact_foreign import foreign_alias, foreign_publish, foreign_put
from artifact_stage import Actor, Stage
from rig.torture import ROUNDS
from test_artifact_races import (
    NAME,
    ONE,
    THREE,
    TWO,
    Race,
    call,
    open_stage,
    publish_two,
    put_prod,
    schedules,
    trace,
)

from holdall.errors import AliasNotFoundError

pytestmark = pytest.mark.torture


def serves_two(stage: Stage, one: Actor, two: Actor, state: State) -> None:
    """In either order, the alias is not deleted with a version that it does not serve."""
    assert stage.now.alias(NAME, "prod").versions == ("2",)


RACES = [
    Race("publish, publish there", publish_two, call("publish", force=True), foreign_publish(NAME)),
    Race("publish, put there", publish_two, call("publish"), foreign_put(NAME, ONE)),
    Race("publish, put the newest there", publish_two, call("publish"), foreign_put(NAME, TWO)),
    Race("put, put there", publish_two, call("put", ONE), foreign_put(NAME, TWO)),
    Race("put the same, put there", publish_two, call("put", THREE), foreign_put(NAME, TWO)),
    Race("delete LATEST, put there", publish_two, call("delete"), foreign_put(NAME, TWO)),
    Race("put_alias, alias there", put_prod, call("put_alias", "prod", 2), foreign_alias(NAME, "prod", 1)),
    Race(
        "delete with aliases, alias there",
        put_prod,
        call("delete", 1, drop_aliases=True),
        foreign_alias(NAME, "prod", 2),
        serves_two,
    ),
]


@pytest.mark.parametrize("like_s3", [False, True], ids=["unique etags", "etags of content"])
@pytest.mark.parametrize("race", RACES, ids=str)
def test_in_every_order_versions_have_their_bytes(race: Race, like_s3: bool) -> None:
    for schedule in schedules(race, like_s3, 2 * ROUNDS):
        with open_stage(like_s3) as stage:
            race.before(stage)
            one, two = stage.enter(race.first), stage.enter(race.second)
            schedule.play(one, two)
            one.run()
            two.run()
            try:
                assert two.error is None
                assert one.error is None, repr(one.error)
                race.verify(stage, one, two, State())
                in_order(stage)
                if getattr(one.result, "number", None):
                    assert stage.now.get(NAME, one.result.version).sha256 == one.result.sha256
            except (AssertionError, AliasNotFoundError) as error:
                error.add_note(f"{race}: {schedule} of {trace(one)}, {trace(two)}")
                raise


def in_order(stage: Stage) -> None:
    """That every version has the bytes that its row speaks of, and LATEST once it was looked at."""
    latest = [each for each in stage.now.versions(NAME) if each.number is None]
    objects, items = stage.store.objects(), stage.rig.items(NAME)
    for sk, row in items.items():
        key = stage.home.object_key(NAME, sk)
        assert key in objects, f"{sk} has no bytes"
        assert digest(objects[key]) == row["sha256"]["S"], f"{sk} has other bytes"
    for each in latest:
        assert each.sha256 == digest(objects[stage.home.object_key(NAME, "LATEST")])
    for alias in stage.now.aliases(NAME):
        for sk, _ in alias.arms:
            assert sk in items
            assert not items[sk]["is_deleted"]["BOOL"], f"{alias.alias} serves {sk}, which is deleted"
    stage.clock.forward(3600)
    stage.now.put(NAME, b"another")
    stage.now.publish(NAME)
    for each in stage.now.versions(NAME):
        key = stage.home.object_key(NAME, each.sk)
        assert digest(stage.store.objects()[key]) == each.sha256, f"{each.sk} after another publish"
