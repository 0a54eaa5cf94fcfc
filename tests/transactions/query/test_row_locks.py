"""``lock="rows"``: every row that the query returned must still match at commit, even if no field of it was read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from queries_rig import Db, arrange, everywhere, expect_failure, fresh, in_memory, watch_of

from holdall import Index, Key, Model, SortKey, col
from holdall.core import ConditionCheck, TransactWrite
from holdall.errors import (
    ContentionError,
    InvalidOptionsError,
    ModelTrackedTwiceError,
    TransactionFailedError,
    TransactionTooLarge,
)


class Doctor(Model, indexes=[Index("by_ward", ["ward"], ["name"])]):
    clinic: Key[str]
    name: SortKey[str]
    on_call: bool = True
    ward: str | None = None
    pager: str | None = None


class OwnDoctor(
    Model, table="Doctor", indexes=[Index("by_ward", ["ward"], ["name"], include=["on_call"], sparse=True)]
):
    clinic: Key[str]
    name: SortKey[str]
    on_call: bool = True
    ward: str | None = None
    pager: str | None = None


class Surgeon(Doctor):
    theatre: int = 1


class Report(Model):
    id: Key[str]
    count: int = 0


both_layouts = pytest.mark.parametrize("doctor", [Doctor, OwnDoctor], ids=["one table", "own table"])


async def create_clinic(db: Db, doctor: type[Any] = Doctor, count: int = 2, **values: Any) -> str:
    name = fresh("clinic")
    await arrange(db, *(doctor(clinic=name, name=f"d{number:03}", **values) for number in range(count)))
    return name


async def change(db: Db, key: Any, **values: Any) -> None:
    """Change a doctor in another transaction."""
    async with db.transaction() as tx:
        item = await tx.get_one(key)
        for name, value in values.items():
            setattr(item, name, value)


async def write_report(
    db: Db, read: Callable[[Any], Awaitable[Any]], meanwhile: Callable[[], Awaitable[Any]]
) -> None:
    """In one attempt of a transaction, read, let ``meanwhile`` run, and write another item."""
    async with db.transaction() as tx:
        await read(tx)
        await meanwhile()
        tx.create(Report, id=fresh("report"))


def expect_contention() -> AbstractContextManager[Any]:
    return pytest.raises((TransactionFailedError, ContentionError))


def list_checks(db: Db) -> list[ConditionCheck]:
    """Return the condition checks of the last write."""
    write = next(request for request, _ in reversed(watch_of(db).exchanges) if request.writes)
    actions = write.actions if isinstance(write, TransactWrite) else ()
    return [action for action in actions if isinstance(action, ConditionCheck)]


# --- write skew -------------------------------------------------------------------------------------------


async def let_two_doctors_leave(db: Db, **options: Any) -> int:
    """Let two doctors leave concurrently, each only if the other stays; return how many stay. They read only names."""
    name = await create_clinic(db)

    async def leave(tx: Any, who: str, other: str | None) -> bool:
        rows = await tx.query(Doctor, clinic=name, where=col(Doctor.on_call) == True, **options).all()  # noqa: E712
        if len(rows) < 2:
            return False
        if other is not None and not attempts:
            attempts.append(other)
            assert await db.run(leave, other, None)
        next(row for row in rows if row.name == who).on_call = False
        return True

    attempts: list[str] = []
    await db.run(leave, "d000", "d001", initial_backoff=0)
    return sum([row.on_call for row in await db.query(Doctor, clinic=name).all()])


@everywhere
async def test_row_locks_prevent_write_skew(db: Db) -> None:
    assert await let_two_doctors_leave(db, lock="rows") == 1


@everywhere
async def test_without_row_locks_rows_whose_fields_were_not_read_are_not_locked(db: Db) -> None:
    assert await let_two_doctors_leave(db) == 0


# --- locked rows ------------------------------------------------------------------------------------------


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("the row is deleted", {}, {}, True),
    ("a field of where", {}, {"on_call": False}, True),
    ("a field of the index", {"index": "by_ward", "ward": "a"}, {"ward": "b"}, True),
    ("a field that was not read", {}, {"pager": "1234"}, False),
]


@everywhere
@both_layouts
@pytest.mark.parametrize(
    ("index", "values", "matters"),
    [case[1:] for case in CHANGES],
    ids=[case[0] for case in CHANGES],
)
async def test_a_locked_row_must_still_match_the_query(
    db: Db, doctor: type[Any], index: dict[str, Any], values: dict[str, Any], matters: bool
) -> None:
    ward = fresh("ward")
    name = await create_clinic(db, doctor, ward=ward)
    key = doctor.key(clinic=name, name="d001")
    place = {**index, "ward": ward} if index else {"clinic": name}

    async def read(tx: Any) -> None:
        rows = await tx.query(doctor, where=col(doctor.on_call) == True, lock="rows", **place).all()  # noqa: E712
        assert [row.name for row in rows] == ["d000", "d001"]

    async def meanwhile() -> None:
        if values:
            await change(db, key, **values)
        else:
            async with db.transaction() as tx:
                tx.delete(key)

    if matters:
        with expect_contention():
            await write_report(db, read, meanwhile)
    else:
        await write_report(db, read, meanwhile)
        assert len(list_checks(db)) == 2  # one action for each row


@in_memory
async def test_a_row_that_becomes_another_model_no_longer_matches(db: Db) -> None:
    name = fresh("clinic")
    await arrange(db, Surgeon(clinic=name, name="x"))

    async def meanwhile() -> None:
        async with db.transaction() as tx:
            tx.create_or_put(Doctor, {"clinic": name, "name": "x"}, {})

    with expect_contention():
        await write_report(db, lambda tx: tx.query(Surgeon, clinic=name, lock="rows").all(), meanwhile)
    await write_report(db, lambda tx: tx.query(Doctor, clinic=name, lock="rows").all(), meanwhile)


READS: list[tuple[str, Callable[[Any], Awaitable[Any]], int]] = [
    ("all", lambda query: query.all(), 3),
    ("count", lambda query: query.count(), 3),
    ("first", lambda query: query.first(), 1),
    ("exists", lambda query: query.exists(), 1),
    ("page", lambda query: query.page(2), 2),
]


@in_memory
@both_layouts
@pytest.mark.parametrize(("read", "locked"), [case[1:] for case in READS], ids=[case[0] for case in READS])
async def test_only_the_returned_rows_are_locked(
    db: Db, doctor: type[Any], read: Callable[[Any], Awaitable[Any]], locked: int
) -> None:
    name = await create_clinic(db, doctor, 3)
    where = col(doctor.on_call) == True  # noqa: E712
    async with db.transaction() as tx:
        await read(tx.query(doctor, clinic=name, where=where, lock="rows"))
        tx.create(Report, id=fresh("report"))
    assert len(list_checks(db)) == locked


@in_memory
@pytest.mark.parametrize("read", ["query", "scan"])
async def test_rows_that_a_loop_did_not_reach_are_not_locked(db: Db, read: str) -> None:
    name = await create_clinic(db, count=120)
    place = {"clinic": name} if read == "query" else {"where": Doctor.clinic == name}
    async with db.transaction() as tx:
        async for row in getattr(tx, read)(Doctor, lock="rows", **place):
            assert row.clinic == name
            break
        tx.create(Report, id=fresh("report"))
    assert len(list_checks(db)) == 1
    async with db.transaction(read_only=True) as tx:
        async for row in getattr(tx, read)(Doctor, **place):
            assert row.clinic == name
            break


@in_memory
@both_layouts
async def test_rows_of_a_scan_are_locked_too(db: Db, doctor: type[Any]) -> None:
    name = await create_clinic(db, doctor, pager=(pager := fresh("pager")))
    where = col(doctor.pager) == pager
    key = doctor.key(clinic=name, name="d001")
    for read in ("all", "count"):
        with expect_contention():
            await write_report(
                db,
                lambda tx, read=read: getattr(tx.scan(doctor, where=where, lock="rows"), read)(),  # type: ignore[misc]
                lambda: change(db, key, pager="other"),
            )
        await change(db, key, pager=pager)


# --- parts of rows ----------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_the_fetched_part_of_a_row_is_locked(db: Db, doctor: type[Any]) -> None:
    ward = fresh("ward")
    name = await create_clinic(db, doctor, ward=ward)
    key = doctor.key(clinic=name, name="d001")
    only = {"only": [doctor.on_call], "where": col(doctor.pager) == None}  # noqa: E711
    queries: list[dict[str, Any]] = [{"clinic": name, **only}]
    queries += [{"index": "by_ward", "ward": ward, **({} if doctor is OwnDoctor else only)}]
    changes: list[tuple[dict[str, Any], bool]] = [({"on_call": False}, True), ({"pager": "1"}, True)]
    for query in queries:
        if "where" not in query:
            changes = [({"on_call": False}, True), ({"pager": "1"}, False)]
        for values, matters in changes:

            async def read(tx: Any, query: dict[str, Any] = query) -> None:
                assert len(await tx.query(doctor, lock="rows", **query).all()) == 2

            async def meanwhile(values: dict[str, Any] = values) -> None:
                await change(db, key, **values)

            if matters:
                with expect_contention():
                    await write_report(db, read, meanwhile)
            else:
                await write_report(db, read, meanwhile)
            await change(db, key, on_call=True, pager=None)


@in_memory
@both_layouts
async def test_the_whole_item_can_be_read_after_a_part_of_it(db: Db, doctor: type[Any]) -> None:
    name = await create_clinic(db, doctor)
    key = doctor.key(clinic=name, name="d001")
    async with db.transaction() as tx:
        await tx.query(doctor, clinic=name, only=[doctor.on_call], lock="rows").all()
        (await tx.get_one(key)).pager = "1"
        assert [row.pager for row in await tx.query(doctor, clinic=name).all()] == [None, "1"]
    assert (await db.get_one(key)).pager == "1"
    with expect_contention():
        async with db.transaction() as tx:
            await tx.query(doctor, clinic=name, only=[doctor.on_call], lock="rows").all()
            await change(db, key, on_call=False)
            (await tx.get_one(key)).pager = "2"
    async with db.transaction() as tx:
        await tx.query(doctor, clinic=name, only=[doctor.on_call], lock="rows").all()
        with pytest.raises(ModelTrackedTwiceError):
            tx.update(doctor, {"clinic": name, "name": "d001", "pager": "1"}, {"pager": "2"})


# --- rows that the transaction already has ----------------------------------------------------------------


@in_memory
@pytest.mark.parametrize("whole", [True, False], ids=["whole rows", "parts of rows"])
async def test_a_row_that_changed_since_it_was_read_is_contention(db: Db, whole: bool) -> None:
    name = await create_clinic(db)
    key = Doctor.key(clinic=name, name="d001")
    more: dict[str, Any] = {} if whole else {"only": [Doctor.pager]}

    async def read(tx: Any) -> None:
        assert (await tx.get_one(key)).pager is None
        await change(db, key, on_call=False)
        await tx.query(Doctor, clinic=name, where=col(Doctor.on_call) == False, lock="rows", **more).all()  # noqa: E712

    async def do_nothing() -> None: ...

    with expect_contention():
        await write_report(db, read, do_nothing)


@in_memory
async def test_a_row_that_was_missing_or_written_blindly_cannot_be_locked(db: Db) -> None:
    name = fresh("clinic")
    options: list[dict[str, Any]] = [{}, {"only": [Doctor.pager]}]
    for more in options:
        key = Doctor.key(clinic=name, name=fresh())
        with expect_failure(ContentionError):
            async with db.transaction() as tx:
                assert await tx.get(key) is None
                await arrange(db, Doctor(**key.components))
                await tx.query(Doctor, clinic=name, lock="rows", **more).all()
        with expect_failure(ModelTrackedTwiceError):
            async with db.transaction() as tx:
                tx.update(Doctor, {**key.components, "pager": None}, {"pager": "1"})
                await tx.query(Doctor, clinic=name, lock="rows", **more).all()


# --- limits and options -----------------------------------------------------------------------------------


@in_memory
async def test_more_rows_than_a_transaction_can_check_are_refused_when_it_writes(db: Db) -> None:
    name = await create_clinic(db, count=101)
    async with db.transaction() as tx:
        assert len(await tx.query(Doctor, clinic=name, lock="rows").all()) == 101
    with expect_failure(TransactionTooLarge) as caught:
        async with db.transaction() as tx:
            await tx.query(Doctor, clinic=name, lock="rows").all()
            tx.create(Report, id=fresh("report"))
    assert 'lock="rows"' in str(caught.value)


@in_memory
async def test_an_invalid_lock_or_a_row_lock_outside_a_transaction_is_refused(db: Db) -> None:
    odd: Any = "row"
    with pytest.raises(InvalidOptionsError, match='must be "rows", True or False'):
        db.query(Doctor, clinic="a", lock=odd)
    with pytest.raises(InvalidOptionsError, match='must be "rows", True or False'):
        db.scan(Doctor, lock=odd)
    with pytest.raises(InvalidOptionsError, match="outside a transaction"):
        await db.query(Doctor, clinic="a", lock="rows").all()
    with pytest.raises(InvalidOptionsError, match="outside a transaction"):
        await db.scan(Doctor, lock="rows").count()
