"""The wheel can be built from the source distribution, and works once installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import holdall

ROOT = Path(__file__).parents[2]
PROGRAM = """
from holdall import Database, Key, Model

class Order(Model):
    number: Key[str]

with Database("memory:") as db:
    db.run(lambda tx: tx.create(Order, number="1"))
    print(db.get_one(Order, "1").number, __import__("holdall").__file__)
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that was built from it outside the repository."""
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed; it is in the dependency group dev")
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, "sdist", folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    build(source, "wheel", folder)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def build(source: Path, target: str, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def test_the_source_distribution_has_the_package_its_license_and_its_pages(
    distributions: tuple[Path, Path],
) -> None:
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/holdall/py.typed"} <= names
    assert not [name for name in names if name.startswith((".venv", "build", "tests/fixtures"))]


def test_the_wheel_has_every_file_of_the_package_and_no_other(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = set(wheel.namelist())
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = wheel.read(metadata).decode()
    package = ROOT / "src" / "holdall"
    ours = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if not name.startswith("holdall-")} == ours
    assert f"\nVersion: {holdall.__version__}\n" in text
    assert "\nLicense-Expression: MIT\n" in text


def test_the_wheel_works_once_installed(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--no-compile", str(distributions[1])], check=True)
    (packages,) = (home / "lib").glob("python*/site-packages")
    # its dependencies come from this environment, so nothing is downloaded
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, check=True, cwd=tmp_path, env=clean, capture_output=True, text=True)
        return done.stdout

    assert run(home / "bin" / "holdall", "--version") == f"holdall {holdall.__version__}\n"
    printed, place = run(python, "-c", PROGRAM).split()
    assert printed == "1"
    assert Path(place).is_relative_to(home)
