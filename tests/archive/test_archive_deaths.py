"""A process dies, or a request fails, before or after any step: items stay intact, a second try finishes the work, and
the sweep leaves no unneeded object."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
from archive_rig import OLD, Order
from rig.database import die, open_directory
from rig.recorder import Recorder
from rig.torture import TORTURE

from holdall import Database, col
from holdall.archive.pointer import POINTER, read_pointer
from holdall.core.objects import ObjectRequest
from holdall.core.requests import Scan, UpdateItem
from holdall.errors import HoldallError, OutcomeUnknown, ServiceUnavailableError

WHENS = ("before", "after") if TORTURE else ("after",)
"""A death right before a request leaves the same state as a death right after the previous one."""

HOT, COLD, LIKE_IT = (Order.key(customer="ada", number=number) for number in ("1", "a_b", "a:b"))
"""A hot item, a cold one, and another hot one whose object would have the same key as the cold one's."""


def open_db(directory: Path, days: float = 0) -> AbstractContextManager[tuple[Database, Recorder]]:
    """Open the database of a directory, some days later."""
    return open_directory(directory, days, manage_table=True)


def archive(db: Database) -> None:
    db.archive.run(Order, segments=1)


def rewrite(db: Database) -> None:
    with db.transaction() as tx:
        tx.get_one(COLD).quantity = 5


def put_blindly(db: Database) -> None:
    with db.transaction() as tx:
        tx.create_or_put(Order, {"customer": "ada", "number": "a_b"}, {"placed_at": OLD, "quantity": 5})


def delete(db: Database) -> None:
    with db.transaction() as tx:
        if (item := tx.get(COLD)) is not None:
            tx.delete(item)


def delete_blindly(db: Database) -> None:
    with db.transaction() as tx:
        tx.delete(COLD)


def restore(db: Database) -> None:
    db.archive.restore(COLD, HOT)


def sweep(db: Database) -> None:
    db.archive.sweep(Order, dry_run=False)


CHANGES = [archive, rewrite, put_blindly, delete, delete_blindly, restore, sweep]


def prepare(directory: Path) -> dict[str, Any]:
    """Create the items that the changes start from, and an object left by a run that failed before its swap."""
    with open_db(directory) as (db, recorder):
        with db.transaction() as tx:
            for key in (HOT, COLD, LIKE_IT):
                note = f"of {key.components['number']}"
                tx.create(Order, **key.components, placed_at=OLD, product="tea", note=note, tags={"a"})
        db.archive.run(Order, where=col(Order.note) == "of a_b")

        def fail(request: Any) -> None:
            if isinstance(request, UpdateItem):
                raise ServiceUnavailableError("on purpose")

        recorder.before = fail
        with suppress(HoldallError):
            db.archive.run(Order, where=col(Order.note) == "of a:b")
        recorder.before = lambda request: None
        assert len(list(db.files.list())) == 2
        return read_all(db)


def read_all(db: Database) -> dict[str, Any]:
    return {item.number: item.to_dict() for item in db.scan(Order)}


def apply(change: Callable[[Database], None], before: dict[str, Any]) -> dict[str, Any]:
    """The items expected after a change."""
    cold = before["a_b"]
    if change in (delete, delete_blindly):
        return {number: each for number, each in before.items() if number != "a_b"}
    if change is rewrite:
        return {**before, "a_b": {**cold, "quantity": 5}}
    if change is put_blindly:
        return {**before, "a_b": {**cold, "quantity": 5, "note": None, "product": None, "tags": set()}}
    return before


def check_recovery(directory: Path, change: Callable[[Database], None], before: dict[str, Any]) -> None:
    """Check that items are as before or after, a second try finishes, and a sweep keeps only needed objects."""
    after = apply(change, before)
    days = 8 if change is sweep else 0
    with open_db(directory, days) as (db, _):
        assert read_all(db) in (before, after)
        change(db)
        assert read_all(db) == after
        assert set(list_pointers(db)) <= {each.key for each in db.files.list()}
    with open_db(directory, days=8) as (db, _):
        sweep(db)
        assert sorted(list_pointers(db)) == [each.key for each in db.files.list()]
        assert read_all(db) == after
        cold = len(list_pointers(db))
        assert db.archive.restore_all(Order) == cold
        assert read_all(db) == after


def list_pointers(db: Database) -> list[str]:
    items = db.send(Scan(db._context.settings.table_name, consistent=True)).items
    return [read_pointer(item).key for item in items if POINTER in item]


@pytest.mark.torture
@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.__name__))
def test_a_death_at_any_step_loses_nothing_and_leaves_nothing_over(
    tmp_path: Path, change: Callable[[Database], None], when: str
) -> None:
    (tmp_path / "before").mkdir()
    before = prepare(tmp_path / "before")
    for step in range(1, 100):
        directory = tmp_path / str(step)
        copytree(tmp_path / "before", directory)
        database = open_db(directory, 8 if change is sweep else 0)
        died = die(database, change, step, when, only_writes=not TORTURE)
        check_recovery(directory, change, before)
        rmtree(directory)
        if not died:
            assert step > 1
            return
    raise AssertionError("the change never ended")


FAULTS = {"before": ServiceUnavailableError("on purpose"), "after": OutcomeUnknown("lost on purpose")}


@pytest.mark.torture
@pytest.mark.parametrize("when", FAULTS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.__name__))
def test_a_fault_at_any_step_loses_nothing_and_leaves_nothing_over(
    tmp_path: Path, change: Callable[[Database], None], when: str
) -> None:
    (tmp_path / "before").mkdir()
    before = prepare(tmp_path / "before")
    for step in range(1, 100):
        directory = tmp_path / str(step)
        copytree(tmp_path / "before", directory)
        with open_db(directory, 8 if change is sweep else 0) as (db, recorder):
            left = step

            def fail(request: Any) -> None:
                nonlocal left
                if when == "after" or not TORTURE:
                    left -= request.writes or (when == "before" and isinstance(request, ObjectRequest))
                else:
                    left -= 1
                if left == 0:
                    raise FAULTS[when]

            setattr(recorder, when, fail)
            with suppress(HoldallError):
                change(db)
        check_recovery(directory, change, before)
        rmtree(directory)
        if left > 0:
            assert step > 1
            return
    raise AssertionError("the change never ended")
