"""The console's pages of features in a browser: jobs, artifacts, files and the archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from console_artifact_rig import publish_model
from console_browser_rig import HOSTILE, Screen, open_screen
from console_job_rig import store_job, store_malformed
from console_rig import Customer, Order
from playwright.sync_api import expect

from holdall import Archive, Key, Model
from holdall.core import Set, Update, UpdateItem, Value, path

pytestmark = pytest.mark.torture


class Trap(Model, name="ConsoleTrap", archive=Archive(after_days=1, timestamp="at")):
    __doc__ = HOSTILE
    __qualname__ = """Trap'"><img src=x onerror="evil()">{{ 7 * 7 }}"""
    code: Key[str]
    at: datetime
    text: str = "long " * 900


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    with open_screen(tmp_path_factory.mktemp("shop"), Trap) as found:
        yield found


# --- jobs -----------------------------------------------------------------------------------------------------


def test_a_dead_job_is_found_retried_and_deleted(screen: Screen) -> None:
    page, db = screen.page, screen.db
    store_job(
        db, name="charge-card", queue="slow", attempts=3, error="Refused: <b>no</b>", died=datetime.now(UTC)
    )
    page.goto("./")
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="Dead").click()
    page.get_by_label("Queue").select_option("slow")
    rows = page.get_by_role("region", name="Dead").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("Refused: <b>no</b>")
    page.get_by_role("link", name="charge-card").click()
    page.get_by_role("link", name="Retry").click()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Retry").click()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("status")).to_contain_text("charge-card is due now")
    expect(page.locator(".badge.cold")).to_have_text("waiting")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted the job charge-card")
    assert db.jobs.list(name="charge-card") == []


def test_a_hostile_job_neither_runs_scripts_nor_breaks_a_page(screen: Screen) -> None:
    page, db, text = screen.page, screen.db, HOSTILE
    job = store_job(
        db, name=text[:100], arguments=f"[{text}", key=text[:200], error=text, died=datetime.now(UTC)
    )
    screen.check_hostile(
        [
            "jobs?state=dead",
            f"jobs/job?id={job.id}",
            f"jobs/job/retry?id={job.id}",
            f"jobs/job/delete?id={job.id}",
        ],
    )
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted the job")


def test_a_hostile_unreadable_item_neither_runs_scripts_nor_breaks_a_page(screen: Screen) -> None:
    page, db, text = screen.page, screen.db, HOSTILE
    attributes: dict[str, Any] = {"job_args": {"S": text}, text[:200]: {"S": text}}
    job = store_malformed(db, queue="odd", **attributes)
    screen.check_hostile(["jobs?queue=odd", f"jobs/job?id={job.id}", f"jobs/job/delete?id={job.id}"])
    page.goto("jobs?queue=odd")
    page.get_by_role("link", name=job.id).click()
    expect(page.locator(".badge.bad")).to_have_text("dead")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted the job")
    page.goto("jobs?queue=odd&state=dead")
    expect(page.get_by_text("No dead jobs match.")).to_be_visible()


def test_all_dead_jobs_of_a_queue_are_retried(screen: Screen) -> None:
    page, db = screen.page, screen.db
    for _ in range(2):
        store_malformed(db, queue="broken")  # stays dead
        store_job(db, name="bill", queue="broken", attempts=3, error="no", died=datetime.now(UTC))
    page.goto("jobs?state=dead&queue=broken&name=bill")
    page.get_by_role("link", name="Retry all").click()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Retry all").click()
    page.get_by_role("button", name="Retry all").click()
    expect(page.get_by_role("status")).to_have_text("2 jobs will be retried.")
    assert {job.state for job in db.jobs.list(name="bill")} == {"waiting"}


