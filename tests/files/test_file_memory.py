"""However large the object is, a transfer holds a few parts of it.

What is measured: by how much the most memory that a process ever had (``ru_maxrss``) grows while it transfers a sparse
file, after a small object has gone the same way: by two thirds of it at the most, every day, or by the thirtieth part,
under ``make torture``.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from rig.files import bucket_service
from rig.servers import start_server
from rig.torture import TORTURE, run_script

SIZE = 1_000_000_000 if TORTURE else 50_000_000
LIMIT_KIB = 32 * 1024


def grown(where: str, size: int, way: str) -> int:
    """How many KiB a transfer takes, in a process of its own."""
    (line,) = run_script("measured_transfer.py", where, size, way)
    return int(line)


@pytest.mark.torture
def test_on_disk_any_transfer_takes_less_than_32_mib(tmp_path: Path) -> None:
    for way in ("path", "stream", "async path", "download", "handle", "pieces"):
        assert grown(f"file:{tmp_path / 'files'}", SIZE, way) <= LIMIT_KIB, way


@pytest.mark.torture
def test_in_a_bucket_any_transfer_takes_less_than_32_mib() -> None:
    url, prefix = start_server("ministack"), f"memory/{uuid4().hex}"
    bucket_service(prefix).close()
    for way in ("path", "stream", "async path", "download", "handle", "pieces"):
        assert grown(f"{url} {prefix}", SIZE, way) <= LIMIT_KIB, way
