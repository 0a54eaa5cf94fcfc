"""Every Python that pyproject.toml names passes the contracts in memory; `backends` tests the current Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.torture

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLAIMED = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
OTHERS = [version for version in CLAIMED if version != f"{sys.version_info.major}.{sys.version_info.minor}"]
CHECKS = 500  # with fewer, some checks were not collected


def find_interpreter(version: str) -> str | None:
    """An interpreter of this version, on the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for candidate in candidates:
        # the program on the path can be pyenv's shim, which may not find a Python of that version
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def test_the_oldest_claimed_version_is_the_one_that_the_package_requires() -> None:
    assert CLAIMED == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={CLAIMED[0]}"


@pytest.mark.parametrize("version", OTHERS)
def test_the_contracts_hold_in_memory(version: str) -> None:
    interpreter = find_interpreter(version)
    if interpreter is None:
        pytest.skip(f"Python {version} is not installed")
    program = Path(__file__).with_name("memory_contract.py")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [interpreter, "-W", "error", str(program)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > CHECKS
