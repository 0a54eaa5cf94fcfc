"""The archive as its users see it: hot and cold items behave the same."""

from __future__ import annotations

from typing import Any

import pytest
from archive_rig import BEFORE, NOW, OLD, Rig, Sale, assign, every_write, everywhere, in_memory, write_once

from holdall import Archive, Key, Model, col
from holdall.archive.pointer import POINTER, read_pointer
from holdall.core.requests import PutItem
from holdall.errors import (
    ConfigurationError,
    CorruptArchiveError,
    DanglingPointerError,
    InvalidModelUpdateError,
    InvalidOptionsError,
    ItemArchivedError,
    ModelAlreadyExistsError,
)

TEN_TYPES: dict[str, Any] = {
    "a string": {"S": "é\n\x00\U0001f600"},
    "an empty string": {"S": ""},
    "a number": {"N": "1234567890123456789012345678901234567.8"},
    "bytes": {"B": "AP8="},
    "a boolean": {"BOOL": True},
    "a null": {"NULL": True},
    "a list": {"L": [{"S": "x"}, {"L": []}, {"NULL": True}]},
    "a map": {"M": {"S": {"S": "a name like a type"}, "é": {"M": {}}}},
    "strings": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "-2.5"]},
    "byte strings": {"BS": ["AQ==", "/w=="]},
}


def sort_sets(item: Any) -> Any:
    """An item with its sets sorted."""
    return {
        name: {kind: sorted(content) if kind in ("SS", "NS", "BS") else content}
        for name, attribute in item.items()
        for kind, content in attribute.items()
    }


# --- one item -------------------------------------------------------------------------------------------------


@everywhere
async def test_an_old_item_leaves_a_pointer_and_is_read_as_before(db: Rig) -> None:
    await db.create(note="x" * 500, quantity=7)
    await db.create("2", placed_at=NOW)
    before = await db.all()
    report = await db.run()
    assert (report.archived, dict(report.skipped), report.failed) == (1, {"too young": 1}, 0)
    assert await db.objects() == ["orders/ada/1.json.gz"]
    stored = await db.fetch_stored()
    assert "note" not in stored
    assert "placed_at" in stored
    assert ("product" in stored) == (db.way.home == "own table"), (
        "in its own table, the field itself is the index's key"
    )
    assert not await db.is_cold("2")
    assert await db.all() == before
    assert await db.get() == before["1"]


@everywhere
async def test_every_type_is_restored_exactly(db: Rig) -> None:
    await db.create()
    await db.put_raw({**await db.fetch_stored(), **TEN_TYPES})
    before = sort_sets(await db.fetch_stored())
    assert (await db.run()).archived == 1
    assert set(await db.fetch_stored()).isdisjoint(TEN_TYPES)
    assert await db.archive.restore(db.key()) == 1
    after = sort_sets(await db.fetch_stored())
    del before["_w" if "_w" in before else "note"]  # a write replaces the mark of an item in the one table
    assert {name: after[name] for name in before} == before
    assert POINTER not in after
    assert await db.objects() == []


@everywhere
async def test_every_way_of_reading_shows_hot_and_cold_items_alike(db: Rig) -> None:
    await db.create_many(3)
    for number in range(3, 6):
        await db.create(f"{number:03}", quantity=number, placed_at=NOW)
    before = list((await db.all()).values())
    before.sort(key=lambda each: str(each["number"]))
    assert (await db.run()).archived == 3
    model, numbers = db.model, [each["number"] for each in before]

    def list_rows(rows: Any) -> list[Any]:
        return [row.to_dict() for row in rows]

    async def check_reads(source: Any) -> None:
        keys = [db.key(number) for number in numbers]
        assert list_rows([await source.get(db.key("000"))]) == before[:1]
        assert list_rows(await source.get_all(keys)) == before
        assert list_rows(await source.query(model, customer="ada").all()) == before
        assert (
            list_rows(await source.query(model, customer="ada", reverse=True, limit=4).all()) == before[:1:-1]
        )
        by_product = await source.query(model, index="by_product", product="tea").all()
        assert sorted(list_rows(by_product), key=lambda each: str(each["number"])) == before
        assert [each.placed_at for each in by_product] == [OLD] * 3 + [NOW] * 3
        wanted = {
            "customer": "ada",
            "where": col(model.quantity).between(2, 4) & (col(model.note) == "green"),
        }
        assert [each.quantity for each in await source.query(model, **wanted).all()] == [2, 3, 4]
        assert await source.query(model, **wanted).count() == 3
        assert (await source.query(model, **wanted).first()).number == "002"
        assert await source.query(model, customer="ada").count() == 6

    await check_reads(db.db)
    await db.db.run(check_reads)
    await db.db.run(check_reads, read_only=True)
    assert sorted([each.quantity async for each in db.db.scan(model, where=col(model.quantity) >= 2)]) == [
        2,
        3,
        4,
        5,
    ]
    assert await db.db.scan(model, where=col(model.note) == "red").count() == 0
    assert await db.is_cold("000"), "reading restores nothing"


