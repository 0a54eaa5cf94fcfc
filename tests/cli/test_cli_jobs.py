"""``holdall jobs``: what it shows and changes, its output on each stream, and its exit status."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_rig import answer_prompts, call, enter, start

import holdall
from holdall import Database
from holdall.core import PutItem
from holdall.jobs import JobRecord
from holdall.jobs.record import encode_job

URL = "embedded:app.db"
MISSING_ID = "00000000-0000-4000-8000-000000000000"


@holdall.job("cli-bad", retries=0)
def bad(number: int = 0) -> None:
    raise ValueError(f"number {number} is bad")


@holdall.job("cli-once", once_for=60, queue="slow")
def once() -> None:
    """A job that these tests never run."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch, URL)
    with Database() as db:
        db.table.create()
    return tmp_path


def enqueue(job: Any, *args: Any, **options: Any) -> str:
    with Database() as db:
        return db.jobs.enqueue(job, *args, **options).id


def fail_jobs(*numbers: int, queue: str = "default") -> list[str]:
    """Enqueue jobs and run them until they are dead, one after the other; return their IDs."""
    ids = []
    with Database() as db:
        for number in numbers:
            ids.append(db.jobs.enqueue(bad, number, queue=queue).id)
            db.worker(queues=[queue], jobs=[bad]).drain()
    return ids


def list_jobs(**options: Any) -> list[JobRecord]:
    with Database() as db:
        return db.jobs.list(**options)


def read_states() -> dict[str, str]:
    return {record.id: record.state for record in list_jobs()}


def list_ids(*words: str) -> list[str]:
    """The IDs that ``jobs list`` prints."""
    ended = call("jobs", "list", "--json", *words)
    assert (ended.exit_code, ended.stderr) == (0, "")
    return [job["id"] for job in json.loads(ended.stdout)["jobs"]]


def read_json(id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("jobs", "show", id, "--json").stdout)
    return found


# --- list -------------------------------------------------------------------------------------------------


def test_jobs_are_listed_by_due_time_and_dead_jobs_last() -> None:
    (dead,) = fail_jobs(1)
    later = enqueue(bad, 2, delay=60)
    soon = enqueue(bad, 3)
    ended = call("jobs", "list")
    assert (ended.exit_code, ended.stderr) == (0, "")
    heads, *rows = ended.stdout.splitlines()
    assert heads.split("  ")[0] == "id"
    assert [row.split()[:5] for row in rows] == [
        [soon, "cli-bad", "default", "waiting", "0"],
        [later, "cli-bad", "default", "waiting", "0"],
        [dead, "cli-bad", "default", "dead", "1"],
    ]
    assert all(row.endswith("Z") for row in rows)


def test_a_list_can_be_filtered() -> None:
    (dead,) = fail_jobs(1)
    here = enqueue(bad, 2)
    slow = enqueue(once, key="a")
    assert list_ids("--state", "dead") == [dead]
    assert list_ids("--state", "waiting") == [here, slow]
    assert list_ids("--queue", "slow") == [slow]
    assert list_ids("--name", "cli-bad") == [here, dead]
    assert list_ids("--name", "cli-bad", "--state", "dead", "--queue", "slow") == []


def test_a_truncated_list_is_announced_on_stderr() -> None:
    for number in range(3):
        enqueue(bad, number)
    cut = call("jobs", "list", "--limit", "2")
    assert len(cut.stdout.splitlines()) == 3
    assert cut.stderr == "there are more than 2; raise --limit to see them\n"
    assert json.loads(call("jobs", "list", "--limit", "2", "--json").stdout)["more"] is True
    whole = call("jobs", "list", "--limit", "3")
    assert (len(whole.stdout.splitlines()), whole.stderr) == (4, "")
    assert json.loads(call("jobs", "list", "--limit", "3", "--json").stdout)["more"] is False


