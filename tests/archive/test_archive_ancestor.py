"""Items that tempest's hybrid storage archived are read, guarded, restored and converted."""

from __future__ import annotations

import json
from decimal import Decimal
from gzip import compress
from typing import Any

import pytest
from moves_rig import Died, Rig, everywhere, with_files

from holdall import Key, Model, col, field
from holdall.archive import Archive, ArchiveRekey, ArchiveSweep
from holdall.archive.ancestor import open_body, read_body, read_key, read_moment
from holdall.archive.pointer import POINTER
from holdall.core.requests import PutItem, TransactWrite, UpdateItem
from holdall.core.values import decode
from holdall.errors import (
    CorruptArchiveError,
    DanglingPointerError,
    InvalidModelUpdateError,
    InvalidOptionsError,
    ItemArchivedError,
)

OBJECT = "orders/ada/1.json.gz"
ERAS = pytest.mark.parametrize("era", ["first", "second", "second, typed and not compressed"])


async def archive_as_ancestor(db: Rig, era: str = "first", at: str = OBJECT, **options: Any) -> None:
    """Write an order as the ancestor archived it."""
    db.declare(ancestor=True, **options)
    async with db.db.transaction() as tx:
        db.add(tx, "1")
    row = db.row("1")
    keys = {
        name: row[name]
        for name in row
        if name in {*db.row_key("1"), "_type", "customer", "number", "placed_at"}
    }
    if era.endswith("compressed"):
        body = json.dumps(row).encode()
    else:
        plain = {name: decode(value) for name, value in row.items()}
        plain["tags"] = sorted(plain["tags"])
        body = compress(json.dumps(plain).encode())
    name, text = ("s3Key", at) if era == "first" else ("_s3_pointer", f"s3://{at}")
    await db.files.put(at, body, metadata={"archived_at": "2024-05-01T10:00:00Z"})
    db.put_row({**keys, name: {"S": text}})


@ERAS
@everywhere
async def test_items_of_both_eras_are_read_and_restored(db: Rig, era: str) -> None:
    await archive_as_ancestor(db, era)
    assert await db.note("1") == "note 1"
    assert [each.note async for each in db.db.query(db.model, customer="ada")] == ["note 1"]
    assert (await db.archive.report(db.model)).cold_items == 1
    assert (await db.run()).archived == 0
    assert await db.archive.restore_all(db.model) == 1
    assert not {"s3Key", "_s3_pointer"} & db.row("1").keys()
    assert await db.note("1") == "note 1"
    assert await db.objects() == [OBJECT]


@ERAS
@everywhere
async def test_a_write_restores_the_item_and_a_racing_write_is_retried(db: Rig, era: str) -> None:
    await archive_as_ancestor(db, era)

    async def change(tx: Any) -> None:
        found = await tx.get_one(db.model, customer="ada", number="1")
        found.note += "!"

    async def overtake() -> None:
        await db.db.run(change)

    db.in_between(overtake, PutItem, TransactWrite)
    await db.db.run(change)
    assert await db.note("1") == "note 1!!"
    assert not {"s3Key", "_s3_pointer", POINTER} & db.row("1").keys()


@with_files
async def test_a_blind_write_checks_the_archived_values_too(db: Rig) -> None:
    await archive_as_ancestor(db)
    with pytest.raises(InvalidModelUpdateError):
        async with db.db.transaction() as tx:
            tx.update(db.model, {"customer": "ada", "number": "1", "note": "another"}, {"note": "new"})
    async with db.db.transaction() as tx:
        tx.update(db.model, {"customer": "ada", "number": "1", "note": "note 1"}, {"note": "new"})
    assert await db.note("1") == "new"
    assert "s3Key" not in db.row("1")


@with_files
async def test_an_archive_that_refuses_writes_refuses_them_for_the_ancestor_s_items_too(db: Rig) -> None:
    await archive_as_ancestor(db, on_write="error")
    with pytest.raises(ItemArchivedError):
        async with db.db.transaction() as tx:
            (await tx.get_one(db.model, customer="ada", number="1")).note = "new"
    assert await db.note("1") == "note 1"


