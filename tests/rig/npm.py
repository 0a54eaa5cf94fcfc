"""Packages of npm, installed once beside the environment; where that cannot be, tests are skipped with the reason."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

__all__ = ["NotHereError", "install"]

ROOT = Path(__file__).parents[2]


class NotHereError(Exception):
    """This machine lacks what the packages need."""


def install(wanted: Path, name: str) -> Path:
    """Put what a ``package.json`` names into the directory ``name``, unless it is there; gives its ``node_modules``."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotHereError(f"{program} is not installed")
    home, text = ROOT / name, wanted.read_text(encoding="utf-8")
    mark = home / "installed.txt"  # written last: an interrupted installation starts again
    home.mkdir(exist_ok=True)
    with (home / ".lock").open("w") as lock:  # while no other process does so
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists() and mark.read_text(encoding="utf-8") == text:
            return home / "node_modules"
        (home / "package.json").write_text(text, encoding="utf-8")
        quietly = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--loglevel=error"]
        done = subprocess.run(
            ["npm", "install", *quietly],
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
            raise NotHereError(f"npm install failed: {lines[0]}")
        mark.write_text(text, encoding="utf-8")
    return home / "node_modules"