def test_an_empty_list_is_reported_on_stderr() -> None:
    ended = call("jobs", "list")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "there are no jobs\n")
    enqueue(bad)
    ended = call("jobs", "list", "--state", "dead")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "no job matches\n")
    assert json.loads(call("jobs", "list", "--queue", "other", "--json").stdout) == {
        "jobs": [],
        "more": False,
    }


# --- counts -----------------------------------------------------------------------------------------------


def test_jobs_are_counted_by_queue_and_state() -> None:
    fail_jobs(1, 2)
    enqueue(bad, 3)
    enqueue(once, key="a")
    ended = call("jobs", "counts")
    assert [line.split() for line in ended.stdout.splitlines()] == [
        ["queue", "waiting", "running", "dead", "paused"],
        ["default", "1", "0", "2", "0"],
        ["slow", "1", "0", "0", "0"],
    ]
    counts = json.loads(call("jobs", "counts", "--queue", "slow", "--json").stdout)
    assert counts == {"queues": {"slow": {"waiting": 1, "running": 0, "dead": 0, "paused": 0}}}


def test_without_queues_counts_prints_a_message_on_stderr() -> None:
    ended = call("jobs", "counts")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "there are no queues\n")


# --- show -------------------------------------------------------------------------------------------------


def test_a_job_is_shown_with_its_arguments_and_its_error() -> None:
    (id,) = fail_jobs(7)
    ended = call("jobs", "show", id)
    assert (ended.exit_code, ended.stderr) == (0, "")
    pairs, _, error = ended.stdout.partition("\n\n")
    shown = {line[:9].strip(): line[9:].strip() for line in pairs.splitlines()}
    assert (shown["id"], shown["job"], shown["arguments"]) == (id, "cli-bad", "[7]")
    assert (shown["state"], shown["attempts"], shown["queue"]) == ("dead", "1", "default")
    assert {"enqueued", "due", "died"} <= shown.keys()
    assert error.startswith("Traceback")
    assert error.endswith("ValueError: number 7 is bad\n")


def test_a_job_is_shown_with_its_key_and_how_long_the_key_is_remembered() -> None:
    id = enqueue(once, key="invoice 7", delay=60)
    shown = call("jobs", "show", id).stdout
    assert "invoice 7, remembered for 60 s after success\n" in shown
    assert "Traceback" not in shown
    assert (read_json(id)["key"], read_json(id)["once_for"]) == ("invoice 7", 60)


def test_a_job_is_shown_as_json_with_times_in_iso_format() -> None:
    (id,) = fail_jobs(7)
    job = read_json(id)
    assert (job["name"], job["arguments"], job["state"]) == ("cli-bad", "[7]", "dead")
    for name in ("enqueued", "due", "died"):
        assert datetime.fromisoformat(job[name]).utcoffset() == timedelta(0)
    assert job["error"].endswith("ValueError: number 7 is bad")
    assert job["lease_until"] is None


def test_a_running_job_is_shown_with_its_lease() -> None:
    id = enqueue("cli-inspects-itself")
    shown: list[str] = []

    @holdall.job("cli-inspects-itself")
    def inspect_itself() -> None:
        shown.append(call("jobs", "show", id).stdout)
        job = read_json(id)
        shown.append(f"{job['state']} {job['lease_seconds']:g} {job['attempts']}")
        shown.append(call("jobs", "retry", id).stderr)
        shown.append(call("jobs", "delete", id).stderr)

    with Database() as db:
        assert db.worker(jobs=[inspect_itself], lease=40).drain().succeeded == 1
    assert "40 s, until " in shown[0]
    assert shown[1:] == [
        "running 40 1",
        *[f"error: the job {id} is running\nhint: wait for it to end\n"] * 2,
    ]


@pytest.mark.parametrize("command", ["show", "retry", "delete"])
def test_a_missing_job_is_an_error(command: str) -> None:
    ended = call("jobs", command, MISSING_ID)
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert ended.stderr == f"error: there is no job '{MISSING_ID}'\nhint: jobs that succeeded are deleted\n"


