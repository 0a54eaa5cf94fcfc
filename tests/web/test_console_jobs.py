"""The console's pages of jobs: lists, single jobs, and retrying, resuming and deleting them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from console_job_rig import ERROR, store_job, store_jobs, store_malformed
from console_rig import Visitor, make_visitor, open_visitor

from holdall import Database
from holdall.core.frozen import replace
from holdall.jobs import JobRecord, Lease
from holdall.web.console import figure_cache, job


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


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page wait for its figures, however slow the machine is."""
    monkeypatch.setattr(figure_cache, "_PATIENCE", 600)


def find_ids(page: str) -> list[str]:
    """The ids of the jobs that a page links to."""
    return re.findall(r'href="/console/jobs/job\?id=([^"&]+)', page)


def find_next(page: str) -> str:
    """The address of the next page."""
    found = re.search(r'href="/console([^"]+)" rel="next"', page)
    assert found is not None
    return found[1].replace("&amp;", "&")


@pytest.mark.usefixtures("patience")
def test_a_database_without_jobs_has_empty_lists(visitor: Visitor) -> None:
    assert "No waiting jobs." in visitor.get("/jobs").text
    assert "No dead jobs match." in visitor.get("/jobs?state=dead&name=x").text
    assert "no job was ever enqueued" in visitor.get("/jobs?count=1").text


@pytest.mark.parametrize("state", ["waiting", "running", "dead", "paused"])
def test_jobs_are_listed_by_state(visitor: Visitor, jobs: dict[str, JobRecord], state: str) -> None:
    page = visitor.get(f"/jobs?state={state}").text
    assert [each for each, job in jobs.items() if f"/jobs/job?id={job.id}" in page] == [state]
    assert ("ValueError: the card was refused" in page) == (state == "dead")
    assert ("retry-dead" in page) == (state == "dead")
    assert ("resume-paused" in page) == (state == "paused")


def test_jobs_are_listed_by_queue_and_name(visitor: Visitor, jobs: dict[str, JobRecord]) -> None:
    link = f"/jobs/job?id={jobs['waiting'].id}"
    assert link in visitor.get("/jobs?queue=slow").text
    assert link in visitor.get("/jobs?name=make-report").text
    assert link not in visitor.get("/jobs?queue=default").text
    assert link not in visitor.get("/jobs?name=send-receipt").text
    assert visitor.get("/jobs?state=lost").status_code == 404
    assert visitor.get("/jobs?queue=%23").status_code == 422


@pytest.mark.usefixtures("patience")
def test_jobs_are_counted_only_on_request(visitor: Visitor, jobs: dict[str, JobRecord]) -> None:
    assert "Queues</h2>" not in visitor.get("/jobs").text
    page = visitor.get("/jobs?count=1").text
    assert 'href="/console/jobs?state=dead&amp;queue=default">1</a>' in page
    assert 'href="/console/jobs?state=waiting&amp;queue=slow">1</a>' in page
    assert 'href="/console/jobs?state=paused&amp;queue=default">1</a>' in page
    page = visitor.get("/jobs?count=1&queue=slow").text
    assert "queue=default" not in page


def test_a_long_list_has_pages(visitor: Visitor, db: Database) -> None:
    with db.transaction() as tx:
        for number in range(60):
            tx.enqueue("many", number)
    first = visitor.get("/jobs").text
    assert find_ids(first) == [each.id for each in db.jobs.list(limit=50)]
    second = visitor.get(find_next(first)).text
    assert find_ids(first) + find_ids(second) == [each.id for each in db.jobs.list()]
    assert "First page" in second
    assert "Next page" not in second


def test_dead_jobs_are_listed_newest_first(visitor: Visitor, db: Database) -> None:
    db.jobs.enqueue("first", queue="default")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    stored = [store_job(db, died=start + timedelta(minutes=n)) for n in range(60)]
    first = visitor.get("/jobs?state=dead").text
    second = visitor.get(find_next(first)).text
    assert find_ids(first) + find_ids(second) == [each.id for each in reversed(stored)]


