"""Removals that jobs finish: rows that a lagging index did not show, and more rows than fit in one transaction."""

from __future__ import annotations

from typing import Any

import pytest
from attachments_rig import Rig, Way, everywhere, file, in_memory, names_of, open_rig
from gem import Gem
from rig.colour import COLOURS, run_in
from rig.wrapper import Wrapper

from holdall import Model, has_many_attached
from holdall.attachments.picture.derived import variant_owner
from holdall.core.expressions import Path, Set, Update, Value
from holdall.core.frozen import replace
from holdall.core.port import Send, run
from holdall.core.requests import BatchWrite, Query, Request, Scan, TransactWrite, UpdateItem
from holdall.errors import ConditionFailedError, TransactionFailedError

in_mode_b = run_in(lambda _: [Way("B", "memory", colour) for colour in COLOURS], open_rig)


class LateIndex(Wrapper):
    """A store whose indexes show no items while ``late`` is set."""

    late = True

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        reply = await send(self.inner, request)
        if self.late and isinstance(request, Query) and request.index is not None:
            return replace(reply, items=())
        return reply


@in_mode_b
@pytest.mark.parametrize("change", ["clear", "destroy"])
async def test_the_second_look_removes_rows_that_the_index_did_not_show(db: Rig, change: str) -> None:
    person = await db.create(documents=[file(name="old.txt")], avatar=file())
    blobs = [person.documents.blobs[0], person.avatar.blob]
    db.recorder.inner = index = LateIndex(db.recorder.inner)
    async with db.db.transaction() as tx:
        if change == "clear":
            found = await tx.get(db.model, person.id)
            found.documents = [file(name="new.txt")]
            found.avatar = None
        else:
            tx.delete(db.model.key(person.id))
    async with db.db.transaction() as tx:
        other = tx.create(db.model, name="Bob")
        other.documents = [file(name="other.txt")]
    index.late = False
    assert await db.count(blobs[0]) == 1
    await db.check()
    db.clock.forward(61)
    await db.drain()
    assert [await db.find(blob) for blob in blobs] == [None, None]
    left = ["new.txt"] if change == "clear" else []
    assert [str(each.blob.filename) for each in await _list(db, person)] == left
    assert names_of((await db.load(other)).documents) == ["other.txt"]
    await db.check()


@in_mode_b
async def test_the_second_look_keeps_files_that_stayed_or_were_added_later(db: Rig) -> None:
    person = await db.create(documents=[file(name="1.txt"), file(name="2.txt")])
    stays = person.documents.blobs[1]
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).documents = [stays]
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).documents.attach(file(name="3.txt"))
    db.clock.forward(61)
    await db.drain()
    assert names_of((await db.load(person)).documents) == ["2.txt", "3.txt"]
    await db.check()


@in_mode_b
async def test_a_variant_that_the_index_does_not_show_yet_is_purged_with_its_blob(db: Rig) -> None:
    gem, digest = Gem(db), "QsWopah8rouPxjSmU/zito5qML0="
    blob, picture = await gem.create_blob(), await gem.create_blob(b"small")
    await gem.create_variant(blob, digest)
    owner = variant_owner(blob, digest)
    await db.blobs.attach(
        picture, record_type=owner.record_type, record_id=owner.record_id, name="image", one=True
    )
    key = gem.key(*[f"ActiveStorage#Blob#{blob}"] * 3)
    known = Update((Set(Path(("hd_variants",)), Value({"SS": [digest]})),))
    await gem.send(UpdateItem(gem.table, key, known))
    db.recorder.inner = index = LateIndex(db.recorder.inner)
    assert await db.blobs.purge(blob)
    index.late = False
    assert [await gem.blob(id) for id in (blob, picture)] == [None, None]
    assert await gem.variants(blob) == []
    assert await gem.rows(owner) == []
    await db.check()


@in_memory
async def test_detaching_one_file_needs_no_query(db: Rig) -> None:
    person = await db.create(documents=[file(name=f"{n}.txt") for n in range(3)])
    loaded = await db.load(person)
    async with db.db.transaction() as tx:
        again = await tx.get(db.model, person.id, include=["documents"])
        db.recorder.forget()
        again.documents.detach(again.documents.attachments[1])
    assert db.recorder.list_sent(Query) == []
    assert names_of(again.documents) == ["0.txt", "2.txt"]
    assert await db.count(loaded.documents.blobs[1]) == 0
    assert names_of((await db.load(person)).documents) == ["0.txt", "2.txt"]
    await db.check()


