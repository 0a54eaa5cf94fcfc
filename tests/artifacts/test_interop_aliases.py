"""Aliases that Holdall and the package versioned, 1.0.1, change by turns: the last writer wins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from interop_versioned import VersionedError
from interop_world import (
    World,
    open_world,
    our_history,
)

from holdall.errors import AliasNotFoundError, ArtifactInUseError

pytestmark = pytest.mark.torture  # slow, so it must be among the first to run


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world() as opened:
        yield opened


@pytest.fixture
def turns(world: World) -> World:
    """A new artifact in the module's world: the package takes a while to set up a new table."""
    return world.rename()


def test_an_alias_that_the_package_wrote_last_has_the_package_s_weights(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    ours.put_alias(turns.name, "canary", weights={"LATEST": 1}, by="mia")
    theirs(
        "put_alias",
        name=turns.name,
        alias="canary",
        version=3,
        secondary_version=2,
        secondary_version_weight=0,
    )
    canary = ours.alias(turns.name, "canary")
    assert (canary.version, canary.secondary_version, canary.secondary_version_weight) == (
        "000003",
        "000002",
        0,
    )
    assert canary.shares == {"3": 1.0, "2": 0.0}
    ours.put_alias(turns.name, "canary", 2)
    history = ours.alias_history(turns.name, "canary")
    assert [(each.number, each.action, each.weights) for each in history] == [
        (4, "set", {"2": 100}),
        (3, "found", {"3": 100, "2": 0}),
        (2, "set", {"LATEST": 1}),
        (1, "set", {"2": 70, "3": 30}),
    ]
    assert history[1].at == canary.update_at


def test_the_package_reads_the_heaviest_of_many_arms_and_may_replace_the_alias(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    ours.restore(turns.name, 1)
    ours.put_alias(turns.name, "canary", weights={1: 2, 2: 3, 3: 1}, by="mia")
    seen = theirs("get_alias", name=turns.name, alias="canary")
    assert (seen["version"], seen["secondary_version"], seen["secondary_version_weight"]) == ("2", None, None)
    assert theirs("contents", name=turns.name, alias="canary") == ["our 2", None]
    assert ours.alias(turns.name, "canary").versions == ("2", "1", "3")  # reading changed nothing

    theirs(
        "put_alias", name=turns.name, alias="canary", version=2
    )  # exactly what it read: this removes the other arms
    assert ours.alias(turns.name, "canary").versions == ("2",)
    assert ours.get(turns.name, 1).aliases == ()
    assert ours.delete(turns.name, 1)  # no alias serves it any more
    ours.put_alias(turns.name, "canary", 3)
    assert [(each.action, each.weights) for each in ours.alias_history(turns.name, "canary")] == [
        ("set", {"3": 100}),
        ("found", {"2": 100}),
        ("set", {"2": 3, "1": 2, "3": 1}),
        ("set", {"2": 70, "3": 30}),
    ]


def test_a_version_that_an_alias_of_the_package_serves_cannot_be_deleted(turns: World) -> None:
    our_history(turns)
    turns.theirs("put_alias", name=turns.name, alias="theirs", version=3)
    with pytest.raises(ArtifactInUseError) as caught:
        turns.ours.delete(turns.name, 3)
    assert caught.value.aliases == ("canary", "theirs")
    turns.ours.delete(turns.name, 3, drop_aliases=True)
    with pytest.raises(VersionedError) as refused:
        turns.theirs("get_alias", name=turns.name, alias="theirs")
    assert refused.value.name == "AliasNotFoundError"


def test_an_alias_that_the_package_deleted_is_not_found(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    theirs("delete_alias", name=turns.name, alias="prod")
    with pytest.raises(AliasNotFoundError):
        ours.alias(turns.name, "prod")
    assert not ours.delete_alias(turns.name, "prod")
    theirs("delete_alias", name=turns.name, alias="canary")
    assert ours.delete(turns.name, 2)
    ours.put_alias(turns.name, "prod", 3)
    assert theirs("get_alias", name=turns.name, alias="prod")["version"] == "3"


def test_a_rollback_from_the_package_s_change_restores_the_last_version_that_holdall_set(
    turns: World,
) -> None:
    ours = turns.ours
    our_history(turns)
    ours.put_alias(turns.name, "prod", 3)
    turns.theirs("put_alias", name=turns.name, alias="prod", version="LATEST")
    back = ours.rollback_alias(turns.name, "prod")
    assert back.versions == ("3",)
    assert [(each.number, each.action, each.of) for each in ours.alias_history(turns.name, "prod")] == [
        (4, "rollback", 2),
        (3, "found", None),
        (2, "set", None),
        (1, "set", None),
    ]
    assert ours.rollback_alias(turns.name, "prod").versions == ("2",)
    assert turns.theirs("get_alias", name=turns.name, alias="prod")["version"] == "2"


def test_an_alias_that_the_package_deleted_can_be_rolled_back(turns: World) -> None:
    our_history(turns)
    turns.theirs("delete_alias", name=turns.name, alias="canary")
    back = turns.ours.rollback_alias(turns.name, "canary")
    assert (back.version, back.secondary_version, back.secondary_version_weight) == ("000002", "000003", 30)
