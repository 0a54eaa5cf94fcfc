"""Forks: parent and child both keep using the store, and share no connection of SQLite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fork_scenarios import SCENARIOS
from rig.store_audit import audit
from rig.torture import ROUNDS, SEEDED, run_script

pytestmark = pytest.mark.torture


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_store_keeps_working_around_a_fork(tmp_path: Path, scenario: str) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this platform does not fork")
    if "inherited" in scenario and not Path("/proc/self/fd").is_dir():
        pytest.skip("this platform has no /proc, which lists a process's descriptors")
    run_script("fork_scenarios.py", scenario, tmp_path, ROUNDS)
    if (tmp_path / "store.db").exists():
        audit(tmp_path / "store.db", SEEDED)
