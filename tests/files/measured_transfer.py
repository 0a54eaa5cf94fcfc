"""A program that transfers a large file and prints by how many KiB the peak memory of this process grew.

``python measured_transfer.py WHERE BYTES WAY``; WHERE is ``file:DIRECTORY``, or the URL of an S3 server and a prefix.
WAY is ``path``, ``stream`` or ``async path``; or ``download``, ``handle`` or ``pieces``, for an object that an earlier
run has put. The file is sparse, so nothing has to be written first. Before the measurement, the program transfers a
small object in the same way, so that all modules are loaded.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
from pathlib import Path

from rig.files import service_at

from holdall import Database


def measure_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def transfer(db: Database, way: str, path: Path, size: int, key: str) -> None:
    if way == "path":
        assert db.files.put(key, path).size == size
    elif way == "stream":
        with path.open("rb") as stream:
            assert db.files.put(key, stream).size == size
    elif way == "async path":
        assert asyncio.run(db.aio.files.put(key, path)).size == size
    elif way == "download":
        target = path.with_name("target")
        db.files.download(key, target)
        assert target.stat().st_size == size
    else:
        with db.files.open(key) as handle:
            assert sum(map(len, handle if way == "handle" else handle.pieces())) == size


def main(where: str, size: int, way: str) -> None:
    with tempfile.TemporaryDirectory() as directory, Database("memory:", files=service_at(where)) as db:
        path = Path(directory, "source")
        path.write_bytes(b"small")
        db.files.put("small", path)
        transfer(db, way, path, 5, "small")
        os.truncate(path, size)
        before = measure_peak()
        transfer(db, way, path, size, "large")
        print(measure_peak() - before)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