@pytest.mark.parametrize("write", [None, 0, 1])
@ERAS
@with_files
async def test_rekey_converts_items_and_a_death_in_between_loses_nothing(
    db: Rig, era: str, write: int | None
) -> None:
    await archive_as_ancestor(db, era)
    if write is not None:
        with db.die_after(write), pytest.raises(Died):
            await db.archive.rekey(db.model)
        assert await db.note("1") == "note 1"
    assert (await db.archive.rekey(db.model)).moved == (write != 1)
    assert await db.note("1") == "note 1"
    row = db.row("1")
    assert not {"s3Key", "_s3_pointer"} & row.keys()
    assert row[POINTER]["M"]["t"] == {"S": "2024-05-01T10:00:00Z"}
    assert len(await db.objects()) == 2  # the ancestor's object keeps the key that the new one would have had
    assert await db.archive.rekey(db.model) == ArchiveRekey(1, 0, 1, 0, 0, ())
    db.declare()
    assert await db.note("1") == "note 1"


@with_files
async def test_conversion_restores_the_attributes_that_belong_in_the_table(db: Rig) -> None:
    """The ancestor had removed them: an item without its index keys is in no index."""
    await archive_as_ancestor(db)
    row = db.row("1")
    placed = row.pop("placed_at")
    db.put_row(row)
    assert (await db.archive.rekey(db.model)).moved == 1
    assert db.row("1")["placed_at"] == placed
    assert await db.note("1") == "note 1"


@with_files
async def test_an_item_that_is_written_during_its_conversion_keeps_the_write(db: Rig) -> None:
    await archive_as_ancestor(db)

    async def write() -> None:
        async with db.db.transaction() as tx:
            (await tx.get_one(db.model, customer="ada", number="1")).note = "changed"

    db.in_between(write, UpdateItem)
    assert (await db.archive.rekey(db.model)).changed == 1
    assert await db.note("1") == "changed"
    assert await db.objects() == [OBJECT]


@everywhere
async def test_timestamp_keys_are_migrated_as_documented(db: Rig) -> None:
    """Keep the old objects, change the template, rekey, verify, then sweep."""
    await archive_as_ancestor(
        db, key="orders/{partitionKey}/{sortKey}", at="orders/ada/1/2024-05-01T10:00:00Z.json.gz"
    )
    assert await db.note("1") == "note 1"
    assert (await db.archive.rekey(db.model)).moved == 1
    assert await db.note("1") == "note 1"
    assert await db.objects() == [OBJECT, "orders/ada/1/2024-05-01T10:00:00Z.json.gz"]
    db.clock.forward(8 * 86400)
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 1, 0, 1, 0)
    assert await db.archive.sweep(db.model, dry_run=False, exclusive=True) == ArchiveSweep(2, 1, 1, 0, 0)
    assert await db.objects() == [OBJECT]
    assert await db.note("1") == "note 1"


@ERAS
@with_files
async def test_the_sweep_keeps_objects_that_the_ancestor_s_pointers_refer_to(db: Rig, era: str) -> None:
    await archive_as_ancestor(db, era)
    await db.files.put("orders/ada/2.json.gz", b'{"note": "without a key"}')
    db.clock.forward(8 * 86400)
    swept = await db.archive.sweep(db.model, dry_run=False, exclusive=True)
    assert swept == ArchiveSweep(2, 0, 0, 0, 1)
    assert await db.note("1") == "note 1"
    db.declare()
    assert (await db.archive.sweep(db.model, dry_run=False, exclusive=True)).foreign == 2


