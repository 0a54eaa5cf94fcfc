"""Packages of npm, installed once beside the environment; where that cannot be, tests are skipped with the reason."""

from __future__ import annotations

import shutil
from pathlib import Path

from rig.installation import ROOT, NotHereError, installing, run_installer

__all__ = ["install"]


def install(wanted: Path, name: str) -> Path:
    """Put what a ``package.json`` names into the directory ``name``, unless it is there; gives its ``node_modules``."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotHereError(f"{program} is not installed")
    home, text = ROOT / name, wanted.read_text(encoding="utf-8")
    with installing(home, text) as needed:
        if needed:
            (home / "package.json").write_text(text, encoding="utf-8")
            quickly = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
            run_installer("npm", "install", "--loglevel=error", *quickly, folder=home)
    return home / "node_modules"