@everywhere
async def test_an_index_of_some_fields_has_those_of_cold_items_too(db: Rig) -> None:
    db.model = Sale  # in the one table, indexes hold whole items
    await db.create_many(3)
    await db.run()
    query: dict[str, Any] = {"index": "quantities", "product": "tea"}
    assert [each.quantity for each in await db.db.query(db.model, **query).all()] == [0, 1, 2]
    found = await db.db.query(db.model, **query, where=col(db.model.quantity) > 0).all()
    assert [each.quantity for each in found] == [1, 2]
    whole = {"customer": "ada", "where": col(db.model.quantity) > 1, "only": ["note"]}
    assert [each.note for each in await db.db.query(db.model, **whole).all()] == ["green"]


# --- writes ---------------------------------------------------------------------------------------------------


@every_write
@everywhere
async def test_a_write_restores_the_whole_item_and_deletes_its_object(
    db: Rig, write: Any, changes: dict[str, Any] | None
) -> None:
    await db.create()
    assert (await db.run()).archived == 1
    await write_once(db, write)
    assert await db.get() == (None if changes is None else {**BEFORE, **changes})
    if changes is not None:
        assert not await db.is_cold()
    assert await db.objects() == []
    assert (await db.run()).archived == (changes is not None)
    assert await db.get() == (None if changes is None else {**BEFORE, **changes})


@in_memory
async def test_creating_an_archived_item_again_is_refused(db: Rig) -> None:
    await db.create()
    await db.run()
    with pytest.raises(ModelAlreadyExistsError):
        await db.create()
    assert await db.is_cold()


@in_memory
async def test_a_blind_update_sees_the_archived_values(db: Rig) -> None:
    await db.create()
    await db.run()
    with pytest.raises(InvalidModelUpdateError, match="green"):
        async with db.db.transaction() as tx:
            tx.update(db.model, {"customer": "ada", "number": "1", "note": "blue"}, {"note": "red"})
    assert await db.is_cold()


class Frozen(Model, archive=Archive(on_write="error", key="frozen/{partitionKey}")):
    customer: Key[str]
    note: str = "green"
    quantity: int = 1


REFUSED: list[tuple[str, Any]] = [
    ("assign", lambda tx, item: setattr(item, "note", "red")),
    ("increment", lambda tx, item: item.field("quantity").increment_by(1)),
    ("delete", lambda tx, item: tx.delete(item)),
    ("update", lambda tx, item: tx.update(Frozen, {"customer": "ada", "note": "green"}, {"note": "red"})),
    ("put", lambda tx, item: tx.create_or_put(Frozen, {"customer": "ada"}, {"note": "red"})),
    ("blind delete", lambda tx, item: tx.delete(Frozen.key("ada"))),
]