@with_files
async def test_queries_filter_the_ancestor_s_items_after_fetching_them(db: Rig) -> None:
    await archive_as_ancestor(db)
    wanted = db.db.query(db.model, customer="ada", where=col(db.model.note) == "note 1")
    assert [each.number async for each in wanted] == ["1"]
    other = db.db.query(db.model, customer="ada", where=col(db.model.note) == "another")
    assert [each.number async for each in other] == []
    some = db.db.query(db.model, customer="ada", only=[db.model.note])
    assert [each.note async for each in some] == ["note 1"]
    (found,) = await db.db.get_all([db.model.key(customer="ada", number="1")])
    assert found.note == "note 1"


@with_files
async def test_a_missing_object_or_one_of_another_item_is_an_error(db: Rig) -> None:
    await archive_as_ancestor(db)
    plain = dict.fromkeys(db.row_key("1"), "2")
    await db.files.put(OBJECT, json.dumps({**plain, "note": "theirs"}).encode())
    with pytest.raises(CorruptArchiveError, match="another item"):
        await db.note("1")
    await db.files.delete(OBJECT)
    with pytest.raises(DanglingPointerError, match=r"orders/ada/1.json.gz is missing"):
        await db.note("1")


def test_the_ancestor_s_attribute_names_are_reserved_only_with_the_option() -> None:
    assert not Archive(timestamp="at").is_pointer({"s3Key": {"S": "a"}})
    with pytest.raises(InvalidOptionsError, match="reserves for its pointers"):

        class Order(Model, archive=Archive(ancestor=True)):
            id: Key[str]
            place: str | None = field(name="s3Key", default=None)

    with pytest.raises(InvalidOptionsError, match=r"ancestor must be .* not 1"):
        Archive(ancestor=1)  # type: ignore[arg-type]


# --- bodies -----------------------------------------------------------------------------------------------------


def test_plain_bodies_keep_maps_lists_and_all_digits() -> None:
    body = """{"id": "1", "map": {"S": "x"}, "words": ["a", "b"], "none": [], "null": null, "yes": true,
        "price": 0.1234567890123456789012345678, "big": 12345678901234567890123456789, "text": "{}"}"""
    assert open_body(body.encode(), "it") == {
        "id": {"S": "1"},
        "map": {"M": {"S": {"S": "x"}}},
        "words": {"L": [{"S": "a"}, {"S": "b"}]},
        "none": {"L": []},
        "null": {"NULL": True},
        "yes": {"BOOL": True},
        "price": {"N": str(Decimal("0.1234567890123456789012345678"))},
        "big": {"N": "12345678901234567890123456789"},
        "text": {"S": "{}"},
    }


def test_a_body_is_typed_if_all_its_attributes_are() -> None:
    item = {"id": {"S": "1"}, "tags": {"SS": ["a", "b"]}, "data": {"B": "AAE="}}
    assert open_body(compress(json.dumps(item).encode()), "it") == item


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"{}",
        b'{"a": NaN}',
        b'{"a": {"N": "x"}}',
        b"\x1f\x8bno gzip",
        b'{"a": ' + b"9" * 50 + b"}",
    ],
)
def test_an_invalid_body_is_an_error(body: bytes) -> None:
    with pytest.raises(CorruptArchiveError):
        open_body(body, "it")


def test_keys_of_both_eras_are_read() -> None:
    assert read_key({"s3Key": {"S": "a/b.json.gz"}}) == "a/b.json.gz"
    assert read_key({"_s3_pointer": {"S": "s3://a/b.json.gz"}}) == "a/b.json.gz"
    for item in ({"s3Key": {"N": "1"}}, {"s3Key": {"S": ""}}, {"_s3_pointer": {"S": "a"}}):
        with pytest.raises(CorruptArchiveError):
            read_key(item)
    with pytest.raises(CorruptArchiveError, match="another item"):
        read_body(b'{"id": 2}', {"id": {"N": "1"}}, "it")
    assert read_body(b'{"id": 1.0}', {"id": {"N": "1"}}, "it") == {"id": {"N": "1"}}


def test_moments_in_metadata_are_read() -> None:
    assert read_moment("2024-05-01T10:00:00Z") == read_moment("1714557600") == read_moment("1714557600000")
    assert read_moment("soon") is None
