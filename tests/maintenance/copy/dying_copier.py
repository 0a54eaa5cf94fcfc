"""Starts children that copy a filled database and die; then it finishes their copy.

``dying_copier.py SOURCE COLOUR FOLDER COUNT...``: for each count, with new databases, a child is killed after that many
writes to the target, in tables and files together, or after a page (a count below 0). Then the source changes. Another
child continues and is killed after half as many, and the source changes again. If a count begins with ``again``, a
complete copy is made first. For each count, the program prints how the children ended and what differs, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from copy_rig import items
from full_database import MODELS, TABLES, change, describe
from rig.recorder import Recorder

from holdall import Database
from holdall.backends.configuration import open_backend
from holdall.backends.disk import DiskService
from holdall.maintenance import CopyReport


def copy(source: str, target: str, colour: str, left: int | None, *, verify: bool = False) -> CopyReport:
    """Copy, and die after this many writes or pages."""
    pages = 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def count(request: Any) -> None:
        if left is not None and left >= 0 and request.writes:
            writes.append(request)
            if len(writes) > left:
                die()

    def progress(report: CopyReport) -> None:
        nonlocal pages
        pages += 1
        if left is not None and left < 0 and pages >= -left:
            die()

    writes: list[Any] = []
    backend, *_ = open_backend(f"embedded:{target}.db?durability=normal", None, None, None, {})
    store = Recorder(backend)
    store.after = count
    files = Recorder(DiskService(f"{target}-files"), beside=store)
    options: dict[str, Any] = {
        "models": MODELS,
        "manifest": f"{target}.manifest",
        "segments": 2,
        "verify": verify,
        "delete": True,
        "progress": progress,
    }
    with (
        Database(f"embedded:{source}.db?durability=normal", files=f"file:{source}-files") as ours,
        Database(f"embedded:{target}.db?durability=normal", backend=store, files=files) as theirs,
    ):
        if colour == "blocking":
            return ours.copy_to(theirs, **options)
        return asyncio.run(ours.aio.copy_to(theirs.aio, **options))


def run_dying_child(source: str, target: str, colour: str, left: int) -> int:
    child = os.fork()
    if child == 0:
        copy(source, target, colour, left)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_count(origin: str, colour: str, folder: Path, word: str) -> dict[str, Any]:
    count = int(word.removeprefix("again"))
    source, target = str(folder / f"source{word}"), str(folder / f"target{word}")
    shutil.copy(f"{origin}.db", f"{source}.db")
    shutil.copytree(f"{origin}-files", f"{source}-files")
    if word.startswith("again"):
        copy(source, target, colour, None)
        alter(source, f"{word} before")
    ended = []
    for number, left in enumerate((count, count // 2)):
        ended.append(run_dying_child(source, target, colour, left))
        alter(source, f"{word} after {number}")
    copy(source, target, colour, None)  # another pass copies what changed after it was read
    report = copy(source, target, colour, None, verify=True)
    with (
        Database(f"embedded:{source}.db", files=f"file:{source}-files") as ours,
        Database(f"embedded:{target}.db", files=f"file:{target}-files") as theirs,
    ):
        one, other = describe(ours), describe(theirs)
        tables = [len(items(ours, each)) for each in (None, *TABLES)]
        expected = [*tables, len(list(ours.files.list()))]
    return {
        "ended": ended,
        "current": report.is_current,
        "counts": [expected, [part.verified for part in report.parts]],
        "different": [name for name in one if one[name] != other[name]],
        "differences": [line for part in report.parts for line in part.differences],
    }


def alter(source: str, seed: str) -> None:
    with Database(f"embedded:{source}.db?durability=normal", files=f"file:{source}-files") as db:
        change(db, seed)


def main(source: str, colour: str, folder: str, *counts: str) -> None:
    logging.disable()
    for count in counts:
        print(json.dumps(run_count(source, colour, Path(folder), count)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