@pytest.mark.parametrize(("name", "write"), REFUSED, ids=[each[0] for each in REFUSED])
@in_memory
async def test_a_model_may_refuse_every_write_of_an_archived_item(db: Rig, name: str, write: Any) -> None:
    blind = name in ("update", "put", "blind delete")
    async with db.db.transaction() as tx:
        tx.create(Frozen, customer="ada")
    await db.archive.run(Frozen, where=col(Frozen.quantity) == 1)

    async def body(tx: Any) -> None:
        write(tx, None if blind else await tx.get_one(Frozen.key("ada")))

    with pytest.raises(ItemArchivedError, match="archived") as refused:
        await db.db.run(body)
    assert "restore" in str(refused.value)
    assert await db.objects() == ["frozen/ada.json.gz"]
    assert await db.archive.restore(Frozen.key("ada")) == 1
    await db.db.run(body)
    assert await db.objects() == []


@everywhere
async def test_find_archived_returns_the_keys_of_archived_items(db: Rig) -> None:
    await db.create_many(4)
    assert (await db.run()).archived == 4
    await db.archive.restore(db.key("002"))
    numbers = ["003", "nothing", "002", "000", "003"]
    assert await db.archive.find_archived(*map(db.key, numbers)) == [db.key("003"), db.key("000")]
    item = await db.db.get(db.key("001"))
    assert await db.archive.find_archived(item) == [db.key("001")]
    assert await db.archive.find_archived() == []
    with pytest.raises(InvalidOptionsError, match="'x' is neither an item nor the key of one"):
        await db.archive.find_archived("x")


@everywhere
async def test_one_several_or_all_items_can_be_restored(db: Rig) -> None:
    await db.create_many(6)
    before = await db.all()
    assert (await db.run()).archived == 6
    assert await db.archive.restore(await db.db.get(db.key("000"))) == 1
    assert await db.archive.restore(*(db.key(f"{number:03}") for number in range(3)), db.key("nothing")) == 2
    assert len(await db.objects()) == 3
    seen: list[int] = []
    assert await db.archive.restore_all(db.model, progress=seen.append) == 3
    assert seen[-1] == 3
    assert await db.objects() == []
    assert await db.all() == before
    assert (await db.archive.report(db.model)).hot_items == 6


# --- damage -------------------------------------------------------------------------------------------------


@everywhere
async def test_reading_an_item_with_a_missing_or_damaged_object_is_an_error(db: Rig) -> None:
    await db.create()
    await db.run()
    pointer = read_pointer(await db.fetch_stored())
    body = await db.files.get(pointer.key)
    for damaged, error in (
        (body[:-20], CorruptArchiveError),
        (b"", CorruptArchiveError),
        (None, DanglingPointerError),
    ):
        if damaged is None:
            await db.files.delete(pointer.key)
        else:
            await db.files.put(pointer.key, damaged)
        for read in (db.get, db.db.query(db.model, customer="ada").all, db.all):
            with pytest.raises(error, match=r"orders/ada/1\.json\.gz"):
                await read()
        with pytest.raises(error):
            await write_once(db, assign)
    await db.files.put(pointer.key, body)
    assert await db.get() == BEFORE


@in_memory
async def test_an_unreadable_pointer_is_an_error(db: Rig) -> None:
    await db.create()
    await db.run()
    stored = await db.fetch_stored()
    newer = {"M": {**stored[POINTER]["M"], "f": {"N": "2"}}}
    for odd, message in (({"S": "s3://"}, "cannot be read"), (newer, "newer version")):
        await db.put_raw({**stored, POINTER: odd})
        with pytest.raises(CorruptArchiveError, match=message):
            await db.get()


@in_memory
async def test_archiving_a_model_without_an_archive_is_an_error(db: Rig) -> None:
    class Plain(Model):
        name: Key[str]

    with pytest.raises(ConfigurationError, match="Plain does not declare an archive"):
        await db.archive.run(Plain)


@in_memory
async def test_a_cold_read_costs_one_request_more_than_a_hot_one(db: Rig) -> None:
    await db.create_many(20)
    await db.get("000")
    db.recorder.forget()
    await db.get("000")
    hot = len(db.recorder.requests)
    await db.run()
    db.recorder.forget()
    await db.get("000")
    assert len(db.recorder.requests) == hot + 1
    db.recorder.forget()
    await db.db.query(db.model, customer="ada").all()
    assert len(db.recorder.requests) == 1 + 20
    assert PutItem not in map(type, db.recorder.requests)
