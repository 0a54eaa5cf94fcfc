"""The audit finds the same faults however many suspects it checks at a time; it ignores blobs that change meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdall import Database, Key, Model, has_many_attached
from holdall.attachments.upkeep import audit
from holdall.backends.memory import MemoryService
from holdall.core import DeleteItem, Item, PutItem, Scan


class Shelf(Model, name="AuditedShelf"):
    name: Key[str]
    files = has_many_attached()


@pytest.fixture
def db() -> Iterator[Database]:
    with Database("memory:") as found:
        found.table.create()
        with found.transaction() as tx:
            for name in "abcdef":
                shelf = tx.create(Shelf, name=name)
                for size in (1, 2):
                    shelf.files.attach((name * size).encode(), filename=f"{size}.txt")
        yield found


def rows(db: Database, entity: str) -> list[Item]:
    items = [item for page in db.pages(Scan(db.table.name)) for item in page.items]
    return [item for item in items if item.get("as_entity") == {"S": entity}]


def damage_items(db: Database) -> None:
    """Cause wrong counts, missing references, missing blobs and missing attachments."""
    table, blobs = db.table.name, rows(db, "Blob")
    of_blob = {item["as_blob_id"]["S"]: item for item in rows(db, "Attachment")}
    orphaned = [of_blob[blob["as_id"]["S"]] for blob in blobs[8:10]]
    for blob in blobs[:3]:
        db.send(PutItem(table, {**blob, "as_attachments_count": {"N": "5"}}))
    for blob in blobs[3:6]:
        db.send(
            PutItem(table, {name: value for name, value in blob.items() if not name.startswith("hd_ref_")})
        )
    for item in (*blobs[6:8], *orphaned):
        db.send(DeleteItem(table, {name: item[name] for name in ("pk", "sk")}))


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_number_of_suspects_at_a_time_does_not_matter(
    db: Database, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    assert db.blobs.check().findings == ()
    damage_items(db)
    whole = db.blobs.check()
    assert {each.problem for each in whole.findings} >= {"count", "references", "row"}
    monkeypatch.setattr(audit, "_MOST_SUSPECTS", most)
    parts = db.blobs.check()
    assert (parts.blobs, parts.attachments) == (whole.blobs, whole.attachments) == (10, 10)
    assert sorted(each.message for each in parts.findings) == sorted(each.message for each in whole.findings)
    assert db.blobs.check(repair=True).repaired == len(whole.findings)
    assert db.blobs.check().findings == ()


class MeddlingService(MemoryService):
    """A file service that calls a function before it describes the first object."""

    meddle: Callable[[], object] | None = None

    def send_blocking(self, request: Any) -> Any:
        if type(request).__name__ == "HeadObject" and self.meddle is not None:
            meddle, self.meddle = self.meddle, None
            meddle()
        return super().send_blocking(request)


def test_a_blob_that_is_purged_meanwhile_is_not_a_finding() -> None:
    files = MeddlingService()
    with Database("memory:", files=files) as db:
        db.table.create()
        with db.transaction() as tx:
            tx.create(Shelf, name="a").files.attach(b"bytes", filename="a.txt")

        def purge() -> None:
            with db.transaction() as tx:
                tx.get_one(Shelf, name="a").files.purge()

        files.meddle = purge
        report = db.blobs.check()
        assert (report.blobs, report.findings) == (1, ())
        assert list(db.files.list()) == []
