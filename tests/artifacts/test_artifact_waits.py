"""Work that a dead process left unfinished: the next process waits for seconds, then raises an error or finishes it."""

from __future__ import annotations

from typing import Any

import pytest
from artifact_rig import Rig, here, in_memory

from holdall.artifacts.directory.sweep import sweep
from holdall.core.objects import DeleteObject, HeadObject, PutObject
from holdall.core.port import run
from holdall.errors import ArtifactNotFoundError, ContentionError

NAME = "model"
MINUTES = 60.0


class Death(BaseException):
    """The process died."""


async def purge_and_die(rig: Rig) -> None:
    """Purge LATEST, and die before its object is deleted."""

    def before(request: Any) -> None:
        if isinstance(request, DeleteObject):
            raise Death

    dying = rig.fresh()
    dying.watch.before = before
    with pytest.raises(Death):
        await dying.artifacts.purge(NAME, "LATEST")


@here
async def test_a_put_of_content_in_an_unfinished_purge_gives_up_within_seconds_and_works_later(
    rig: Rig,
) -> None:
    await rig.artifacts.put(NAME, b"one")
    await purge_and_die(rig)
    began = rig.clock.now()
    with pytest.raises(ContentionError, match=r"purging the same content(?s:.*)hint: .* UTC"):
        await rig.artifacts.put(NAME, b"one")
    assert (rig.clock.now() - began).total_seconds() < 10
    rig.clock.forward(6 * MINUTES)
    await rig.artifacts.put(NAME, b"one")
    assert await rig.artifacts.download(NAME) == b"one"
    assert "purging" not in rig.items(f"__{NAME}-meta")["head"]


@in_memory
async def test_a_put_of_other_content_does_not_wait_for_a_purge(rig: Rig) -> None:
    await rig.artifacts.put(NAME, b"one")
    await purge_and_die(rig)
    await rig.artifacts.put(NAME, b"two")
    assert await rig.artifacts.download(NAME) == b"two"


@in_memory
async def test_a_second_purge_frees_the_bytes_but_the_same_content_stays_blocked(
    rig: Rig,
) -> None:
    """The first purge may only be slow: its deletion must not meet a new object with the same etag."""
    await rig.artifacts.put(NAME, b"one")
    await purge_and_die(rig)
    rig.clock.forward(4 * MINUTES)
    await rig.artifacts.purge(NAME)
    assert not rig.store.objects()
    rig.clock.forward(2 * MINUTES)  # the first mark would have expired, but the second purge renewed it
    with pytest.raises(ContentionError):
        await rig.artifacts.put(NAME, b"one")
    rig.clock.forward(4 * MINUTES)
    await rig.artifacts.purge(NAME)
    assert "purging" not in rig.items(f"__{NAME}-meta")["head"]
    await rig.artifacts.put(NAME, b"one")
    assert await rig.artifacts.download(NAME) == b"one"


@in_memory
async def test_a_put_whose_files_are_swept_meanwhile_raises_contention(rig: Rig) -> None:
    place = rig.store.directory / "tree"
    place.mkdir()
    (place / "a").write_bytes(b"alpha")

    def die(request: Any) -> None:
        if isinstance(request, PutObject):
            raise Death

    dying = rig.fresh()
    dying.watch.after = die
    with pytest.raises(Death):
        await dying.artifacts.put(NAME, place)

    sweeping = rig.fresh("blocking")
    list(sweeping.db.artifacts.names())

    def sweep_before(request: Any) -> None:
        if isinstance(request, HeadObject) and "__files/" in request.key:
            rig.clock.forward(2 * 24 * 60 * MINUTES)
            run(sweep(sweeping.context, sweeping.home))

    late = rig.fresh()
    late.watch.before = sweep_before
    with pytest.raises(ContentionError, match="put it again"):
        await late.artifacts.put(NAME, place)
    with pytest.raises(ArtifactNotFoundError):
        await rig.artifacts.get(NAME)
    await rig.artifacts.put(NAME, place)
    assert (await rig.artifacts.get(NAME)).manifest
