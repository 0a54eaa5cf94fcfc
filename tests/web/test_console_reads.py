"""Viewing pages writes nothing, even in a console that may write."""

from __future__ import annotations

from pathlib import Path

import pytest
from console_artifact_rig import publish_model
from console_job_rig import store_jobs, store_malformed
from console_rig import Customer, fill_shop, make_picture, open_visitor
from rig.recorder import Recorder
from test_console_browser import OTHER_PAGES, PAGES

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend

MORE = [
    "models/console_rig:Order?index=by_product&key-product=tea",
    "models/console_rig:Order/item?key-customer=ada&key-number=11",
    "blobs?type=ConsoleCustomer&owner={customer}",
    "files/{blob}?view=1",
    "jobs",
    "jobs/job?id={odd}",
    "jobs/job/retry?id={odd}",
    "jobs/job/delete?id={odd}",
]


@pytest.mark.parametrize("read_only", [True, False], ids=["read-only", "read-write"])
def test_viewing_every_page_writes_nothing(tmp_path: Path, read_only: bool) -> None:
    recorder = Recorder(EmbeddedBackend(None))
    with Database(backend=recorder, files=f"file:{tmp_path}", secret="a secret of some length") as db:
        fill_shop(db, items=12)
        jobs = store_jobs(db)
        with db.transaction() as tx:
            item = tx.create(Customer, email="a@example.com")
            item.files.attach(make_picture(), filename="dunes.png")
        (file,) = db.blobs.list("ConsoleCustomer", str(item.id))
        values = {
            "customer": item.id,
            "blob": file.blob.id,
            "model": publish_model(db),
            "dead": jobs["dead"].id,
            "waiting": jobs["waiting"].id,
            "odd": store_malformed(db).id,
        }
        visitor = open_visitor(db, read_only=read_only)
        files = sorted(tmp_path.rglob("*"))
        recorder.forget()
        seen = []
        listed = [each for pages in (*PAGES.values(), *OTHER_PAGES.values()) for each in pages]
        for address in [*listed, *MORE]:
            path = address.format(**values).removeprefix("./")
            seen.append(visitor.get(f"/{path}").status_code)
        assert seen.count(200) > len(seen) / 2
        assert set(seen) == ({200, 403, 404, 422} if read_only else {200, 404, 422})
        assert [each for each in recorder.requests if each.writes] == []
        assert sorted(tmp_path.rglob("*")) == files
