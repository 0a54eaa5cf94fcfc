"""``holdall worker``, run as a program on a database file that the test inspects."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
import pytest
from cli_rig import INSTALLED, bare_environment, call, enter, list_commands, start
from rig.servers import ENVIRONMENT, start_server
from rig.warm import USERS_PATH, WarmProgram

from holdall import Database, Key, Model
from holdall.jobs import JobRecord
from holdall.worker import Worker

pytestmark = pytest.mark.torture  # it takes long, so it should be among the first to run

URL = "embedded:app.db"
JOBS = '''
import os
import time

import holdall
from holdall import Key, Model


def say(*words):
    os.write(2, (" ".join(map(str, words)) + "\\n").encode())  # one write per line, because two jobs can write at once


class Done(Model):
    name: Key[str]
    runs: int = 0


@holdall.job("note", transactional=True)
def note(tx, name):
    tx.get(Done, name, create_if_missing=True).runs += 1


@holdall.job("call")
def call(word):
    say("called", word, holdall.current_job().attempt)


@holdall.job("hold")
def hold():
    """Return once another process has written to the pipe."""
    say("holding")
    open("pipe").close()
    say("released")


@holdall.job("hold-async")
async def hold_async():
    import asyncio

    say("holding")
    try:
        await asyncio.Event().wait()
    finally:
        say("cancelled")


@holdall.job("hold-apart", process=True)
def hold_apart():
    hold()


@holdall.job("meet")
def meet(mode):
    """Wait until another job opens the other end of the pipe."""
    open("pipe", mode).close()


@holdall.job("report-process", process=True)
def report_process(word):
    say("process", os.getpid(), holdall.current_job().name, word)


@holdall.job("bad", retries=0)
def bad():
    raise ValueError("a secret")


@holdall.job("soon-good", retries=1, backoff=0.01)
def soon_good():
    if holdall.current_job().attempt == 1:
        raise ValueError("not yet")
    say("good now")


@holdall.job("elsewhere", queue="slow")
def elsewhere():
    say("ran elsewhere")


@holdall.job("nightly", queue="slow", cron="0 3 * * *")
def nightly():
    pass


def report(event):
    say("event", event.kind, event.name)


def failing(event):
    raise RuntimeError("the hook failed")
'''


class Done(Model):
    """The application's model, without its defaults."""

    name: Key[str]
    runs: int


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An application and its database."""
    enter(tmp_path, monkeypatch)
    (tmp_path / "app.py").write_text(JOBS)
    (tmp_path / "broken.py").write_text("import app\n1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with Database(URL) as db:
        db.table.create()
    Database("embedded:other.db").close()
    return tmp_path


def enqueue(name: str, *args: Any, **options: Any) -> str:
    with Database(URL) as db:
        return db.jobs.enqueue(name, *args, **options).id


def list_jobs() -> list[JobRecord]:
    with Database(URL) as db:
        return db.jobs.list()


def drain(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return start("worker", "app", "--drain", *words, folder=folder, HOLDALL_URL=URL)


class RunningWorker:
    """A worker process, whose messages the test reads line by line."""

    def __init__(self, folder: Path, words: tuple[str, ...]) -> None:
        assert INSTALLED is not None
        stdout_end, stdout = os.pipe()
        stderr_end, stderr = os.pipe()
        self.output, self._errors = open(stdout_end), open(stderr_end)  # noqa: SIM115, PTH123 - closed below
        with Path(os.devnull).open() as nothing:
            self.program = WarmProgram(
                [INSTALLED, "worker", "app", *words],
                streams=(nothing.fileno(), stdout, stderr),
                environment={**bare_environment(folder), "HOLDALL_URL": URL},
                folder=folder,
                path=USERS_PATH,
                new_session=True,
            )
        os.close(stdout)
        os.close(stderr)
        self.lines: list[str] = []
        self._watchdog = threading.Timer(60, self.program.kill)  # a test should fail rather than hang
        self._watchdog.start()

    def wait_for(self, beginning: str) -> str:
        """Read lines until one has this beginning; return it."""
        for line in self._errors:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(beginning):
                return line
        raise AssertionError(f"no line begins with {beginning!r}: {self.lines}")

    def send_signal(self, number: int = signal.SIGTERM) -> None:
        self.program.send_signal(number)

    def end(self) -> int:
        """Wait for the end; return the exit status."""
        self.lines += self._errors.read().splitlines()
        return self.program.wait(timeout=300)

    def close(self) -> None:
        self._watchdog.cancel()
        self.program.kill()
        self.program.wait()
        self.output.close()
        self._errors.close()


@pytest.fixture
def start_worker(folder: Path) -> Iterator[Callable[..., RunningWorker]]:
    """A function that starts workers; they are killed after the test."""
    workers: list[RunningWorker] = []

    def start_worker(*words: str) -> RunningWorker:
        workers.append(RunningWorker(folder, words))
        return workers[-1]

    yield start_worker
    for each in workers:
        each.close()


# --- drain ------------------------------------------------------------------------------------------------


def test_a_drain_runs_the_jobs_that_are_due_and_ends(folder: Path) -> None:
    for word in ("one", "two"):
        enqueue("call", word)
    enqueue("call", "later", delay=3600)
    ended = drain(folder=folder)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert sorted(line for line in ended.stderr.splitlines() if line.startswith("called")) == [
        "called one 1",
        "called two 1",
    ]
    assert ended.stderr.endswith("done: 2 jobs started, 2 succeeded\n")
    assert [record.arguments for record in list_jobs()] == ['["later"]']


def test_without_a_module_a_worker_runs_only_holdalls_own_jobs(folder: Path) -> None:
    ended = start("worker", "--drain", folder=folder, HOLDALL_URL=URL)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines()[0] == "jobs: only those of Holdall itself"


def test_a_drain_without_jobs_succeeds(folder: Path) -> None:
    ended = drain(folder=folder)
    assert ended.returncode == 0
    assert ended.stderr.endswith("done: 0 jobs started\n")


def test_a_drain_in_which_a_job_died_has_the_exit_status_1(folder: Path) -> None:
    id = enqueue("bad")
    ended = drain(folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "error: 1 job failed for good\nhint: `holdall jobs list --state dead`" in ended.stderr
    assert f"job bad {id} dead, attempt 1" in ended.stderr
    assert "secret" not in ended.stderr
    assert [record.state for record in list_jobs()] == ["dead"]


def test_a_drain_whose_job_will_be_retried_succeeds(folder: Path) -> None:
    enqueue("soon-good")
    with Database(URL) as db:
        while db.jobs.list():
            assert drain(folder=folder).returncode == 0


def test_the_metrics_can_be_json(folder: Path) -> None:
    enqueue("note", "a")
    enqueue("bad")
    ended = drain("--json", folder=folder)
    metrics = json.loads(ended.stdout)
    assert ended.returncode == 1
    assert (metrics["started"], metrics["succeeded"], metrics["dead"], metrics["running"]) == (2, 1, 1, 0)


def test_the_queue_named_first_is_served_first(folder: Path) -> None:
    enqueue("call", "second")
    enqueue("call", "first", queue="urgent")
    ended = drain("--queue", "urgent", "--queue", "default", "--concurrency", "1", folder=folder)
    called = [line for line in ended.stderr.splitlines() if line.startswith("called")]
    assert called == ["called first 1", "called second 1"]


def test_a_worker_serves_only_the_named_queues(folder: Path) -> None:
    enqueue("elsewhere", queue="slow")
    ended = drain(folder=folder)
    assert "note: this worker does not serve queue slow; its jobs: elsewhere, nightly\n" in ended.stderr
    assert "done: 0 jobs started" in ended.stderr
    ended = drain("--queue", "slow", folder=folder)
    assert "\nran elsewhere\n" in ended.stderr
    assert "note: this worker does not serve queue default; its jobs: bad," in ended.stderr


def test_a_job_with_an_unknown_name_is_left_to_other_workers(folder: Path) -> None:
    enqueue("from-another-program")
    ended = drain(folder=folder)
    assert ended.returncode == 0
    assert (
        "the job from-another-program is not declared in this worker, and is left to other workers"
        in ended.stderr
    )
    assert [(record.state, record.attempts) for record in list_jobs()] == [("waiting", 0)]


# --- hooks, processes, logs -------------------------------------------------------------------------------


def test_hooks_are_called_at_every_step(folder: Path) -> None:
    enqueue("note", "a")
    ended = drain("--hook", "app:report", "--hook", "app:failing", folder=folder)
    assert ended.returncode == 0
    events = [line for line in ended.stderr.splitlines() if line.startswith("event")]
    assert events == ["event started note", "event succeeded note"]
    assert "a hook failed on the event started of the job note" in ended.stderr


def test_jobs_can_run_in_child_processes(start_worker: Callable[..., RunningWorker]) -> None:
    enqueue("report-process", "word")
    worker = start_worker("--drain", "--processes", "1")
    _, pid, *rest = worker.wait_for("process").split()
    assert worker.end() == 0
    assert int(pid) != worker.program.pid
    assert rest == ["report-process", "word"]


@pytest.mark.parametrize(
    ("verbosity", "seen", "unseen"),
    [
        ((), {"dead"}, {"started", "succeeded"}),
        (("-v",), {"dead", "succeeded"}, {"started"}),
        (("-vv",), {"dead", "succeeded", "started"}, set()),
    ],
)
def test_options_choose_how_much_is_logged(
    folder: Path, verbosity: tuple[str, ...], seen: set[str], unseen: set[str]
) -> None:
    enqueue("note", "a")
    enqueue("bad")
    ended = drain(*verbosity, folder=folder)
    lines = [line for line in ended.stderr.splitlines() if "holdall.worker: job" in line]
    kinds = {word.rstrip(",") for line in lines for word in line.split()}
    assert seen <= kinds
    assert not unseen & kinds


# --- stopping ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_running_jobs_finish(
    start_worker: Callable[..., RunningWorker], folder: Path, number: int
) -> None:
    enqueue("hold")
    worker = start_worker("--json")
    worker.wait_for("holding")
    worker.send_signal(number)
    worker.wait_for(signal.Signals(number).name)
    enqueue("call", "too late")
    (folder / "pipe").write_text("")
    assert worker.end() == 0
    assert worker.lines[-1] == "done: 1 job started, 1 succeeded"
    assert json.loads(worker.output.read())["succeeded"] == 1
    assert [(record.name, record.attempts) for record in list_jobs()] == [("call", 0)]


@pytest.mark.parametrize("job", ["hold", "hold-async", "hold-apart"])
def test_the_second_signal_releases_running_jobs_at_once(
    start_worker: Callable[..., RunningWorker], job: str
) -> None:
    enqueue(job)
    worker = start_worker("--grace", "3600")
    worker.wait_for("holding")
    worker.send_signal()
    assert "1 job may take up to 3600 s to finish" in worker.wait_for("SIGTERM")
    worker.send_signal()
    assert worker.end() == 1
    assert worker.lines[-1] == "done: 1 job started, 1 released"
    assert not any("Traceback" in line for line in worker.lines)
    assert [(record.state, record.attempts) for record in list_jobs()] == [("waiting", 0)]


def test_an_async_job_is_cancelled_before_it_is_released(start_worker: Callable[..., RunningWorker]) -> None:
    enqueue("hold-async")
    worker = start_worker("--grace", "0", "-v")
    worker.wait_for("holding")
    worker.send_signal()
    worker.end()
    places = {
        word: place
        for place, line in enumerate(worker.lines)
        for word in ("cancelled", "released,")
        if word in line
    }
    assert places["cancelled"] < places["released,"]


def test_after_the_grace_period_running_jobs_are_released(start_worker: Callable[..., RunningWorker]) -> None:
    enqueue("hold")
    worker = start_worker("--grace", "0")
    worker.wait_for("holding")
    worker.send_signal()
    assert worker.end() == 0
    assert worker.lines[-1] == "done: 1 job started, 1 released"
    assert [(record.state, record.attempts) for record in list_jobs()] == [("waiting", 0)]


def test_a_signal_to_the_process_group_lets_jobs_in_child_processes_finish(
    start_worker: Callable[..., RunningWorker], folder: Path
) -> None:
    """Service managers signal the whole group, child processes included."""
    enqueue("hold-apart")
    worker = start_worker()
    worker.wait_for("holding")
    os.killpg(worker.program.pid, signal.SIGTERM)
    worker.wait_for("SIGTERM")
    (folder / "pipe").write_text("")
    assert worker.end() == 0
    assert worker.lines[-1] == "done: 1 job started, 1 succeeded"


def test_an_idle_worker_stops_at_once(start_worker: Callable[..., RunningWorker]) -> None:
    worker = start_worker()
    worker.wait_for("when idle")
    worker.send_signal()
    assert worker.end() == 0
    assert "SIGTERM: no job is running" in worker.lines


def test_a_drain_can_be_stopped(start_worker: Callable[..., RunningWorker], folder: Path) -> None:
    for _ in range(2):
        enqueue("hold")
    worker = start_worker("--drain", "--concurrency", "1")
    worker.wait_for("holding")
    worker.send_signal()
    worker.wait_for("SIGTERM")
    (folder / "pipe").write_text("")
    assert worker.end() == 0
    assert [(record.state, record.attempts) for record in list_jobs()] == [("waiting", 0)]


# --- several workers, killed workers ----------------------------------------------------------------------


def test_two_workers_on_one_file_run_jobs_at_the_same_time(
    start_worker: Callable[..., RunningWorker],
) -> None:
    workers = [start_worker("--concurrency", "1", "--poll-interval", "0.05") for _ in range(2)]
    for worker in workers:
        worker.wait_for("when idle")
    enqueue("meet", "r")
    enqueue("meet", "w")
    while list_jobs():
        assert all(worker.program.poll() is None for worker in workers)
    for worker in workers:
        worker.send_signal()
    assert [worker.end() for worker in workers] == [0, 0]
    assert [worker.lines[-1] for worker in workers] == ["done: 1 job started, 1 succeeded"] * 2


def test_two_workers_on_one_file_run_every_job_once(start_worker: Callable[..., RunningWorker]) -> None:
    names = [f"job {number}" for number in range(120)]
    with Database(URL, durability="normal") as db:
        for first in range(0, len(names), 40):
            with db.transaction() as tx:
                for name in names[first : first + 40]:
                    tx.enqueue("note", name)
    workers = [start_worker("--drain", "--json") for _ in range(2)]
    assert [worker.end() for worker in workers] == [0, 0]
    assert list_jobs() == []
    metrics = [json.loads(worker.output.read()) for worker in workers]
    assert sum(each["succeeded"] for each in metrics) == len(names)
    with Database(URL) as db:
        done = [db.get(Done, name) for name in names]
    assert [each.runs if each else 0 for each in done] == [1] * len(names)


def test_another_worker_reruns_the_job_of_a_killed_worker(
    start_worker: Callable[..., RunningWorker], folder: Path
) -> None:
    enqueue("hold")
    first = start_worker("--lease", "0.5")
    first.wait_for("holding")
    first.program.kill()
    first.end()
    assert [(record.state, record.attempts) for record in list_jobs()] == [("running", 1)]
    second = start_worker("--poll-interval", "0.1")
    second.wait_for("holding")
    second.send_signal()
    second.wait_for("SIGTERM")
    (folder / "pipe").write_text("")
    assert second.end() == 0
    assert second.lines[-1] == "done: 1 job started, 1 succeeded"
    assert list_jobs() == []


def test_a_recurring_job_is_enqueued_for_its_time(start_worker: Callable[..., RunningWorker]) -> None:
    worker = start_worker("--queue", "slow")
    assert "nightly (0 3 * * *)" in worker.wait_for("jobs: ")
    while not list_jobs():
        assert worker.program.poll() is None
    worker.send_signal()
    assert worker.end() == 0
    (record,) = list_jobs()
    assert (record.name, record.due.hour, record.due.minute, record.attempts) == ("nightly", 3, 0, 0)


def test_a_worker_runs_on_a_dynamodb_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, setting in ENVIRONMENT.items():
        monkeypatch.setenv(name, setting)
    url = f"dynamodb://worker-{uuid4().hex}?endpoint={start_server('ministack')}"
    with Database(url) as db:
        db.table.create()
        try:
            for number in range(20):
                db.jobs.enqueue("note", str(number))
            ended = start("worker", "app", "--drain", "--url", url, folder=folder, **ENVIRONMENT)
            assert ended.returncode == 0, ended.stderr
            assert ended.stderr.endswith("done: 20 jobs started, 20 succeeded\n")
            assert [db.get_one(Done, str(number)).runs for number in range(20)] == [1] * 20
        finally:
            db.table.delete()


# --- messages and errors at the start ---------------------------------------------------------------------


def test_a_worker_prints_its_jobs_its_queues_and_its_requests_when_idle(
    start_worker: Callable[..., RunningWorker],
) -> None:
    worker = start_worker(
        "--queue", "urgent", "--queue", "default", "--poll-interval", "2", "--concurrency", "5"
    )
    worker.wait_for("note: this worker does not serve queue slow")
    worker.send_signal()
    worker.end()
    assert worker.lines[0].startswith("jobs: bad, call, elsewhere, hold, ")
    assert worker.lines[1:3] == [
        "queues: urgent, default; up to 5 jobs at a time",
        "when idle: at most 960 requests per minute",
    ]


def test_the_options_have_the_same_defaults_as_the_library() -> None:
    (command,) = (command for words, command in list_commands() if words == "holdall worker")
    known = inspect.signature(Worker).parameters
    options = {option.name: option for option in command.params if isinstance(option, click.Option)}
    shared = {name: option.default for name, option in options.items() if name in known and name != "hooks"}
    assert {*shared} == {"queues", "concurrency", "lease", "poll_interval", "grace", "processes"}
    for name, default in shared.items():
        given = None if name == "processes" else default
        assert given == known[name].default


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (("broken",), "module broken cannot be imported: ZeroDivisionError", "look at "),
        (("nowhere",), "there is no module nowhere", "the working directory is searched first"),
        (("empty",), "no job is declared in empty", "name the modules that declare jobs"),
        (("app", "--hook", "app:nothing"), "app has no function 'nothing'", "write it as module:function"),
        (("app", "--hook", "app"), "'app' does not name a function", "write it as module:function"),
        (("app", "--hook", "app:URL.x"), "app has no function 'URL.x'", "write it as module:function"),
        (("app", "--hook", "app:hold_async.function"), "<function hold_async", "pass a plain function"),
        (("app", "--queue", "a b"), "'a b' is not a valid name for a queue", "use up to 64 letters"),
        (
            ("app", "--url", "embedded:other.db"),
            "there is no table holdall",
            "run `holdall --url embedded:other.db table create`",
        ),
        (("app", "--url", "sqlite:x"), "'sqlite:x' is not a database URL", "use one of: "),
    ],
)
def test_invalid_arguments_are_reported_at_the_start(
    folder: Path, words: tuple[str, ...], problem: str, hint: str
) -> None:
    ended = start("worker", *words, folder=folder, HOLDALL_URL=URL)
    assert (ended.returncode, ended.stdout) == (2, "")
    first, *rest = ended.stderr.splitlines()
    assert first.startswith(f"error: {problem}")
    assert not hint or rest[0].startswith(f"hint: {hint}")


def test_a_store_that_cannot_be_opened_is_reported_at_the_start(folder: Path) -> None:
    ended = start("worker", "app", "--url", "embedded:/dev/null/x.db", folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: /dev/null/x.db cannot be opened")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("app", "--concurrency", "0"),
        ("app", "--lease", "0"),
        ("app", "--grace", "-1"),
        ("app", "--nonsense"),
    ],
)
def test_an_invalid_command_line_has_the_exit_status_2(words: tuple[str, ...]) -> None:
    assert call("worker", *words).exit_code == 2