# --- retry ------------------------------------------------------------------------------------------------


def test_a_dead_job_is_retried() -> None:
    first, second = fail_jobs(1, 2)
    ended = call("jobs", "retry", first)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", f"job {first} will be retried\n")
    assert read_states() == {first: "waiting", second: "dead"}


def test_retrying_a_delayed_job_makes_it_due_at_once() -> None:
    id = enqueue(bad, delay=3600)
    assert call("jobs", "retry", id).exit_code == 0
    (record,) = list_jobs()
    assert record.due < datetime.now(UTC) + timedelta(minutes=1)


def test_a_missing_job_does_not_prevent_the_retry_of_others() -> None:
    (id,) = fail_jobs(1)
    ended = call("jobs", "retry", MISSING_ID, id)
    assert ended.exit_code == 3
    assert f"there is no job '{MISSING_ID}'" in ended.stderr
    assert read_states() == {id: "waiting"}


def test_all_dead_jobs_can_be_retried_or_those_of_a_queue_or_name() -> None:
    here = fail_jobs(1, 2)
    there = fail_jobs(3, queue="slow")
    waiting = enqueue(bad, 4)
    assert call("jobs", "retry", "--all", "--name", "other").stderr == "0 jobs will be retried\n"
    assert call("jobs", "retry", "--all", "--queue", "slow").stderr == "1 job will be retried\n"
    assert read_states() == {here[0]: "dead", here[1]: "dead", there[0]: "waiting", waiting: "waiting"}
    assert call("jobs", "retry", "--all", "--name", "cli-bad").stderr == "2 jobs will be retried\n"
    assert set(read_states().values()) == {"waiting"}


# --- delete and purge -------------------------------------------------------------------------------------


def test_single_jobs_are_deleted() -> None:
    (dead,) = fail_jobs(1)
    waiting = enqueue(bad)
    kept = enqueue(bad)
    ended = call("jobs", "delete", dead, waiting)
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr == f"job {dead} deleted\njob {waiting} deleted\n"
    assert read_states() == {kept: "waiting"}


def test_purge_deletes_dead_jobs() -> None:
    fail_jobs(1, 2)
    waiting = enqueue(bad)
    ended = call("jobs", "purge", "--yes")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "2 jobs deleted\n")
    assert read_states() == {waiting: "waiting"}


def test_purge_can_be_filtered() -> None:
    (dead,) = fail_jobs(1)
    (slow,) = fail_jobs(2, queue="slow")
    waiting = enqueue(bad)
    assert call("jobs", "purge", "--yes", "--name", "other").stderr == "0 jobs deleted\n"
    assert call("jobs", "purge", "--yes", "--queue", "slow").stderr == "1 job deleted\n"
    assert {*read_states()} == {dead, waiting}
    assert call("jobs", "purge", "--yes", "--state", "waiting").stderr == "1 job deleted\n"
    assert {*read_states()} == {dead}
    assert slow not in read_states()


@pytest.mark.parametrize(
    ("words", "deleted"),
    [
        (("--older-than", "1h"), 0),
        (("--older-than", "0s"), 1),
        (("--before", "2020-01-01"), 0),
        (("--before", "2999-01-01T12:00"), 1),
        (("--before", "2999-01-01T12:00+05:00"), 1),
    ],
)
def test_purge_can_keep_recent_jobs(words: tuple[str, ...], deleted: int) -> None:
    fail_jobs(1)
    unconfirmed = start("jobs", "purge", *words, folder=Path.cwd(), HOLDALL_URL=URL)
    assert ("no job matches" in unconfirmed.stderr) == (not deleted)
    ended = call("jobs", "purge", "--yes", *words)
    assert ended.stderr == f"{deleted} {'job' if deleted == 1 else 'jobs'} deleted\n"
    assert len(list_jobs()) == 1 - deleted