async def _list(db: Rig, person: Any, name: str | None = None) -> list[Any]:
    listed = db.database.blobs.list(type(person).__name__, person.id, name)
    return [each async for each in listed] if db.way.colour == "awaiting" else list(listed)


# --- in batches -------------------------------------------------------------------------------------------

MANY = 40  # more than the job deletes in one transaction


class Container(Model, abstract=True):
    """An owner that may have more files than fit in a transaction."""

    letters = has_many_attached(in_batches=True)
    scans = has_many_attached(in_batches=True, dependent=False)


class Folder(Container):
    """In the one table (mode A)."""


class Binder(Container, table="binders"):
    """In its own table, as mode B needs."""


def kind_of(db: Rig) -> Any:
    return Folder if db.way.mode == "A" else Binder


async def fill(db: Rig, name: str = "letters", count: int = MANY) -> Any:
    async with db.db.transaction() as tx:
        folder = tx.create(kind_of(db))
        getattr(folder, name).attach([file(name=f"{n}.txt") for n in range(count)])
    return folder


async def load(db: Rig, folder: Any, *names: str) -> Any:
    return await db.db.get(kind_of(db), folder.id, include=names or ["letters"])


def list_leftovers(db: Rig) -> list[str]:
    """The types of the items that belong to unfinished intents."""
    table = db.database._context.settings.table_name
    items = db.recorder.inner.send_blocking(Scan(table, consistent=True)).items
    kinds = [item["_type"]["S"] for item in items if "_type" in item]
    return [each for each in kinds if each in ("holdall.AttachmentIntent", "holdall.AttachmentSlot")]


@everywhere
async def test_more_files_than_fit_in_a_transaction_disappear_at_once_and_a_job_deletes_them(db: Rig) -> None:
    folder = await fill(db)
    blobs = folder.letters.blobs
    async with db.db.transaction() as tx:
        found = await tx.get(kind_of(db), folder.id)
        found.letters = [file(name="new.txt")]
    assert names_of(found.letters) == ["new.txt"]
    async with db.db.transaction() as tx:
        (await tx.get(kind_of(db), folder.id)).letters.attach(file(name="later.txt"))
    assert names_of((await load(db, folder)).letters) == ["new.txt", "later.txt"]
    assert names_of((await load(db, folder, "letters", "scans")).letters) == ["new.txt", "later.txt"]
    for name in (None, "letters"):
        assert names_of(await _list(db, folder, name)) == ["new.txt", "later.txt"]
    assert await db.count(blobs[0]) == 1
    await db.check()
    await db.drain()
    assert names_of((await load(db, folder)).letters) == ["new.txt", "later.txt"]
    assert [blob for blob in blobs if await db.find(blob) is not None] == []
    assert list_leftovers(db) == []
    await db.check()


@in_memory
async def test_an_owner_of_more_files_than_fit_in_a_transaction_can_be_deleted(db: Rig) -> None:
    folder = await fill(db)
    shared, kept = folder.letters.blobs[0], await fill(db, "scans")
    async with db.db.transaction() as tx:
        other = tx.create(kind_of(db))
        other.letters.attach(shared)
    async with db.db.transaction() as tx:
        tx.delete(kind_of(db).key(folder.id))
        tx.delete(kind_of(db).key(kept.id))
    assert await _list(db, folder) == []
    await db.drain()
    db.clock.forward(3601)  # the jobs that drop unfinished intents find none
    await db.drain()
    assert [await db.count(blob) for blob in folder.letters.blobs] == [1] + [None] * (MANY - 1)
    assert [await db.count(blob) for blob in kept.scans.blobs] == [0] * MANY  # dependent=False
    assert names_of((await load(db, other)).letters) == ["0.txt"]
    assert list_leftovers(db) == []
    await db.check()


