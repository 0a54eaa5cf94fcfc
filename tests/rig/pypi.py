"""Packages of PyPI in an environment of their own, made once; tests that cannot have it are skipped."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

from rig.npm import NotHereError

__all__ = ["install"]

ROOT = Path(__file__).parents[2]


def install(pinned: Path, name: str) -> Path:
    """Put what a file names into the environment ``name``, unless they are there; gives its interpreter."""
    wanted = f"{sys.version}\n{pinned.read_text(encoding='utf-8')}"
    home = ROOT / name
    mark = home / "installed.txt"  # written last: an interrupted installation starts again
    home.mkdir(exist_ok=True)
    with (home / ".lock").open("w") as lock:  # while no other process does so
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            python = [sys.executable, "-m"]
            quietly = ["--quiet", "--disable-pip-version-check"]
            _run([*python, "venv", "--without-pip", str(home)])  # ours will do
            _run([*python, "pip", "--python", str(home), *quietly, "install", "--no-deps", "-r", str(pinned)])
            mark.write_text(wanted, encoding="utf-8")
    return home / "bin" / "python"


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise NotHereError(f"{' '.join(command[1:3])} failed: {lines[-1]}")
