"""The examples and the demo are programs that run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torture  # it takes long: it is among the first to be run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def run_program(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {name: text for name, text in os.environ.items() if not name.startswith("HOLDALL_")}
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=600)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_says_something(example: Path, tmp_path: Path) -> None:
    ended = run_program(str(example), folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    assert not ended.stderr


def test_the_demo_runs_and_leaves_a_report_that_needs_nothing_else(tmp_path: Path) -> None:
    ended = run_program(
        str(ROOT / "scripts" / "demo.py"), "--folder", str(tmp_path / "demo"), folder=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    report = tmp_path / "demo" / "report.html"
    assert str(report) in ended.stdout.splitlines()[-1]
    page = report.read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!#)[^"']*""", page)
    assert not re.findall(r"@import|(?<![\w.])url\(", page)
    assert "prefers-color-scheme: dark" in page
