"""``db.get_stored``: an item exactly as its table stores it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdall import Archive, Database, Key, Model, SortKey, field
from holdall.errors import InvalidOptionsError


class Parcel(Model, name="StoredParcel", archive=Archive(timestamp="sent_at", after_days=30), ttl="until"):
    number: Key[str]
    line: SortKey[int]
    code: str = field(default="", hidden=True)
    sent_at: datetime
    until: datetime | None = None


class Stop(Model, table="stored-stops", layout="plain"):
    name: Key[str]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database("memory:", files=f"file:{tmp_path}", secret="a secret of some length") as found:
        yield found


def test_get_stored_returns_all_attributes_even_of_an_expired_item(db: Database) -> None:
    now = datetime.now(UTC)
    db.create(Parcel, number="a", line=7, code="hidden", sent_at=now, until=now - timedelta(days=1))
    stored = db.get_stored(Parcel.key(number="a", line=7))
    assert stored is not None
    assert stored.table == db.table.name
    assert stored.key == {"pk": {"S": "StoredParcel#a"}, "sk": {"S": "p5017"}}
    assert stored.key.items() <= stored.attributes.items()
    assert stored.attributes["code"] == {"S": "hidden"}
    assert stored.size > 40
    assert not stored.archived
    assert db.get(Parcel, number="a", line=7) is None, "it has expired"


def test_get_stored_returns_the_pointer_of_an_archived_item(db: Database) -> None:
    db.create(Parcel, number="b", line=1, code="c", sent_at=datetime.now(UTC) - timedelta(days=60))
    db.archive.run(Parcel, force=True)
    stored = db.get_stored(Parcel.key(number="b", line=1))
    assert stored is not None
    assert stored.archived
    assert "_archive" in stored.attributes
    assert "code" not in stored.attributes


def test_get_stored_works_async_and_in_a_models_own_table(db: Database) -> None:
    db.create(Stop, name="x")

    async def main() -> None:
        stored = await db.aio.get_stored(Stop.key("x"))
        assert stored is not None
        assert (stored.table, stored.key, stored.archived) == ("stored-stops", {"name": {"S": "x"}}, False)
        assert await db.aio.get_stored(Stop.key("y")) is None

    asyncio.run(main())


def test_anything_but_a_key_is_refused(db: Database) -> None:
    with pytest.raises(InvalidOptionsError, match="get_stored takes a key, not 'x'"):
        db.get_stored("x")  # type: ignore[arg-type]
