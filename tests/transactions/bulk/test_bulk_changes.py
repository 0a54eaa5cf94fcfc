"""Changes to all items that a query finds: in chunks, each item once, even if a run fails or other processes write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from rig.behaviour import Db, blocking, everywhere, in_memory, raw_key
from rig.torture import TORTURE

from holdall import Archive, Database, Index, Key, Model, SortKey, col, field, has_one_attached
from holdall.core import Path, Request, Set, TransactWrite, Update, UpdateItem, Value
from holdall.errors import (
    InvalidFieldError,
    InvalidOptionsError,
    InvalidRequestError,
    UniqueViolationError,
)
from holdall.transactions import ChangeReport


class Parcel(Model, indexes=[Index("by_state", key=["state"], sort_key=["weight"])]):
    town: Key[str]
    number: SortKey[int]
    state: str = "here"
    weight: int = 0
    fixed: str = field(default="x", read_only=True)


class Member(Model):
    club: Key[str]
    number: SortKey[int]
    mail: str = field(unique=True)


class Noted(Model):
    name: Key[str]
    notes: int = 0

    def before_commit(self, tx: Any) -> None:
        self.notes += 10


class Ticket(Model, table="Tickets"):
    show: Key[str]
    seat: SortKey[int]
    sold: bool = False


def add_weight(parcel: Parcel) -> None:
    parcel.weight += 100


def fail_at_four(parcel: Parcel) -> None:
    if parcel.number == 4:
        raise KeyError(parcel.number)
    parcel.weight += 100


async def put_parcels(db: Db, count: int) -> None:
    await db.bulk(Parcel).put_all(Parcel(town="a", number=n, weight=n) for n in range(count))
    await db.bulk(Parcel).put_all([Parcel(town="b", number=1)])
    db.forget()


async def read_weights(db: Db) -> list[int]:
    return [parcel.weight for parcel in await db.query(Parcel, town="a").all()]


def list_writes(db: Db) -> list[Any]:
    return [request for request in db.list_sent() if request.writes]


@everywhere
async def test_fields_are_set_in_all_matching_items(db: Db) -> None:
    await put_parcels(db, 12)
    report = await db.update_all(
        Parcel, {"state": "gone"}, town="a", sort=Parcel.number < 10, where=col(Parcel.weight) >= 3, chunk=3
    )
    assert report == ChangeReport(10, 7, 7)
    assert [len(request.actions) for request in list_writes(db)[:2]] == [3, 3]
    assert all(isinstance(request, TransactWrite) for request in list_writes(db)[:2])
    found = await db.query(Parcel, index="by_state", state="gone").all()
    assert [parcel.number for parcel in found] == list(range(3, 10))
    assert (await db.get_one(Parcel, {"town": "b", "number": 1})).state == "here"
    again = await db.update_all(Parcel, {"state": "gone"}, index="by_state", state="gone")
    assert again == ChangeReport(7, 7, 0)  # all items already had the value


@everywhere
async def test_a_function_changes_each_item_that_an_index_finds(db: Db) -> None:
    await put_parcels(db, 8)

    def change_odd_parcel(parcel: Parcel) -> None:
        if parcel.number % 2:
            parcel.state = "gone"
            parcel.weight += 100

    report = await db.update_all(Parcel, change_odd_parcel, index="by_state", state="here", chunk=3)
    assert report == ChangeReport(9, 9, 5)
    assert await read_weights(db) == [0, 101, 2, 103, 4, 105, 6, 107]
    assert [p.weight for p in await db.query(Parcel, index="by_state", state="gone").all()] == [
        100,
        101,
        103,
        105,
        107,
    ]


@everywhere
async def test_items_are_deleted_with_their_guards(db: Db) -> None:
    async with db.transaction() as tx:
        for number in range(7):
            tx.create(Member, club="a", number=number, mail=f"m{number}")
    assert await db.delete_all(Member, club="a", sort=Member.number >= 2) == ChangeReport(5, 5, 5)
    async with db.transaction() as tx:
        tx.create(Member, club="b", number=1, mail="m6")  # the deletion released the value
    with pytest.raises(UniqueViolationError):
        await db.update_all(Member, {"mail": "m0"}, club="b")
    assert await db.query(Member, club="a").count() == 2


@in_memory
async def test_a_chunk_that_is_too_large_for_one_transaction_is_split(db: Db) -> None:
    for start in (0, 40):
        async with db.transaction() as tx:
            for number in range(start, start + 40):
                tx.create(Member, club="a", number=number, mail=f"m{number}")
    db.forget()
    assert await db.delete_all(Member, club="a", chunk=80) == ChangeReport(80, 80, 80)
    assert [len(request.actions) for request in list_writes(db)] == [80, 80]


@everywhere
async def test_a_change_to_all_partitions_needs_scan_true(db: Db) -> None:
    await db.bulk(Ticket).put_all(Ticket(show=show, seat=seat) for show in "abc" for seat in range(5))
    with pytest.raises(
        InvalidOptionsError, match="no partition key was given, so this would concern every Ticket"
    ):
        await db.delete_all(Ticket)
    report = await db.update_all(
        Ticket,
        {"sold": True},
        scan=True,
        segments=2,
        where=col(Ticket.sold) != True,  # noqa: E712 - builds a condition
        checkpoint="x",
    )
    assert report == ChangeReport(15, 15, 15)
    assert await db.scan(Ticket, where=col(Ticket.sold) == True).count() == 15  # noqa: E712
    assert (await db.delete_all(Ticket, scan=True, chunk=4)).changed == 15
    assert await db.query(Ticket, show="a").count() == 0


@in_memory
async def test_a_rate_limits_how_many_items_are_written_per_second(db: Db) -> None:
    await put_parcels(db, 10)
    begin = db.clock.now()
    await db.update_all(Parcel, {"state": "gone"}, town="a", chunk=5, rate=10)
    assert (db.clock.now() - begin).total_seconds() == pytest.approx(0.5)
    begin = db.clock.now()
    await db.bulk(Parcel, rate=50).put_all(Parcel(town="a", number=n) for n in range(75))
    assert (db.clock.now() - begin).total_seconds() == pytest.approx(1)


@in_memory
async def test_hooks_are_called(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Noted, name="a")
    await db.update_all(Noted, {"notes": 1}, name="a")
    assert (await db.get_one(Noted, "a")).notes == 11


class Stopped(Exception):
    """Stands for the death of the process."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("segments", [0, 2])
