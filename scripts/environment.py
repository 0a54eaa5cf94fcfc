"""Make a virtual environment: ``python scripts/environment.py HOME ARGUMENT...``, with arguments of ``pip install``.

uv installs the packages, in seconds, because it links files from its cache. If uv is not on the path, pip first
installs it into the environment. If uv cannot be installed or fails, pip installs the packages. An environment that was
made with the same arguments, and the same content of the files that they name, is not changed. An environment of
another Python, or one whose installation was interrupted, is rebuilt.
"""

from __future__ import annotations

import configparser
import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

QUIETLY = ["--disable-pip-version-check", "--quiet", "install"]
SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
}
"""pip's settings that uv needs: the variable that uv reads, and the separator of its values."""


def make_environment(home: Path, arguments: list[str]) -> None:
    """Make the environment unless it is up to date; a lock keeps other processes from making it at the same time."""
    wanted = "\n".join([sys.version, *arguments, *read_files(arguments)])
    mark = home / "installed.txt"  # exists while the installation is complete
    making = home / ".making"  # .lock is uv's own
    home.mkdir(parents=True, exist_ok=True)
    was_begun = making.exists()
    with making.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = mark.read_text(encoding="utf-8") if mark.exists() else None
        if made != wanted:
            mark.unlink(missing_ok=True)
            if was_begun and not (made or "").startswith(sys.version):
                clear(home)
            venv.create(home, symlinks=True)
            install(home, arguments)
        mark.write_text(wanted, encoding="utf-8")


def clear(home: Path) -> None:
    """Delete what an interrupted installation or another Python left; uv and pip would take it for installed."""
    for path in (home / name for name in ("bin", "include", "lib", "lib64")):
        if path.is_symlink():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)


def read_files(arguments: list[str]) -> Iterator[str]:
    """The content of each file that an argument names, alone or as in ``pyproject.toml:dev``."""
    for argument in arguments:
        file = Path(argument.partition(":")[0])
        if file.is_file() and file.suffix != ".whl":
            yield file.read_text(encoding="utf-8")


def install(home: Path, arguments: list[str]) -> None:
    """Install into the environment, with uv or else with the newest pip."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        run_pip(home, "--no-deps", "--no-compile", "--only-binary", ":all:", "uv", check=False)
        uv = shutil.which("uv", path=str(home / "bin"))
    if uv is not None:
        command = [uv, "pip", "install", "--quiet", "--python", str(home), *arguments]
        if subprocess.run(command, env={**translate_settings(), **os.environ}, check=False).returncode == 0:
            return
        print("uv failed; pip tries the same", file=sys.stderr)
    run_pip(home, "pip")  # this Python's pip may be too old for --group
    subprocess.run([str(home / "bin" / "python"), "-m", "pip", *QUIETLY, *arguments], check=True)


def run_pip(home: Path, *arguments: str, check: bool = True) -> None:
    """Install into the environment with this Python's pip, which may be older than its option ``--python``."""
    pip = find_spec("pip")
    if pip is None or pip.origin is None:
        sys.exit(f"{sys.executable} has no pip")
    command = [str(home / "bin" / "python"), str(Path(pip.origin).parent), *QUIETLY, "--ignore-installed"]
    subprocess.run([*command, *arguments], check=check)


def translate_settings() -> dict[str, str]:
    """pip's settings, from its files and its environment variables, as uv's environment variables."""
    files = configparser.RawConfigParser(strict=False)
    places = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf"]
    places += [f"{sys.prefix}/pip.conf", os.environ.get("PIP_CONFIG_FILE", os.devnull)]
    files.read([Path(place).expanduser() for place in places])
    found: dict[str, str] = {}
    for section in ("global", "install"):
        found |= dict(files[section]) if files.has_section(section) else {}
    found |= {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith("PIP_")
    }
    return {name: mark.join(found[ours].split()) for ours, (name, mark) in SETTINGS.items() if ours in found}


if __name__ == "__main__":
    try:
        make_environment(Path(sys.argv[1]), sys.argv[2:])
    except subprocess.CalledProcessError:
        sys.exit(f"{sys.argv[1]} is not complete, because pip failed; its messages are above")
