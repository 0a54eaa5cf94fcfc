"""Steps about attachments: files committed with their items, shared and counted, and an upload that is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

from holdall import Accept, Database, Key, Model, has_many_attached, has_one_attached
from holdall.errors import ForeignKeyViolation, HoldallError, InvalidFileError
from tour.files import on_disk
from tour.stage import Tour, step

PICTURE = b"\x89PNG\r\n\x1a\n" + b"." * 20_000


class Member(Model):
    name: Key[str]
    avatar = has_one_attached(validate=Accept(types=["image/*"], max_bytes=1_000_000))
    documents = has_many_attached()


def opened(tour: Tour) -> Database:
    return Database(backend=tour.store, files=on_disk(tour, "attached"), manage_table=True)


@step("Attachments: files that are committed with their item")
def attached_files(tour: Tour) -> None:
    """A picture and documents belong to a member. They are there when the transaction has committed, and go with it."""
    db = opened(tour)
    with db.transaction() as tx:
        ada = tx.create(Member, name="Ada")
        ada.avatar.attach(PICTURE, filename="ada.png")
        ada.documents.attach(b"Dear Ada", filename="letter.txt")
    contract = db.blobs.create_and_upload(b"We agree.", filename="contract.txt")
    with db.transaction() as tx:
        tx.create(Member, name="Grace").documents.attach(contract)
        tx.get_one(Member, "Ada").documents.attach(contract)
    members = [db.get_one(Member, name, include=["avatar", "documents"]) for name in ("Ada", "Grace")]
    blobs = [
        (each.name, blob)
        for each in members
        for blob in (each.avatar.blob, *each.documents.blobs)
        if blob is not None
    ]
    tour.voice.table(
        ["member", "file", "type", "bytes", "attachments"],
        [
            (name, blob.filename, blob.content_type, f"{blob.byte_size:,}", blob.attachments_count)
            for name, blob in blobs
        ],
    )

    def mislead() -> None:
        with db.transaction() as tx:
            tx.get_one(Member, "Ada").avatar.attach(b"<html>...", filename="ada.png")

    attempts: list[tuple[str, type[HoldallError], Callable[[], None]]] = [
        ("attach a page of HTML as a picture", InvalidFileError, mislead),
        ("delete what two members have", ForeignKeyViolation, lambda: db.blobs.delete(contract)),
    ]
    for what, kind, attempt in attempts:
        try:
            attempt()
        except kind as error:
            tour.voice.refusal(what, error.code, error.message, error.hint)
        else:
            raise AssertionError(f"not refused: {what}")
    with db.transaction() as tx:
        for name in ("Ada", "Grace"):
            tx.delete(Member.key(name))
    before = len(list(db.files.list()))
    db.worker().drain()
    after = len(list(db.files.list()))
    tour.voice.say(
        f"Both members deleted: {before} files wait for the worker, and {after} are left after it."
    )
    assert (before, after) == (3, 0)


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


@step("An attachment whose process is killed")
def killed_attachment(tour: Tour) -> None:
    """A process is killed while it uploads. Nothing was committed; markers lead the next sweeps to what it left."""
    db = opened(tour)
    command = [sys.executable, "-c", ATTACHER, tour.url, f"file:{tour.folder / 'attached'}"]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    found, report = db.get(Member, "Alan"), db.blobs.check()
    tour.voice.say(
        f"Alan is there: {found is not None}. Blobs: {report.blobs}, attachments: {report.attachments}, "
        f"findings of the audit: {len(report.findings)}."
    )
    assert (found, report.blobs, report.findings) == (None, 0, ())
