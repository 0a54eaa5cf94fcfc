"""Processes that are killed after any request of a change to an artifact: who comes next finds everything in order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rig.files import bucket_service
from rig.servers import start_server
from rig.torture import run_script

pytestmark = pytest.mark.torture

TORTURE = bool(os.environ.get("HOLDALL_TORTURE"))
SCRIPT = "artifact_dying.py"


def test_whoever_comes_after_a_killed_process_finds_everything_in_order(tmp_path: Path) -> None:
    assert len(run_script(SCRIPT, "disk", "-", tmp_path, 0 if TORTURE else 3)) >= 12


def test_also_on_servers(tmp_path: Path) -> None:
    bucket_service("artifacts").close()  # there is a bucket from here on
    assert len(run_script(SCRIPT, "wire", start_server("ministack"), tmp_path, 0 if TORTURE else 6)) >= 3
