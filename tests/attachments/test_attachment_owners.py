"""Owners of every kind: classes with their own persistence, composite keys, very many attachments."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from attachments_rig import Rig, everywhere, file, in_memory, names_of
from gem import Gem
from rig.torture import ROUNDS

from holdall import Attachable, Database, Key, Model, SortKey, has_many_attached, has_one_attached, job
from holdall.attachments.home import Owner
from holdall.attachments.upload.upload import GRACE
from holdall.core.requests import BatchWrite, PutItem, TransactWrite
from holdall.errors import (
    AttachmentNotLoadedError,
    InvalidKeyError,
    InvalidOptionsError,
    ModelDefinitionError,
    TransactionTooLarge,
)

STORED: dict[str, Leaflet] = {}


class Leaflet(Attachable):
    """A class whose instances live in a dictionary."""

    cover = has_one_attached()
    pages = has_many_attached()

    def __init__(self, id: str | None = None) -> None:
        self.id = id  # type: ignore[misc]
        self.saves = 0

    @classmethod
    def find(cls, id: str) -> Leaflet | None:
        return STORED.get(id)

    def is_persisted(self) -> bool:
        return self.id in STORED

    def save(self) -> None:
        self.id = self.id or "n1"  # type: ignore[misc]
        self.saves += 1
        STORED[str(self.id)] = self

    def delete(self) -> None:
        del STORED[str(self.id)]


class _Awaited:
    """``db.saving`` and ``db.destroying``, awaited in both colours."""

    def __init__(self, db: Rig, manager: Any) -> None:
        self._manager = manager
        self._awaiting = db.way.colour == "awaiting"

    async def __aenter__(self) -> None:
        await self._manager.__aenter__() if self._awaiting else self._manager.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._manager.__aexit__(*error) if self._awaiting else self._manager.__exit__(*error)


@pytest.fixture(autouse=True)
def forget_stored() -> None:
    STORED.clear()


async def save_note(db: Rig, note: Leaflet) -> Leaflet:
    async with _Awaited(db, db.database.saving(note)):
        note.save()
    return note


@everywhere
async def test_the_files_of_an_owner_of_another_library_are_saved_with_it(db: Rig) -> None:
    note = Leaflet()
    note.cover.attach(b"cover", filename="cover.txt")
    note.pages.attach(file(name="1.txt"), file(name="2.txt"))
    assert note.cover.attached
    await save_note(db, note)
    assert note.saves == 1
    listed = [each async for each in _list(db, "Leaflet", "n1")]
    assert sorted((each.name, str(each.blob.filename)) for each in listed) == [
        ("cover", "cover.txt"),
        ("pages", "1.txt"),
        ("pages", "2.txt"),
    ]
    note.cover = file(b"new", "new.txt")
    await save_note(db, note)
    await db.drain()
    assert [str(each.blob.filename) async for each in _list(db, "Leaflet", "n1", "cover")] == ["new.txt"]
    await db.check()


@everywhere
async def test_the_files_of_an_owner_of_another_library_are_loaded(db: Rig) -> None:
    note = Leaflet()
    note.cover.attach(b"cover", filename="cover.txt")
    note.pages.attach(file(name="1.txt"), file(name="2.txt"))
    await save_note(db, note)
    found, unsaved = Leaflet("n1"), Leaflet("n2")
    with pytest.raises(AttachmentNotLoadedError, match=r"db\.load"):
        _ = found.cover.attached
    loading = db.database.load([found, unsaved], "cover", "pages")
    if db.way.colour == "awaiting":
        await loading
    assert (str(found.cover.filename), names_of(found.pages)) == ("cover.txt", ["1.txt", "2.txt"])
    assert found.cover.attachment is not None
    assert found.cover.attachment.owner is found
    assert not unsaved.cover.attached
    with pytest.raises(InvalidOptionsError):
        await _load_cover(db, ["n1"])
    with pytest.raises(InvalidOptionsError):
        await _load_cover(db, [object()])


async def _load_cover(db: Rig, items: Any) -> None:
    loading = db.database.load(items, "cover")
    if db.way.colour == "awaiting":
        await loading


@in_memory
async def test_a_save_that_takes_days_keeps_its_files_despite_a_sweep(db: Rig) -> None:
    note = Leaflet()
    note.cover.attach(b"cover", filename="cover.txt")

    async def sweep() -> None:
        await db.blobs.sweep()

    async with _Awaited(db, db.database.saving(note)):
        note.save()
        db.clock.forward(2 * GRACE.total_seconds())
        db.in_between(sweep, TransactWrite)
    assert await db.blobs.download(note.cover.blob) == b"cover"
    await db.check()


@everywhere
async def test_a_failed_save_leaves_no_bytes_and_can_be_repeated(db: Rig) -> None:
    note = Leaflet()
    note.cover.attach(b"cover", filename="cover.txt")
    with pytest.raises(RuntimeError, match="refused"):
        async with _Awaited(db, db.database.saving(note)):
            raise RuntimeError("refused")
    report = await db.blobs.check()
    assert (report.blobs, report.findings) == (0, ())
    assert not await _objects(db)
    await save_note(db, note)
    assert await db.blobs.download(note.cover.blob) == b"cover"


@everywhere
async def test_destroying_an_owner_removes_its_files_unless_it_fails(db: Rig) -> None:
    note = Leaflet()
    note.cover.attach(b"cover", filename="cover.txt")
    await save_note(db, note)
    with pytest.raises(RuntimeError, match="veto"):
        async with _Awaited(db, db.database.destroying(note)):
            raise RuntimeError("veto")
    assert await _jobs(db) == []
    assert await db.count(note.cover.blob) == 1
    async with _Awaited(db, db.database.destroying(note)):
        note.delete()
    await db.drain()
    assert (await db.blobs.check()).blobs == 0
    assert await _jobs(db) == []


@in_memory
async def test_a_stream_is_read_once_even_if_a_save_is_retried(db: Rig) -> None:
    other = await db.blobs.create_and_upload(b"other", filename="other.txt")
    leaflet = Leaflet("n1")
    leaflet.cover.attach(iter([b"read ", b"once"]), filename="cover.txt")

    async def attach_other() -> None:
        await db.blobs.attach(other, record_type="Leaflet", record_id="n1", name="cover", one=True)

    db.in_between(attach_other)
    await save_note(db, leaflet)
    assert await db.blobs.download(leaflet.cover.blob) == b"read once"
    assert [str(each.blob.filename) async for each in _list(db, "Leaflet", "n1")] == ["cover.txt"]
    await db.check()


@in_memory
async def test_destroying_an_owner_that_was_never_saved_does_nothing(db: Rig) -> None:
    kept = Leaflet("n1")
    kept.cover.attach(b"cover", filename="cover.txt")
    await save_note(db, kept)
    STORED.clear()
    db.recorder.forget()
    async with _Awaited(db, db.database.destroying(Leaflet("n1"))):
        pass
    assert await _jobs(db) == []
    assert await db.count(kept.cover.blob) == 1


@in_memory
async def test_an_owner_without_an_id_or_of_another_class_is_refused(db: Rig) -> None:
    note = Leaflet()
    note.cover.attach(b"cover", filename="cover.txt")
    with pytest.raises(InvalidOptionsError, match="no id"):
        async with _Awaited(db, db.database.saving(note)):
            pass
    with pytest.raises(InvalidOptionsError, match="Attachable"):
        db.database.saving(object())


@in_memory
@pytest.mark.parametrize(
    ("distinct", "rows", "fits"), [(50, 50, True), (51, 51, False), (1, 99, True), (1, 100, False)]
)
async def test_the_limits_of_the_gem_hold_exactly(db: Rig, distinct: int, rows: int, fits: bool) -> None:
    gem, note = Gem(db), Leaflet("n1")
    note.save()
    if db.way.mode == "B":  # the second look is an action, too
        distinct, rows = max(1, distinct - 1), rows - 1
    blobs = [await gem.create_blob() for _ in range(distinct)]
    for number in range(rows):
        await gem.attach(Owner("Leaflet", "n1"), "pages", blobs[number % distinct])
    note.pages.detach()
    db.recorder.forget()
    if fits:
        await save_note(db, note)
        assert await gem.rows(Owner("Leaflet", "n1")) == []
    else:
        with pytest.raises(TransactionTooLarge):
            await save_note(db, note)
        assert len(await gem.rows(Owner("Leaflet", "n1"))) == rows


class Race(Model):
    """An owner with a composite key."""

    town: Key[str]
    year: SortKey[int]
    poster = has_one_attached()


class Admin(Model, record_type="Admin::User"):
    """An owner that a Rails application knows by another name."""

    email: Key[str]
    avatar = has_one_attached()


@in_memory
async def test_owners_have_a_type_and_an_id_of_one_segment(db: Rig) -> None:
    if db.way.mode == "B":
        return  # models in the one table need mode A
    async with db.db.transaction() as tx:
        race = tx.create(Race, town="Köln#1", year=2026)
        race.poster.attach(b"poster", filename="poster.txt")
        tx.create(Admin, email="a@b.de").avatar.attach(b"face", filename="face.txt")
    loaded = await db.db.get(Race.key(town="Köln#1", year=2026), include=["poster"])
    assert await db.blobs.download(loaded.poster.blob) == b"poster"
    assert "#" not in loaded.poster.attachment.record_id
    admin = await db.db.get(Admin.key("a@b.de"), include=["avatar"])
    assert (admin.avatar.attachment.record_type, admin.avatar.attachment.record_id) == (
        "Admin::User",
        "a@b.de",
    )


@in_memory
async def test_a_name_or_id_with_the_separator_is_refused(db: Rig) -> None:
    note = Leaflet("a#b")
    note.cover.attach(b"cover", filename="cover.txt")
    with pytest.raises(InvalidKeyError):
        await save_note(db, note)


@in_memory
async def test_a_blob_with_hundreds_of_references_works(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"logo", filename="logo.txt")
    people = [await db.create(avatar=blob) for _ in range(30 if ROUNDS <= 3 else 500)]
    assert await db.count(blob) == len(people)
    everything = {each.id for each in await db.blobs.attachments(blob)}
    assert len(everything) == len(people)
    for limit in (1, 20, 25, 1000):
        some = {each.id for each in await db.blobs.attachments(blob, limit=limit)}
        assert len(some) == min(limit, len(people))
        assert some <= everything
    with pytest.raises(InvalidOptionsError, match="limit must be a whole number"):
        await db.blobs.attachments(blob, limit=0)
    await db.check()
    for person in [people[0], people[-1], people[5]]:
        async with db.db.transaction() as tx:
            (await tx.get(db.model, person.id)).avatar.detach()
    assert await db.count(blob) == len(people) - 3
    assert len(await db.blobs.attachments(blob)) == len(people) - 3
    await db.check()


@in_memory
async def test_an_owner_of_very_many_files_lists_them_in_pages(db: Rig) -> None:
    count = 1200 if ROUNDS <= 3 else 10_000
    gem = Gem(db)
    blob = await gem.create_blob()
    rows = [gem.row_item(Owner("Leaflet", "n1"), "pages", blob) for _ in range(count)]
    for start in range(0, count, 25):
        puts = tuple(PutItem(gem.table, {**row, "pad": {"S": "x" * 900}}) for row in rows[start : start + 25])
        await gem.send(BatchWrite(puts))
    db.recorder.forget()
    listed = [each.id async for each in _list(db, "Leaflet", "n1", "pages")]
    assert listed == sorted(row["as_id"]["S"] for row in rows)
    queries = [request for request in db.recorder.requests if type(request).__name__ == "Query"]
    assert len(queries) > 1


@everywhere
async def test_the_files_of_an_owner_are_listed_page_by_page(db: Rig) -> None:
    for name in ("files", "others"):
        for n in range(4):
            blob = await db.blobs.create_and_upload(b"x", filename=f"{n}.txt")
            await db.blobs.attach(blob, record_type="Paged", record_id="1", name=name)
    everything = [(each.name, each.id) async for each in _list(db, "Paged", "1")]
    assert len(everything) == 8
    seen: list[tuple[str, str]] = []
    while page := [each async for each in _list(db, "Paged", "1", after=seen[-1] if seen else None, limit=3)]:
        assert len(page) <= 3
        seen += [(each.name, each.id) for each in page]
    assert seen == everything
    after = next(each for each in everything if each[0] == "others")
    rest = [each.id async for each in _list(db, "Paged", "1", "others", after=after)]
    assert rest == [id for name, id in everything if name == "others"][1:]
    for wrong in ({"limit": 0}, {"after": everything[0], "name": "others"}):
        with pytest.raises(InvalidOptionsError):
            assert [each async for each in _list(db, "Paged", "1", **wrong)] == []


async def _list(db: Rig, *owner: str, **options: Any) -> Any:
    found = db.database.blobs.list(*owner, **options)
    if db.way.colour == "awaiting":
        async for each in found:
            yield each
    else:
        for each in found:
            yield each


async def _objects(db: Rig) -> list[str]:
    found = db.database.files.list()
    return [each.key async for each in found] if db.way.colour == "awaiting" else [each.key for each in found]


async def _jobs(db: Rig) -> list[Any]:
    jobs = db.database.jobs.list()
    found = await jobs if db.way.colour == "awaiting" else jobs
    return [each for each in found if each.name != "holdall.detach-again"]  # the second look, in mode B


class Animal(Model):
    """An owner with subclasses."""

    number: Key[int]
    picture = has_one_attached()


class Dog(Animal):
    tricks: int = 0


@in_memory
async def test_the_owners_of_attachments_are_loaded_a_hundred_at_a_time(db: Rig) -> None:
    people = [await db.create(avatar=file()) for _ in range(3)]
    note = Leaflet("n2")
    note.cover.attach(b"cover", filename="cover.txt")
    await save_note(db, note)
    blobs = [*(each.avatar.blob for each in people), people[0].avatar.blob, note.cover.blob]
    found = [(await db.blobs.attachments(blob))[0] for blob in blobs]
    with pytest.raises(AttachmentNotLoadedError, match=r"blobs\.owners"):
        _ = found[0].owner
    db.recorder.forget()
    owners = await db.blobs.owners(found)
    assert len(db.recorder.requests) == 1
    assert [type(each) for each in owners] == [*[db.model] * 4, Leaflet]
    assert [each.id for each in owners] == [*(each.id for each in people), people[0].id, "n2"]
    assert [each.owner for each in found] == owners
    assert people[0].avatar.attachment.owner is people[0]
    STORED.clear()
    assert await db.blobs.owners(found[-1:]) == [None]
    assert await db.blobs.owners([]) == []


@in_memory
async def test_owners_are_found_by_keys_of_any_form(db: Rig) -> None:
    if db.way.mode == "B":
        return  # models in the one table need mode A
    async with db.db.transaction() as tx:
        race = tx.create(Race, town="Köln#1", year=2026)
        race.poster.attach(b"poster", filename="poster.txt")
        admin = tx.create(Admin, email="a#b")
        admin.avatar.attach(b"face", filename="face.txt")
        dog = tx.create(Dog, number=-7)
        dog.picture.attach(b"dog", filename="dog.txt")
    attached = [race.poster.attachment, admin.avatar.attachment, dog.picture.attachment]
    found = await db.blobs.owners(attached)
    assert [each.key for each in found] == [race.key, admin.key, dog.key]
    assert [type(each) for each in found] == [Race, Admin, Dog]
    async with db.db.transaction() as tx:
        tx.delete(race.key)
    assert (await db.blobs.owners(attached))[0] is None


class Vehicle(Model):
    plate: Key[str]
    photo = has_one_attached()


class Lorry(Vehicle, record_type="Truck"):
    manual = has_one_attached()


@in_memory
async def test_deleting_by_the_key_of_a_base_model_finds_a_subclass_s_record_type(db: Rig) -> None:
    if db.way.mode == "B":
        return  # models in the one table need mode A
    async with db.db.transaction() as tx:
        lorry = tx.create(Lorry, plate="K-1")
        lorry.photo.attach(b"photo", filename="photo.txt")
        lorry.manual.attach(b"manual", filename="manual.txt")
    blobs = [lorry.photo.blob, lorry.manual.blob]
    async with db.db.transaction() as tx:
        tx.delete(Vehicle.key("K-1"))
    assert [await db.count(blob) for blob in blobs] == [0, 0]
    await db.drain()
    assert [await db.find(blob) for blob in blobs] == [None, None]


GOT: list[Any] = []


@job("tests.attachment-arguments")
async def take(*arguments: Any) -> None:
    GOT.append(arguments)


@in_memory
async def test_jobs_take_blobs_and_owners_as_arguments(db: Rig) -> None:
    GOT.clear()
    person = await db.create(avatar=file())
    blob, gone = person.avatar.blob, await db.blobs.create_and_upload(b"gone", filename="gone.txt")
    note = Leaflet("n3")
    await save_note(db, note)
    async with db.db.transaction() as tx:
        tx.enqueue(take, blob, [note, person])
        tx.enqueue(take, gone)
        tx.enqueue(take, Leaflet("never saved"))
    assert await db.blobs.purge(gone)
    await db.drain()
    ((taken, (owner, item)),) = GOT
    assert (taken, taken.attachments_count, owner, item.key) == (blob, 1, note, person.key)
    assert taken is not blob


class _Owners(list[type]):
    """A list of the classes whose bodies contain it, including those that were refused afterwards."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.append(owner)


