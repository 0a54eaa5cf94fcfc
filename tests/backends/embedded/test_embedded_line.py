"""The queue of processes that wait to write: when a process leaves it in any way, the next one has its turn."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from embedded_things import fill, get, put
from test_embedded_locks import hold_lock, open_backend

from holdall.backends.embedded.line import Line

WAITS_IN_LINE = """
import sys
from pathlib import Path
from holdall.backends.embedded.line import Line
place = Line(Path(sys.argv[1])).enter()
assert place.wait(30)
print("first", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "store.db-wal").touch()
    return tmp_path / "store.db-wal"


def test_the_next_in_line_has_its_turn_when_the_first_leaves(log: Path) -> None:
    with closing(Line(log)) as one, closing(Line(log)) as other:
        first = one.enter()
        assert first is not None
        assert first.wait(30)
        second = other.enter()
        assert second is not None
        assert not second.wait(0.01)
        del first
        assert second.wait(30)


def test_a_process_that_gives_up_waiting_does_not_block_the_next(log: Path) -> None:
    with closing(Line(log)) as one, closing(Line(log)) as other, closing(Line(log)) as third:
        first = one.enter()
        assert first is not None
        assert first.wait(30)
        second, last = other.enter(), third.enter()
        assert last is not None
        del second  # its thread is still waiting
        del first
        assert last.wait(30)


def test_a_killed_process_leaves_the_line(log: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS_IN_LINE, str(log)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        with closing(Line(log)) as line:
            place = line.enter()
            assert place is not None
            assert not place.wait(0.01)
            process.send_signal(signal.SIGKILL)
            assert place.wait(30)
    finally:
        process.kill()
        process.communicate()


def test_without_a_log_there_is_no_line(tmp_path: Path) -> None:
    with closing(Line(tmp_path / "store.db-wal")) as line:
        assert line.enter() is None


def test_a_write_succeeds_despite_a_stopped_process_at_the_head_of_the_line(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path)
    with open_backend(path, patience=30) as backend:
        backend.send_blocking(put("first"))
        stopped = os.open(tmp_path / "store.db-wal", os.O_RDONLY)
        try:
            fcntl.flock(stopped, fcntl.LOCK_EX)
            with hold_lock(path, "BEGIN IMMEDIATE") as other:
                writing = threading.Thread(target=backend.send_blocking, args=(put("second"),))
                writing.start()
                other.execute("COMMIT")
                writing.join()
        finally:
            os.close(stopped)
        assert backend.send_blocking(get("second")).item is not None
