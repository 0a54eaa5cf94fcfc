"""A sweep finds the objects that no record refers to, and deletes nothing else."""

from __future__ import annotations

import pytest
from directory_rig import DAYS, Dead, Rig, everywhere, open_rig

from holdall.artifacts.directory.hold import fetch_file_keys
from holdall.artifacts.directory.sweep import sweep_strays
from holdall.core.objects import DeleteObjects, PutObject
from holdall.core.port import run

FILES: dict[str, bytes | None] = {"a": b"one", "b": b"two"}


async def sweep_old_strays(rig: Rig) -> tuple[int, int]:
    """Sweep strays when all objects are old enough."""
    rig.fresh().ahead = 2 * DAYS
    freed = await sweep_strays(rig.context, await rig.home())
    rig.fresh()
    return freed


async def move_version(rig: Rig) -> None:
    """Put a version whose files got new keys, because the deletion of their old keys never finished."""
    directory = await rig.gather(FILES)
    await rig.put("x", directory)
    await rig.drop("x")

    def die(number: int) -> None:
        if isinstance(rig.port.requests[-1], DeleteObjects):
            raise Dead

    rig.port.before = die
    with pytest.raises(Dead):
        await rig.sweep()
    rig.fresh()
    await rig.put("x", directory)


@everywhere
async def test_objects_that_records_refer_to_are_kept(rig: Rig) -> None:
    await move_version(rig)
    await rig.put("y", await rig.gather({"a": b"other", "b": b"one"}))
    home = await rig.home()
    assert await sweep_old_strays(rig) == (2, 6)  # the objects under the old keys
    audit = await rig.audit()
    places = await fetch_file_keys(rig.context, home, list(audit.of("File")))
    assert set(places.values()) == set(audit.objects)
    await rig.context.port.send(PutObject("main", f"{home.prefix}/__files/something", b"not ours"))
    await rig.context.port.send(PutObject("main", f"{home.prefix}/x/LATEST", b"not a file of a directory"))
    assert await sweep_old_strays(rig) == (0, 0)


def test_a_delayed_upload_is_swept_as_a_stray() -> None:
    with open_rig() as rig:
        directory = run(rig.gather({"a": b"one"}))
        ours = rig.port

        def sweep_before_put(number: int) -> None:
            if isinstance(ours.requests[-1], PutObject):
                rig.fresh().ahead = DAYS
                run(rig.sweep())
                rig.port = ours
                ours.dies_after = number

        ours.before = sweep_before_put
        with pytest.raises(Dead):
            run(rig.put("x", directory))
        rig.fresh()
        assert list(run(rig.audit()).objects.values()) == [b"one"]
        assert run(rig.sweep_later()) == (0, 0)
        assert run(sweep_strays(rig.context, run(rig.home()))) == (
            0,
            0,
        )  # the object may belong to a slow process
        assert run(sweep_old_strays(rig)) == (1, 3)
        run(rig.audit()).check_nothing_left()


@pytest.mark.parametrize("how", ["dies_before", "dies_after"])
def test_a_death_during_the_deletion_of_strays_is_harmless(how: str) -> None:
    for number in range(1, 6):
        with open_rig() as rig:
            directory = run(rig.gather({"a": b"one"}))
            home = run(rig.home())
            (sha256,) = directory.sizes
            run(rig.port.send(PutObject("main", home.file_key(sha256), b"one")))
            rig.fresh().ahead = 2 * DAYS
            setattr(rig.port, how, number)
            with pytest.raises(Dead):
                run(sweep_strays(rig.context, home))
            rig.fresh()
            run(sweep_old_strays(rig))
            assert run(rig.objects()) == {}
            run(rig.put("x", directory))
            run(rig.audit())
            run(sweep_old_strays(rig))
            run(rig.audit()).check_no_leaks()


@pytest.mark.parametrize("number", range(1, 6))
def test_a_put_during_the_deletion_of_a_stray_loses_nothing(number: int) -> None:
    with open_rig() as rig:
        directory = run(rig.gather({"a": b"one"}))
        home = run(rig.home())
        (sha256,) = directory.sizes
        run(rig.port.send(PutObject("main", home.file_key(sha256), b"one")))
        ours = rig.fresh()
        ours.ahead = 2 * DAYS

        def meddle(sent: int) -> None:
            if sent == number:
                rig.fresh()
                run(rig.put("x", directory))
                rig.port = ours

        ours.before = meddle
        run(sweep_strays(rig.context, home))
        assert len(run(rig.audit()).versions) == 1
