"""The state that the rooms keep for a database, and which of it is discarded with its tables."""

from __future__ import annotations

from holdall import Database
from holdall.core.context import Kept, State
from holdall.jobs.outbox import listen, ring


class Found(Kept):
    def __init__(self) -> None:
        self.names: set[str] = set()


class Lasting(set[str]):
    """State that does not depend on the tables."""


def test_each_class_has_one_object_until_the_tables_are_discarded() -> None:
    state = State()
    found, lasting = state.of(Found), state.of(Lasting)
    assert state.of(Found) is found
    assert state.of(Lasting) is lasting
    state.forget_tables()
    assert state.of(Found) is not found
    assert state.of(Lasting) is lasting


def test_a_sync_and_its_async_database_share_state_and_other_databases_do_not() -> None:
    with Database("memory:") as db, Database("memory:") as other:
        db._context.state.of(Found).names.add("here")
        assert db.aio._context.state.of(Found).names == {"here"}
        assert other._context.state.of(Found).names == set()
        db.table.create()
        assert db._context.state.of(Found).names == set()


def test_a_worker_is_still_notified_of_jobs_after_the_tables_were_discarded() -> None:
    notified: list[tuple[str, str]] = []
    with Database("memory:") as db, listen(db._context, lambda *place: notified.append(place)):
        db.table.create()
        ring(db._context, "default", "0")
    assert notified == [("default", "0")]