def test_without_a_terminal_a_purge_needs_yes(folder: Path) -> None:
    fail_jobs(1, 2)
    ended = start("jobs", "purge", folder=folder, HOLDALL_URL=URL)
    assert (ended.returncode, ended.stdout) == (5, "")
    assert ended.stderr == (
        "error: 2 jobs not deleted: there is no terminal to ask for confirmation\nhint: add --yes if you are sure\n"
    )
    assert len(list_jobs()) == 2


def purge_at_terminal(folder: Path, typed: str) -> tuple[int, str]:
    """Purge at a terminal and type this; return the exit status and the output."""
    return answer_prompts("jobs", "purge", typed=typed, folder=folder, url=URL)


def test_at_a_terminal_a_purge_asks_for_confirmation(folder: Path) -> None:
    fail_jobs(1, 2)
    code, seen = purge_at_terminal(folder, "n\n")
    assert code == 5
    assert "Delete 2 jobs? This cannot be undone." in seen
    assert seen.endswith("error: nothing was deleted\n")
    assert len(list_jobs()) == 2
    code, seen = purge_at_terminal(folder, "y\n")
    assert code == 0
    assert seen.endswith("2 jobs deleted\n")
    assert list_jobs() == []


def test_with_nothing_to_purge_there_is_no_confirmation(folder: Path) -> None:
    ended = start("jobs", "purge", folder=folder, HOLDALL_URL=URL)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == "no job matches: nothing to delete\n"


# --- invalid input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--state", "asleep"),
        ("list", "--limit", "0"),
        ("show",),
        ("retry",),
        ("retry", "x", "--all"),
        ("retry", "x", "--queue", "slow"),
        ("delete",),
        ("purge", "--state", "running"),
        ("purge", "--before", "yesterday"),
        ("purge", "--older-than", "7"),
        ("purge", "--older-than", "7 days"),
        ("purge", "--older-than", "7d", "--before", "2026-01-01"),
    ],
)
def test_an_invalid_command_line_has_the_exit_status_2(words: tuple[str, ...]) -> None:
    fail_jobs(1)
    ended = call("jobs", *words)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert set(read_states().values()) == {"dead"}


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("counts",),
        ("show", MISSING_ID),
        ("retry", "--all"),
        ("delete", MISSING_ID),
        ("purge", "--yes"),
    ],
)
def test_a_missing_table_is_reported_with_a_hint(words: tuple[str, ...]) -> None:
    Database("embedded:other.db").close()
    ended = call("jobs", *words, "--url", "embedded:other.db")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == (
        "error: there is no table holdall\n"
        "hint: run `holdall --url embedded:other.db table create` "
        "(with --models MODULE to add the indexes of your models)\n"
    )


def test_an_invalid_name_of_a_queue_is_rejected() -> None:
    ended = call("jobs", "list", "--queue", "a b")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: 'a b' is not a valid name for a queue\nhint: ")


# --- malformed jobs ---------------------------------------------------------------------------------------


def test_a_malformed_job_is_shown_with_its_item_and_can_be_deleted() -> None:
    id = enqueue(bad, 1)
    with Database() as db:
        record = db.jobs.get(id)
        assert record is not None
        layout = db.table.layout()
        item = {**encode_job(layout, record).stored, "job_args": {"N": "7"}}
        db.send(PutItem(layout.table, item))
        assert db.worker(jobs=[bad]).drain().dead == 1
    assert id in call("jobs", "list", "--state", "dead").stdout
    shown = call("jobs", "show", id)
    assert "is not a job: job_args is not text" in shown.stdout
    assert '"N": "7"' in shown.stdout
    assert json.loads(call("jobs", "show", id, "--json").stdout)["raw"] == item
    refused = call("jobs", "retry", id)
    assert (refused.exit_code, "is not a job" in refused.stderr) == (1, True)
    assert call("jobs", "delete", id).exit_code == 0
    assert call("jobs", "show", id).exit_code != 0
