"""Field updates that need no read, blind and on loaded items, and conditions (``where=``) on blind writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from annotated_types import Ge, Le, MaxLen, MultipleOf
from pydantic import BaseModel
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, expect_failure, meanwhile

from holdall import Index, Key, Model, SortKey, col, field
from holdall.core import (
    Add,
    ConditionCheck,
    Delete,
    Set,
    TransactWrite,
    Update,
    UpdateItem,
    Value,
    path,
    value,
)
from holdall.errors import (
    InvalidFieldError,
    InvalidModelUpdateError,
    InvalidOptionsError,
    InvalidRequestError,
    ModelTrackedTwiceError,
    TransactionErrors,
    UniqueViolationError,
)
from holdall.models import Template
from holdall.testing import Fault


class Address(BaseModel):
    city: str
    street: str | None = None


class Note(Model):
    id: Key[str]
    text: str = ""
    tags: set[str] = field(default_factory=set)
    likes: set[int] = field(default_factory=lambda: {0})
    readers: set[str] | None = None
    log: list[str] = field(default_factory=list)
    last: Annotated[list[str], MaxLen(2)] = field(default_factory=list)
    views: Annotated[int, Ge(0), Le(100)] = 0
    score: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    address: Address | None = None
    kept: bool | None = None
    ranks: Annotated[dict[str, int], MaxLen(2)] = field(default_factory=dict)
    steps: Annotated[int, MultipleOf(5)] = 0


class OwnNote(Model, table="notes"):
    id: Key[str]
    text: str = ""
    tags: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    views: int = 0


class Namesake(Model, name="OwnNote", table="namesakes"):
    id: Key[str]
    views: int = 0


class PlainNote(Model, table="plain_notes", layout="plain"):
    id: Key[str]
    text: str = ""
    tags: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    views: int = 0


both_layouts = pytest.mark.parametrize("note", [Note, OwnNote], ids=["shared", "own"])
layouts = pytest.mark.parametrize("note", [Note, OwnNote, PlainNote], ids=["shared", "own", "plain"])
STATUS = Template(pk="CUSTOMER#{customer}", sk="ORDER#{number}", gsi1=("STATUS#{status}", "{placed}"))


class Order(
    Model, table="orders", layout=STATUS, indexes=[Index("gsi1", key=["status"], sort_key=["placed"])]
):
    customer: Key[str]
    number: SortKey[int]
    status: str = "new"
    placed: str = "2026"
    lines: list[str] = field(default_factory=list)


class Person(Model):
    id: Key[str]
    mail: str | None = field(default=None, unique=True)
    tags: set[str] = field(default_factory=set)


class Visit(Model, ttl="until", indexes=[Index("by_place", ["country", "city"])]):
    id: Key[str]
    country: str
    city: str
    count: int = 0
    until: datetime | None = None


class Hooked(Model):
    id: Key[str]
    n: int = 0

    def before_commit(self, tx: Any) -> None:
        self.n += 1


async def update(db: Db, key: Any, *updates: Any, **options: Any) -> None:
    async with db.transaction() as tx:
        tx.update(key, *updates, **options)


# --- the updates ------------------------------------------------------------------------------------------


@everywhere
@layouts
async def test_fields_are_changed_in_one_write_with_a_token_and_no_read(db: Db, note: Any) -> None:
    await arrange(db, note(id="a", text="x", tags={"old"}, log=["one"], views=3))
    updates = col(note.tags).add("new"), col(note.log).append("two"), col(note.views).increment_by(2)
    await update(db, note.key("a"), *updates, col(note.text).set("y"))
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    (action,) = write.actions
    assert isinstance(action, UpdateItem)
    found = await db.get_one(note, "a")
    assert (found.tags, found.log, found.views, found.text) == ({"old", "new"}, ["one", "two"], 5, "y")


@everywhere
async def test_the_store_adds_and_removes_members_of_sets(db: Db) -> None:
    await arrange(db, Note(id="a", tags={"x", "y"}))
    await update(db, Note.key("a"), col(Note.tags).discard("x", "z"))
    assert db.list_sent()[0].actions[0].update.actions == (Delete(path("tags"), encode_set({"x", "z"})),)
    db.forget()
    await update(db, Note.key("a"), col(Note.tags).add("z"))
    assert db.list_sent()[0].actions[0].update.actions == (Add(path("tags"), encode_set({"z"})),)
    assert (await db.get_one(Note, "a")).tags == {"y", "z"}


@everywhere
async def test_members_are_added_to_and_removed_from_an_empty_set_which_is_stored_as_a_list(db: Db) -> None:
    await arrange(db, Note(id="a"))
    await update(db, Note.key("a"), col(Note.tags).discard("x"))
    assert (await db.get_one(Note, "a")).tags == set()
    await update(db, Note.key("a"), col(Note.tags).add("x"))
    assert (await db.get_one(Note, "a")).tags == {"x"}
    await update(db, Note.key("a"), col(Note.tags).discard("x"))
    assert (await db.get_one(Note, "a")).tags == set()
    await update(db, Note.key("a"), col(Note.tags).add("y", "z"))
    assert (await db.get_one(Note, "a")).tags == {"y", "z"}


@everywhere
async def test_a_set_that_loses_its_last_member_is_empty_even_if_its_default_is_not(db: Db) -> None:
    await arrange(db, Note(id="a", likes={1}, readers={"ada"}))
    await update(db, Note.key("a"), col(Note.likes).discard(1), col(Note.readers).discard("ada", "bob"))
    found = await db.get_one(Note, "a")
    assert (found.likes, found.readers) == (set(), set())
    await update(db, Note.key("a"), col(Note.likes).add(1), col(Note.readers).remove())
    await update(db, Note.key("a"), col(Note.likes).add(2), col(Note.readers).discard("ada"))
    found = await db.get_one(Note, "a")
    assert (found.likes, found.readers) == ({1, 2}, None)
    await update(db, Note.key("a"), col(Note.likes).remove(), col(Note.readers).add("bob"))
    await update(db, Note.key("a"), col(Note.likes).add(5))
    found = await db.get_one(Note, "a")
    assert (found.likes, found.readers) == ({0, 5}, {"bob"})


@everywhere
async def test_values_inside_a_field_are_set_incremented_and_removed(db: Db) -> None:
    await arrange(db, Note(id="a", address=Address(city="Oslo"), counts={"x": 1}))
    await update(
        db,
        Note.key("a"),
        col(Note.address)["city"].set("Paris"),
        col(Note.address)["street"].set("Rue"),
        col(Note.counts)["x"].increment_by(4),
        col(Note.counts)["y"].increment_by(1),
    )
    found = await db.get_one(Note, "a")
    assert (found.address, found.counts) == (Address(city="Paris", street="Rue"), {"x": 5, "y": 1})
    await update(db, Note.key("a"), col(Note.counts)["x"].remove(), col(Note.address)["street"].remove())
    found = await db.get_one(Note, "a")
    assert (found.address, found.counts) == (Address(city="Paris"), {"y": 1})


@everywhere
async def test_an_update_that_the_stored_value_does_not_allow_is_refused_and_writes_nothing(db: Db) -> None:
    await arrange(db, Note(id="a", views=3, last=["a"], ranks={"x": 1, "y": 2}))
    for refused in (
        col(Note.address)["city"].set("Paris"),
        col(Note.views).increment_by(-4),
        col(Note.score).increment_by(1),
        col(Note.last).append("b", "c"),
        col(Note.ranks)["z"].set(3),
        col(Note.steps).increment_by(4),
    ):
        with expect_failure(InvalidFieldError):
            await update(db, Note.key("a"), refused, col(Note.text).set("changed"))
    assert (await db.get_one(Note, "a")).text == ""
    await update(db, Note.key("a"), col(Note.last).append("b"), col(Note.views).increment_by(-3))
    await update(
        db,
        Note.key("a"),
        *(col(Note.ranks)["x"].remove(), col(Note.ranks)["z"].set(3)),
        col(Note.steps).increment_by(5),
    )
    found = await db.get_one(Note, "a")
    assert (found.ranks, found.steps) == ({"y": 2, "z": 3}, 5)
    with expect_contention():  # incrementing locks a number whose type has rules other than bounds
        async with db.transaction() as tx:
            (await tx.get_one(Note, "a")).field("steps").increment_by(5)
            await meanwhile(db, Note.key("a"), steps=10)


@everywhere
async def test_a_missing_item_is_created_only_with_create_if_missing(db: Db) -> None:
    await arrange(db, Note(id="other"))
    with expect_failure(InvalidModelUpdateError, r"Note\(id='a'\) does not exist"):
        await update(db, Note.key("a"), col(Note.views).increment_by(1))
    for _ in range(2):
        await update(
            db,
            Note.key("a"),
            *(col(Note.views).increment_by(1), col(Note.tags).add("x"), col(Note.text).set("y")),
            create_if_missing={"views": 10, "kept": True},
        )
    found = await db.get_one(Note, "a")
    assert (found.views, found.tags, found.text, found.kept) == (12, {"x"}, "y", True)
    assert (found.log, found.likes, found.address) == ([], {0}, None)


@everywhere
@both_layouts
async def test_create_if_missing_stores_an_item_exactly_as_create_does(db: Db, note: Any) -> None:
    await arrange(db, note(id="a", text="t", tags={"x"}))
    await update(db, note.key("b"), col(note.tags).add("x"), create_if_missing={"text": "t"})
    created, upserted = await db.raw(note.key("a")), await db.raw(note.key("b"))
    assert created is not None
    assert upserted is not None
    keys = {"pk", "_id", "id", "_w"}
    assert {k: v for k, v in created.items() if k not in keys} == {
        k: v for k, v in upserted.items() if k not in keys
    }
    assert created.keys() == upserted.keys()


@in_memory
async def test_a_new_item_must_be_complete(db: Db) -> None:
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError, match="country"):
            tx.update(Visit.key("a"), col(Visit.count).increment_by(1), create_if_missing=True)
        with pytest.raises(InvalidOptionsError, match="create_if_missing"):
            tx.update(Note.key("a"), col(Note.text).set("x"), create_if_missing=1)  # type: ignore[call-overload]
        with pytest.raises(InvalidFieldError, match="part of the key"):
            tx.update(Note.key("a"), col(Note.text).set("x"), create_if_missing={"id": "b"})
    assert db.kinds() == []


@everywhere
async def test_an_expired_item_counts_as_missing(db: Db) -> None:
    later = datetime.now(UTC) + timedelta(days=1000)
    await arrange(db, Visit(id="a", country="fr", city="Lyon", count=7, until=later))
    db.clock.forward(timedelta(days=2000).total_seconds())
    with expect_failure(InvalidModelUpdateError, "does not exist"):
        await update(db, Visit.key("a"), col(Visit.count).increment_by(1))
    with expect_failure(InvalidModelUpdateError, "does not exist"):
        async with db.transaction() as tx:
            tx.delete(Visit.key("a"), where=col(Visit.count) == 7)
    new = {"country": "fr", "city": "Nice"}
    await update(db, Visit.key("a"), col(Visit.count).increment_by(1), create_if_missing=new)
    found = await db.get_one(Visit, "a")
    assert (found.city, found.count, found.until) == ("Nice", 1, None)


# --- concurrent changes -----------------------------------------------------------------------------------


@everywhere
async def test_additions_to_the_same_set_or_list_do_not_conflict(db: Db) -> None:
    await arrange(db, Note(id="a"))  # the set is empty, and stored as a list
    async with db.transaction() as tx:
        note = await tx.get_one(Note, "a")
        note.field("tags").add("x")
        note.field("log").append("first")
        await update(db, note.key, col(Note.tags).add("y"), col(Note.log).append("second"))
        async with db.transaction() as other:
            (await other.get_one(Note, "a")).field("tags").add("z")
    found = await db.get_one(Note, "a")
    assert (found.tags, found.log) == ({"x", "y", "z"}, ["second", "first"])
    async with db.transaction() as tx:
        tx.update(Note.key("a"), col(Note.tags).discard("x", "y", "z"))
        await update(db, Note.key("a"), col(Note.tags).add("w"))
    assert (await db.get_one(Note, "a")).tags == {"w"}


@in_memory
async def test_an_item_that_changes_before_every_write_is_contention(db: Db) -> None:
    await arrange(db, Note(id="a", tags={"w"}))
    raw = await db.raw(Note.key("a"))
    assert raw is not None
    key = {"pk": raw["pk"], "sk": raw["sk"]}
    forms: list[Any] = [{"L": []}, {"SS": ["w"]}]  # an empty set is stored in another form
    commits: list[Any] = []

    def interfere(request: Any) -> None:
        if isinstance(request, TransactWrite):
            form = forms[len(commits) % 2]
            commits.append(request)
            db.recorder.inner.send_blocking(
                UpdateItem(db.table_of(Note), key, Update((Set(path("tags"), Value(form)),)))
            )

    db.recorder.before = interfere
    with expect_contention():
        await update(db, Note.key("a"), col(Note.tags).add("x"))
    assert len(commits) == 11, "planned anew ten times"


@in_memory
async def test_a_missing_item_is_not_confused_with_its_namesake_in_another_table(db: Db) -> None:
    await arrange(db, Namesake(id="a", views=5))
    assert repr(OwnNote.key("a")) == repr(Namesake.key("a"))
    async with db.transaction() as tx:
        tx.update(OwnNote.key("a"), col(OwnNote.views).increment_by(1), create_if_missing=True)
        tx.update(Namesake.key("a"), col(Namesake.views).increment_by(1), create_if_missing=True)
    assert ((await db.get_one(OwnNote, "a")).views, (await db.get_one(Namesake, "a")).views) == (1, 6)


@everywhere
async def test_creating_a_missing_item_costs_one_more_request_and_increments_from_the_default(db: Db) -> None:
    await arrange(db, Note(id="other"))

    async def count() -> None:
        await update(db, Note.key("a"), col(Note.views).increment_by(1), create_if_missing=True)

    await count()
    await count()
    assert db.kinds() == ["TransactWrite", "PutItem", "TransactWrite"]
    assert (await db.get_one(Note, "a")).views == 2


@everywhere
async def test_an_update_does_not_unlock_other_fields_of_a_loaded_item(db: Db) -> None:
    await arrange(db, Note(id="a", tags={"t"}))
    with expect_contention():
        async with db.transaction() as tx:
            note = await tx.get_one(Note, "a")
            assert note.text == ""
            note.field("tags").add("x")
            await meanwhile(db, note.key, text="y")
    assert (await db.get_one(Note, "a")).tags == {"t"}


@in_memory
async def test_a_change_in_place_or_by_assignment_locks_the_field(db: Db) -> None:
    async def in_place(note: Note) -> None:
        note.field("tags").add("x")
        note.tags.add("y")

    async def in_place_first(note: Note) -> None:
        note.tags.add("y")
        note.field("tags").add("x")

    async def both_ways(note: Note) -> None:
        note.field("tags").add("x")
        note.field("tags").discard("t")
        note.field("tags").add("y")

    async def assign(note: Note) -> None:
        note.tags = {"y"}
        note.field("tags").add("x")

    for number, change in enumerate([in_place, in_place_first, both_ways, assign]):
        key = Note.key(str(number))
        await arrange(db, Note(id=str(number), tags={"t"}))
        with expect_contention() as caught:
            async with db.transaction() as tx:
                await change(await tx.get_one(key))
                await update(db, key, col(Note.tags).add("w"))
        assert "tags" in str(caught.value.__cause__)
        async with db.transaction() as tx:
            await change(await tx.get_one(key))
        assert {"x", "y"} <= (await db.get_one(key)).tags


@everywhere
async def test_appending_to_a_list_that_another_transaction_filled_fails_in_the_second_attempt(
    db: Db,
) -> None:
    await arrange(db, Note(id="a"))
    attempts = []

    async def append(tx: Any) -> None:
        attempts.append(1)
        (await tx.get_one(Note, "a")).field("last").append("x")
        if len(attempts) == 1:
            await update(db, Note.key("a"), col(Note.last).append("y", "z"))

    with expect_failure(InvalidFieldError, "last"):
        await db.run(append)
    assert len(attempts) == 2


@in_memory
async def test_a_field_handle_shows_its_changes_on_the_item_at_once(db: Db) -> None:
    await arrange(db, Note(id="a", log=["one"]))
    async with db.transaction() as tx:
        note = await tx.get_one(Note, "a")
        held = note.log
        note.field("log").append("two")
        note.field("log").append("three")
        note.field("readers").add("ada")
        assert held == note.log == ["one", "two", "three"]
        assert note.readers == {"ada"}
        (change,) = tx.changes()
        assert change.after is not None
        assert change.after["log"] == ["one", "two", "three"]
        new = tx.create(Note, id="b")
        new.field("tags").add("x")
        with pytest.raises(InvalidFieldError, match="valid string"):
            note.field("tags").add(1)
    assert (await db.get_one(Note, "b")).tags == {"x"}
    assert (await db.get_one(Note, "a")).readers == {"ada"}
    plain = Note(id="c")
    plain.field("log").append("x")
    assert plain.log == ["x"]


# --- repeated requests ------------------------------------------------------------------------------------


@everywhere
async def test_a_request_that_arrives_twice_counts_once(db: Db) -> None:
    await arrange(db, Note(id="a"))
    updates = col(Note.log).append("x"), col(Note.views).increment_by(1), col(Note.tags).add("t")
    for key in (Note.key("a"), Note.key("new")):
        db.faults.inject(Fault.TWICE, Fault.TWICE)
        await update(db, key, *updates, create_if_missing=True)
        found = await db.get_one(key)
        assert (found.log, found.views, found.tags) == (["x"], 1, {"t"})
    async with db.transaction() as tx:
        (await tx.get_one(Note, "a")).field("log").append("y")
        db.faults.inject(Fault.TWICE)
    assert (await db.get_one(Note, "a")).log == ["x", "y"]


# --- conditions -------------------------------------------------------------------------------------------


@everywhere
async def test_where_is_a_condition_of_update_put_and_delete(db: Db) -> None:
    await arrange(db, Note(id="a", views=3, text="x"))
    key, enough = Note.key("a"), col(Note.views) >= 3
    await update(db, key, col(Note.views).increment_by(-1), where=enough & (col(Note.text) != "y"))
    message = r"Note\(id='a'\)\.views is 2, expected >= 3"
    with expect_failure(InvalidModelUpdateError, message):
        await update(db, key, col(Note.views).increment_by(-1), where=enough)
    with expect_failure(InvalidModelUpdateError, message):
        async with db.transaction() as tx:
            tx.update(Note, {"id": "a", "text": "x"}, {"text": "y"}, where=enough)
    with expect_failure(InvalidModelUpdateError, message):
        async with db.transaction() as tx:
            tx.create_or_put(Note, {"id": "a"}, {"text": "y"}, where=enough)
    with expect_failure(InvalidModelUpdateError, message):
        async with db.transaction() as tx:
            tx.delete(key, where=enough)
    with expect_failure(InvalidModelUpdateError, "does not exist"):
        async with db.transaction() as tx:
            tx.delete(Note.key("b"), where=enough)
    found = await db.get_one(Note, "a")
    assert (found.text, found.views) == ("x", 2)
    async with db.transaction() as tx:
        tx.create_or_put(Note, {"id": "a"}, {"text": "y"}, where=col(Note.views) < 3)
        tx.create_or_put(Note, {"id": "b"}, {"text": "y"}, where=col(Note.views) < 3)
    async with db.transaction() as tx:
        tx.delete(key, where=col(Note.text) == "y")
        tx.update(Note, {"id": "b", "text": "y"}, {"text": "z"}, where=col(Note.tags).size == 0)
    assert await db.get(Note, "a") is None
    assert (await db.get_one(Note, "b")).text == "z"


@everywhere
async def test_the_error_for_an_unmet_condition_names_each_difference(db: Db) -> None:
    await arrange(db, Note(id="a", views=3, tags={"x"}), Note(id="b"))
    where = (col(Note.views) > 3) & (col(Note.score) != None) & (col(Note.text) == "x")  # noqa: E711
    with expect_failure(InvalidModelUpdateError) as caught:
        await update(db, Note.key("a"), col(Note.text).set("y"), where=where)
    assert caught.value.message == (
        "Note(id='a').views is 3, expected > 3; Note(id='a').score is absent, expected a value; "
        "Note(id='a').text is '', expected 'x'"
    )
    either = (col(Note.views) > 3) | ~col(Note.tags).contains("x")
    with expect_failure(InvalidModelUpdateError, r"does not meet .*: views is 3, tags is \{'x'\}"):
        await update(db, Note.key("a"), col(Note.text).set("y"), where=either)
    with expect_failure(TransactionErrors):
        async with db.transaction() as tx:
            for id in ("a", "b"):
                tx.update(Note.key(id), col(Note.text).set("y"), where=col(Note.views) > 3)


@in_memory
async def test_mistakes_are_refused_before_anything_is_sent(db: Db) -> None:
    await arrange(db, Note(id="a"))
    async with db.transaction() as tx:
        key = Note.key("a")
        for updates, text in [
            ((), "changes nothing"),
            (("x",), "not a change of a field"),
            ((col(Person.mail).set("x"),), "another model"),
            ((col(Note.log).append("x"), col(Note.log).remove()), "same value"),
        ]:
            with pytest.raises(InvalidRequestError, match=text):
                tx.update(key, *updates)  # type: ignore[call-overload]
        with pytest.raises(InvalidFieldError, match="another model"):
            tx.update(key, col(Note.text).set("x"), where=col(Person.mail) == "x")
        with pytest.raises(InvalidRequestError, match="must be a condition"):
            tx.update(key, col(Note.text).set("x"), where=True)  # type: ignore[call-overload]
        with pytest.raises(InvalidRequestError, match="before_commit"):
            tx.update(Hooked.key("a"), col(Hooked.n).increment_by(1))
        tx.update(key, col(Note.text).set("x"))
        with pytest.raises(ModelTrackedTwiceError):
            tx.update(key, col(Note.text).set("x"))
    async with db.transaction() as tx:
        note = await tx.get_one(Note, "a")
        with pytest.raises(InvalidRequestError, match="was read or created"):
            tx.delete(note, where=col(Note.views) == 0)


# --- derived attributes -----------------------------------------------------------------------------------


@everywhere
async def test_a_field_of_an_index_is_set_only_together_with_the_other_fields_of_the_index(db: Db) -> None:
    await arrange(db, Visit(id="a", country="fr", city="Lyon"), Person(id="p", mail="a@b"))
    key, moved = Visit.key("a"), col(Visit.city).set("Nice")
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError, match=r"country.*value is needed too"):
            tx.update(key, moved)
        with pytest.raises(InvalidFieldError, match="unique"):
            tx.update(Person.key("p"), col(Person.mail).set("x@y"))
    assert db.kinds() == []
    await update(db, key, moved, where=col(Visit.country) == "fr")
    assert [row.id for row in await db.query(Visit, index="by_place", country="fr", city="Nice").all()] == [
        "a"
    ]
    await update(db, key, moved, col(Visit.country).set("it"), col(Visit.count).increment_by(1))
    assert [row.id for row in await db.query(Visit, index="by_place", country="it", city="Nice").all()] == [
        "a"
    ]
    until = datetime(2100, 1, 1, tzinfo=UTC)
    await update(db, key, col(Visit.until).set(until))
    raw = await db.raw(key)
    assert raw is not None
    assert raw["_ttl"] == {"N": "4102444800"}
    await update(db, key, col(Visit.until).remove())
    assert "_ttl" not in ((await db.raw(key)) or {})


@everywhere
async def test_a_template_is_rendered_from_new_values_and_expected_ones(db: Db) -> None:
    key = Order.key(customer="ada", number=1)
    await update(db, key, col(Order.lines).append("tea"), create_if_missing=True)
    with pytest.raises(InvalidFieldError, match=r"placed.*value is needed too"):
        await update(db, key, col(Order.status).set("sent"))
    await update(db, key, col(Order.status).set("sent"), where=col(Order.placed) == "2026")
    (found,) = await db.query(Order, index="gsi1", status="sent").all()
    assert (found.key, found.lines, found.status) == (key, ["tea"], "sent")
    assert await db.query(Order, index="gsi1", status="new").all() == []


class Animal(Model):
    id: Key[str]
    legs: int = 4
    name: str = ""


class Bird(Animal, indexes=[Index("by_legs", ["legs"])]):
    pass


@everywhere
async def test_an_update_through_another_model_is_refused_if_it_would_break_the_items_indexes(db: Db) -> None:
    await arrange(db, Bird(id="b", legs=2), Animal(id="a"))
    legs = col(Animal.legs)
    for refused in (legs.set(3), legs.increment_by(1)):
        with expect_failure(InvalidModelUpdateError, "is of the model Bird"):
            await update(db, Animal.key("b"), refused)
        await update(db, Animal.key("a"), refused)
    with expect_failure(InvalidModelUpdateError, "is of the model Bird"):
        async with db.transaction() as tx:
            tx.update(Animal, {"id": "b", "legs": 2}, {"legs": 3})
    with expect_failure(InvalidModelUpdateError, "is of the model Animal"):
        await update(db, Bird.key("a"), col(Bird.legs).set(2))
    await update(db, Animal.key("b"), col(Animal.name).set("x"))
    await update(db, Bird.key("b"), col(Bird.legs).set(3))
    assert [bird.name for bird in await db.query(Bird, index="by_legs", legs=3).all()] == ["x"]


@everywhere
async def test_an_update_releases_and_reserves_unique_values(db: Db) -> None:
    await arrange(db, Person(id="p", mail="a@b"))
    await update(db, Person.key("p"), col(Person.mail).set("x@y"), where=col(Person.mail) == "a@b")
    await update(db, Person.key("q"), col(Person.tags).add("t"), create_if_missing={"mail": "a@b"})
    with expect_failure(UniqueViolationError):
        await update(db, Person.key("r"), col(Person.tags).add("t"), create_if_missing={"mail": "x@y"})
    await update(db, Person.key("q"), col(Person.tags).add("u"), create_if_missing={"mail": "x@y"})
    assert (await db.get_one(Person, "q")).mail == "a@b"


@in_memory
async def test_an_update_that_changes_nothing_is_a_condition_check(db: Db) -> None:
    await arrange(db, Note(id="a", text="x"))
    await update(db, Note.key("a"), col(Note.text).set("x"), where=col(Note.text) == "x")
    (write,) = db.list_sent()
    assert isinstance(write.actions[0], ConditionCheck)


def encode_set(members: set[str]) -> Any:
    return value(members)
