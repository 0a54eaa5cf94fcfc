"""Indexes of tables: which attributes are stored, which an index contains, and what happens if an index is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from queries_rig import Db, Watch, arrange, everywhere, fresh, in_memory, on_servers, raw, raw_key, table_of

from holdall import Database, Index, Key, Model, SortKey, col, field
from holdall.backends.configuration import open_backend
from holdall.core import (
    AddIndex,
    CreateTable,
    DescribeTable,
    IndexSchema,
    KeyAttribute,
    Projection,
    PutItem,
    Request,
    TableDescription,
    TableSchema,
)
from holdall.errors import (
    ConfigurationError,
    FrozenItemError,
    InvalidFieldError,
    InvalidOptionsError,
    ModelDefinitionError,
)

# --- the JavaScript library's attributes ------------------------------------------------------------------

VECTORS = Path(__file__).parents[2] / "fixtures" / "models" / "model_keys.jsonl"


class Pay(
    Model,
    table="Pay",
    indexes=[
        Index("byPlayer", ["player"], ["payout", "admin"]),
        Index("byAdmin", ["admin"], ["payout"]),
        Index("byStatus", ["status"]),
        Index("byTags", ["tags"], sparse=True),
    ],
):
    player: Key[str]
    admin: Key[str]
    payout: int
    status: bool
    tags: list[Any] | None = None
    meta: dict[str, Any] | None = None


def read_vectors() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        vector = json.loads(line)
        if vector.get("item") == "Pay":
            yield vector["in"], vector["out"]


@everywhere
async def test_items_are_stored_exactly_as_the_javascript_library_stores_them(db: Db) -> None:
    vectors = list(read_vectors())
    assert len(vectors) >= 2
    async with db.transaction() as tx:
        for values, _ in vectors:
            tx.create_or_put(Pay, {}, values)
    for values, stored in vectors:
        assert await raw(db, Pay.key(player=values["player"], admin=values["admin"])) == stored


@everywhere
async def test_every_kind_of_index_attribute_can_be_queried(db: Db) -> None:
    """The attribute of a field, and attributes computed for a key part, a boolean, a list, and several fields."""
    name = fresh("pay")
    rows = [
        Pay(player=name, admin=f"{name}b", payout=9, status=True, tags=[1, name]),
        Pay(player=f"{name}2", admin=f"{name}b", payout=10, status=False),
        Pay(player=f"{name}3", admin=f"{name}b", payout=-3, status=True),
    ]
    await arrange(db, *rows)

    async def find(**question: Any) -> list[int]:
        return [row.payout for row in await db.query(Pay, **question).all()]

    assert await find(index="byAdmin", admin=f"{name}b") == [-3, 9, 10]
    assert await find(index="byAdmin", admin=f"{name}b", sort=col(Pay.payout) > -3) == [9, 10]
    assert await find(index="byPlayer", player=name) == [9]
    both = (Pay.admin == f"{name}b") & (col(Pay.payout) == 9)
    assert await find(index="byPlayer", player=name, sort=both) == [9]
    assert await find(index="byTags", tags=[1, name]) == [9]
    assert await find(index="byTags", tags=[name, 1]) == []
    assert 9 in await find(index="byStatus", status=True, where=col(Pay.payout) == 9)


# --- projections ------------------------------------------------------------------------------------------


class Film(
    Model,
    table="Film",
    indexes=[
        Index("keys", ["year_of", "kind_of"], ["seen", "score_of"], include=[]),
        Index("titles", ["kind_of"], ["minutes"], include=["title"]),
    ],
):
    """Names with underscores, and numbers as text: values recovered from index attributes must be exact."""

    studio: Key[str]
    number: SortKey[int]
    year_of: str = "2026"
    kind_of: str = "7"
    seen: bool = False
    score_of: float = 1.5
    title: str = "untitled"
    minutes: int = 90
    cast: list[str] = field(default_factory=list)


FILM: dict[str, Any] = {
    "kind_of": "007",
    "year_of": "12",
    "seen": True,
    "score_of": 1e-7,
    "title": "M",
    "cast": ["Lorre"],
}


async def create_film(db: Db) -> str:
    studio = fresh("studio")
    await arrange(db, Film(studio=studio, number=3, **{**FILM, "year_of": f"12{studio}"}))
    return studio


@everywhere
async def test_fields_that_are_stored_only_in_index_attributes_are_recovered(db: Db) -> None:
    studio = await create_film(db)
    row = await db.query(Film, index="keys", year_of=f"12{studio}", kind_of="007").one()
    assert row.to_dict() == {
        "studio": studio,
        "number": 3,
        "year_of": f"12{studio}",
        "kind_of": "007",
        "seen": True,
        "score_of": 1e-7,
    }
    assert (row.key, row.kind_of) == (Film.key(studio=studio, number=3), "007")


@everywhere
async def test_the_error_for_a_field_that_was_not_fetched_names_it(db: Db) -> None:
    studio = await create_film(db)
    by_keys = await db.query(Film, index="keys", year_of=f"12{studio}", kind_of="007").one()
    by_title = await db.query(Film, index="titles", kind_of="007", where=col(Film.title) == "M").first()
    assert by_title is not None
    assert (by_title.title, by_title.minutes) == ("M", 90)
    for row, name in ((by_keys, "title"), (by_keys, "minutes"), (by_title, "cast"), (by_title, "seen")):
        with pytest.raises(InvalidFieldError, match=rf"Film\.{name}: it was not fetched"):
            getattr(row, name)
        assert name not in row.to_dict()
        assert name not in repr(row)
    with pytest.raises(FrozenItemError, match="only some fields"):
        by_title.title = "N"


@everywhere
async def test_a_query_of_some_fields_does_not_affect_other_instances_of_the_class(db: Db) -> None:
    studio = await create_film(db)
    await db.query(Film, index="keys", year_of=f"12{studio}", kind_of="007").one()
    whole = await db.get_one(Film, studio=studio, number=3)
    assert (whole.title, whole.minutes, whole.cast) == ("M", 90, ["Lorre"])
    (row,) = await db.query(Film, studio=studio).all()
    assert row.to_dict() == whole.to_dict()
    async with db.transaction() as tx:
        (await tx.get_one(Film, studio=studio, number=3)).minutes = 117
    with pytest.raises(InvalidFieldError, match=r"Film\.title"):
        Film(studio=studio, number=4, title=None)  # type: ignore[arg-type]


@in_memory
async def test_a_query_cannot_use_fields_that_its_index_does_not_contain(db: Db) -> None:
    studio = await create_film(db)
    key: dict[str, Any] = {"index": "keys", "year_of": f"12{studio}", "kind_of": "007"}
    with pytest.raises(InvalidFieldError, match=r"Film\.title.*does not include it"):
        db.query(Film, **key, where=col(Film.title) == "M")
    with pytest.raises(InvalidFieldError, match=r"Film\.kind_of.*does not include it"):
        db.query(Film, **key, where=col(Film.kind_of) == "007")
    with pytest.raises(InvalidFieldError, match=r"Film\.cast.*does not include it"):
        db.query(Film, index="titles", kind_of="007", only=[Film.title, Film.cast])
    with pytest.raises(InvalidFieldError, match=r"Film\.minutes.*part of the key of the index"):
        db.query(Film, index="titles", kind_of="007", where=col(Film.minutes) > 5)
    row = await db.query(Film, index="titles", kind_of="007", only=[Film.minutes, Film.number]).first()
    assert row is not None
    assert (row.minutes, row.number) == (90, 3)
    with pytest.raises(InvalidFieldError, match="not fetched"):
        row.title  # noqa: B018


@everywhere
async def test_partial_rows_are_counted_and_paged_like_whole_ones(db: Db) -> None:
    studio = fresh("studio")
    films = [
        Film(studio=studio, number=n, year_of=studio, seen=n % 2 == 0, score_of=float(n)) for n in range(7)
    ]
    await arrange(db, *films)
    query = db.query(Film, index="keys", year_of=studio, kind_of="7")
    assert await query.count() == 7
    found, after = [], None
    while True:
        page = await query.page(3, after=after)
        found += [(row.seen, row.score_of) for row in page.items]
        if (after := page.next) is None:
            break
    # as text, by the names of the fields: score_of before seen
    assert found == sorted([(f.seen, f.score_of) for f in films], key=lambda pair: pair[1])


class Cipher(Model, table="Cipher", indexes=[Index("byText", ["text"], ["word"])]):
    id: Key[str]
    text: str
    word: str = "w"


@everywhere
async def test_an_index_on_plain_fields_accepts_every_value(db: Db) -> None:
    text = fresh("cipher") + "\0"
    await arrange(db, Cipher(id=text.strip("\0"), text=text, word="a\0b"))
    for sort in (
        None,
        col(Cipher.word) == "a\0b",
        col(Cipher.word) > "a",
        col(Cipher.word).begins_with("a\0"),
    ):
        assert await db.query(Cipher, index="byText", text=text, sort=sort).count() == 1


# --- expiry -----------------------------------------------------------------------------------------------


class Visit(
    Model,
    table="Visit",
    ttl="until",
    indexes=[Index("byRoom", ["room"], ["until"]), Index("byGuest", ["guest"], include=["until"])],
):
    id: Key[str]
    room: str = ""
    guest: str = ""
    until: int = 0


@everywhere
async def test_expired_rows_are_filtered_from_an_index_that_is_sorted_by_expiry(db: Db) -> None:
    """The store cannot filter by the keys of the index that it reads, so Holdall filters the rows."""
    room, now = fresh("room"), int(datetime.now(UTC).timestamp())
    times = {"past": now - 60, "soon": now + 600, "later": now + 6000, "never": 0, "long ago": 1000}
    await arrange(db, *(Visit(id=f"{room}{id}", room=room, guest=room, until=t) for id, t in times.items()))
    query = db.query(Visit, index="byRoom", room=room)
    names = ["never", "long ago", "soon", "later"]
    assert [row.id.removeprefix(room) for row in await query.all()] == names
    assert await query.count() == 4
    soon = await db.query(Visit, index="byRoom", room=room, sort=col(Visit.until) >= now - 70).first()
    assert soon is not None
    assert soon.id == f"{room}soon"
    by_guest = await db.query(Visit, index="byGuest", guest=room).all()
    assert {row.id.removeprefix(room) for row in by_guest} == {*names}


@in_memory
async def test_an_index_that_does_not_contain_the_expiry_cannot_be_queried(db: Db) -> None:
    class Stay(Model, table="Stay", ttl="until", indexes=[Index("byRoom", ["room"], include=[])]):
        id: Key[str]
        room: str = ""
        until: int = 0

    with pytest.raises(InvalidFieldError, match=r"Stay\.until.*does not include it"):
        db.query(Stay, index="byRoom", room="a")


# --- order and sparseness ---------------------------------------------------------------------------------


class Event(
    Model,
    indexes=[
        Index("by_score", ["kind"], ["score"], slot=1),
        Index("by_time", ["kind"], ["at", "price"], slot=2),
    ],
):
    id: Key[str]
    kind: str | None = None
    score: float | None = None
    at: datetime | None = None
    price: Decimal = Decimal(0)


@everywhere
async def test_an_index_orders_numbers_and_times_by_value(db: Db) -> None:
    kind = fresh("kind")
    scores = [-1e21, -10.5, -10.0, -9.0, -0.1, 0.0, 1e-7, 9.0, 10.0, 99.5, 1e21]
    start = datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    times = [start + timedelta(microseconds=n) for n in range(3)]
    events = [
        Event(id=f"{kind}{n}", kind=kind, score=score, at=times[n % 3], price=Decimal(n) - 5)
        for n, score in enumerate(reversed(scores))
    ]
    await arrange(db, *events)
    assert [row.score for row in await db.query(Event, index="by_score", kind=kind).all()] == scores
    by_time = [(row.at, row.price) for row in await db.query(Event, index="by_time", kind=kind).all()]
    assert by_time == sorted((event.at, event.price) for event in events if event.at is not None)
    middle = (col(Event.at) == times[1]) & (col(Event.price) >= Decimal(0))
    found = await db.query(Event, index="by_time", kind=kind, sort=middle, reverse=True).all()
    assert [row.price for row in found] == [5, 2]


@everywhere
async def test_an_item_that_lacks_a_part_is_not_in_the_index(db: Db) -> None:
    kind = fresh("kind")
    await arrange(db, Event(id=kind, kind=kind), Event(id=f"{kind}2", score=1.0))
    assert await db.query(Event, index="by_score", kind=kind).all() == []
    async with db.transaction() as tx:
        (await tx.get_one(Event, kind)).score = 2.5
    assert [row.id for row in await db.query(Event, index="by_score", kind=kind).all()] == [kind]
    async with db.transaction() as tx:
        (await tx.get_one(Event, kind)).kind = None
    assert await db.query(Event, index="by_score", kind=kind).all() == []
    assert "gsi1_pk" not in await raw(db, Event.key(kind))


class Word(Model, indexes=[Index("by_kind", ["kind"], ["text"])]):
    id: Key[str]
    kind: str
    text: str


@everywhere
async def test_an_item_whose_index_key_is_an_empty_text_is_not_in_the_index(db: Db) -> None:
    """DynamoDB does not allow empty keys; the item is stored without the index attribute."""
    kind = fresh("kind")
    await arrange(db, Word(id=kind, kind=kind, text=""), Word(id=f"{kind}2", kind=kind, text="a"))
    assert [row.text for row in await db.query(Word, index="by_kind", kind=kind).all()] == ["a"]
    assert (await db.get_one(Word, kind)).text == ""


# --- invalid definitions ----------------------------------------------------------------------------------


def test_in_a_models_own_table_an_index_on_an_optional_field_must_be_sparse() -> None:
    with pytest.raises(ModelDefinitionError, match="colour is optional") as caught:

        class Bird(Model, table="Bird", indexes=[Index("byColour", ["colour"])]):
            id: Key[str]
            colour: str | None = None

    assert "sparse=True" in str(caught.value)


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (Index("by#x", ["a"]), "its name is invalid"),
        (Index("", ["a"]), "its name is invalid"),
        (Index(3, ["a"]), "its name is invalid"),  # type: ignore[arg-type]
        (Index("by_x", []), "it has no key"),
        (Index("by_x", "a"), "list of field names"),
        (Index("by_x", ["a"], "b"), "list of field names"),
        (Index("by_x", ["nothing"]), "no field 'nothing'"),
        (Index("by_x", ["a"], ["a"]), "the field 'a' twice"),
        (Index("by_x", ["a"], ["many"]), "has no order"),
        (Index("by_x", ["a"], include=["b"]), "include= and sparse="),
        (Index("by_x", ["a"], sparse=True), "include= and sparse="),
        (Index("by_x", ["a"], slot=0), "slot must be a whole number from 1 to 20"),
        (Index("by_x", ["a"], slot=21), "slot must be a whole number from 1 to 20"),
        (Index("by_x", ["a"], slot=True), "slot must be a whole number from 1 to 20"),
        ("by_x", "must be a list of Index"),
    ],
)
def test_an_invalid_index_is_refused_when_the_class_is_defined(index: Any, problem: str) -> None:
    with pytest.raises(ModelDefinitionError, match=f"Thing:.*{problem}"):

        class Thing(Model, indexes=[index]):
            id: Key[str]
            a: str = ""
            b: str = ""
            many: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (Index("by", ["a"]), "'by' cannot be the name of an index"),
        (Index("x" * 256, ["a"]), "its name is invalid"),
        (Index("by_x", ["a"], slot=1), "slot= does not apply"),
        (Index("by_x", ["a"], include=["c"]), "not a field"),
        (Index("by_x", ["a"], include=["id"]), "part of the key and always included"),
    ],
)
def test_an_invalid_index_of_a_models_own_table_is_refused(index: Index, problem: str) -> None:
    with pytest.raises(ModelDefinitionError, match=f"Thing:.*{problem}"):

        class Thing(Model, table="Thing", indexes=[index]):
            id: Key[str]
            a: str = ""


def test_several_indexes_need_different_slots_and_names() -> None:
    one, two = Index("one", ["a"]), Index("two", ["a"], slot=2)
    for indexes, problem in (
        ([one, two], "needs a slot for each"),
        ([replace(one, slot=2), two], "slot 2 is already used"),
        ([two, replace(two, slot=3)], "two indexes of this name"),
    ):
        with pytest.raises(ModelDefinitionError, match=problem):

            class Thing(Model, indexes=indexes):
                id: Key[str]
                a: str = ""


def test_names_that_would_share_a_computed_attribute_are_refused() -> None:
    with pytest.raises(ModelDefinitionError, match="would hold two different values"):

        class Thing(Model, table="Thing", indexes=[Index("one", ["a_b", "c"]), Index("two", ["a", "b_c"])]):
            id: Key[str]
            a_b: str = ""
            c: str = ""
            a: str = ""
            b_c: str = ""


@in_memory
async def test_the_error_for_an_unknown_index_lists_the_declared_ones(db: Db) -> None:
    with pytest.raises(InvalidOptionsError, match="no index 'by_x'") as caught:
        db.query(Event, index="by_x", kind="a")
    assert "by_score, by_time" in str(caught.value)
    with pytest.raises(InvalidOptionsError, match="no index") as caught:
        db.query(Sample, index="by_x", kind="a")
    assert "it declares no indexes" in str(caught.value)


class Sample(Model):
    id: Key[str]


# --- tables without the index -----------------------------------------------------------------------------


class Ship(Model, indexes=[Index("by_port", ["port"], ["tons"])]):
    id: Key[str]
    port: str = ""
    tons: int = 0


class OwnShip(Model, table="Ship", indexes=[Index("byPort", ["port"], ["tons"], include=["name", "flag"])]):
    id: Key[str]
    port: str = ""
    tons: int = 0
    name: str = ""
    flag: str = ""


@pytest.fixture
def watch() -> Iterator[Watch]:
    """A watch in front of an empty store."""
    backend, *_ = open_backend("memory:", None, None, None, {})
    watch = Watch(backend)
    yield watch
    watch.close()


def open_unmanaged(watch: Watch, *indexes: IndexSchema, own: bool = False) -> Database:
    """Open a database that cannot change its table; the table has these indexes."""
    schema = (
        TableSchema("Ship", KeyAttribute("_id"), indexes=indexes)
        if own
        else TableSchema("holdall", KeyAttribute("pk"), KeyAttribute("sk"), indexes=indexes)
    )
    watch.send_blocking(CreateTable(schema))
    return Database(backend=watch, manage_table=False)


def query_port(db: Database, *, own: bool = False) -> None:
    if own:
        db.query(OwnShip, index="byPort", port="x").all()
    else:
        db.query(Ship, index="by_port", port="x").all()


PORT, TONS = KeyAttribute("gsi1_pk"), KeyAttribute("gsi1_sk")


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (None, "has no index gsi1"),
        (IndexSchema("gsi1", TONS, PORT), "its keys are"),
        (IndexSchema("gsi1", PORT), "its keys are"),
        (IndexSchema("gsi1", PORT, KeyAttribute("gsi1_sk", "N")), "its keys are"),
        (IndexSchema("gsi1", PORT, TONS, Projection("KEYS_ONLY")), "it holds only"),
        (IndexSchema("gsi1", PORT, TONS, Projection("INCLUDE", ("port",))), "it holds only"),
    ],
)
def test_the_error_for_a_missing_or_wrong_index_shows_its_definition(
    watch: Watch, index: IndexSchema | None, problem: str
) -> None:
    db = open_unmanaged(watch, *(() if index is None else (index,)))
    with pytest.raises(ConfigurationError, match=problem) as caught:
        query_port(db)
    assert "Ship cannot use its index 'by_port'" in caught.value.message
    for part in ("gsi1", "gsi1_pk", "gsi1_sk", "manage_table" if index is None else "delete it"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (None, "has no index byPort"),
        (IndexSchema("byPort", KeyAttribute("port"), KeyAttribute("tons", "S")), "its keys are"),
        (
            IndexSchema("byPort", KeyAttribute("port"), KeyAttribute("tons", "N"), Projection("KEYS_ONLY")),
            "it holds only",
        ),
        (
            IndexSchema(
                "byPort", KeyAttribute("port"), KeyAttribute("tons", "N"), Projection("INCLUDE", ("name",))
            ),
            "it holds only",
        ),
    ],
)
def test_the_error_for_a_missing_or_wrong_index_of_a_models_own_table_shows_its_definition(
    watch: Watch, index: IndexSchema | None, problem: str
) -> None:
    db = open_unmanaged(watch, *(() if index is None else (index,)), own=True)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        query_port(db, own=True)
    for part in ("byPort", "port", "tons", "name", "flag", "INCLUDE"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "projection",
    [Projection(), Projection("INCLUDE", ("flag", "name")), Projection("INCLUDE", ("flag", "name", "more"))],
)
def test_an_index_that_contains_at_least_the_required_fields_is_accepted(
    watch: Watch, projection: Projection
) -> None:
    index = IndexSchema("byPort", KeyAttribute("port"), KeyAttribute("tons", "N"), projection)
    query_port(open_unmanaged(watch, index, own=True), own=True)


def test_an_index_is_described_once(watch: Watch) -> None:
    db = open_unmanaged(watch, IndexSchema("gsi1", PORT, TONS))
    for _ in range(3):
        query_port(db)
    assert watch.kinds().count("DescribeTable") == 2  # one for the table, one for the index


def test_an_index_that_is_added_later_is_found(watch: Watch) -> None:
    db = open_unmanaged(watch)
    with pytest.raises(ConfigurationError):
        query_port(db)
    watch.send_blocking(AddIndex("holdall", IndexSchema("gsi1", PORT, TONS)))
    query_port(db)


class StoreCreatingIndexes(Watch):
    """A store that is still creating its indexes."""

    def send_blocking(self, request: Request[Any]) -> Any:
        reply = super().send_blocking(request)
        if isinstance(request, DescribeTable):
            assert isinstance(reply, TableDescription)
            return replace(reply, index_status=dict.fromkeys(reply.index_status, "CREATING"))
        return reply


def test_an_index_that_is_being_created_cannot_be_used_yet() -> None:
    backend, *_ = open_backend("memory:", None, None, None, {})
    db = open_unmanaged(StoreCreatingIndexes(backend), IndexSchema("gsi1", PORT, TONS))
    with db, pytest.raises(ConfigurationError, match="still being created") as caught:
        query_port(db)
    assert caught.value.hint == "wait until it is active, then try again"


class Boat(Model, indexes=[Index("by_port", ["port"], ["tons"], slot=3)]):
    id: Key[str]
    port: str = ""
    tons: int = 0


class OwnBoat(Model, table="Boat", indexes=[Index("byPort", ["port", "flag"], ["tons"], include=["name"])]):
    id: Key[str]
    port: str = ""
    flag: str = ""
    tons: int = 0
    name: str = ""


@on_servers
async def test_an_index_is_added_to_a_managed_table_and_contains_older_items(db: Db) -> None:
    port = fresh("port")
    await arrange(db, *(Boat(id=f"{port}{n}", port=port, tons=n) for n in (10, 9)))
    await arrange(db, *(OwnBoat(id=f"{port}{n}", port=port, tons=n, name="x") for n in (10, 9)))
    assert [row.tons for row in await db.query(Boat, index="by_port", port=port).all()] == [9, 10]
    own = await db.query(OwnBoat, index="byPort", port=port, flag="").all()
    assert [(row.tons, row.name) for row in own] == [(9, "x"), (10, "x")]
    for model, name, names in ((Boat, "gsi3", ()), (OwnBoat, "byPort", ("name",))):
        schema = (await db.send(DescribeTable(table_of(db, model)))).schema
        assert schema.index(name).projection.names == names


# --- old items --------------------------------------------------------------------------------------------


@everywhere
async def test_migrate_adds_old_items_to_an_index_that_consists_of_key_fields(db: Db) -> None:
    name = fresh("old")
    key = Pay.key(player=name, admin=f"{name}b")
    await db.get(key)
    item = {**raw_key(key), "payout": {"N": "3"}, "status": {"BOOL": True}}
    await db.send(PutItem(table_of(db, Pay), item))
    assert await db.query(Pay, index="byAdmin", admin=f"{name}b").all() == []
    report = await db.migrate(Pay)
    assert report.failed == 0
    found = await db.query(Pay, index="byAdmin", admin=f"{name}b").all()
    assert [row.key for row in found] == [key]
    assert await raw(db, key) == {
        **item,
        "_c_player": {"S": name},
        "_c_admin_payout": {"S": f"{name}b\x003"},
        "_c_admin": {"S": f"{name}b"},
        "_c_status": {"S": "true"},
    }
