"""Other processes write in between, replies get lost, sources are read once: the state of the store afterwards."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attachments_rig import Rig, User, everywhere, file, in_memory
from gem import Gem
from rig.torture import ROUNDS, SEED

from holdall import Database
from holdall.attachments.home import Owner
from holdall.attachments.upload.upload import GRACE
from holdall.core.objects import DeleteObject, PutObject
from holdall.core.requests import PutItem, TransactWrite
from holdall.errors import (
    ContentionError,
    HoldallError,
    OutcomeUnknown,
    PreconditionFailedError,
    RecordNotFound,
    TransactionFailedError,
)


async def replace(db: Rig, person: Any, name: str) -> None:
    async def body(tx: Any) -> None:
        found = await tx.get_one(db.model, person.id)
        found.avatar = file(name.encode(), name)

    await db.db.run(body)


@everywhere
async def test_of_two_concurrent_replacements_exactly_one_stays(db: Rig) -> None:
    person = await db.create(avatar=file(name="old.txt"))
    db.in_between(lambda: replace(db, person, "other.txt"))
    await replace(db, person, "last.txt")
    assert str((await db.load(person)).avatar.filename) == "last.txt"
    assert len(await Gem(db).rows(Owner(db.model.__name__, person.id), "avatar")) == 1
    await db.drain()
    report = await db.blobs.check()
    assert (report.findings, report.blobs) == ((), 1)


@everywhere
async def test_of_two_concurrent_first_files_exactly_one_stays(db: Rig) -> None:
    person = await db.create()
    db.in_between(lambda: replace(db, person, "other.txt"))
    await replace(db, person, "last.txt")
    assert str((await db.load(person)).avatar.filename) == "last.txt"
    await db.drain()
    report = await db.blobs.check()
    assert (report.findings, report.blobs, report.attachments) == ((), 1, 1)


@everywhere
async def test_concurrent_appends_lose_nothing(db: Rig) -> None:
    person = await db.create(documents=[file(name="1.txt")])

    async def append(name: str) -> None:
        async def body(tx: Any) -> None:
            (await tx.get_one(db.model, person.id)).documents.attach(file(name=name))

        await db.db.run(body)

    db.in_between(lambda: append("2.txt"))
    await append("3.txt")
    found = (await db.load(person)).documents
    assert sorted(str(each.blob.filename) for each in found) == ["1.txt", "2.txt", "3.txt"]
    await db.check()


@everywhere
async def test_a_blob_that_is_purged_meanwhile_is_not_attached(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"bytes", filename="a.txt")

    async def purge() -> None:
        assert await db.blobs.purge(blob)

    db.in_between(purge)
    with pytest.raises(TransactionFailedError):
        await db.create(avatar=blob)
    db.recorder.before = lambda request: None
    with pytest.raises(RecordNotFound):
        await db.create(avatar=blob)
    await db.check()


@in_memory
async def test_a_retried_run_uploads_its_file_once(db: Rig) -> None:
    person = await db.create()
    source = iter([b"read ", b"once"])
    db.in_between(lambda: replace(db, person, "other.txt"))

    async def body(tx: Any) -> None:
        found = await tx.get_one(db.model, person.id)
        found.avatar.attach(source, filename="once.txt")

    await db.db.run(body)
    assert await db.blobs.download((await db.load(person)).avatar.blob) == b"read once"
    bodies = [request.body for request in db.recorder.list_sent(PutObject)]
    assert bodies.count(b"read once") == 1
    await db.drain()
    await db.check()


@in_memory
async def test_an_upload_that_is_too_old_is_repeated_before_the_commit(db: Rig) -> None:
    person = await db.create()

    async def wait() -> None:
        db.clock.forward(GRACE.total_seconds() * 0.6)
        await replace(db, person, "other.txt")

    db.in_between(wait)

    async def body(tx: Any) -> None:
        (await tx.get_one(db.model, person.id)).avatar.attach(b"slow", filename="slow.txt")

    await db.db.run(body)
    bodies = [request.body for request in db.recorder.list_sent(PutObject)]
    assert bodies.count(b"slow") == 2
    db.clock.forward(GRACE.total_seconds() * 0.6)
    await db.blobs.sweep()
    assert await db.blobs.download((await db.load(person)).avatar.blob) == b"slow"


@in_memory
async def test_a_failed_commit_deletes_the_uploaded_bytes(db: Rig) -> None:
    def refuse(request: Any) -> None:
        if isinstance(request, TransactWrite):
            raise ContentionError("refused on purpose")

    db.recorder.before = refuse
    with pytest.raises(HoldallError):
        await db.create(avatar=file())
    db.recorder.before = lambda request: None
    assert db.recorder.list_sent(DeleteObject)
    report = await db.blobs.check()
    assert (report.findings, report.blobs) == ((), 0)


@in_memory
async def test_a_key_in_use_is_refused_and_keeps_its_bytes(db: Rig) -> None:
    person = await db.create(avatar=file(b"first") | {"key": "mine"})
    other = await db.blobs.create_and_upload(b"other", filename="a.txt")
    with pytest.raises(PreconditionFailedError):
        await db.create(avatar=file(b"second") | {"key": "mine"})
    with pytest.raises(PreconditionFailedError):
        await db.blobs.create_and_upload(b"third", filename="a.txt", key="mine")
    with pytest.raises(PreconditionFailedError):
        await db.blobs.compose([other, other], filename="a.txt", key="mine")
    db.clock.forward(2 * GRACE.total_seconds())
    await db.blobs.sweep()
    assert await db.blobs.download((await db.load(person)).avatar.blob) == b"first"
    await db.check()


@in_memory
async def test_bytes_under_a_chosen_key_are_swept_with_their_blob(db: Rig) -> None:
    await db.blobs.create_and_upload(b"bytes", filename="a.txt", key="mine")

    def refuse(request: Any) -> None:
        if isinstance(request, TransactWrite | PutItem):
            raise ContentionError("refused on purpose")

    db.recorder.before = refuse
    with pytest.raises(HoldallError):
        await db.create(avatar=file() | {"key": "given up"})
    with pytest.raises(HoldallError):
        await db.blobs.create_and_upload(b"bytes", filename="a.txt", key="left over")
    db.recorder.before = lambda request: None
    assert not await db.files.exists("given up")
    assert await db.files.exists("left over")
    db.clock.forward(2 * GRACE.total_seconds())
    await db.blobs.sweep()
    assert [await db.files.exists(key) for key in ("mine", "left over")] == [False, False]


@in_memory
async def test_a_lost_reply_leaves_a_consistent_state(db: Rig) -> None:
    person = await db.create(avatar=file(name="old.txt"))

    def lose(request: Any) -> None:
        if isinstance(request, TransactWrite):
            raise OutcomeUnknown("the reply is lost on purpose")

    db.recorder.after = lose
    with pytest.raises(OutcomeUnknown):
        await replace(db, person, "new.txt")
    db.recorder.after = lambda request: None
    assert str((await db.load(person)).avatar.filename) == "new.txt"
    await db.drain()
    await db.check()


@pytest.mark.torture
def test_counts_match_rows_after_eight_workers_changed_shared_blobs(
    tmp_path: Path,
) -> None:
    rounds = 12 * ROUNDS
    with Database(
        f"embedded:{tmp_path / 'app.db'}", files="memory:", secret="s" * 40, durability="normal"
    ) as db:
        with db.transaction() as tx:
            users = [tx.create(User, name=str(number)).id for number in range(4)]
        shared = [db.blobs.create_and_upload(b"shared", filename=f"{n}.txt") for n in range(3)]
        failures: list[BaseException] = []

        def work(worker: int) -> None:
            random = Random(f"{SEED} {worker}")
            for _ in range(rounds):
                try:
                    db.run(act, random, retries=100)
                except RecordNotFound:
                    pass  # the blob was purged
                except BaseException as error:
                    failures.append(error)
                    raise

        def act(tx: Any, random: Random) -> None:
            user = tx.get_one(User, random.choice(users))
            given: Any = random.choice([*shared, file(b"own", "own.txt")])
            match random.randrange(6):
                case 0:
                    user.avatar = given
                case 1:
                    user.documents.attach(given)
                case 2:
                    user.documents = [given]
                case 3:
                    user.documents.purge_later()
                case 4:
                    user.avatar.purge()
                case 5:
                    user.portrait = given

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert failures == []
        drain(db)
        report = db.blobs.check()
        assert report.findings == ()
        assert len(list(db.files.list())) == report.blobs


def drain(db: Database) -> None:
    from holdall.worker import Worker

    for _ in range(3):
        asyncio.run(Worker(db.aio).drain())
