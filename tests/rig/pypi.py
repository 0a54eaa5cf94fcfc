"""Packages of PyPI in an environment of their own, made once; tests that cannot have it are skipped."""

from __future__ import annotations

import sys
from pathlib import Path

from rig.installation import ROOT, run_installer

__all__ = ["install"]


def install(name: str, *what: str) -> Path:
    """Install ``what``, arguments of ``pip install``, into the environment ``name``; returns its interpreter."""
    run_installer(sys.executable, ROOT / "scripts" / "environment.py", ROOT / name, *what)
    return ROOT / name / "bin" / "python"
