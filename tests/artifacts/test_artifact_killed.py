"""Kills processes after the requests of each change of an artifact: the next process finds a consistent state."""

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


def test_after_a_killed_process_the_next_one_finds_a_consistent_state(tmp_path: Path) -> None:
    assert len(run_script(SCRIPT, "disk", "-", tmp_path, 0 if TORTURE else 3)) >= 12


def test_after_a_killed_process_on_a_server_the_next_one_finds_a_consistent_state(tmp_path: Path) -> None:
    bucket_service("artifacts").close()  # creates the bucket
    assert len(run_script(SCRIPT, "wire", start_server("ministack"), tmp_path, 0 if TORTURE else 6)) >= 3
