"""Our models and those of PynamoDB 6.1 and dyntastic 0.18, on tables that the two libraries created."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from interop_peers import REGION, Peers, PeersError, start_peers

from holdall import Database, Key, Model, SortKey, Template, Transaction, col, field
from holdall.core import GetItem, encode_item
from holdall.errors import TransactionFailedError

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LATER = datetime(2126, 1, 1, tzinfo=UTC)
TIMES = 12


class Visit(Model, table="visits", layout="plain", ttl="expires"):
    user: Key[str]
    at: SortKey[datetime] = field(stored="pynamodb")
    expires: datetime | None = field(default=None, stored="epoch")
    settings: dict[str, Any] | None = field(default=None, stored="json")
    admin: bool = False
    legacy: bool = field(default=False, stored="number")
    photo: bytes | None = field(default=None, stored="base64")
    sound: bytes | None = None
    tags: set[str] = field(default_factory=set)
    mine: int = 0
    theirs: int = 0
    version: int = field(default=0, version=True)


class Note(Model, table="notes", layout="plain"):
    id: Key[str]
    at: datetime = field(stored="iso")
    day: date
    text: str | None = None
    places: list[dict[str, int]] = field(default_factory=list)


class Animal(Model, table="animals", layout=Template({"id": "{id}"}, type="cls")):
    id: Key[int]


class Dog(Animal, name="dog"):
    tricks: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def peers() -> Iterator[Peers]:
    with start_peers(f"peers-{uuid4().hex}-") as program:
        program("create_tables")
        yield program


@pytest.fixture(scope="module")
def db(peers: Peers) -> Iterator[Database]:
    with Database(
        f"dynamodb://unused?endpoint={peers.url}&region={REGION}",
        table_prefix=peers.prefix,
        credentials=lambda: ("test", "test", None, None),
    ) as database:
        yield database


def raw(db: Database, peers: Peers, table: str, **key: object) -> Any:
    """An item exactly as it is stored."""
    return db.send(GetItem(peers.prefix + table, encode_item(key))).item


def race(
    peers: Peers, db: Database, adds: Sequence[Callable[[Transaction], None]], theirs: str, **target: Any
) -> int:
    """Run transactions in turn while the other program changes the same item; return how many committed."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(peers, theirs, **target, times=TIMES)
        done = 0
        while not (other.done() and done):
            try:
                db.run(adds[done % len(adds)])
            except TransactionFailedError:
                continue  # the other program was faster every time
            done += 1
        other.result()
        return done


VALUES: dict[str, Any] = {
    "settings": {"theme": "dark", "sizes": [1, 2.5, None]},
    "admin": True,
    "tags": ["a", "b"],
}


def test_both_programs_store_the_same_item(peers: Peers, db: Database) -> None:
    times = {"at": NOON.isoformat(), "expires": LATER.isoformat()}
    peers("save_visit", user="pyn", **times, legacy=1, content="bytes", **VALUES)
    values: dict[str, Any] = {**VALUES, "tags": {"a", "b"}, "photo": b"bytes", "sound": b"bytes"}
    with db.transaction() as tx:
        tx.create(Visit, user="own", at=NOON, expires=LATER, legacy=True, **values)
    found = peers("get_visit", user="own", at=NOON.isoformat())
    assert (found["photo"], found["sound"]) == ("bytes", "bytes")
    spelt = "2026-01-02T12:00:00.000000+0000"
    theirs, ours = (
        raw(db, peers, "visits", user="pyn", at=spelt),
        raw(db, peers, "visits", user="own", at=spelt),
    )
    assert theirs is not None
    theirs["tags"]["SS"].sort()
    ours["tags"]["SS"].sort()
    assert {**theirs, "user": {"S": "own"}} == ours


def test_we_read_change_and_delete_what_pynamodb_wrote(peers: Peers, db: Database) -> None:
    peers("save_visit", user="a", at=NOON.isoformat(), expires=LATER.isoformat(), legacy=1, **VALUES)
    with db.transaction() as tx:
        visit = tx.get_one(Visit, user="a", at=NOON)
        assert (visit.expires, visit.settings, visit.admin) == (LATER, VALUES["settings"], True)
        assert (visit.legacy, visit.tags, visit.version) == (True, {"a", "b"}, 1)
        assert visit.settings is not None
        visit.settings["theme"] = "light"
        visit.expires = LATER + timedelta(seconds=1.5)
        visit.legacy = False
    found = peers("get_visit", user="a", at=NOON.isoformat())
    assert found["settings"] == {"theme": "light", "sizes": [1, 2.5, None]}
    assert datetime.fromisoformat(found["expires"]) == LATER + timedelta(seconds=1)
    assert (found["legacy"], found["tags"], found["version"]) == (0, ["a", "b"], 2)
    assert [visit.user for visit in db.query(Visit, user="a", sort=Visit.at >= NOON)] == ["a"]
    with db.transaction() as tx:
        tx.delete(tx.get_one(Visit, user="a", at=NOON))
    with pytest.raises(PeersError, match="DoesNotExist"):
        peers("get_visit", user="a", at=NOON.isoformat())