def test_paused_jobs_are_resumed(screen: Screen) -> None:
    page, db = screen.page, screen.db
    db.jobs.enqueue("charge-later", queue="copied", delay=3600)
    job = store_job(db, name="charge-later", queue="copied", paused=True)
    page.goto("jobs?queue=copied")
    page.get_by_role("link", name="Paused").click()
    page.get_by_role("link", name="charge-later").click()
    expect(page.locator(".badge.warm", has_text="paused")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Resume all").click()
    expect(page.get_by_text("the queue copied")).to_be_visible()
    page.get_by_role("button", name="Resume all").click()
    expect(page.get_by_role("status")).to_have_text("1 job resumed.")
    expect(page.get_by_role("region", name="Waiting").get_by_role("row")).to_have_count(3)
    assert db.jobs.get(job.id).state == "waiting"  # type: ignore[union-attr]


# --- artifacts ------------------------------------------------------------------------------------------------


def test_a_split_is_moved_and_rolled_back(screen: Screen) -> None:
    page, db = screen.page, screen.db
    name = publish_model(db, "moved-model")
    page.goto("artifacts?prefix=moved")
    page.get_by_role("link", name=name).click()
    expect(page.locator(".timeline li.served")).to_have_count(3)
    page.get_by_role("list", name="Aliases").get_by_role("link", name="live").click()
    expect(page.get_by_role("img", name="live: 2 90%, 3 10%")).to_be_visible()
    then = page.get_by_role("img", name="Then")
    expect(then).to_be_hidden()
    page.get_by_label("Weight of version 2").fill("30")
    expect(page.get_by_label("Version 2", exact=True)).to_have_value("30")
    expect(then).to_have_accessible_name("Then: 2 75%, 3 25%")
    page.get_by_label("Version 2", exact=True).fill("1")
    page.get_by_label("Version 3", exact=True).fill("3")
    expect(page.get_by_label("Weight of version 3")).to_have_value("3")
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_role("img", name="Then: 2 25%, 3 75%")).to_be_visible()
    assert db.artifacts.alias(name, "live").shares == {"2": 0.9, "3": 0.1}
    page.get_by_label("Reason").fill("<b>looks</b> good")
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_role("status")).to_have_text("Moved. live now serves 25% version 2, 75% version 3.")
    expect(page.get_by_text("<b>looks</b> good")).to_be_visible()
    assert db.artifacts.alias(name, "live").shares == {"2": 0.25, "3": 0.75}
    page.get_by_role("button", name="Roll back").click()
    expect(page.get_by_role("status")).to_contain_text("Rolled back. live now serves 90% version 2")
    page.get_by_role("button", name="Go back to change 1").click()
    expect(page.get_by_role("status")).to_have_text("Rolled back. live now serves 100% version 1.")


def test_a_rollout_is_started(screen: Screen) -> None:
    page, db = screen.page, screen.db
    name = publish_model(db, "started-model")
    db.artifacts.put_alias(name, "fresh", 1)
    page.goto(f"artifacts/alias?name={name}&alias=fresh")
    page.get_by_role("link", name="Roll out in stages").click()
    page.get_by_label("New version").select_option("Version 2")
    page.get_by_label("Per cent in stage 1").fill("30")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "a stage of 25 per cent cannot follow one of 30 per cent"
    )
    page.get_by_label("Per cent in stage 2").fill("")
    page.get_by_label("Unit of time of stage 3").select_option("until approved")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("status")).to_have_text("Started. Version 2 gets 30 per cent of the traffic.")
    rollout = db.artifacts.rollout(name, "fresh")
    assert (rollout.version, rollout.stages) == ("2", ((30, 3600.0), (50, None), (100, None)))


def test_a_rollout_is_paused_resumed_advanced_and_aborted(screen: Screen) -> None:
    page, db = screen.page, screen.db
    name = publish_model(db, "steered-model")
    page.goto(f"artifacts/alias?name={name}&alias=next")
    badge = page.locator(".card", has=page.get_by_role("heading", name="Rollout")).locator(".badge").first
    page.get_by_role("link", name="Pause").click()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Pause").click()
    assert db.artifacts.rollout(name, "next").state == "running"
    page.get_by_role("button", name="Pause").click()
    expect(badge).to_have_text("paused")
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("button", name="Resume").click()
    expect(badge).to_have_text("running")
    page.get_by_role("link", name="Advance").click()
    page.get_by_role("button", name="Advance").click()
    expect(badge).to_have_text("waiting for approval")
    expect(page.get_by_role("link", name="Approve")).to_be_visible()
    page.get_by_role("link", name="Abort").click()
    page.get_by_label("Reason").fill("<b>worse</b>")
    page.get_by_role("button", name="Abort").click()
    expect(page.get_by_role("status")).to_have_text("Aborted. Version 3 gets 0 per cent of the traffic.")
    expect(page.get_by_text("<b>worse</b>")).to_be_visible()
    assert db.artifacts.alias(name, "next").shares == {"2": 1.0}


def test_a_hostile_artifact_neither_runs_scripts_nor_breaks_a_page(screen: Screen) -> None:
    page, db = screen.page, screen.db
    name = f"hostile {make_safe(HOSTILE)[:200]}"
    alias = make_safe(HOSTILE)[:100].strip()
    db.artifacts.put(name, b"x", content_type="text/html")
    db.artifacts.publish(name)
    for reason in ("first", HOSTILE[:300]):
        db.artifacts.put_alias(name, alias, 1, by=HOSTILE[:300], reason=reason)
    db.artifacts.put(name, b"y")
    db.artifacts.publish(name)
    db.artifacts.start_rollout(name, alias, 2, [(5, None)], reason=HOSTILE[:300])
    query = urlencode({"name": name, "alias": alias})
    screen.check_hostile(
        [
            "artifacts",
            f"artifacts?{urlencode({'prefix': HOSTILE[:200]})}",
            f"artifacts/artifact?{query}",
            f"artifacts/alias?{query}",
            f"artifacts/roll-out?{query}",
            f"artifacts/rollout/abort?{query}",
            f"artifacts/alias/move?{query}&weight-1=7",
        ],
    )
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_role("status")).to_contain_text("Moved.")