@pytest.mark.parametrize("count", range(4) if TORTURE else [0, 2])
@in_memory
async def test_a_run_that_died_at_a_write_is_resumed_and_changes_no_item_twice(
    db: Db, when: str, segments: int, count: int
) -> None:
    await put_parcels(db, 10)
    left = count

    def die(request: Request[Any]) -> None:
        nonlocal left
        if request.writes:
            left -= 1
            if left < 0:
                raise Stopped

    setattr(db.recorder, when, die)
    options: Any = {"scan": True, "segments": segments} if segments else {"town": "a"}
    options |= {"chunk": 3, "checkpoint": "add_weight"}
    with pytest.raises(Stopped):
        await db.update_all(Parcel, add_weight, **options)
    setattr(db.recorder, when, lambda request: None)
    report = await db.update_all(Parcel, add_weight, **options)
    items = 11 if segments else 10
    assert (report.found, report.changed) == (items, items)
    assert await read_weights(db) == [100 + n for n in range(10)]
    # a finished run only returns its report
    assert await db.update_all(Parcel, add_weight, **options) == report
    assert await read_weights(db) == [100 + n for n in range(10)]


def interfere(db: Db, *updates: UpdateItem) -> None:
    """Send another process's updates just before the first commit."""
    waiting = list(updates)

    def before(request: Request[Any]) -> None:
        while waiting and request.writes:
            db.recorder.inner.send_blocking(waiting.pop())

    db.recorder.before = before


def set_raw(db: Db, key: Any, name: str, value: Any) -> UpdateItem:
    return UpdateItem(db.table_of(Parcel), key, Update((Set(Path((name,)), Value(value)),)))


@in_memory
async def test_a_row_that_another_process_changes_meanwhile_is_read_again(db: Db) -> None:
    await put_parcels(db, 6)
    one, other = (raw_key(Parcel.key(town="a", number=number)) for number in (2, 3))
    interfere(db, set_raw(db, one, "state", {"S": "gone"}), set_raw(db, other, "weight", {"N": "50"}))
    report = await db.update_all(Parcel, add_weight, town="a", where=col(Parcel.state) == "here")
    assert report == ChangeReport(6, 5, 5)
    assert await read_weights(db) == [100, 101, 2, 150, 104, 105]


@in_memory
async def test_two_processes_cannot_work_on_the_same_run(db: Db) -> None:
    await put_parcels(db, 6)
    with pytest.raises(KeyError):
        await db.update_all(Parcel, fail_at_four, town="a", chunk=2, checkpoint="x")
    record = {"pk": {"S": "holdall#Bulk#x"}, "sk": {"S": "0"}}
    interfere(db, set_raw(db, record, "mark", {"S": "another"}))
    with pytest.raises(InvalidRequestError, match="another process is working on the run 'x'"):
        await db.update_all(Parcel, add_weight, town="a", checkpoint="x", chunk=2)
    assert await read_weights(db) == [100, 101, 102, 103, 4, 5]


