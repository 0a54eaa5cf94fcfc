"""However large the object is, a transfer holds a few parts of it.

What is measured: by how much the most memory that a process ever had (``ru_maxrss``) grows while it transfers a sparse
file, after a small object has gone the same way. 300 MB on disk and 120 MB in S3 by default, 1 GB under ``make
torture``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from rig.files import bucket_service
from rig.servers import started

HERE = Path(__file__).parent
TORTURE = bool(os.environ.get("HOLDALL_TORTURE"))
LIMIT_KIB = 32 * 1024


def grown(where: str, size: int, way: str) -> int:
    """How many KiB a transfer takes, in a process of its own."""
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    command = [sys.executable, str(HERE / "measured_transfer.py"), where, str(size), way]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.torture
def test_on_disk_any_transfer_takes_less_than_32_mib(tmp_path: Path) -> None:
    size = 1_000_000_000 if TORTURE else 80_000_000
    for way in ("path", "stream", "async path", "download", "handle", "pieces"):
        assert grown(f"file:{tmp_path / 'files'}", size, way) <= LIMIT_KIB, way


@pytest.mark.torture
def test_in_a_bucket_any_transfer_takes_less_than_32_mib() -> None:
    size = 1_000_000_000 if TORTURE else 80_000_000
    url, prefix = started("ministack"), f"memory/{uuid4().hex}"
    bucket_service(prefix).close()
    for way in ("path", "stream", "async path", "download", "handle", "pieces"):
        assert grown(f"{url} {prefix}", size, way) <= LIMIT_KIB, way
