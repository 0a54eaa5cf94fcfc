"""A step about attachments: a process is killed during an upload."""

from __future__ import annotations

import signal
import subprocess
import sys

from holdall import Database, Key, Model, has_many_attached
from tour.files import open_disk
from tour.stage import Tour, step


class Member(Model):
    name: Key[str]
    documents = has_many_attached()


def open_database(tour: Tour) -> Database:
    return Database(backend=tour.store, files=open_disk(tour, "attached"), manage_table=True)


ATTACHER = """
import os, signal, sys
from holdall import Database, Key, Model, has_many_attached

class Member(Model):
    name: Key[str]
    documents = has_many_attached()

def pieces():
    yield b"the first half"
    os.kill(os.getpid(), signal.SIGKILL)

with Database(sys.argv[1], files=sys.argv[2]) as db, db.transaction() as tx:
    member = tx.create(Member, name="Alan")
    member.documents.attach(b"complete", filename="complete.txt")
    member.documents.attach(pieces(), filename="half.txt")
"""


@step("A process killed while it attaches a file")
def kill_attachment(tour: Tour) -> None:
    """A process is killed during an upload. Nothing was committed; markers let the next sweep delete the bytes."""
    db = open_database(tour)
    command = [sys.executable, "-c", ATTACHER, tour.url, f"file:{tour.folder / 'attached'}"]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    found, report = db.get(Member, "Alan"), db.blobs.check()
    tour.voice.say(
        f"Alan exists: {found is not None}. Blobs: {report.blobs}, attachments: {report.attachments}, "
        f"findings of the audit: {len(report.findings)}."
    )
    assert (found, report.blobs, report.findings) == (None, 0, ())
