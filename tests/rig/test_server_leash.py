"""The leash on which the suites keep their servers: no server survives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LEASH = Path(__file__).parents[2] / "scripts" / "servers" / "leash.py"
SERVER = "import os, time; os.fork(); os.write(1, b'.'); time.sleep(1000)"
HOLDER = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # background jobs start with SIGINT ignored
command = [sys.executable, {str(LEASH)!r}, sys.executable, "-c", {SERVER!r}]
held = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_and_its_children_end_with_the_process_that_started_them(ending: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.read(2) == b".."  # the server and its child are up
            os.kill(holder.pid, ending)
            rest, _ = holder.communicate(timeout=20)  # returns when no process is left that could write
            assert rest == b""
        finally:
            holder.kill()


def test_the_leash_ends_with_its_server_s_exit_code() -> None:
    command = [sys.executable, str(LEASH), sys.executable, "-c", "raise SystemExit(3)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as held:
        assert held.wait(20) == 3
