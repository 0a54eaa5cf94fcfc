"""The archive as a recurring job: a worker archives some of the items each time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import holdall
from holdall import Archive, AsyncDatabase, Database, Key, Model, current_job
from holdall.archive import ArchiveReport


class Page(Model, archive=Archive(timestamp="written_at", after_days=30, key="pages/{partitionKey}")):
    id: Key[int]
    written_at: datetime
    text: str


def watch(report: ArchiveReport) -> None:
    current_job().check_lease()


@holdall.job("archive-pages", cron="0 3 * * *", retries=2)
def archive_pages() -> None:
    current_job().database(Database).archive.run(Page, max_items=2, progress=watch)


@holdall.job("archive-pages-too", cron="@daily", retries=2)
async def archive_pages_too() -> None:
    await current_job().database(AsyncDatabase).archive.run(Page, max_items=2)


def test_a_nightly_job_archives_some_items_until_all_old_ones_are_archived() -> None:
    with Database("memory:", files="memory:") as db:
        now = datetime.now(UTC)
        with db.transaction() as tx:
            for id in range(7):
                age = timedelta(days=90 if id < 5 else 1)
                tx.create(Page, id=id, written_at=now - age, text="word " * 500)
        cold = []
        for night in (archive_pages, archive_pages_too, archive_pages, archive_pages):
            db.jobs.enqueue(night)
            db.worker().drain()
            cold.append(len(list(db.files.list("pages/"))))
        assert cold == [2, 4, 5, 5]
        assert [each.dead for each in db.jobs.counts().values()] == [0]
        assert sorted(page.id for page in db.scan(Page) if page.text == "word " * 500) == list(range(7))
