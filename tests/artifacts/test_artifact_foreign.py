"""Races with a writer without conditions: Holdall's versions keep their bytes, and the next reader repairs LATEST.

One order of requests cannot be repaired: LATEST is purged between the object and the row of a foreign put. That row
then has no bytes, and `get` reports this until the next put.
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


def verify_alias_serves_two(stage: Stage, one: Actor, two: Actor, state: State) -> None:
    """In either order, deleting version 1 with its aliases spares the alias, which now serves version 2."""
    assert stage.now.alias(NAME, "prod").versions == ("2",)


RACES = [
    Race("publish, foreign publish", publish_two, call("publish", force=True), foreign_publish(NAME)),
    Race("publish, foreign put", publish_two, call("publish"), foreign_put(NAME, ONE)),
    Race("publish, foreign put of the newest version", publish_two, call("publish"), foreign_put(NAME, TWO)),
    Race("put, foreign put", publish_two, call("put", ONE), foreign_put(NAME, TWO)),
    Race("put the same, foreign put", publish_two, call("put", THREE), foreign_put(NAME, TWO)),
    Race("delete LATEST, foreign put", publish_two, call("delete"), foreign_put(NAME, TWO)),
    Race("put_alias, foreign alias", put_prod, call("put_alias", "prod", 2), foreign_alias(NAME, "prod", 1)),
    Race(
        "delete with aliases, foreign alias",
        put_prod,
        call("delete", 1, drop_aliases=True),
        foreign_alias(NAME, "prod", 2),
        verify_alias_serves_two,
    ),
]


@pytest.mark.parametrize("like_s3", [False, True], ids=["unique etags", "etags of content"])
@pytest.mark.parametrize("race", RACES, ids=str)
def test_versions_have_their_bytes_in_every_order(race: Race, like_s3: bool) -> None:
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
                check_bytes(stage)
                if getattr(one.result, "number", None):
                    assert stage.now.get(NAME, one.result.version).sha256 == one.result.sha256
            except (AssertionError, AliasNotFoundError) as error:
                error.add_note(f"{race}: {schedule} of {trace(one)}, {trace(two)}")
                raise


def check_bytes(stage: Stage) -> None:
    """Check that every version has the bytes of its row, and LATEST too after it was read."""
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
