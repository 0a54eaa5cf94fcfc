"""A full disk: writes raise an error, acknowledged items stay, and writes succeed again once there is space."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run_command(*command: object) -> subprocess.CompletedProcess[str]:
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=120, check=False, env=path
    )


def on_a_small_disk(directory: Path, *command: object) -> list[str]:
    """Wrap a command so that it runs with a disk of 1 MB mounted at the directory."""
    mount = f"mount -t tmpfs -o size=1m tmpfs {shlex.quote(str(directory))}"
    rest = shlex.join(map(str, command))
    rights = "-m" if os.getuid() == 0 else "-rm"
    return ["unshare", rights, "sh", "-c", f"{mount} && exec {rest}"]


def test_a_full_disk_refuses_writes_and_loses_nothing(tmp_path: Path) -> None:
    try:
        possible = run_command(*on_a_small_disk(tmp_path, "true")).returncode == 0
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("this environment does not permit mounting a small disk")
    done = run_command(*on_a_small_disk(tmp_path, sys.executable, HERE / "full_disk_writer.py", tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["StoreFullError", "continued"]


def test_a_file_at_its_size_limit_refuses_writes_and_loses_nothing(tmp_path: Path) -> None:
    done = run_command(sys.executable, HERE / "limited_writer.py", tmp_path)
    assert done.returncode == 0, done.stderr
    error, rest = done.stdout.split()
    # The system reports an I/O error, after which we do not know which part of the last write is on the disk.
    assert error in ("StoreFullError", "StoreError", "OutcomeUnknown")
    assert rest == "intact"