@in_memory
async def test_a_refused_model_definition_does_not_hide_other_models(db: Rig) -> None:
    kept = _Owners()
    with pytest.raises(ModelDefinitionError):

        class Refused(Model, ttl="nothing"):
            keep = kept

    assert kept[0] in Model.__subclasses__()
    GOT.clear()
    person = await db.create(avatar=file())
    attached = await db.blobs.attachments(person.avatar.blob)
    assert [each.key for each in await db.blobs.owners(attached)] == [person.key]
    async with db.db.transaction() as tx:
        tx.enqueue(take, person)
    await db.drain()
    assert [item.key for (item,) in GOT] == [person.key]


WORKER = """
import asyncio, sys
import holdall.jobs
from holdall import AsyncDatabase, job
from holdall.worker import Worker

assert not [name for name in sys.modules if name.startswith("holdall.attachments")]

@job("tests.elsewhere")
def look(blob):
    print(blob.filename)

async def main():
    async with AsyncDatabase(sys.argv[1], files=sys.argv[2]) as db:
        await Worker(db).drain()

asyncio.run(main())
"""


def test_a_worker_passes_blobs_without_importing_attachments(tmp_path: Path) -> None:
    store, files = f"embedded:{tmp_path / 'app.db'}", f"file:{tmp_path / 'files'}"
    with Database(store, files=files) as db:
        blob = db.blobs.create_and_upload(b"bytes", filename="blob.txt")
        db.jobs.enqueue("tests.elsewhere", blob)
    done = run([sys.executable, "-c", WORKER, store, files], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("blob.txt\n", "")
