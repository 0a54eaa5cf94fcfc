"""The peers' own environment, ``.venv-peers`` beside ours: their packages never enter ours.

Made when first needed, with the versions pinned in ``peers.txt``, and again when that list changes. Peers run
as subprocesses of its interpreter; ``python -m benchmarks.peers`` only makes it.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["interpreter"]

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".venv-peers"
PINNED = HERE / "peers.txt"


@cache
def interpreter() -> Path:
    """The interpreter of the peers' environment."""
    python = ENVIRONMENT / "bin" / "python"
    wanted = f"{sys.version}\n{PINNED.read_text(encoding='utf-8')}"
    mark = ENVIRONMENT / "installed.txt"  # written last: an interrupted installation starts again
    if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
        _install(python)
        mark.write_text(wanted, encoding="utf-8")
    return python


def _install(python: Path) -> None:
    packages = [line for line in PINNED.read_text(encoding="utf-8").splitlines() if line]
    print(f"installing into {ENVIRONMENT.name}: {', '.join(packages)}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps"]
    subprocess.run([*pip, "-r", str(PINNED)], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    print(interpreter())
