"""What tests install beside the environment: once, by one process at a time."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ROOT", "NotHereError", "installing", "run_installer"]

ROOT = Path(__file__).parents[2]


class NotHereError(Exception):
    """This machine lacks what a test needs; the test is skipped with this reason."""


@contextmanager
def installing(home: Path, wanted: str) -> Iterator[bool]:
    """Whether ``wanted`` must be installed into that directory, while no other process does so."""
    home.mkdir(exist_ok=True)
    mark = home / "installed.txt"  # written last: an interrupted installation starts again
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        needed = not mark.exists() or mark.read_text(encoding="utf-8") != wanted
        yield needed
        if needed:
            mark.write_text(wanted, encoding="utf-8")


def run_installer(*command: str | Path, folder: Path = ROOT) -> None:
    """Run it to its end; `NotHereError` if it fails."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise NotHereError(f"{' '.join(map(str, command[:3]))} … failed: {lines[-1]}")
