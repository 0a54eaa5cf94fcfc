"""A process that has children copy a database with everything in it, and die; then it finishes what they left.

``dying_copier.py SOURCE COLOUR FOLDER COUNT...``: for each count, into a database of its own, a child is killed after
that many writes to the target, in tables and files together, or after a page (a count below 0). Another child continues
and is killed half as far. Prints for each, as JSON, how the children ended, and what differs in the end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

from full_database import MODELS, describe
from rig.recorder import Recorder

from holdall import Database
from holdall.backends.configuration import open_backend
from holdall.backends.disk import DiskService
from holdall.maintenance import CopyReport


def copy(source: str, target: str, colour: str, left: int | None, *, verify: bool = False) -> CopyReport:
    """Copy, and die after so many writes, or pages."""
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


def let_die(source: str, target: str, colour: str, left: int) -> int:
    child = os.fork()
    if child == 0:
        copy(source, target, colour, left)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def story(source: str, colour: str, folder: Path, count: int) -> dict[str, Any]:
    target = str(folder / f"target{count}")
    ended = [let_die(source, target, colour, each) for each in (count, count // 2)]
    report = copy(source, target, colour, None, verify=True)
    with (
        Database(f"embedded:{source}.db", files=f"file:{source}-files") as ours,
        Database(f"embedded:{target}.db", files=f"file:{target}-files") as theirs,
    ):
        one, other = describe(ours), describe(theirs)
    return {
        "ended": ended,
        "current": report.is_current,
        "verified": [part.verified for part in report.parts],
        "different": [name for name in one if one[name] != other[name]],
    }


def main(source: str, colour: str, folder: str, *counts: str) -> None:
    logging.disable()
    for count in counts:
        print(json.dumps(story(source, colour, Path(folder), int(count))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
