"""Many small items share an object: each is read, changed and deleted alone, and a pack is deleted once unneeded."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import Any

import pytest
from archive_rig import Rig, everywhere, in_memory
from hypothesis import given, settings
from hypothesis import strategies as st
from pack_rig import (
    WEEK,
    Death,
    Parcel,
    Shipment,
    check_nothing_left,
    pack_items,
    packs_of,
    revive,
    sweep_later,
)

from holdall import Database, Key, Model, col
from holdall.archive import Archive, Prices
from holdall.archive.item import ArchivePlace, find_place
from holdall.archive.pack.batch import make_candidate
from holdall.archive.pack.pack import IndexReader, Pack, Slice
from holdall.archive.pointer import POINTER, read_pointer
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.core.measure import item_size
from holdall.core.objects import DeleteObject, GetObject, PutObject
from holdall.core.port import run
from holdall.core.requests import PutItem, Scan
from holdall.errors import CorruptArchiveError, DanglingPointerError, InvalidOptionsError


@everywhere
async def test_one_request_stores_many_items_and_each_can_be_read_alone(db: Rig) -> None:
    known = await pack_items(db)
    assert len(db.recorder.list_sent(PutObject)) == 1
    assert await db.all() == known
    db.recorder.forget()
    assert await db.get("003") == known["003"]
    (read,) = db.recorder.list_sent(GetObject)
    pointer = read_pointer(await db.fetch_stored("003"))
    assert (read.key, read.start, read.size) == (pointer.key, pointer.offset, pointer.size)
    assert await packs_of(db) == [pointer.key]
    where = col(db.model.quantity) > 2
    many = [each.number async for each in db.db.query(db.model, customer="ada", where=where)]
    assert many == ["003", "004"]
    indexed = [each.number async for each in db.db.query(db.model, index="by_product", product="tea")]
    assert sorted(indexed) == sorted(known)


@everywhere
async def test_a_write_restores_its_item_and_keeps_the_pack_for_the_others(db: Rig) -> None:
    known = await pack_items(db)
    async with db.db.transaction() as tx:  # read and written
        order = await tx.get_one(db.key("000"))
        order.quantity = 70
    async with db.db.transaction() as tx:  # blind
        tx.update(db.model, {"customer": "ada", "number": "001", "quantity": 1}, {"quantity": 71})
    async with db.db.transaction() as tx:
        tx.delete(db.key("002"))
    assert await db.archive.restore(db.key("003")) == 1
    assert not db.recorder.list_sent(DeleteObject)
    known["000"]["quantity"], known["001"]["quantity"] = 70, 71
    del known["002"]
    assert await db.all() == known
    assert [number for number in known if await db.is_cold(number)] == ["004"]
    assert len(await packs_of(db)) == 1
    await check_nothing_left(db)
    assert await db.all() == known


@everywhere
async def test_compaction_moves_live_items_and_the_sweep_deletes_the_old_pack(db: Rig) -> None:
    known = await pack_items(db, 6)
    (old,) = await packs_of(db)
    for number in ("000", "001", "002", "003"):
        async with db.db.transaction() as tx:
            tx.delete(db.key(number))
        del known[number]
    assert (await db.archive.compact(db.model)).packs == 0  # the pack is too young
    db.clock.forward(WEEK + 1)
    predicted = await db.archive.compact(db.model, dry_run=True)
    done = await db.archive.compact(db.model)
    assert (predicted.packs, predicted.rewritten, predicted.moved) == (1, 1, 2)
    assert predicted == done
    pointers = [read_pointer(await db.fetch_stored(number)) for number in known]
    assert {pointer.key for pointer in pointers} == {key for key in await packs_of(db) if key != old}
    assert await db.all() == known
    swept = await db.archive.sweep(db.model, dry_run=False)
    assert swept.unreferenced == 1
    assert await packs_of(db) == [pointers[0].key]
    assert await db.all() == known
    again = await db.archive.compact(db.model, older_than=timedelta(0))
    assert (again.packs, again.dead_bytes, again.rewritten) == (1, 0, 0)


@in_memory
async def test_a_pack_with_enough_live_bytes_is_kept_unless_live_share_is_one(db: Rig) -> None:
    known = await pack_items(db)
    async with db.db.transaction() as tx:
        tx.delete(db.key("000"))
    del known["000"]
    done = await db.archive.compact(db.model, older_than=timedelta(0))
    assert (done.rewritten, done.moved) == (0, 0)
    assert done.live_bytes > done.dead_bytes > 0
    assert (await db.archive.compact(db.model, older_than=timedelta(0), live_share=1)).moved == 4
    assert await db.all() == known


@in_memory
async def test_slices_of_several_packs_are_gathered_into_one(db: Rig) -> None:
    await pack_items(db)
    for number in ("a", "b", "c", "d"):
        await db.create(number)
    await db.run(segments=1)
    for number in ("000", "001", "002", "a", "b", "c"):
        async with db.db.transaction() as tx:
            tx.delete(db.key(number))
    known = await db.all()
    assert (await db.archive.compact(db.model, older_than=timedelta(0))).rewritten == 2
    assert len({read_pointer(await db.fetch_stored(number)).key for number in known}) == 1
    assert await db.all() == known


# --- bounds -----------------------------------------------------------------------------------------------


@in_memory
async def test_packs_are_bounded_in_items_and_bytes_and_max_items_holds(
    db: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdall.archive.pack.batch.PACK_ITEMS", 3)
    known = await pack_items(db, 7)
    assert len(await packs_of(db)) == 3
    assert await db.all() == known
    await check_nothing_left(db)
    monkeypatch.setattr("holdall.archive.pack.batch.PACK_BYTES", 1)
    assert (await db.run(segments=1, max_items=2)).archived == 2
    assert len(await packs_of(db)) == 2
    assert (await db.run()).archived == 5
    assert await db.all() == known


@in_memory
async def test_an_item_with_too_many_attributes_leaves_no_slice(db: Rig) -> None:
    db.model = Parcel if db.way.home == "one table" else Shipment
    await db.create("1")
    item = await db.fetch_stored("1")
    await db.put_raw({**item, **{f"extra{number}": {"S": "x"} for number in range(400)}})
    report = await db.run()
    assert (report.archived, report.skipped) == (0, {"too many attributes": 1})
    assert await db.objects() == []


@in_memory
async def test_a_run_at_a_rate_waits_between_the_items_of_a_pack(db: Rig) -> None:
    await pack_items(db, 40, rate=10)
    assert len(await packs_of(db)) == 1
    assert len(db.clock.waits) >= 3
    assert max(db.clock.waits) < sum(db.clock.waits) / 2


@in_memory
async def test_the_estimate_of_what_stays_in_the_table_is_right(db: Rig) -> None:
    db.model = Parcel if db.way.home == "one table" else Shipment
    await db.create("1")
    place = await find_place_in(db)
    estimated = make_candidate(place, await db.fetch_stored("1"), db.clock.now()).left_bytes
    await db.run()
    assert item_size(await db.fetch_stored("1")) == pytest.approx(estimated, abs=40)


async def find_place_in(db: Rig) -> ArchivePlace:
    return await find_place(db.database._context, db.model)


# --- other writers ----------------------------------------------------------------------------------------


@in_memory
async def test_an_item_written_during_a_run_stays_hot_and_its_slice_is_dead(db: Rig) -> None:
    db.model = Parcel if db.way.home == "one table" else Shipment
    await db.create_many(3)

    async def write() -> None:
        async with db.db.transaction() as tx:
            for number in ("000", "001", "002"):
                order = await tx.get_one(db.key(number))
                order.quantity += 10

    db.in_between(write, PutObject, when="after")
    report = await db.run(segments=1)
    assert (report.archived, report.skipped) == (0, {"changing": 3})
    assert [each["quantity"] for each in (await db.all()).values()] == [10, 11, 12]
    assert (await db.run(segments=1)).archived == 3
    assert len(await packs_of(db)) == 2
    await check_nothing_left(db)


@in_memory
async def test_an_item_written_during_compaction_keeps_the_write(db: Rig) -> None:
    known = await pack_items(db)

    async def write() -> None:
        async with db.db.transaction() as tx:
            order = await tx.get_one(db.key("001"))
            order.quantity = 99
        async with db.db.transaction() as tx:
            tx.delete(db.key("002"))

    async with db.db.transaction() as tx:
        tx.delete(db.key("000"))
    db.in_between(write, PutObject)
    done = await db.archive.compact(db.model, older_than=timedelta(0), live_share=1)
    assert done.moved == 2
    known["001"]["quantity"] = 99
    del known["000"], known["002"]
    assert await db.all() == known
    await check_nothing_left(db)
    assert await db.all() == known


@in_memory
async def test_two_concurrent_compactions_with_a_sweep_lose_nothing(db: Rig) -> None:
    known = await pack_items(db)
    async with db.db.transaction() as tx:
        tx.delete(db.key("000"))
    del known["000"]

    async def compact() -> None:
        await db.archive.compact(db.model, older_than=timedelta(0), live_share=1)
        await sweep_later(db)

    db.in_between(compact, PutObject)
    done = await db.archive.compact(db.model, older_than=timedelta(0), live_share=1)
    assert done.moved == 0
    assert await db.all() == known
    await check_nothing_left(db)


@in_memory
async def test_a_transaction_that_read_an_item_before_compaction_is_retried(db: Rig) -> None:
    await pack_items(db)
    async with db.db.transaction() as tx:
        tx.delete(db.key("000"))

    async def body(tx: Any) -> None:
        order = await tx.get_one(db.key("001"))
        order.quantity += 1
        if not seen:
            seen.append(True)
            await db.archive.compact(db.model, older_than=timedelta(0), live_share=1)
            await sweep_later(db)

    seen: list[bool] = []
    await db.db.run(body)
    assert (await db.get("001"))["quantity"] == 2
    assert (await db.get("002"))["quantity"] == 2


@in_memory
async def test_a_reader_whose_pack_is_compacted_and_swept_meanwhile_reads_the_item_again(db: Rig) -> None:
    known = await pack_items(db)
    async with db.db.transaction() as tx:
        tx.delete(db.key("000"))

    async def compact() -> None:
        await db.archive.compact(db.model, older_than=timedelta(0), live_share=1)
        await sweep_later(db)

    db.in_between(compact, GetObject)
    assert await db.get("001") == known["001"]
    assert len(await packs_of(db)) == 1


@in_memory
async def test_after_a_death_between_two_pages_the_run_includes_the_items_still_waiting(
    db: Rig,
) -> None:
    db.model = Parcel if db.way.home == "one table" else Shipment
    for number in range(6):
        await db.create(f"{number}", note="long" * 90_000)
    scans = len(db.recorder.list_sent(Scan))

    def die(request: Any) -> None:
        if isinstance(request, Scan) and len(db.recorder.list_sent(Scan)) == scans + 2:
            raise Death

    db.recorder.before = die
    with pytest.raises(Death):
        await db.run(segments=1)
    revive(db)
    assert await db.objects() == []
    assert (await db.run(segments=1)).archived == 6
    assert len(await packs_of(db)) == 1


# --- damage -----------------------------------------------------------------------------------------------


@in_memory
async def test_a_damaged_slice_affects_only_its_item(db: Rig) -> None:
    known = await pack_items(db)
    pointer = read_pointer(await db.fetch_stored("001"))
    assert pointer.offset is not None
    body = bytearray(await db.files.get(pointer.key, verify=False))
    middle = pointer.offset + pointer.size // 2
    body[middle : middle + 4] = b"\0\0\0\0"
    await db.files.put(pointer.key, bytes(body))
    with pytest.raises(CorruptArchiveError):
        await db.get("001")
    assert await db.get("002") == known["002"]
    async with db.db.transaction() as tx:
        tx.delete(db.key("000"))
    done = await db.archive.compact(db.model, older_than=timedelta(0), live_share=1)
    assert (done.moved, done.damaged) == (3, 1)
    await sweep_later(db)
    with pytest.raises(CorruptArchiveError):  # the damaged pack is kept, so that it can be repaired
        await db.get("001")
    await db.files.delete(pointer.key)
    with pytest.raises(DanglingPointerError):
        await db.get("001")
    assert await db.get("004") == known["004"]


@in_memory
async def test_packs_of_other_tables_and_foreign_objects_are_kept(db: Rig) -> None:
    await pack_items(db)
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    foreign = Pack.of("another table", db.model.__name__, [Slice(key, "0" * 64, gzip.compress(b"{}"))], "id")
    strange = [foreign.key("parcels/"), "parcels/packs/notes.txt", "parcels/packs/empty.pack.gz"]
    for each, body in zip(strange, (foreign.body, b"text", b""), strict=True):
        await db.files.put(each, body)
    db.clock.forward(WEEK + 1)
    done = await db.archive.compact(db.model, live_share=1)
    swept = await db.archive.sweep(db.model, dry_run=False)
    assert (done.packs, swept.unreferenced, swept.foreign) == (1, 0, 2)
    assert set(strange) < set(await db.objects())


@in_memory
async def test_pointers_are_rebuilt_from_packs_that_the_sweep_keeps_for_that(db: Rig) -> None:
    known = await pack_items(db, 3)
    (pack,) = await packs_of(db)
    first, second = await db.fetch_stored("000"), await db.fetch_stored("001")
    await db.put_raw({**first, POINTER: {"M": {"f": {"N": "1"}}}})
    await db.put_raw({**second, POINTER: {"M": {**second[POINTER]["M"], "h": {"S": "0" * 64}}}})
    async with db.db.transaction() as tx:
        tx.delete(db.key("002"))
    del known["002"]
    done = await db.archive.rebuild_pointers(db.model, dry_run=True)
    assert (done.examined, done.rebuilt, done.older, done.lost) == (2, 2, 1, 0)
    async with db.db.transaction() as tx:
        tx.delete(db.key("001"))
    del known["001"]
    assert (await sweep_later(db)).unreferenced == 0
    assert (await db.archive.rebuild_pointers(db.model)).rebuilt == 1
    assert await db.all() == known
    assert (await sweep_later(db)).unreferenced == 1
    assert pack not in await db.objects()


def test_an_item_that_lost_its_pointer_keeps_its_pack_and_is_rebuilt() -> None:
    class Letter(Model, archive=Archive(pack=True)):
        name: Key[str]
        text: str

    with Database("memory:", files="memory:") as db:
        with db.transaction() as tx:
            tx.create(Letter, name="a", text="one")
        db.archive.run(Letter, where=col(Letter.text) == "one")
        port = db._context.port
        (row,) = run(port.send(Scan("holdall"))).items
        run(port.send(PutItem("holdall", {name: row[name] for name in row if name != POINTER})))
        options: Any = {"older_than": timedelta(0), "exclusive": True, "dry_run": False}
        assert db.archive.sweep(Letter, **options).unreferenced == 0
        assert db.archive.rebuild_pointers(Letter).rebuilt == 1
        assert db.get_one(Letter, "a").text == "one"
        assert db.archive.sweep(Letter, **options).deleted == 1
        assert db.get_one(Letter, "a").text == "one"


@in_memory
async def test_rekey_moves_items_out_of_packs_only_if_the_model_no_longer_packs(
    db: Rig,
) -> None:
    known = await pack_items(db)
    packs = await packs_of(db)
    done = await db.archive.rekey(db.model)
    assert (done.current, done.moved) == (5, 0)
    assert await packs_of(db) == packs
    archive = db.model._schema.hydrator
    archive.pack = False
    try:
        assert (await db.archive.rekey(db.model)).moved == 5
    finally:
        archive.pack = True
    assert [await db.objects()] == [sorted([*packs, *(f"parcels/ada/{number}.json.gz" for number in known)])]
    assert (await sweep_later(db)).deleted == 1
    assert await db.all() == known


def test_a_model_that_shares_table_and_prefix_keeps_another_model_s_packs() -> None:
    class Note(Model, archive=Archive(key="all/{partitionKey}", pack=True)):
        name: Key[str]
        text: str

    class Memo(Model, archive=Archive(key="all/{partitionKey}", pack=True)):
        name: Key[str]

    with Database("memory:", files="memory:") as db:
        with db.transaction() as tx:
            tx.create(Note, name="a", text="one")
        db.archive.run(Note, where=col(Note.text) == "one")
        with db.transaction() as tx:
            tx.delete(Note.key("a"))
        options: Any = {"older_than": timedelta(0), "exclusive": True, "dry_run": False}
        swept = db.archive.sweep(Memo, **options)
        assert (swept.foreign, swept.deleted) == (1, 0)
        assert db.archive.sweep(Note, **options).deleted == 1


def test_a_copied_table_does_not_change_the_original_s_packs_and_can_get_its_own() -> None:
    class Leaf(Model, table="leaves", archive=Archive(key="leaves/{partitionKey}", pack=True)):
        name: Key[str]
        text: str

    backend, service = EmbeddedBackend(None), MemoryService()
    original, copy = (
        Database("memory:", backend=backend, files=service, manage_table=True, table_prefix=prefix)
        for prefix in ("true-", "copy-")
    )
    with original.transaction() as tx:
        for name in "abc":
            tx.create(Leaf, name=name, text=name * 100)
    original.archive.run(Leaf, where=col(Leaf.text) > "", segments=1)
    copy.scan(Leaf).all()
    for row in original.send(Scan("true-leaves")).items:
        copy.send(PutItem("copy-leaves", row))
    options: Any = {"older_than": timedelta(0), "exclusive": True, "dry_run": False}
    with copy.transaction() as tx:
        for name in "ab":
            tx.delete(Leaf.key(name))
    assert copy.archive.compact(Leaf, older_than=timedelta(0)).packs == 0
    assert copy.archive.sweep(Leaf, **options).foreign == 1
    assert original.archive.rekey(Leaf).current == 3
    assert copy.archive.rekey(Leaf).moved == 1
    original.archive.restore_all(Leaf)
    assert original.archive.sweep(Leaf, **options).deleted == 1
    assert [leaf.name for leaf in copy.scan(Leaf)] == ["c"]
    assert sorted(leaf.text[0] for leaf in original.scan(Leaf)) == ["a", "b", "c"]


# --- prices -----------------------------------------------------------------------------------------------


def test_items_that_share_an_object_share_the_price_of_its_put() -> None:
    prices = Prices()
    alone, together = (prices.estimate(1024, 461, 250, together=count) for count in (1, 1000))
    assert alone.once == pytest.approx(5.69e-6, rel=0.01)
    assert alone.once - together.once == pytest.approx(5e-6 * 0.999)
    assert (round(alone.payback_months), round(together.payback_months, 1)) == (31, 3.8)


@in_memory
async def test_a_dry_run_of_packs_predicts_the_run(db: Rig) -> None:
    db.model = Parcel if db.way.home == "one table" else Shipment
    await db.create_many(4)
    predicted, done = await db.run(dry_run=True, segments=1), await db.run(segments=1)
    assert predicted == done
    sizes = [each.size for each in await db.list_files()]
    assert sum(sizes) == pytest.approx(done.object_bytes, rel=0.25)
    writes = 4 * (2 if db.model is Shipment else 1) * Prices().table_write  # an index holds whole items
    once = Prices().object_put + writes + 4 * Prices().table_read / 2
    assert done.estimate.once == pytest.approx(once)


# --- declaration and format -------------------------------------------------------------------------------


def test_pack_is_true_or_false() -> None:
    with pytest.raises(InvalidOptionsError, match="pack"):
        Archive(pack="yes")  # type: ignore[arg-type]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text(min_size=1, max_size=20), st.binary(max_size=50)), max_size=20))
def test_an_index_is_read_from_pieces_of_any_size_and_locates_its_slices(given: list[Any]) -> None:
    slices = [
        Slice({"pk": {"S": text}}, f"{place:064}", gzip.compress(data, mtime=0))
        for place, (text, data) in enumerate(given)
    ]
    pack = Pack.of("orders", "Order", slices, "an id")
    reader, found = IndexReader("here"), None
    while found is None:
        found = reader.take(pack.body[reader.read : reader.read + 7])
    assert found == pack.index
    for slice, packed in zip(slices, found.slices, strict=True):
        assert pack.body[packed.offset : packed.offset + packed.size] == slice.data
    assert pack.key("x/") != Pack.of("orders", "Order", slices, "another id").key("x/")


@pytest.mark.parametrize(
    "data",
    [b"", b"text", gzip.compress(b"[1]"), gzip.compress(b"{}")[:-4]],
    ids=["nothing", "text", "a list", "cut off"],
)
def test_invalid_packs_are_refused(data: bytes) -> None:
    reader = IndexReader("here")
    with pytest.raises(CorruptArchiveError, match="here"):
        _ = reader.take(data[:3]), reader.take(data[3:]), reader.take(b"")


def test_a_pack_is_plain_gzip_of_json() -> None:
    class Tiny(Model, archive=Archive(pack=True)):
        name: Key[str]
        text: str

    with Database("memory:", files="memory:") as db:
        with db.transaction() as tx:
            tx.create(Tiny, name="a", text="one")
        db.archive.run(Tiny, where=col(Tiny.text) == "one")
        (found,) = db.files.list()
        text = gzip.decompress(db.files.get(found.key)).decode()
    index, end = json.JSONDecoder().raw_decode(text)
    envelope = json.loads(text[end:])
    assert found.key.startswith("Tiny/packs/")
    assert index["slices"][0]["key"] == envelope["key"]
    assert envelope["item"]["text"] == {"S": "one"}
