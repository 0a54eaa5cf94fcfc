"""Whatever dies at whatever step, and whatever comes in between: nothing that a version has is lost, nothing leaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace as replaced
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest
from directory_rig import DAYS, Dead, Rig, open_rig, send
from rig.torture import TORTURE

from holdall.artifacts.directory.hold import hold_files, redeem_hold
from holdall.artifacts.directory.inventory import Directory
from holdall.artifacts.directory.sweep import sweep_strays
from holdall.core.objects import DeleteObjects, DeleteReport, PutObject
from holdall.core.port import run
from holdall.core.requests import UpdateItem
from holdall.errors import ContentionError, OutcomeUnknown, ServiceError, TransactionCanceledError
from holdall.tables.commit.change import Change
from holdall.testing.faults import Fault, FaultyBackend

OLD: dict[str, bytes | None] = {"a": b"only old", "b": b"both", "c": b"also old"}
NEW: dict[str, bytes | None] = {"a": b"only new", "b": b"both", "d": None}

HOWS = ["dies_before", "dies_after"] if TORTURE else ["dies_after"]
"""A death before a request leaves what one after the request before it left."""

Step = Callable[[Rig, Directory, Directory], Coroutine[Any, Any, Any]]


async def replace(rig: Rig, old: Directory, new: Directory) -> None:
    await rig.put("x", new)


async def forget(rig: Rig, old: Directory, new: Directory) -> None:
    await rig.drop("x")
    await rig.sweep()


async def replace_and_sweep(rig: Rig, old: Directory, new: Directory) -> None:
    await rig.put("x", new)
    await rig.sweep()


def prepare(rig: Rig) -> tuple[Directory, Directory]:
    """A version of the one directory; the other is on no record yet."""
    old, new = run(rig.gather(OLD)), run(rig.gather(NEW))
    run(rig.put("x", old))
    rig.fresh()
    return old, new


def requests_of(step: Step) -> int:
    """How many requests a step sends."""
    with open_rig() as rig:
        old, new = prepare(rig)
        run(step(rig, old, new))
        return len(rig.port.requests)


def all_gone(rig: Rig, *names: str) -> None:
    """In the end nothing is left, so that nothing was forgotten."""
    rig.fresh()
    for name in names:
        run(rig.drop(name))
    run(rig.sweep_later())
    run(rig.audit()).check_nothing_left()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("step", [forget, replace_and_sweep])
def test_after_a_death_at_any_request_it_can_be_done_again(step: Step, how: str) -> None:
    for number in range(1, requests_of(step) + 1):
        with open_rig() as rig:
            old, new = prepare(rig)
            setattr(rig.port, how, number)
            try:
                run(step(rig, old, new))
            except Dead:
                pass
            else:
                assert how == "dies_after", "the step sent fewer requests than it did before"
            run(rig.audit())
            rig.fresh()
            run(rig.put("y", old))  # what is being deleted is needed again
            run(rig.audit())
            run(step(rig, old, new))
            run(rig.sweep_later())
            run(rig.audit()).check_no_leaks()
            all_gone(rig, "x", "y")


@pytest.mark.parametrize("step", [forget, replace_and_sweep])
def test_after_a_death_at_any_request_a_sweep_leaves_nothing(step: Step) -> None:
    for number in range(1, requests_of(step) + 1):
        with open_rig() as rig:
            old, new = prepare(rig)
            rig.port.dies_after = number
            with suppress(Dead):
                run(step(rig, old, new))
            run(rig.sweep_later())
            run(rig.audit()).check_no_leaks()
            all_gone(rig, "x")


def between(rig: Rig, number: int, other: Callable[[Rig], None]) -> None:
    """Let another process do something from beginning to end just before a request."""
    ours = rig.port

    def meddle(sent: int) -> None:
        if sent == number:
            rig.fresh()
            other(rig)
            rig.port = ours

    ours.before = meddle


def put_old(rig: Rig) -> None:
    (old,) = [each for each in rig.directories.values() if b"only old" in _contents(each)]
    run(rig.put("y", old))


def sweep_all(rig: Rig) -> None:
    rig.port.ahead = DAYS  # every hold is over, and every sweep that others have begun
    run(rig.sweep())


def sweep_and_put_old(rig: Rig) -> None:
    sweep_all(rig)
    put_old(rig)


def put_and_drop_old(rig: Rig) -> None:
    put_old(rig)
    run(rig.drop("y"))
    sweep_all(rig)


def _contents(directory: Directory) -> list[bytes]:
    return [place.read_bytes() for place in directory.places.values()]


OTHERS: list[Callable[[Rig], None]] = [put_old, sweep_all, sweep_and_put_old, put_and_drop_old]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("step", [forget, replace_and_sweep])
def test_whoever_comes_in_between_loses_nothing(step: Step, other: Callable[[Rig], None]) -> None:
    # every day at every second request: what one of them does not meet, the next does
    first, stride = (1, 1) if TORTURE else (1 + OTHERS.index(other) % 2, 2)
    for number in range(first, requests_of(step) + 1, stride):
        with open_rig() as rig:
            old, new = prepare(rig)
            between(rig, number, other)
            ours = rig.port
            with suppress(
                ContentionError, TransactionCanceledError
            ):  # its hold was taken away: nothing was put
                run(step(rig, old, new))
            assert rig.port is ours
            run(rig.audit())
            rig.fresh()
            run(step(rig, old, new))
            run(rig.sweep_later())
            run(rig.audit()).check_no_leaks()
            all_gone(rig, "x", "y")


@pytest.mark.parametrize("which", ["the old", "the same"])
def test_a_put_goes_on_wherever_a_sweep_died_meanwhile(which: str) -> None:
    deaths = requests_of(forget) - 3  # without what the drop sends, and the look at the marks
    stride = 1 if TORTURE else 3
    for number, death in product(range(1, requests_of(replace) + 1), range(2, deaths + 1)):
        if (
            number + death
        ) % stride:  # each request of the one meets some deaths of the other, and the reverse
            continue
        with open_rig() as rig:
            old, new = prepare(rig)
            swept = (old if which == "the old" else new).sha256
            between(rig, number, partial(forget_and_die, swept=swept, death=death))
            with suppress(ContentionError, TransactionCanceledError):
                run(replace(rig, old, new))
            run(rig.audit())
            rig.fresh()
            run(replace(rig, old, new))
            run(rig.audit())
            all_gone(rig, "x")


def forget_and_die(rig: Rig, *, swept: str, death: int) -> None:
    run(rig.drop("x"))
    rig.fresh().ahead = DAYS
    rig.port.dies_before = death
    with suppress(Dead):
        run(rig.sweep([swept]))


def test_a_put_whose_hold_was_swept_away_leaves_nothing_when_it_dies_later() -> None:
    for number in range(1, requests_of(replace) + 1):
        with open_rig() as rig:
            old, new = prepare(rig)
            between(rig, number, sweep_all)
            rig.port.dies_after = number
            with suppress(Dead, ContentionError, TransactionCanceledError):
                run(replace(rig, old, new))
            rig.fresh().ahead = 2 * DAYS
            run(sweep_strays(rig.context, run(rig.home())))
            all_gone(rig, "x")


def test_an_upload_counts_only_in_the_life_of_the_record_that_it_was_for() -> None:
    with open_rig() as rig:
        directory = run(rig.gather(OLD))
        stores = 0

        def others(rig: Rig) -> None:
            sweep_all(rig)
            rig.fresh().dies_before = 6  # when it has counted the files, and uploaded none
            with pytest.raises(Dead):
                run(rig.put("y", directory))
            assert isinstance(rig.port.requests[5], PutObject)

        ours = rig.port

        def meddle(sent: int) -> None:
            nonlocal stores
            if isinstance(ours.requests[-1], UpdateItem) and not stores:
                stores += 1
                others(rig)
                rig.port = ours

        ours.before = meddle
        with pytest.raises(ContentionError):
            run(rig.put("x", directory))
        assert stores
        rig.fresh()
        run(rig.put("z", directory))
        run(rig.audit())
        all_gone(rig, "z")


def test_two_that_share_a_file_are_swept_at_once() -> None:
    for number in range(1, 20):
        with open_rig() as rig:
            old, new = prepare(rig)
            run(rig.put("z", new))
            for name in ("x", "z"):
                run(rig.drop(name))
            rig.fresh()
            between(rig, number, lambda rig, new=new: run(rig.sweep([new.sha256])))  # type: ignore[misc]
            run(rig.sweep([old.sha256]))
            run(rig.audit())
            run(rig.sweep())
            audit = run(rig.audit())
            audit.check_nothing_left()
            assert audit.of("File") == {}  # no key was given up


def test_a_deletion_that_arrives_late_meets_nothing_that_is_needed() -> None:
    with open_rig() as rig:
        prepare(rig)
        run(rig.drop("x"))
        original, late = rig.service.send_blocking, list[Any]()

        def delay(request: Any) -> Any:
            if isinstance(request, DeleteObjects) and not late:
                late.append(request)
                raise OutcomeUnknown("on its way")
            return original(request)

        rig.service.send_blocking = delay
        with pytest.raises(OutcomeUnknown):
            run(rig.sweep())
        sweep_and_put_old(rig)
        original(late[0])
        run(rig.audit())
        all_gone(rig, "y")


def test_a_file_that_cannot_be_deleted_stays_to_be_deleted() -> None:
    with open_rig() as rig:
        prepare(rig)
        run(rig.drop("x"))
        original = rig.service.send_blocking

        def refuse(request: Any) -> Any:
            if isinstance(request, DeleteObjects):
                return DeleteReport({request.keys[0]: "it is locked"})
            return original(request)

        rig.service.send_blocking = refuse
        with pytest.raises(ServiceError, match=r"could not be deleted; the first is .*: it is locked"):
            run(rig.sweep())
        run(rig.audit())
        rig.service.send_blocking = original
        all_gone(rig)


def test_a_hold_that_is_over_cannot_become_a_version_once_it_was_swept() -> None:
    with open_rig() as rig:
        home, directory = run(rig.home()), run(rig.gather(OLD))
        hold = run(hold_files(rig.context, home, directory))
        run(rig.sweep_later())
        run(hold_files(rig.context, home, directory))  # another's, which does not make the first good again
        change = Change(rig.context)
        redeem_hold(change, home, hold)
        with pytest.raises(ContentionError, match="refused: manifest"):
            run(send(change))
        run(rig.audit())


@pytest.mark.parametrize("seed", range(3))
def test_faults_of_the_table_do_no_harm(seed: int) -> None:
    rates = {Fault.THROTTLE: 0.03, Fault.LOST_BEFORE: 0.03, Fault.LOST_AFTER: 0.03}
    with open_rig() as rig:
        old, new = prepare(rig)
        port = rig.db._context.port
        backend = port._backend
        for turn in range(12):
            port._backend = FaultyBackend(backend, rates, seed=seed * 100 + turn)
            for flow in (rig.put("x", (old, new)[turn % 2]), rig.sweep()):
                with suppress(OutcomeUnknown, ServiceError, ContentionError, TransactionCanceledError):
                    run(flow)
            port._backend = backend
            run(rig.audit())
        all_gone(rig, "x")


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_puts_drops_and_sweeps_at_the_same_time_lose_nothing(kind: str) -> None:
    with open_rig("blocking", kind) as rig:
        contents = [b"%d" % number for number in range(5)]
        directories = []
        for leave in range(5):
            files: dict[str, bytes | None] = {
                f"f{number}": data for number, data in enumerate(contents) if number != leave
            }
            directories.append(run(rig.gather(files)))
        errors: list[BaseException] = []

        def work(seed: int) -> None:
            random = Random(seed)
            port = type(rig.port)(rig.db._context.port)
            context = _with(rig, port)
            for _ in range(20):
                port.ahead = DAYS if random.random() < 0.3 else DAYS * 0
                step = random.randrange(3)
                try:
                    if step == 0:
                        port.ahead *= 0
                        run(rig.put(f"{random.randrange(3)}", random.choice(directories), context))
                    elif step == 1:
                        run(rig.drop(f"{random.randrange(3)}", context))
                    else:
                        run(rig.sweep(context=context))
                except (ContentionError, TransactionCanceledError):
                    pass
                except BaseException as error:
                    errors.append(error)
                    raise

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        run(rig.audit())
        rig.fresh().ahead = 2 * DAYS
        run(
            sweep_strays(rig.context, run(rig.home()))
        )  # of puts whose holds were swept away under their hands
        all_gone(rig, "0", "1", "2")


def _with(rig: Rig, port: Any) -> Any:
    return replaced(rig.db._context, port=port)
