"""Every Python that pyproject.toml names runs the contracts in memory: this one in `backends`, the others here."""

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
CHECKS = 500  # fewer would mean that something was not collected


def find_interpreter(version: str) -> str | None:
    """An interpreter of a version: one on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for candidate in candidates:
        # what is on the path may be pyenv's own program, which finds no Python of that version
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def test_the_versions_begin_where_the_package_does() -> None:
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