@in_memory
async def test_a_checkpoint_cannot_be_used_by_a_run_with_other_arguments(db: Db) -> None:
    await put_parcels(db, 4)
    first = await db.update_all(Parcel, add_weight, town="a", checkpoint="x")
    with pytest.raises(InvalidOptionsError, match="'x' belongs to a run with other arguments"):
        await db.update_all(Parcel, add_weight, town="b", checkpoint="x")
    assert await db.update_all(Parcel, add_weight, town="a", checkpoint="x", restart=True) == first
    assert await read_weights(db) == [200, 201, 202, 203]


@in_memory
async def test_an_error_ends_a_run_and_the_chunks_before_it_stay_committed(db: Db) -> None:
    await put_parcels(db, 6)

    with pytest.raises(KeyError):
        await db.update_all(Parcel, fail_at_four, town="a", chunk=2, checkpoint="x")
    assert await read_weights(db) == [100, 101, 102, 103, 4, 5]
    assert (await db.update_all(Parcel, add_weight, town="a", chunk=2, checkpoint="x")).changed == 6
    assert await read_weights(db) == [100, 101, 102, 103, 104, 105]


@in_memory
async def test_a_change_that_makes_the_query_find_the_item_again_is_refused(db: Db) -> None:
    await put_parcels(db, 3)
    with pytest.raises(InvalidFieldError, match="would find the changed item again"):
        await db.update_all(Parcel, add_weight, index="by_state", state="here")
    assert await read_weights(db) == [0, 1, 2]
    assert (await db.update_all(Parcel, {"weight": 7}, index="by_state", state="here")).changed == 4


@blocking
async def test_mistakes_are_refused_before_anything_is_sent(db: Db) -> None:
    for options, problem in [
        ({"chunk": 0}, "chunk must be a whole number from 1 to 99"),
        ({"checkpoint": ""}, "checkpoint must be a name"),
        ({"restart": True}, "restart=True was given without a checkpoint"),
        ({"restart": 1, "checkpoint": "x"}, "restart must be True or False"),
        ({"rate": 0}, "rate must be a number of items per second above 0, not 0"),
        ({"progress": 1}, "progress must be callable"),
        ({"scan": True}, "cannot be used with key components"),
        ({"scan": 1}, "scan must be True or False"),
        ({"segments": 2}, "segments= is only for scan=True"),
    ]:
        with pytest.raises(InvalidOptionsError, match=problem):
            await db.delete_all(Parcel, town="a", **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidFieldError, match="has no such field"):
        await db.update_all(Parcel, {"wait": 1}, town="a")
    with pytest.raises(InvalidFieldError, match="read-only"):
        await db.update_all(Parcel, {"fixed": "y"}, town="a")
    with pytest.raises(InvalidFieldError, match="valid integer"):
        await db.update_all(Parcel, {"weight": "1"}, town="a")
    with pytest.raises(InvalidRequestError, match="changes nothing"):
        await db.update_all(Parcel, {}, town="a")
    with pytest.raises(InvalidOptionsError, match="must be a mapping of fields or a function, not 5"):
        await db.update_all(Parcel, 5, town="a")  # type: ignore[arg-type]
    assert db.list_sent() == []


class Album(Model):
    owner: Key[str]
    number: SortKey[int]
    cover = has_one_attached(dependent="purge")


class Letter(Model, archive=Archive(timestamp="sent_at", after_days=30)):
    sender: Key[str]
    number: SortKey[int]
    text: str
    sent_at: datetime


def test_attachments_are_purged_and_archived_items_are_changed_too() -> None:
    with Database("memory:", files="memory:") as db:
        with db.transaction() as tx:
            for number in range(3):
                tx.create(Album, owner="ada", number=number).cover.attach(b"GIF89a", filename="a.gif")
                sent_at = datetime(2020, 1, 1 + number, tzinfo=UTC)
                tx.create(Letter, sender="ada", number=number, text=f"{number}" * 50, sent_at=sent_at)
        assert db.delete_all(Album, owner="ada", sort=Album.number < 2).changed == 2
        assert len([file.key for file in db.files.list()]) == 1
        db.archive.run(Letter)
        assert len([file.key for file in db.files.list()]) == 4
        one = col(Letter.text).begins_with("1")  # the archived text is not in the table
        assert db.update_all(Letter, {"text": "new"}, sender="ada", where=one) == ChangeReport(3, 1, 1)
        assert [letter.text for letter in db.query(Letter, sender="ada")] == ["0" * 50, "new", "2" * 50]
        assert db.delete_all(Letter, scan=True).changed == 3
        assert db.query(Letter, sender="ada").count() == 0
