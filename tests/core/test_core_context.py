"""What the rooms keep for a database, and what of it is forgotten with its tables."""

from __future__ import annotations

from holdall import Database
from holdall.core.context import Kept, State
from holdall.jobs.outbox import listen, ring


class Found(Kept):
    def __init__(self) -> None:
        self.names: set[str] = set()


class Lasting(set[str]):
    """Not derived from the tables."""


def test_each_class_has_one_object_until_the_tables_are_forgotten() -> None:
    state = State()
    found, lasting = state.of(Found), state.of(Lasting)
    assert state.of(Found) is found
    assert state.of(Lasting) is lasting
    state.forget_tables()
    assert state.of(Found) is not found
    assert state.of(Lasting) is lasting


def test_twins_share_what_is_kept_and_other_databases_do_not() -> None:
    with Database("memory:") as db, Database("memory:") as other:
        db._context.state.of(Found).names.add("here")
        assert db.aio._context.state.of(Found).names == {"here"}
        assert other._context.state.of(Found).names == set()
        db.table.create()
        assert db._context.state.of(Found).names == set()


def test_a_worker_that_listens_still_hears_of_jobs_after_the_tables_were_looked_at_anew() -> None:
    heard: list[tuple[str, str]] = []
    with Database("memory:") as db, listen(db._context, lambda *place: heard.append(place)):
        db.table.create()
        ring(db._context, "default", "0")
    assert heard == [("default", "0")]