def make_safe(text: str) -> str:
    """Remove the characters that names of artifacts must not contain."""
    return re.sub(r"[\x00-\x1f#/\\\\]", "", text)


# --- blobs ----------------------------------------------------------------------------------------------------


def test_a_file_is_found_with_its_pictures(screen: Screen) -> None:
    page, blob = screen.page, screen.blob
    page.goto("./")
    page.get_by_role("link", name="Files").click()
    expect(page.locator(".thumb img").first).to_have_js_property("complete", True)
    page.locator(f"a[href$='{blob.id}']").click()
    expect(page.locator(".preview img")).to_have_js_property("naturalWidth", 640)
    expect(page.locator(".files img")).to_have_js_property("naturalWidth", 40)
    page.get_by_role("region", name="References").get_by_role("link", name="All its files").click()
    expect(page.get_by_role("heading", name="Files of this owner")).to_be_visible()
    expect(page.locator(".files li")).to_have_count(1)


def test_a_hostile_file_neither_runs_scripts_nor_breaks_a_page(screen: Screen) -> None:
    page, db, text = screen.page, screen.db, HOSTILE
    with db.transaction() as tx:
        item = tx.create(Customer, email="hostile@example.com")
        item.files.attach(
            f"<svg xmlns='http://www.w3.org/2000/svg'><script>document.title = 'evil'</script>{text}</svg>".encode(),
            filename=text[:200],
            content_type="image/svg+xml",
            metadata={text[:200]: text},
            identify=False,
        )
    (found,) = db.blobs.list("ConsoleCustomer", item.id)
    query = urlencode({"type": "ConsoleCustomer", "owner": item.id})
    screen.check_hostile(["blobs", f"blobs?{query}", f"blobs/blob?id={found.blob.id}"])
    reply = page.request.get(f"files/{found.blob.id}?view=1")
    assert [each["name"] for each in reply.headers_array].count("content-disposition") == 1
    assert reply.headers["content-disposition"].startswith("attachment;")
    assert "set-cookie" not in reply.headers
    assert "sandbox" in reply.headers["content-security-policy"]


# --- the archive ----------------------------------------------------------------------------------------------


def test_a_dry_run_is_drawn_and_archives_nothing(screen: Screen) -> None:
    page, db = screen.page, screen.db
    with db.transaction() as tx:
        for number in range(100, 104):
            tx.create(
                Order,
                customer="old",
                number=number,
                product="tea",
                note="long " * 3000,
                placed_at=datetime.now(UTC) - timedelta(days=500),
            )
    before = db.archive.report(Order)
    page.goto("./")
    page.get_by_role("link", name="Archive").click()
    page.get_by_role("link", name="ConsoleOrder").click()
    page.get_by_role("link", name="Dry run").click()
    expect(page.get_by_role("heading", name="A run would archive")).to_be_visible(timeout=30_000)
    page.get_by_role("link", name="Measure again").click()
    expect(page.get_by_role("heading", name="A run would archive 4 of")).to_be_visible(timeout=30_000)
    expect(page.get_by_role("img", name="When items pay for themselves: 3 months")).to_be_visible()
    expect(page.get_by_role("img", name="Balance over three years")).to_be_visible()
    page.get_by_role("link", name="Hot and cold").click()
    expect(page.get_by_role("img", name="Items: hot")).to_be_visible(timeout=30_000)
    assert db.archive.report(Order) == before


def test_a_hostile_archived_item_neither_runs_scripts_nor_breaks_a_page(screen: Screen) -> None:
    page, db = screen.page, screen.db
    trap = db.create(Trap, code=HOSTILE[:300], at=datetime.now(UTC) - timedelta(days=500))
    name = quote(f"{Trap.__module__}:{Trap.__qualname__}", safe="")
    screen.check_hostile(["archive", f"archive/{name}", f"archive/{name}?show=dry-run", f"models/{name}"])
    page.goto(f"archive/{name}?show=dry-run")
    expect(page.get_by_role("heading", name="A run would archive 1 of 1 hot item")).to_be_visible(
        timeout=30_000
    )
    db.archive.run(Trap, force=True)
    stored = db.get_stored(trap.key)
    assert stored is not None
    wrong = Value({"M": {HOSTILE[:300]: {"S": HOSTILE}}})
    db.send(UpdateItem(stored.table, stored.key, Update((Set(path("_archive"), wrong),))))
    code = urlencode({"key-code": trap.code})
    screen.check_hostile(
        [f"archive/{name}?show=holdings", f"models/{name}/item?{code}", f"models/{name}?{code}"]
    )
    expect(page.locator(".reason")).to_contain_text("Cannot be read")
    page.goto(f"archive/{name}?show=holdings")
    expect(page.get_by_role("alert")).to_contain_text("</title></textarea>", timeout=30_000)