def test_pynamodb_reads_changes_and_deletes_what_we_wrote(peers: Peers, db: Database) -> None:
    with db.transaction() as tx:
        tx.create(Visit, user="b", at=NOON, settings={"n": 1}, tags={"x"})
    found = peers("get_visit", user="b", at=NOON.isoformat())
    assert (found["settings"], found["tags"], found["expires"], found["version"]) == (
        {"n": 1},
        ["x"],
        None,
        1,
    )
    peers("change_visit", user="b", at=NOON.isoformat(), settings={"n": 2}, tags=None)
    with db.transaction() as tx:
        tx.create(Visit, user="empty", at=NOON)
    assert peers("get_visit", user="empty", at=NOON.isoformat())["tags"] == []
    visit = db.get_one(Visit, user="b", at=NOON)
    assert (visit.settings, visit.tags, visit.version) == ({"n": 2}, set(), 2)
    peers("delete_visit", user="b", at=NOON.isoformat())
    assert db.get(Visit, user="b", at=NOON) is None


def test_a_transaction_runs_again_if_pynamodb_changes_its_item_first(peers: Peers, db: Database) -> None:
    peers("save_visit", user="c", at=NOON.isoformat())
    attempts = []

    def change(tx: Transaction) -> None:
        visit = tx.get_one(Visit, user="c", at=NOON)
        attempts.append(visit.theirs)
        if len(attempts) == 1:
            peers("change_visit", user="c", at=NOON.isoformat(), theirs=7)
        visit.mine = visit.theirs + 1

    db.run(change)
    assert attempts == [0, 7]
    found = peers("get_visit", user="c", at=NOON.isoformat())
    assert (found["mine"], found["theirs"], found["version"]) == (8, 7, 3)


def test_concurrent_writes_with_pynamodb_lose_nothing(peers: Peers, db: Database) -> None:
    peers("save_visit", user="d", at=NOON.isoformat())

    key = Visit.key(user="d", at=NOON)

    def add(tx: Transaction) -> None:
        tx.get_one(key).mine += 1

    def add_without_lock(tx: Transaction) -> None:
        tx.get_one(key).field("mine").increment_by(1)

    def add_without_reading(tx: Transaction) -> None:
        tx.update(key, col(Visit.mine).increment_by(1))

    adds = [add, add_without_lock, add_without_reading]
    ours = race(peers, db, adds, "add_to_visit", user="d", at=NOON.isoformat())
    visit = db.get_one(key)
    assert (visit.mine, visit.theirs, visit.version) == (ours, TIMES, 1 + ours + TIMES)


def test_derived_models_of_pynamodb_are_derived_models_of_ours(peers: Peers, db: Database) -> None:
    peers("save_dog", id=1, tricks=["sit"])
    with db.transaction() as tx:
        rex = tx.get_one(Animal, 1)
        assert isinstance(rex, Dog)
        rex.tricks.add("roll")
        tx.create(Dog, id=2, tricks={"roll", "sit"})
    theirs, ours = (raw(db, peers, "animals", id=id) for id in (1, 2))
    assert {**theirs, "id": ours["id"]} == ours
    assert peers("get_animal", id=1) == peers("get_animal", id=2) == ["Dog", ["roll", "sit"]]


def test_dyntastic_and_we_read_each_other(peers: Peers, db: Database) -> None:
    moments = [NOON, NOON + timedelta(microseconds=5)]
    for number, moment in enumerate(moments):
        values = {"at": moment.isoformat(), "day": "2026-01-02", "places": [{"x": number}]}
        peers("save_note", id=f"dyn{number}", **values)
        with db.transaction() as tx:
            tx.create(Note, id=f"own{number}", at=moment, day=date(2026, 1, 2), places=[{"x": number}])
        theirs, ours = (raw(db, peers, "notes", id=f"{who}{number}") for who in ("dyn", "own"))
        assert {**theirs, "id": ours["id"]} == ours
        assert db.get_one(Note, id=f"dyn{number}").at == moment
        found = peers("get_note", id=f"own{number}")
        assert datetime.fromisoformat(found["at"]) == moment
        assert (found["day"], found["text"], found["places"]) == ("2026-01-02", None, [{"x": number}])


def test_concurrent_changes_of_one_field_with_dyntastic_lose_nothing(peers: Peers, db: Database) -> None:
    db.create(Note, id="race", at=NOON, day=date(2026, 1, 2), text="0")

    def add(tx: Transaction) -> None:
        note = tx.get_one(Note, "race")
        note.text = str(int(note.text or 0) + 1)

    ours = race(peers, db, [add], "add_to_note", id="race")
    assert db.get_one(Note, "race").text == str(ours + TIMES)
