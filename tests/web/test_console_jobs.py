"""The console's pages of jobs: what they list and show, and how jobs are retried and deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from console_job_rig import ERROR, store_job, store_jobs
from console_rig import Visitor, make_visitor, open_visitor

from holdall import Database
from holdall.core import PutItem
from holdall.jobs import JobRecord
from holdall.jobs.record import encode_job


@pytest.fixture
def db() -> Iterator[Database]:
    with Database("memory:") as found:
        yield found


@pytest.fixture
def jobs(db: Database) -> dict[str, JobRecord]:
    return store_jobs(db)


@pytest.fixture
def visitor(db: Database) -> Visitor:
    return open_visitor(db, read_only=False)


def test_without_jobs_the_page_says_so(visitor: Visitor) -> None:
    assert "No waiting jobs." in visitor.get("/jobs").text
    assert "No dead jobs match." in visitor.get("/jobs?state=dead&name=x").text
    assert "no job was ever enqueued" in visitor.get("/jobs?count=1").text


@pytest.mark.parametrize("state", ["waiting", "running", "dead"])
def test_jobs_are_listed_by_state(visitor: Visitor, jobs: dict[str, JobRecord], state: str) -> None:
    page = visitor.get(f"/jobs?state={state}").text
    assert [each for each, job in jobs.items() if f"/jobs/job?id={job.id}" in page] == [state]
    assert ("ValueError: the card was refused" in page) == (state == "dead")
    assert ("retry-dead" in page) == (state == "dead")


def test_jobs_are_listed_by_queue_and_name(visitor: Visitor, jobs: dict[str, JobRecord]) -> None:
    link = f"/jobs/job?id={jobs['waiting'].id}"
    assert link in visitor.get("/jobs?queue=slow").text
    assert link in visitor.get("/jobs?name=make-report").text
    assert link not in visitor.get("/jobs?queue=default").text
    assert link not in visitor.get("/jobs?name=send-receipt").text
    assert visitor.get("/jobs?state=lost").status_code == 404
    assert visitor.get("/jobs?queue=%23").status_code == 422


def test_jobs_are_counted_only_on_request(visitor: Visitor, jobs: dict[str, JobRecord]) -> None:
    assert "Queues</h2>" not in visitor.get("/jobs").text
    page = visitor.get("/jobs?count=1").text
    assert 'href="/console/jobs?state=dead&amp;queue=default">1</a>' in page
    assert 'href="/console/jobs?state=waiting&amp;queue=slow">1</a>' in page


def test_a_long_list_is_cut(visitor: Visitor, db: Database) -> None:
    with db.transaction() as tx:
        for number in range(60):
            tx.enqueue("many", number)
    page = visitor.get("/jobs").text
    assert page.count("/jobs/job?id=") == 50
    assert "There are more than these 50." in page
    assert "size=200" in page
    page = visitor.get("/jobs?size=200").text
    assert page.count("/jobs/job?id=") == 60
    assert "There are more" not in page


def test_a_job_is_shown_with_its_arguments_and_its_error(
    visitor: Visitor, jobs: dict[str, JobRecord]
) -> None:
    page = visitor.get(f"/jobs/job?id={jobs['dead'].id}").text
    assert ERROR.replace("<", "&lt;").replace(">", "&gt;") in page
    assert "[\n  &#34;ada&#34;,\n  17\n]" in page
    assert "11 attempts" in page
    assert "report-2026-10" in visitor.get(f"/jobs/job?id={jobs['waiting'].id}").text
    page = visitor.get(f"/jobs/job?id={jobs['running'].id}").text
    assert "30 seconds, until" in page
    assert "job/retry" not in page
    assert "job/delete" not in page


def test_an_item_that_is_not_a_job_is_shown_as_it_was_stored(visitor: Visitor, db: Database) -> None:
    db.jobs.enqueue("another")
    job = store_job(db)
    layout = db.table.layout()
    stored = encode_job(layout, job).stored
    db.send(PutItem(layout.table, {**stored, "job_args": {"S": '{"no": "list"}'}}))
    assert job.id not in visitor.get("/jobs").text
    assert job.id in visitor.get("/jobs?state=dead").text
    page = visitor.get(f"/jobs/job?id={job.id}").text
    assert "It could not be read as a job." in page
    assert "job_args is not a JSON list" in page


def test_a_dead_job_is_retried_after_a_confirmation(
    visitor: Visitor, db: Database, jobs: dict[str, JobRecord]
) -> None:
    address = f"/jobs/job/retry?id={jobs['dead'].id}"
    assert "Retry this job?" in visitor.get(address).text
    assert db.jobs.get(jobs["dead"].id).state == "dead"  # type: ignore[union-attr]
    assert visitor.post(address, csrf="x").status_code == 403
    assert db.jobs.get(jobs["dead"].id).state == "dead"  # type: ignore[union-attr]
    assert visitor.post(address).status_code == 303
    found = db.jobs.get(jobs["dead"].id)
    assert found is not None
    assert (found.state, found.attempts) == ("waiting", 0)


def test_all_dead_jobs_are_retried(visitor: Visitor, db: Database, jobs: dict[str, JobRecord]) -> None:
    assert "the queue slow" in visitor.get("/jobs/retry-dead?queue=slow").text
    assert "0+jobs+will" in visitor.post("/jobs/retry-dead?queue=slow").headers["location"]
    assert "1+job+will" in visitor.post("/jobs/retry-dead").headers["location"]
    assert db.jobs.list(state="dead") == []


def test_a_job_is_deleted_after_a_confirmation(
    visitor: Visitor, db: Database, jobs: dict[str, JobRecord]
) -> None:
    address = f"/jobs/job/delete?id={jobs['waiting'].id}"
    assert "Delete this job?" in visitor.get(address).text
    assert visitor.post(address, csrf="x").status_code == 403
    assert db.jobs.get(jobs["waiting"].id) is not None
    assert visitor.post(address).headers["location"].startswith("/console/jobs?state=waiting&notice=")
    assert db.jobs.get(jobs["waiting"].id) is None
    assert visitor.post(address).status_code == 404
    assert visitor.get(address).status_code == 404


def test_a_running_job_is_neither_retried_nor_deleted(
    visitor: Visitor, db: Database, jobs: dict[str, JobRecord]
) -> None:
    for action in ("retry", "delete"):
        reply = visitor.post(f"/jobs/job/{action}?id={jobs['running'].id}")
        assert reply.status_code == 409
        assert "is running" in reply.text
    assert db.jobs.get(jobs["running"].id) == jobs["running"]


def test_a_read_only_console_changes_no_job(db: Database, jobs: dict[str, JobRecord]) -> None:
    reader = open_visitor(db)
    page = reader.get(f"/jobs/job?id={jobs['dead'].id}").text
    assert "job/retry" not in page
    assert "job/delete" not in page
    assert "retry-dead" not in reader.get("/jobs?state=dead").text
    for path in ("job/retry", "job/delete", "retry-dead"):
        for reply in (
            reader.get(f"/jobs/{path}?id={jobs['dead'].id}"),
            reader.post(f"/jobs/{path}?id={jobs['dead'].id}"),
        ):
            assert reply.status_code == 403
            assert "This console is read-only" in reply.text
    assert db.jobs.get(jobs["dead"].id) == jobs["dead"]


def test_jobs_need_a_session(db: Database) -> None:
    stranger = make_visitor(db)
    for path in ("/jobs", "/jobs/job?id=x", "/jobs/job/delete?id=x", "/jobs/retry-dead"):
        assert stranger.get(path).headers["location"] == "/console/sign-in"
    assert stranger.post("/jobs/retry-dead").status_code == 403


@pytest.mark.parametrize("id", ["", "x", "x" * 101, "%00", "%F0%9F%98%80", "a/b"])
def test_a_wrong_id_is_refused(visitor: Visitor, jobs: dict[str, JobRecord], id: str) -> None:
    assert visitor.get(f"/jobs/job?id={id}").status_code in (400, 404, 422)
