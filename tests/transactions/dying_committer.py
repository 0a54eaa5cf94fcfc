"""Processes that commit with a toy participant, on a store in a directory; and one that sweeps what they left.

- ``dying_committer.py die COLOUR HOW DIRECTORY STEP...``: for each step, in its own directory, a child commits one
  picture and kills itself at the step; the program prints the exit code of each child.
- ``dying_committer.py work COLOUR NAME DIRECTORY``: commits one picture after the other, and prints the number of each
  committed one, until the process is killed.
- ``dying_committer.py sweep DIRECTORY...``: for each directory, prints what is stored, the result of a sweep, and what
  is stored afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from toy_participant import Album, Picture, Upload, Uploads, sweep_files
from transactions_rig import Colour, Driver, RecordedStore, is_commit, resolve

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend

ALBUMS = ["summer", "ada", "bob"]


class Committer:
    """A driver on the store of a directory; it commits pictures."""

    def __init__(self, directory: Path, colour: Colour) -> None:
        self.files = directory / "files"
        self.files.mkdir(exist_ok=True)
        self.store = RecordedStore(EmbeddedBackend(directory / "store.db"))
        self.driver = Driver(colour, Database(backend=self.store))
        self.driver.db.get(Album, "summer")

    def commit(self, album: str, name: str, data: bytes, step: Any = lambda name: None) -> None:
        async def body(tx: Any) -> None:
            owner = await resolve(tx.get(Album, album, create_if_missing=True))
            owner.size += 1
            tx.join(Upload(self.files, tx.carry.of(Uploads), album, name, data, step))
            tx.after_commit(step, "in the handler")

        self.store.before = lambda request: step("before the write") if is_commit(request) else None
        self.store.after = lambda request: step("after the write") if is_commit(request) else None
        self.driver.run(body)
        self.store.before = self.store.after = lambda request: None


def die(colour: Colour, how: str, directory: Path, steps: Sequence[str]) -> None:
    for number, step in enumerate(steps):
        home = directory / str(number)
        home.mkdir()
        child = os.fork()
        if child == 0:
            _die_at(step, colour, how, home)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _die_at(where: str, colour: Colour, how: str, directory: Path) -> None:
    def step(name: str) -> None:
        if name == where:
            if how == "exit":
                os._exit(3)
            os.kill(os.getpid(), signal.SIGKILL)

    Committer(directory, colour).commit("summer", "beach", b"picture", step)


def work(colour: Colour, name: str, directory: Path) -> None:
    committer = Committer(directory, colour)
    known = [int(picture.name) for picture in committer.driver.db.query(Picture, album=name)]
    for number in count(max(known, default=-1) + 1):
        committer.commit(name, f"{number:06}", f"{name} {number}".encode())
        os.write(1, f"{number}\n".encode())


def sweep(directory: Path) -> dict[str, Any]:
    files = directory / "files"
    with Database(f"embedded:{directory / 'store.db'}") as db:
        before = _state(db, files)
        found = sweep_files(db, files, ALBUMS)
        return {
            "before": before,
            "garbage": sorted(found.garbage),
            "settled": sorted(found.settled),
            "after": _state(db, files),
        }


def _state(db: Database, files: Path) -> dict[str, Any]:
    owners = [album for album in db.get_all([Album.key(title) for title in ALBUMS]) if album is not None]
    rows = [row for title in ALBUMS for row in db.query(Picture, album=title)]
    return {
        "owners": {album.title: album.size for album in owners},
        "rows": [[row.album, row.name, row.file] for row in rows],
        "files": {file.name: file.read_text() for file in sorted(files.iterdir())},
    }


def main(command: str, *arguments: str) -> None:
    if command == "sweep":
        for directory in arguments:
            print(json.dumps(sweep(Path(directory))), flush=True)
        return
    colour_name, argument, directory, *steps = arguments
    colour: Colour = "blocking" if colour_name == "blocking" else "awaiting"
    if command == "die":
        die(colour, argument, Path(directory), steps)
    else:
        work(colour, argument, Path(directory))


if __name__ == "__main__":
    main(*sys.argv[1:])