@in_memory
async def test_a_file_in_an_unfinished_removal_can_be_attached_again(db: Rig) -> None:
    folder = await fill(db)
    blob = folder.letters.blobs[7]
    async with db.db.transaction() as tx:
        (await tx.get(kind_of(db), folder.id)).letters.purge()
    assert names_of((await load(db, folder)).letters) == []
    async with db.db.transaction() as tx:
        (await tx.get(kind_of(db), folder.id)).letters.attach(blob)
    await db.blobs.attach(
        folder.letters.blobs[8], record_type=kind_of(db).__name__, record_id=folder.id, name="letters"
    )
    await db.drain()
    assert names_of((await load(db, folder)).letters) == ["7.txt", "8.txt"]
    assert await db.count(blob) == 1
    await db.check()


@in_memory
async def test_a_name_can_be_cleared_again_before_the_first_removal_is_finished(db: Rig) -> None:
    folder = await fill(db)
    for _ in range(2):
        async with db.db.transaction() as tx:
            found = await tx.get(kind_of(db), folder.id)
            found.letters.replace([file(name=f"{n}.txt") for n in range(MANY)])
    assert list_leftovers(db).count("holdall.AttachmentSlot") == 1
    assert len((await load(db, folder)).letters) == MANY
    await db.drain()
    assert len((await load(db, folder)).letters) == MANY
    assert list_leftovers(db) == []
    assert (await db.blobs.check()).blobs == MANY
    await db.check()


@in_memory
async def test_a_dropped_intent_cannot_commit_and_the_change_is_retried(db: Rig) -> None:
    folder = await fill(db)
    dropped: list[str] = []

    def drop(request: Any) -> None:
        """Drop the intent, as the job does an hour later."""
        if isinstance(request, TransactWrite) and not dropped and (parts := _parts(db)):
            dropped.append("once")
            state = Update((Set(Path(("state",)), Value({"S": "dropped"})),))
            db.recorder.inner.send_blocking(UpdateItem(parts[0].table, _key(db, parts[0].item), state))

    async def clear(tx: Any) -> None:
        (await tx.get(kind_of(db), folder.id)).letters.detach()

    db.recorder.before = drop
    await db.db.run(clear)
    assert dropped
    assert names_of((await load(db, folder)).letters) == []
    await db.drain()
    db.clock.forward(3601)
    await db.drain()
    assert list_leftovers(db) == []
    assert [await db.count(blob) for blob in folder.letters.blobs] == [0] * MANY
    await db.check()


@in_memory
async def test_of_two_concurrent_clears_one_is_retried_and_both_removals_finish(db: Rig) -> None:
    folder = await fill(db)
    between: list[str] = []

    async def replace_all(tx: Any) -> None:
        found = await tx.get(kind_of(db), folder.id)
        found.letters.replace([file(name=f"{n}.txt") for n in range(MANY)])

    def interfere(request: Any) -> Any:
        if isinstance(request, TransactWrite) and not between and _parts(db):
            between.append("once")
            flow = db.db.run(replace_all)
            return flow if db.way.colour == "awaiting" else run(flow)
        return None

    db.recorder.before = interfere
    await db.db.run(replace_all)
    assert between
    assert len((await load(db, folder)).letters) == MANY
    await db.drain()
    assert len((await load(db, folder)).letters) == MANY
    assert list_leftovers(db) == []
    report = await db.blobs.check()
    assert (report.blobs, report.attachments, report.findings) == (MANY, MANY, ())


@in_memory
async def test_a_failed_change_leaves_no_intent(db: Rig) -> None:
    folder = await fill(db)

    def refuse(request: Any) -> None:
        if isinstance(request, TransactWrite) and _parts(db):
            raise ConditionFailedError("refused")

    db.recorder.before = refuse
    with pytest.raises(TransactionFailedError):
        async with db.db.transaction() as tx:
            (await tx.get(kind_of(db), folder.id)).letters.detach()
    db.recorder.before = lambda _: None
    assert list_leftovers(db) == []
    assert len((await load(db, folder)).letters) == MANY


def _parts(db: Rig) -> list[Any]:
    """The parts of intents sent so far."""
    puts = [put for batch in db.recorder.list_sent(BatchWrite) for put in batch.actions]
    return [put for put in puts if getattr(put, "item", {}).get("_type") == {"S": "holdall.AttachmentIntent"}]


def _key(db: Rig, item: Any) -> dict[str, Any]:
    return {name: item[name] for name in ("pk", "sk")}
