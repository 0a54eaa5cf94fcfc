"""``field(now=...)``: Holdall sets these times in every kind of write."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, expect_failure, put_raw

from holdall import Index, Key, Model, col, field
from holdall.errors import (
    InvalidFieldError,
    InvalidModelUpdateError,
    ModelAlreadyExistsError,
    ModelDefinitionError,
)


class Note(Model):
    id: Key[str]
    text: str = ""
    n: int = 0
    tags: set[str] = field(default_factory=set)
    created_at: datetime = field(now="create")
    updated_at: datetime = field(now="update")


class Task(Model, indexes=[Index("by_state", key=["state"], sort_key=["changed"])]):
    id: Key[str]
    state: str = "open"
    n: int = 0
    changed: datetime = field(now="update", name="ch")


class Plain(Model, table="plain_notes", layout="plain"):
    id: Key[str]
    text: str = ""
    created: int = field(now="create")
    changed: float = field(now="update")


class Late(Model):
    """A model that got its time fields after items had been stored."""

    id: Key[str]
    text: str = ""
    n: int = 0
    created_at: datetime | None = field(now="create")
    updated_at: datetime = field(now="update", aliases=["modified"])


class Page(Model):
    id: Key[str]
    n: int = 0


class Dated(Page):
    updated_at: datetime = field(now="update")


async def change_unread(db: Db, key: Any, update: Any) -> None:
    """Change an item without reading it, in another transaction."""
    async with db.transaction() as tx:
        tx.update(key, update)


async def check_times(db: Db, id: str, created: datetime, updated: datetime) -> None:
    found = await db.get_one(Note, id)
    assert (found.created_at, found.updated_at) == (created, updated)


@everywhere
async def test_a_new_item_gets_both_times_of_the_commit(db: Db) -> None:
    async with db.transaction() as tx:
        note = tx.create(Note, id="a")
        with pytest.raises(InvalidFieldError, match="no value"):
            note.updated_at  # noqa: B018
        db.clock.forward(10)
    now = db.clock.now()
    assert (note.created_at, note.updated_at) == (now, now)
    assert note.to_dict()["updated_at"] == now
    await check_times(db, "a", now, now)
    other = await db.create(Note(id="b"))
    assert other.created_at == now


@everywhere
async def test_every_write_of_a_loaded_item_sets_the_time_but_a_read_does_not(db: Db) -> None:
    await arrange(db, Note(id="a"))
    start = db.clock.now()

    db.clock.forward(10)
    async with db.transaction() as tx:
        note = await tx.get_one(Note, "a")
        assert note.text == ""
    await check_times(db, "a", start, start)
    for kind_of_write in range(4):
        db.clock.forward(10)
        async with db.transaction() as tx:
            note = await tx.get_one(Note, "a")
            if kind_of_write == 0:
                note.text = "x"
            elif kind_of_write == 1:
                note.field("n").increment_by(2)
            elif kind_of_write == 2:
                note.field("tags").add("x")
            else:
                note.tags.add("y")
        assert (note.created_at, note.updated_at) == (start, db.clock.now())
        await check_times(db, "a", start, db.clock.now())
    stored = await db.get_one(Note, "a")
    assert (stored.text, stored.n, stored.tags) == ("x", 2, {"x", "y"})


@everywhere
async def test_blind_writes_set_the_time_too(db: Db) -> None:
    await arrange(db, Note(id="a"))
    start = db.clock.now()
    db.clock.forward(10)
    await change_unread(db, Note.key("a"), col(Note.n).increment_by(1))
    await check_times(db, "a", start, db.clock.now())
    db.clock.forward(10)
    async with db.transaction() as tx:
        tx.update(Note, {"id": "a", "text": ""}, {"text": "x"})
        tx.update(Note.key("b"), col(Note.n).increment_by(1), create_if_missing=True)
        tx.create_or_put(Note, {"id": "c"}, {"text": "y"})
    await check_times(db, "a", start, now := db.clock.now())
    await check_times(db, "b", now, now)
    await check_times(db, "c", now, now)
    db.clock.forward(10)
    put = await db.put(Note(id="a", text="z"))
    assert (put.created_at, put.updated_at) == (db.clock.now(), db.clock.now())
    await check_times(db, "a", put.created_at, put.updated_at)


@everywhere
async def test_a_put_stores_the_creation_time_of_its_instance(db: Db) -> None:
    await arrange(db, Note(id="a"))
    start = db.clock.now()
    db.clock.forward(10)
    old = await db.get_one(Note, "a")
    await db.put(Note(**{**old.to_dict(), "text": "x"}))
    await check_times(db, "a", start, db.clock.now())


@everywhere
async def test_batches_set_both_times(db: Db) -> None:
    notes = [Note(id="a"), Note(id="b")]
    async with db.bulk(Note) as bulk:
        for note in notes:
            await bulk.put(note)
    for note in notes:
        assert note.created_at == note.updated_at == db.clock.now()
        await check_times(db, note.id, note.created_at, note.updated_at)


@everywhere
async def test_writers_that_share_only_the_update_time_do_not_conflict(db: Db) -> None:
    await arrange(db, Note(id="a"))
    async with db.transaction() as tx:
        note = await tx.get_one(Note, "a")
        db.clock.forward(10)
        await change_unread(db, Note.key("a"), col(Note.n).increment_by(1))
        db.clock.forward(10)
        note.text = "x"
    found = await db.get_one(Note, "a")
    assert (found.n, found.text, found.updated_at) == (1, "x", db.clock.now())


@everywhere
async def test_a_time_that_was_read_is_locked(db: Db) -> None:
    await arrange(db, Note(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            note = await tx.get_one(Note, "a")
            assert note.updated_at is not None
            note.text = "x"
            db.clock.forward(10)
            await change_unread(db, Note.key("a"), col(Note.n).increment_by(1))
    start = (await db.get_one(Note, "a")).updated_at
    db.clock.forward(10)
    async with db.transaction() as tx:
        tx.update(Note, {"id": "a", "text": "", "updated_at": start}, {"text": "y"})
    assert (await db.get_one(Note, "a")).updated_at == db.clock.now()


@everywhere
async def test_a_retry_stores_the_time_of_the_attempt_that_succeeds(db: Db) -> None:
    await arrange(db, Note(id="a"))
    attempts = []

    async def change(tx: Any) -> Any:
        note = await tx.get_one(Note, "a")
        attempts.append(note.n)
        if len(attempts) == 1:
            await change_unread(db, Note.key("a"), col(Note.n).increment_by(1))
        db.clock.forward(10)
        note.n += 1
        return note

    note = await db.run(change)
    assert len(attempts) == 2
    found = await db.get_one(Note, "a")
    assert (found.n, found.updated_at) == (2, note.updated_at)


@everywhere
async def test_an_instance_whose_creation_failed_has_no_times(db: Db) -> None:
    await arrange(db, Note(id="a"))
    note = Note(id="a", text="x")
    with expect_failure(ModelAlreadyExistsError):
        await db.create(note)
    assert "created_at" not in note.to_dict()
    assert "updated_at" not in note.to_dict()


@everywhere
async def test_an_index_on_the_update_time_follows_every_write(db: Db) -> None:
    rounds = random.Random(7)
    await arrange(db, *(Task(id=str(number)) for number in range(3)))
    expected = {str(number): ("open", db.clock.now()) for number in range(3)}
    for _ in range(12):
        db.clock.forward(1)
        id, kind, state = rounds.choice("012"), rounds.randrange(5), rounds.choice(["open", "done"])
        old = expected[id][0]
        async with db.transaction() as tx:
            if kind == 0:
                (await tx.get_one(Task, id)).field("n").increment_by(1)
                state = old
            elif kind == 1:
                item = await tx.get_one(Task, id)
                item.state, item.n = state, item.n + 1
            elif kind == 2:
                tx.update(Task.key(id), col(Task.n).increment_by(1), where=col(Task.state) == old)
                state = old
            elif kind == 3:
                tx.update(Task.key(id), col(Task.state).set(state))
            else:
                tx.create_or_put(Task, {"id": id}, {"state": state})
        expected[id] = (state, db.clock.now())
    for state in ("open", "done"):
        found = [(task.id, task.changed) async for task in db.query(Task, index="by_state", state=state)]
        wanted = [(id, changed) for id, (each, changed) in expected.items() if each == state]
        assert found == sorted(wanted, key=lambda pair: pair[1])


@everywhere
async def test_a_write_cannot_restore_the_old_index_keys_of_an_item_that_moved_meanwhile(db: Db) -> None:
    await arrange(db, Task(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(Task, "a")).field("n").increment_by(1)
            await change_unread(db, Task.key("a"), col(Task.state).set("done"))
    assert [task.id async for task in db.query(Task, index="by_state", state="done")] == ["a"]


@in_memory
async def test_a_blind_write_needs_the_other_fields_of_an_index_on_the_update_time(db: Db) -> None:
    await arrange(db, Task(id="a"))
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError, match="its value is needed too"):
            tx.update(Task.key("a"), col(Task.n).increment_by(1))
    assert db.kinds() == []


@everywhere
async def test_numeric_times_are_seconds_since_the_epoch(db: Db) -> None:
    await arrange(db, Plain(id="a"))
    start = int(db.clock.now().timestamp())
    db.clock.forward(10)
    async with db.transaction() as tx:
        (await tx.get_one(Plain, "a")).text = "x"
    found = await db.get_one(Plain, "a")
    assert (found.created, found.changed) == (start, start + 10)


@everywhere
async def test_items_stored_before_the_fields_existed_get_the_time_with_their_next_write(db: Db) -> None:
    raw = {"pk": {"S": "Late#a"}, "sk": {"S": "#"}, "id": {"S": "a"}, "text": {"S": ""}, "n": {"N": "0"}}
    await put_raw(db, Late, raw)
    item = await db.get_one(Late, "a")
    assert item.created_at is None
    assert "updated_at" not in item.to_dict()
    async with db.transaction() as tx:
        (await tx.get_one(Late, "a")).text = "x"
    assert (await db.get_one(Late, "a")).updated_at == db.clock.now()
    await put_raw(db, Late, {**raw, "modified": {"S": "2020-01-01T00:00:00Z"}})
    assert (await db.get_one(Late, "a")).updated_at == datetime(2020, 1, 1, tzinfo=UTC)
    async with db.transaction() as tx:
        (await tx.get_one(Late, "a")).field("n").increment_by(1)
    stored = await db.raw(Late.key("a"))
    assert stored is not None
    assert "modified" not in stored
    assert (await db.get_one(Late, "a")).updated_at == db.clock.now()


@everywhere
async def test_a_blind_write_through_a_base_model_is_refused_if_the_derived_model_has_a_time(db: Db) -> None:
    await arrange(db, Dated(id="a"), Page(id="b"))
    await change_unread(db, Page.key("b"), col(Page.n).increment_by(1))
    with expect_failure(InvalidModelUpdateError):
        await change_unread(db, Page.key("a"), col(Page.n).increment_by(1))
    db.clock.forward(10)
    await change_unread(db, Dated.key("a"), col(Dated.n).increment_by(1))
    assert (await db.get_one(Dated, "a")).updated_at == db.clock.now()


@in_memory
async def test_the_caller_cannot_change_a_time(db: Db) -> None:
    note = Note(id="a")
    for name in ("created_at", "updated_at"):
        with pytest.raises(InvalidFieldError, match="Holdall sets it"):
            setattr(note, name, datetime.now(UTC))
        with pytest.raises(InvalidFieldError, match="Holdall sets it"):
            note.assign({name: datetime.now(UTC)})
    with pytest.raises(InvalidFieldError):
        col(Note.updated_at).set(datetime.now(UTC))


def test_json_input_needs_no_times_and_cannot_set_them() -> None:
    from pydantic import TypeAdapter

    adapter = TypeAdapter(Note)
    assert "created_at" not in adapter.validate_json('{"id": "a"}').to_dict()
    sent = '{"id": "a", "created_at": "2020-01-01T00:00:00Z"}'
    assert "created_at" not in adapter.validate_json(sent).to_dict()
    schema = Note.json_schema()
    assert schema["required"] == ["id"]
    assert schema["properties"]["updated_at"]["readOnly"] is True


@pytest.mark.parametrize(
    ("annotation", "options", "problem"),
    [
        (str, {"now": "create"}, "must be a datetime, an int or a float"),
        (datetime, {"now": "always"}, 'must be "create" or "update"'),
        (datetime, {"now": "create", "default_factory": datetime.now}, "cannot have a default"),
        (int, {"now": "update", "default": 3}, "cannot have a default"),
        (int, {"now": "update", "unique": True}, "cannot be part of a key, unique"),
        (Key[int], {"now": "create"}, "cannot be part of a key"),
    ],
    ids=["text", "word", "factory", "default", "unique", "key"],
)
def test_invalid_time_fields_are_refused(annotation: Any, options: Any, problem: str) -> None:
    with pytest.raises(ModelDefinitionError, match=problem):
        type("Wrong", (Model,), {"__annotations__": {"at": annotation}, "at": field(**options)})


def test_a_time_of_update_cannot_be_the_expiry() -> None:
    with pytest.raises(ModelDefinitionError, match="would expire at once"):

        class Wrong(Model, ttl="at"):
            id: Key[str]
            at: datetime = field(now="update")
