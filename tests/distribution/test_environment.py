"""``scripts/environment.py``: it passes pip's settings to uv, runs uv only when needed, and falls back to pip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rig.torture import TORTURE

PROGRAM = Path(__file__).parents[2] / "scripts" / "environment.py"
UV = """#!/bin/sh
(env; echo "$@") > "$RECORD"
exit $STATUS
"""


class Maker:
    """Runs the program with a uv on its path that only records how it was started."""

    def __init__(self, folder: Path) -> None:
        self.home, self.record = folder / "home", folder / "record"
        uv = folder / "uv"
        uv.write_text(UV, encoding="utf-8")
        uv.chmod(0o755)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "SSL_"))}
        self.environment = {**ours, "PATH": path, "RECORD": str(self.record), "STATUS": "0"}

    def __call__(self, *arguments: str, **settings: str) -> list[str] | None:
        """The lines of uv's environment and, last, its arguments; None if uv was not started."""
        self.record.unlink(missing_ok=True)
        environment = {**self.environment, **settings}
        subprocess.run([sys.executable, PROGRAM, self.home, *arguments], check=True, env=environment)
        return self.record.read_text(encoding="utf-8").splitlines() if self.record.exists() else None


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


def test_uv_gets_pips_settings(make: Maker, tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    mirrors = "extra-index-url =\n  https://a.test/\n  https://b.test/\n"
    file.write_text(f"[global]\nindex-url = https://one.test/\n{mirrors}[install]\nfind-links = /x\n  /y\n")
    given = make("six", PIP_CONFIG_FILE=str(file), PIP_INDEX_URL="https://two.test/", PIP_CERT="/z.pem")
    assert given is not None
    assert {
        "UV_DEFAULT_INDEX=https://two.test/",  # for pip, variables override files
        "UV_INDEX=https://a.test/ https://b.test/",
        "UV_FIND_LINKS=/x,/y",
        "SSL_CERT_FILE=/z.pem",
    } <= set(given)
    assert given[-1] == f"pip install --quiet --python {make.home} six"


def test_uvs_own_settings_take_precedence(make: Maker) -> None:
    given = make("six", PIP_INDEX_URL="https://pip.test/", UV_DEFAULT_INDEX="https://uv.test/")
    assert given is not None
    assert "UV_DEFAULT_INDEX=https://uv.test/" in given


def test_an_environment_is_made_again_when_a_file_of_its_packages_changes(
    make: Maker, tmp_path: Path
) -> None:
    pinned = tmp_path / "pinned.txt"
    pinned.write_text("six==1.16.0\n")
    assert make("-r", str(pinned)) is not None
    assert make("-r", str(pinned)) is None
    pinned.write_text("six==1.17.0\n")
    assert make("-r", str(pinned)) is not None


@pytest.mark.parametrize("mark", [None, "3.1\nsix"], ids=["interrupted", "another Python"])
def test_an_interrupted_environment_and_one_of_another_python_are_rebuilt(
    make: Maker, mark: str | None
) -> None:
    assert make("six") is not None
    installed, python = make.home / "installed.txt", make.home / "bin" / "python"
    half = make.home / "lib" / "half.py"
    half.touch()
    python.unlink()
    python.symlink_to("missing")
    installed.unlink() if mark is None else installed.write_text(mark)
    assert make("six") is not None
    assert not half.exists()
    subprocess.run([python, "-c", ""], check=True)
    half.touch()
    assert make("six", "attrs") is not None
    assert half.exists(), "a complete environment is updated in place"


OLD_PIP = """import os, sys
with open(os.environ["RUNS"], "a") as runs:
    print(*sys.argv[1:], file=runs)
sys.exit("--python" in sys.argv)
"""


def test_a_pip_without_the_option_python_takes_over_when_uv_fails(make: Maker, tmp_path: Path) -> None:
    pip, runs = tmp_path / "old" / "pip", tmp_path / "runs"
    pip.mkdir(parents=True)
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(OLD_PIP)
    assert make("six", STATUS="2", PYTHONPATH=str(pip.parent), RUNS=str(runs)) is not None
    assert [line.split()[-1] for line in runs.read_text().splitlines()] == ["pip", "six"]


if TORTURE:  # pip first downloads itself, which takes seconds

    def test_pip_takes_over_when_uv_fails(make: Maker) -> None:
        index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        assert make("six", STATUS="2", **index) is not None
        subprocess.run([make.home / "bin" / "python", "-c", "import six"], check=True)
