"""A transfer holds only a few parts of an object in memory, however large the object is.

The tests measure by how much the peak memory of a process (``ru_maxrss``) grows while it transfers a sparse file, after
a small object was transferred in the same way. The limit is two thirds of the file's size in a normal run, and a
thirtieth under ``make torture``.
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


def measure_growth(where: str, size: int, way: str) -> int:
    """Transfer a file in another process and return by how many KiB its memory grew."""
    (line,) = run_script("measured_transfer.py", where, size, way)
    return int(line)


@pytest.mark.torture
def test_every_transfer_on_disk_takes_at_most_32_mib(tmp_path: Path) -> None:
    for way in ("path", "stream", "async path", "download", "handle", "pieces"):
        assert measure_growth(f"file:{tmp_path / 'files'}", SIZE, way) <= LIMIT_KIB, way


@pytest.mark.torture
def test_every_transfer_with_a_bucket_takes_at_most_32_mib() -> None:
    url, prefix = start_server("ministack"), f"memory/{uuid4().hex}"
    bucket_service(prefix).close()
    for way in ("path", "stream", "async path", "download", "handle", "pieces"):
        assert measure_growth(f"{url} {prefix}", SIZE, way) <= LIMIT_KIB, way