def test_a_search_for_few_jobs_among_many_continues_on_the_next_page(
    visitor: Visitor, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_MOST_READ", 48)
    with db.transaction() as tx:
        for number in range(90):
            tx.enqueue("many", number, delay=number)
    running = store_job(
        db, due=datetime.now(UTC) + timedelta(hours=1), lease=Lease("x", datetime.now(UTC), 30.0)
    )
    page = visitor.get("/jobs?state=running").text
    assert "No running jobs among the" in page
    pages = 1
    while running.id not in page:
        page = visitor.get(find_next(page)).text
        pages += 1
    assert 1 < pages < 10


def test_with_very_many_queues_the_visitor_has_to_choose_one(visitor: Visitor, db: Database) -> None:
    with db.transaction() as tx:
        for number in range(11):
            tx.enqueue("many", queue=f"queue-{number}")
    page = visitor.get("/jobs").text
    assert "There are 11 queues. Choose one to see its jobs." in page
    assert find_ids(page) == []
    assert len(find_ids(visitor.get("/jobs?queue=queue-7").text)) == 1


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


def test_an_item_that_cannot_be_read_as_a_job_is_shown_and_can_be_deleted(
    visitor: Visitor, db: Database
) -> None:
    job = store_malformed(db)
    assert find_ids(visitor.get("/jobs?state=dead").text) == []
    page = visitor.get("/jobs").text
    assert "1 cannot be read as a job. A worker moves such an item to the dead jobs:" in page
    assert job.id in find_ids(page)
    page = visitor.get(f"/jobs/job?id={job.id}").text
    assert "It could not be read as a job." in page
    assert "job_args is not a JSON list" in page
    assert visitor.post(f"/jobs/job/retry?id={job.id}").status_code == 422
    assert find_ids(visitor.get("/jobs?state=dead").text) == [job.id]
    assert visitor.post(f"/jobs/job/delete?id={job.id}").status_code == 303
    assert find_ids(visitor.get("/jobs?state=dead").text) == []


def test_the_address_in_a_list_leads_to_the_job_and_tolerates_a_wrong_time(
    jobs: dict[str, JobRecord], visitor: Visitor
) -> None:
    page = visitor.get("/jobs?state=dead").text
    found = re.search(r'href="/console(/jobs/job[^"]+)"', page)
    assert found is not None
    address = found[1].replace("&amp;", "&")
    assert ERROR.splitlines()[-1] in visitor.get(address).text
    moments = ("x", "2026-01-01", "2026-01-01T00:00:00%2B00:00", "0001-01-01T00:00:00%2B01:00")
    for wrong in (*(f"at={each}" for each in moments), "queue=other"):
        reply = visitor.get(f"{address}&{wrong}")
        assert reply.status_code == (404 if wrong == "queue=other" else 200)


def test_a_dead_item_is_not_announced_as_one_that_a_worker_will_move(visitor: Visitor, db: Database) -> None:
    job = store_malformed(db, died=datetime.now(UTC))
    page = visitor.get("/jobs?state=dead").text
    assert job.id in find_ids(page)
    assert "1 cannot be read as a job:" in page


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


def test_paused_jobs_are_resumed(visitor: Visitor, db: Database, jobs: dict[str, JobRecord]) -> None:
    assert "Resume all paused jobs?" in visitor.get("/jobs/resume-paused?queue=default").text
    assert visitor.post("/jobs/resume-paused", csrf="x").status_code == 403
    assert "0+jobs+resumed" in visitor.post("/jobs/resume-paused?queue=slow").headers["location"]
    assert db.jobs.get(jobs["paused"].id) == jobs["paused"]
    assert "1+job+resumed" in visitor.post("/jobs/resume-paused").headers["location"]
    assert db.jobs.get(jobs["paused"].id) == replace(jobs["paused"], paused=False)


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
    assert "resume-paused" not in reader.get("/jobs?state=paused").text
    for path in ("job/retry", "job/delete", "retry-dead", "resume-paused"):
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
def test_an_invalid_id_is_rejected(visitor: Visitor, jobs: dict[str, JobRecord], id: str) -> None:
    assert visitor.get(f"/jobs/job?id={id}").status_code in (400, 404, 422)
