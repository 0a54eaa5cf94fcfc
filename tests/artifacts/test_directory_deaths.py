"""Deaths at every step, and other processes in between: versions lose nothing, and nothing leaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace as replace_fields
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
"""A death before a request leaves the same state as a death after the previous one."""

Step = Callable[[Rig, Directory, Directory], Coroutine[Any, Any, Any]]


async def replace(rig: Rig, old: Directory, new: Directory) -> None:
    await rig.put("x", new)


async def drop_and_sweep(rig: Rig, old: Directory, new: Directory) -> None:
    await rig.drop("x")
    await rig.sweep()


async def replace_and_sweep(rig: Rig, old: Directory, new: Directory) -> None:
    await rig.put("x", new)
    await rig.sweep()


def prepare(rig: Rig) -> tuple[Directory, Directory]:
    """Put a version of the old directory; no record refers to the new one yet."""
    old, new = run(rig.gather(OLD)), run(rig.gather(NEW))
    run(rig.put("x", old))
    rig.fresh()
    return old, new


def count_requests(step: Step) -> int:
    """The number of requests that a step sends."""
    with open_rig() as rig:
        old, new = prepare(rig)
        run(step(rig, old, new))
        return len(rig.port.requests)


def check_all_freed(rig: Rig, *names: str) -> None:
    """Drop everything, and check that no object or record is left over."""
    rig.fresh()
    for name in names:
        run(rig.drop(name))
    run(rig.sweep_later())
    run(rig.audit()).check_nothing_left()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("step", [drop_and_sweep, replace_and_sweep])
def test_after_a_death_at_any_request_the_step_can_be_repeated(step: Step, how: str) -> None:
    for number in range(1, count_requests(step) + 1):
        with open_rig() as rig:
            old, new = prepare(rig)
            setattr(rig.port, how, number)
            try:
                run(step(rig, old, new))
            except Dead:
                pass
            else:
                assert how == "dies_after", "the step sent fewer requests than the first time"
            run(rig.audit())
            rig.fresh()
            run(rig.put("y", old))  # needs the files that are being deleted
            run(rig.audit())
            run(step(rig, old, new))
            run(rig.sweep_later())
            run(rig.audit()).check_no_leaks()
            check_all_freed(rig, "x", "y")


@pytest.mark.parametrize("step", [drop_and_sweep, replace_and_sweep])
def test_after_a_death_at_any_request_a_sweep_leaves_nothing(step: Step) -> None:
    for number in range(1, count_requests(step) + 1):
        with open_rig() as rig:
            old, new = prepare(rig)
            rig.port.dies_after = number
            with suppress(Dead):
                run(step(rig, old, new))
            run(rig.sweep_later())
            run(rig.audit()).check_no_leaks()
            check_all_freed(rig, "x")


def run_between(rig: Rig, number: int, other: Callable[[Rig], None]) -> None:
    """Let another process run to its end just before the request with this number."""
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
    rig.port.ahead = DAYS  # every hold has expired, and every sweep begun by other processes
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
@pytest.mark.parametrize("step", [drop_and_sweep, replace_and_sweep])
def test_nothing_is_lost_if_another_process_runs_in_between(step: Step, other: Callable[[Rig], None]) -> None:
    # normally at every second request: two cases alternate
    first, stride = (1, 1) if TORTURE else (1 + OTHERS.index(other) % 2, 2)
    for number in range(first, count_requests(step) + 1, stride):
        with open_rig() as rig:
            old, new = prepare(rig)
            run_between(rig, number, other)
            ours = rig.port
            with suppress(ContentionError, TransactionCanceledError):  # its hold was swept: nothing was put
                run(step(rig, old, new))
            assert rig.port is ours
            run(rig.audit())
            rig.fresh()
            run(step(rig, old, new))
            run(rig.sweep_later())
            run(rig.audit()).check_no_leaks()
            check_all_freed(rig, "x", "y")


@pytest.mark.parametrize("which", ["old", "new"])
def test_a_put_survives_a_sweep_that_died_meanwhile(which: str) -> None:
    deaths = count_requests(drop_and_sweep) - 3  # without the requests of the drop and the query for marks
    stride = 1 if TORTURE else 3
    for number, death in product(range(1, count_requests(replace) + 1), range(2, deaths + 1)):
        if (
            number + death
        ) % stride:  # each request is combined with some deaths, and each death with some requests
            continue
        with open_rig() as rig:
            old, new = prepare(rig)
            swept = (old if which == "old" else new).sha256
            run_between(rig, number, partial(drop_and_die, swept=swept, death=death))
            with suppress(ContentionError, TransactionCanceledError):
                run(replace(rig, old, new))
            run(rig.audit())
            rig.fresh()
            run(replace(rig, old, new))
            run(rig.audit())
            check_all_freed(rig, "x")


def drop_and_die(rig: Rig, *, swept: str, death: int) -> None:
    run(rig.drop("x"))
    rig.fresh().ahead = DAYS
    rig.port.dies_before = death
    with suppress(Dead):
        run(rig.sweep([swept]))


def test_a_put_that_dies_after_its_hold_was_swept_leaves_nothing() -> None:
    for number in range(1, count_requests(replace) + 1):
        with open_rig() as rig:
            old, new = prepare(rig)
            run_between(rig, number, sweep_all)
            rig.port.dies_after = number
            with suppress(Dead, ContentionError, TransactionCanceledError):
                run(replace(rig, old, new))
            rig.fresh().ahead = 2 * DAYS
            run(sweep_strays(rig.context, run(rig.home())))
            check_all_freed(rig, "x")


def test_an_upload_for_a_record_that_was_deleted_meanwhile_does_not_count() -> None:
    with open_rig() as rig:
        directory = run(rig.gather(OLD))
        stores = 0

        def others(rig: Rig) -> None:
            sweep_all(rig)
            rig.fresh().dies_before = 6  # after it counted the files, before it uploaded any
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
        check_all_freed(rig, "z")


def test_two_sweeps_of_manifests_that_share_a_file_free_everything() -> None:
    for number in range(1, 20):
        with open_rig() as rig:
            old, new = prepare(rig)
            run(rig.put("z", new))
            for name in ("x", "z"):
                run(rig.drop(name))
            rig.fresh()
            run_between(rig, number, lambda rig, new=new: run(rig.sweep([new.sha256])))  # type: ignore[misc]
            run(rig.sweep([old.sha256]))
            run(rig.audit())
            run(rig.sweep())
            audit = run(rig.audit())
            audit.check_nothing_left()
            assert audit.of("File") == {}  # no key had to be replaced


def test_a_delayed_deletion_does_not_delete_needed_files() -> None:
    with open_rig() as rig:
        prepare(rig)
        run(rig.drop("x"))
        original, late = rig.service.send_blocking, list[Any]()

        def delay(request: Any) -> Any:
            if isinstance(request, DeleteObjects) and not late:
                late.append(request)
                raise OutcomeUnknown("delayed")
            return original(request)

        rig.service.send_blocking = delay
        with pytest.raises(OutcomeUnknown):
            run(rig.sweep())
        sweep_and_put_old(rig)
        original(late[0])
        run(rig.audit())
        check_all_freed(rig, "y")


def test_a_file_that_cannot_be_deleted_is_deleted_by_a_later_sweep() -> None:
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
        check_all_freed(rig)


def test_an_expired_and_swept_hold_cannot_become_a_version() -> None:
    with open_rig() as rig:
        home, directory = run(rig.home()), run(rig.gather(OLD))
        hold = run(hold_files(rig.context, home, directory))
        run(rig.sweep_later())
        run(hold_files(rig.context, home, directory))  # a second hold does not revive the first
        change = Change(rig.context)
        redeem_hold(change, home, hold)
        with pytest.raises(ContentionError, match="refused: manifest"):
            run(send(change))
        run(rig.audit())


@pytest.mark.parametrize("seed", range(3))
def test_faults_of_the_table_lose_and_leak_nothing(seed: int) -> None:
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
        check_all_freed(rig, "x")


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_concurrent_puts_drops_and_sweeps_lose_nothing(kind: str) -> None:
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
        run(sweep_strays(rig.context, run(rig.home())))  # left by puts whose holds were swept meanwhile
        check_all_freed(rig, "0", "1", "2")


def _with(rig: Rig, port: Any) -> Any:
    return replace_fields(rig.db._context, port=port)
