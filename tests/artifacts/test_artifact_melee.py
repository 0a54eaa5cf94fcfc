"""Several processes change one artifact at once, with their requests in random order, and some of them die."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from artifact_audit import Seen, audit
from artifact_stage import Actor, Death, Flow, Stage
from rig.torture import ROUNDS, SEED
from test_artifact_races import (
    NAME,
    ONE,
    TWO,
    call,
    clean,
    directory,
    do_nothing,
    open_stage,
    publish_two,
    put_one,
    put_prod,
    reindex,
    tree,
)

from holdall.errors import (
    AliasNotFoundError,
    ArtifactChangedError,
    ArtifactInUseError,
    ArtifactNotFoundError,
    ContentionError,
)

pytestmark = pytest.mark.torture

BEFORE = [publish_two, put_prod, directory, do_nothing, put_one]
CHANGES: dict[str, Flow] = {
    "put one": call("put", ONE),
    "put two": call("put", TWO),
    "put two with metadata": call("put", TWO, metadata={"by": "me"}),
    "put the first directory": tree("first"),
    "put the second directory": tree("second"),
    "publish": call("publish"),
    "publish by force": call("publish", force=True),
    "alias": call("put_alias", "prod", 1),
    "split": call("put_alias", "prod", 1, 2, 30),
    "alias LATEST": call("put_alias", "prod"),
    "another alias": call("put_alias", "other", 2),
    "delete the alias": call("delete_alias", "prod"),
    "roll back": call("rollback_alias", "prod"),
    "delete": call("delete", 1),
    "delete with aliases": call("delete", 1, drop_aliases=True),
    "delete LATEST": call("delete"),
    "delete LATEST with aliases": call("delete", drop_aliases=True),
    "restore": call("restore", 1),
    "restore LATEST": call("restore"),
    "prune": call("prune", keep_last=1, older_than=0),
    "purge": call("purge", 1),
    "purge with aliases": call("purge", 2, drop_aliases=True),
    "purge LATEST": call("purge", "LATEST"),
    "purge all": call("purge", drop_aliases=True),
    "get": call("get"),
    "reindex": reindex,
}
EXPECTED = (
    AliasNotFoundError,
    ArtifactChangedError,
    ArtifactInUseError,
    ArtifactNotFoundError,
    ContentionError,
    Death,
)


@pytest.mark.parametrize("part", range(4))
def test_in_random_orders_nothing_is_lost_or_left_over(part: int) -> None:
    for number in range(5 * ROUNDS):
        seed = f"{SEED} {part} {number}"
        chance = Random(seed)
        with open_stage(like_s3=chance.random() < 0.5) as stage:
            story: list[str] = []
            try:
                fight(stage, chance, story)
            except AssertionError as error:
                error.add_note(f"{seed}: {story}")
                raise


def fight(stage: Stage, chance: Random, story: list[str]) -> None:
    """Run some rounds of two or three changes each, with an audit after each round."""
    seen = Seen()
    chance.choice(BEFORE)(stage)
    for _ in range(chance.randrange(1, 4)):
        names = chance.choices(list(CHANGES), k=chance.randrange(2, 4))
        story.append(" | ".join(names))
        for name, actor in zip(names, run_all(stage, chance, names), strict=True):
            assert actor.error is None or isinstance(actor.error, EXPECTED), f"{name}: {actor.error!r}"
        audit(stage.store, stage.home, seen=seen, healed=False)
    with suppress(ArtifactNotFoundError):
        stage.now.get(NAME, deleted=True)
    audit(stage.store, stage.home, seen=seen)
    clean(stage, seen)


def run_all(stage: Stage, chance: Random, names: list[str]) -> list[Actor]:
    """Run all changes to their ends, a few steps at a time; in some rounds one process dies."""
    actors = [stage.enter(CHANGES[name]) for name in names]
    deaths = chance.random() < 0.4
    while running := [each for each in actors if not each.done]:
        actor = chance.choice(running)
        if deaths and chance.random() < 0.06:
            actor.kill()
            deaths = False
        else:
            actor.run(chance.randrange(1, 4))
    return actors
