"""The archive on a server that ignores conditions: objects are only deleted by an exclusive sweep, and none is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from rclone_server import BUCKET, CREDENTIALS, start_rclone

from holdall import Database, Key, Model
from holdall.archive import Archive, ArchiveSweep


class Letter(Model, archive=Archive(timestamp="sent_at", key="letters/{partitionKey}")):
    id: Key[str]
    text: str
    sent_at: datetime


def test_only_a_sweep_that_the_caller_declares_exclusive_deletes_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**CREDENTIALS, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    with Database("memory:", files=f"s3://{BUCKET}?endpoint={start_rclone()}") as db:
        with db.transaction() as tx:
            for id in "abc":
                tx.create(Letter, id=id, text=f"Dear {id}", sent_at=datetime(2020, 1, 1, tzinfo=UTC))
        assert db.archive.run(Letter).archived == 3
        assert db.archive.restore(Letter.key("a")) == 1
        with db.transaction() as tx:
            tx.delete(Letter.key("b"))
        left = [file.key for file in db.files.list("letters/")]
        assert left == [f"letters/{id}.json.gz" for id in "abc"]
        assert db.archive.run(Letter).archived == 1
        assert len(list(db.files.list("letters/"))) == 4, (
            "a second run cannot replace the object of the first"
        )

        def sweep(*, exclusive: bool) -> ArchiveSweep:
            grace = timedelta() if exclusive else timedelta(days=7)
            return db.archive.sweep(Letter, older_than=grace, dry_run=False, exclusive=exclusive)

        assert sweep(exclusive=False).deleted == 0
        assert sweep(exclusive=True) == ArchiveSweep(4, 2, 2, 0, 0)
        assert len(list(db.files.list("letters/"))) == 2
        assert [db.get_one(Letter, id).text for id in "ac"] == ["Dear a", "Dear c"]
