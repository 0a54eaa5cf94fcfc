"""Bulk runs: what they report, how they are resumed, how fast they write, and what they leave untouched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from migration_rig import (
    Db,
    Layer,
    RivalWriter,
    add_layer,
    arrange,
    awaiting,
    blocking,
    everywhere,
    fetch_item,
    in_memory,
    is_item_write,
    order_item,
    put_raw,
    raw_key,
    read_all,
    update_raw,
    use_small_pages,
    version,
)
from toy_hydrator import Squeezer, is_squeezed, squeeze

from holdall import Database, Index, Key, Model, SortKey, field
from holdall.core import DeleteItem, Request, encode_item
from holdall.errors import InvalidOptionsError, ServiceUnavailableError
from holdall.testing import Fault

Values = dict[str, Any]


def mark_item(item: Values) -> Values:
    """Record in the item that the conversion was called."""
    return {**item, "marks": [*item.get("marks", []), "converted"], "size": item["size"] * 2}


@version
class OldThing(Model, name="Thing"):
    id: Key[int]
    size: int


@version
class Thing(Model, name="Thing", migrations=[mark_item], indexes=[Index("by_size", ["size"])]):
    id: Key[int]
    size: int
    marks: list[str] = field(default_factory=list)


@version
class OldOwn(Model, name="Own", table="Own"):
    id: Key[int]
    length: int
    width: int = 1


@version
class Own(Model, name="Own", table="Own", indexes=[Index("by_size", ["size", "width"])]):
    id: Key[int]
    size: int = field(aliases=["length"])
    width: int = 1


class Other(Model):
    """Another application's model in the same table."""

    id: Key[int]


async def arrange_old_things(db: Db, count: int) -> None:
    await arrange(db, *(OldThing(id=number, size=number) for number in range(count)))


async def arrange_old_owns(db: Db, count: int) -> None:
    await arrange(db, *(OldOwn(id=number, length=number) for number in range(count)))


def expect_converted(number: int) -> dict[str, Any]:
    """Return the expected stored form of a thing after a run."""
    values = {"id": number, "size": number * 2, "marks": ["converted"]}
    index = {"gsi1_pk": f"Thing#by_size#{number * 2}", "gsi1_sk": "#"}
    attributes = {"_type": {"S": "Thing"}, "_v": {"N": "1"}}
    return {**raw_key(Thing.key(number)), **attributes, **encode_item({**values, **index})}


def expect_moved(number: int) -> dict[str, Any]:
    """Return the expected stored form, after a run, of an item in its own table."""
    joined = {"_c_size_width": f"{number}\x001"}
    return {**raw_key(Own.key(number)), **encode_item({"size": number, "width": 1, **joined})}


# --- the work of a run ------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("segments", [1, 3, 20])
async def test_a_run_converts_every_item_once_and_leaves_no_other_items_behind(db: Db, segments: int) -> None:
    await arrange_old_things(db, 12)
    await arrange(db, Other(id=1))
    report = await db.migrate(Thing, segments=segments)
    assert (report.found, report.changed, report.failed, report.problems) == (12, 12, 0, ())
    other = {**raw_key(Other.key(1)), **encode_item({"_type": "Other", "id": 1})}
    wanted = sorted([*(expect_converted(number) for number in range(12)), other], key=order_item)
    assert await read_all(db, Thing) == wanted
    again = await db.migrate(Thing, segments=segments)
    assert (again.found, again.changed, again.failed) == (12, 0, 0)
    assert await read_all(db, Thing) == wanted


@everywhere
@pytest.mark.parametrize("segments", [1, 3])
async def test_a_run_converts_items_in_a_table_of_their_own(db: Db, segments: int) -> None:
    await arrange_old_owns(db, 12)
    report = await db.migrate(Own, segments=segments)
    assert (report.found, report.changed, report.failed) == (12, 12, 0)
    assert await read_all(db, Own) == sorted((expect_moved(number) for number in range(12)), key=order_item)
    assert (await db.migrate(Own)).changed == 0


@everywhere
async def test_a_dry_run_writes_nothing_and_reports_what_the_run_will_do(db: Db) -> None:
    await arrange_old_things(db, 5)
    await arrange(db, Thing(id=7, size=7), OldThing(id=8, size=8))
    await put_raw(db, Thing, {**raw_key(Thing.key(9)), **encode_item({"id": 9, "size": "nine"})})
    before = await read_all(db, Thing)
    dry = await db.migrate(Thing, dry_run=True)
    assert not any(request.writes for request in db.list_sent())
    assert await read_all(db, Thing) == before
    assert (dry.found, dry.changed, dry.failed) == (8, 6, 1)
    report = await db.migrate(Thing)
    assert (report.found, report.changed, report.failed) == (8, 6, 1)
    assert report.problems == dry.problems


@in_memory
async def test_an_item_deleted_between_the_read_and_the_write_of_a_run_stays_deleted(db: Db) -> None:
    await arrange_old_things(db, 1)
    add_layer(db, RivalWriter).requests = [DeleteItem(db.table_of(Thing), raw_key(Thing.key(0)))]
    report = await db.migrate(Thing)
    assert (report.changed, report.failed) == (0, 0)
    assert await db.raw(Thing.key(0)) is None


@everywhere
async def test_an_item_changed_between_the_read_and_the_write_of_a_run_is_read_again(db: Db) -> None:
    await arrange_old_things(db, 1)
    change = update_raw(db, Thing.key(0), size={"N": "5"}, note={"S": "kept"})
    add_layer(db, RivalWriter).requests = [change, change]
    report = await db.migrate(Thing)
    assert (report.found, report.changed, report.failed) == (1, 1, 0)
    assert await fetch_item(db, Thing.key(0)) == {
        **expect_converted(5),
        **raw_key(Thing.key(0)),
        **encode_item({"id": 0, "note": "kept"}),
    }


@in_memory
async def test_an_item_that_another_process_changes_before_every_write_is_reported_and_the_rest_converted(
    db: Db,
) -> None:
    await arrange_old_things(db, 3)
    rival = add_layer(db, ConstantRival)
    rival.key = raw_key(Thing.key(1))
    rival.update = lambda n: update_raw(db, Thing.key(1), size={"N": str(n)})
    report = await db.migrate(Thing)
    assert (report.found, report.changed, report.failed) == (3, 2, 1)
    assert "Thing#1" in report.problems[0]
    assert await fetch_item(db, Thing.key(2)) == expect_converted(2)


class ConstantRival(Layer):
    """A store in which another process changes one item before each write of it."""

    key: Any = None
    update: Any = None
    writes = 100

    def arrange(self, request: Request[Any]) -> Sequence[Request[Any]]:
        if is_item_write(request) and getattr(request, "key", None) == self.key:
            self.writes += 1
            return [self.update(self.writes), request]
        return [request]


@in_memory
async def test_failed_items_are_counted_the_first_20_are_reported_and_the_rest_is_converted(db: Db) -> None:
    await arrange_old_things(db, 40)
    for number in range(0, 40, 2):
        await db.send(update_raw(db, Thing.key(number), size=None))
    await db.send(update_raw(db, Thing.key(39), size=None))
    report = await db.migrate(Thing, segments=3)
    assert (report.found, report.changed, report.failed) == (40, 19, 21)
    assert len(report.problems) == 20
    assert all("Thing#" in problem and "mark_item" in problem for problem in report.problems)
    assert [await fetch_item(db, Thing.key(number)) for number in (1, 37)] == [
        expect_converted(1),
        expect_converted(37),
    ]
    assert "_v" not in await fetch_item(db, Thing.key(0))


@everywhere
async def test_an_item_that_is_too_large_after_conversion_is_reported_and_the_rest_converted(db: Db) -> None:
    await arrange_old_things(db, 2)
    await arrange_old_owns(db, 2)
    large = {"S": "x" * 409_500}
    await db.send(update_raw(db, Thing.key(0), large=large))
    await db.send(update_raw(db, Own.key(0), large={"S": "x" * 409_570}))
    for model in (Thing, Own):
        report = await db.migrate(model)
        assert (report.changed, report.failed) == (1, 1), report
        assert str(model.key(0).encoded[0]) in report.problems[0]


@blocking
async def test_a_run_leaves_items_that_a_hydrator_stores_elsewhere(db: Db) -> None:
    """They are converted when they are read; a run does not fetch them back."""
    await arrange(db, OldLetter(writer="ada", size=1), OldLetter(writer="bob", size=2))
    key = Letter.key("ada")
    squeeze(db.sync, key)
    for _ in range(2):
        await db.migrate(Letter)
        assert is_squeezed(db.sync, key)
    assert (await db.get_one(key)).size == 2
    assert (await fetch_item(db, Letter.key("bob")))["size"] == {"N": "4"}


squeezer = Squeezer()


@version
class OldLetter(Model, name="Letter", archive=squeezer):
    writer: Key[str]
    size: int


@version
class Letter(Model, name="Letter", migrations=[mark_item], archive=squeezer):
    writer: Key[str]
    size: int
    marks: list[str] = field(default_factory=list)


# --- resuming ---------------------------------------------------------------------------------------------


class Failing(Layer):
    """A store that becomes unavailable after a number of writes."""

    left = -1

    def arrange(self, request: Request[Any]) -> Sequence[Request[Any]]:
        if request.writes and self.left >= 0:
            if self.left == 0:
                raise ServiceUnavailableError("failed on purpose")
            self.left -= 1
        return [request]


@in_memory
@pytest.mark.parametrize("segments", [1, 2])
async def test_a_run_that_breaks_off_at_any_write_is_finished_by_the_next_without_converting_twice(
    db: Db, segments: int
) -> None:
    use_small_pages(db, 2)
    store = add_layer(db, Failing)
    await arrange_old_things(db, 5)
    for left in range(20):
        store.left = left  # each run gets a little further
        try:
            report = await db.migrate(Thing, segments=segments)
            break
        except ServiceUnavailableError:
            assert len(await read_all(db, Thing)) >= 5
    store.left = -1
    assert left >= 3
    assert (report.found, report.failed) == (5, 0)
    assert await read_all(db, Thing) == sorted(
        (expect_converted(number) for number in range(5)), key=order_item
    )


@everywhere
async def test_a_run_resumes_where_it_was_stopped_and_reports_all_items(db: Db) -> None:
    use_small_pages(db, 3)
    store = add_layer(db, Failing)
    await arrange_old_things(db, 9)
    await db.send(update_raw(db, Thing.key(4), size=None))
    store.left = 6  # the run stops within the second page, before it stores its position
    with pytest.raises(ServiceUnavailableError):
        await db.migrate(Thing)
    store.left = -1
    db.forget()
    report = await db.migrate(Thing)
    scans = [request for request in db.list_sent() if type(request).__name__ == "Scan"]
    assert scans[0].start_after is not None
    assert (report.found, report.failed) == (9, 1)
    assert "Thing#4" in report.problems[0]
    things = [item for item in await read_all(db, Thing) if item["id"] != {"N": "4"}]
    assert things == sorted((expect_converted(number) for number in range(9) if number != 4), key=order_item)


@in_memory
async def test_a_restarted_run_starts_from_the_beginning(db: Db) -> None:
    await stop_in_the_middle(db)
    await db.migrate(Thing, restart=True)
    assert get_first_scan(db).start_after is None


@in_memory
async def test_a_run_with_other_segments_starts_from_the_beginning_and_deletes_the_old_positions(
    db: Db,
) -> None:
    await stop_in_the_middle(db)
    await db.migrate(Thing, segments=2)
    assert get_first_scan(db).start_after is None
    assert await read_all(db, Thing) == sorted(
        (expect_converted(number) for number in range(9)), key=order_item
    )


@version
class Renamed(Model, name="Thing", migrations=[mark_item], indexes=[Index("by_size", ["size"])]):
    id: Key[int]
    size: int
    marks: list[str] = field(default_factory=list)
    note: str | None = field(default=None, aliases=["remark"])


@version
class Reindexed(Model, name="Thing", migrations=[mark_item], indexes=[Index("by_size", ["marked"])]):
    id: Key[int]
    size: int
    marks: list[str] = field(default_factory=list)
    marked: bool = False


@version
class Longer(Model, name="Thing", migrations=[mark_item, mark_item], indexes=[Index("by_size", ["size"])]):
    id: Key[int]
    size: int
    marks: list[str] = field(default_factory=list)


@version
class Expiring(
    Model, name="Thing", migrations=[mark_item], indexes=[Index("by_size", ["size"])], ttl="until"
):
    id: Key[int]
    size: int
    marks: list[str] = field(default_factory=list)
    until: int | None = None


@in_memory
@pytest.mark.parametrize("model", [Renamed, Reindexed, Longer, Expiring])
async def test_a_run_with_another_definition_starts_from_the_beginning(db: Db, model: type[Model]) -> None:
    """The items that the previous run passed do not match the new definition."""
    await stop_in_the_middle(db)
    report = await db.migrate(model)
    assert get_first_scan(db).start_after is None
    assert report.found == 9
    assert len(await read_all(db, Thing)) == 9


class Family(Model):
    id: Key[int]
    kind: SortKey[str] = field(default="base")


@in_memory
async def test_a_run_with_another_definition_of_a_derived_model_starts_from_the_beginning_too(db: Db) -> None:
    def define_heir(**options: Any) -> type[Family]:
        @version
        class Heir(Family, name="Heir", **options):
            kind = "heir"

        return Heir

    first = define_heir()
    await arrange(db, *(first(id=number) for number in range(9)))
    use_small_pages(db, 3)
    store = add_layer(db, Failing)
    store.left = 1
    with pytest.raises(ServiceUnavailableError):
        await db.migrate(Family)
    store.left = -1
    second = define_heir(migrations=[lambda item: item])
    assert (await db.migrate(Family)).changed == 9
    assert first.__name__ == second.__name__


async def stop_in_the_middle(db: Db) -> None:
    """Stop a run after the first of three pages, and count requests from here."""
    await arrange_old_things(db, 9)
    use_small_pages(db, 3)
    store = add_layer(db, Failing)
    store.left = 5
    with pytest.raises(ServiceUnavailableError):
        await db.migrate(Thing)
    store.left = -1
    db.forget()


def get_first_scan(db: Db) -> Any:
    return next(request for request in db.list_sent() if type(request).__name__ == "Scan")


@in_memory
async def test_a_dry_run_reads_everything_even_if_a_run_was_stopped(db: Db) -> None:
    await stop_in_the_middle(db)
    report = await db.migrate(Thing, dry_run=True)
    assert (report.found, report.changed) == (9, 5)
    await db.migrate(Thing)
    assert await read_all(db, Thing) == sorted(
        (expect_converted(number) for number in range(9)), key=order_item
    )


@everywhere
async def test_a_lost_reply_leaves_every_item_converted_once(db: Db) -> None:
    """After a lost reply, the next run finds out whether the write happened."""
    from holdall.errors import OutcomeUnknown, ServiceUnavailableError

    await arrange_old_things(db, 3)
    await arrange_old_owns(db, 3)
    for model in (Thing, Own):
        for fault in (Fault.LOST_AFTER, Fault.LOST_BEFORE):
            db.faults.inject(*[None] * (2 + (model is Thing)), fault)
            try:
                await db.migrate(model, restart=True)
            except (OutcomeUnknown, ServiceUnavailableError):  # the latter from the write of a position
                continue
        await db.migrate(model, restart=True)
    assert await read_all(db, Thing) == sorted(
        (expect_converted(number) for number in range(3)), key=order_item
    )
    assert await read_all(db, Own) == sorted((expect_moved(number) for number in range(3)), key=order_item)


def test_without_the_shared_table_a_run_works_but_stores_no_positions() -> None:
    with Database("memory:") as db:
        with db.transaction() as tx:
            tx.create(OldOwn, id=1, length=5)
        with Database("memory:", backend=db._backend, manage_table=False) as unmanaged:
            assert not unmanaged.table.exists()
            report = unmanaged.migrate(Own, segments=2)
            assert (report.found, report.changed) == (1, 1)
            assert unmanaged.get_one(Own, 1).size == 5
            assert not unmanaged.table.exists()


# --- pace -------------------------------------------------------------------------------------------------


@in_memory
async def test_the_rate_limits_how_many_items_are_written_per_second(db: Db) -> None:
    await arrange_old_things(db, 10)
    begin = db.clock.now()
    await db.migrate(Thing, rate=2)
    assert (db.clock.now() - begin).total_seconds() == pytest.approx(4.5, abs=0.51)
    assert max(db.clock.waits) <= 0.5 + 1e-6


@awaiting
async def test_segments_share_the_rate(db: Db) -> None:
    await arrange_old_things(db, 40)
    begin = db.clock.now()
    await db.migrate(Thing, rate=10, segments=4)
    assert (db.clock.now() - begin).total_seconds() >= 2.5


class Slow(Layer):
    """A store that takes a minute to read a page."""

    clock: Any = None

    def arrange(self, request: Request[Any]) -> Sequence[Request[Any]]:
        if type(request).__name__ == "Scan":
            self.clock.forward(60)
        return [request]


@in_memory
async def test_a_run_does_not_catch_up_after_slow_reads(db: Db) -> None:
    await arrange_old_things(db, 10)
    add_layer(db, Slow).clock = db.clock
    await db.migrate(Thing, rate=2)
    assert sum(db.clock.waits) == pytest.approx(4.5, abs=0.51)


@in_memory
async def test_only_writes_are_paced(db: Db) -> None:
    await arrange_old_things(db, 10)
    await db.migrate(Thing, rate=0.001, dry_run=True)
    assert db.clock.waits == []
    await db.migrate(Thing)
    await db.migrate(Thing, rate=0.001)
    assert db.clock.waits == []


# --- progress ---------------------------------------------------------------------------------------------


@in_memory
async def test_progress_is_reported_after_each_page_and_the_last_report_is_the_result(db: Db) -> None:
    await arrange_old_things(db, 7)
    use_small_pages(db, 3)
    reports: list[Any] = []
    report = await db.migrate(Thing, dry_run=True, progress=reports.append)
    assert [each.scanned for each in reports] == [3, 6, 7]
    assert [each.changed for each in reports] == [3, 6, 7]
    assert reports[-1] == report


@awaiting
async def test_progress_can_be_async(db: Db) -> None:
    await arrange_old_things(db, 3)
    reports: list[Any] = []

    async def progress(report: Any) -> None:
        reports.append(report)

    report = await db.migrate(Thing, segments=2, progress=progress)
    assert reports[-1] == report


@in_memory
async def test_a_run_whose_progress_function_fails_stops_there_and_can_be_resumed(db: Db) -> None:
    await arrange_old_things(db, 6)
    use_small_pages(db, 2)

    def progress(report: Any) -> None:
        if report.scanned == 4:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        await db.migrate(Thing, progress=progress)
    report = await db.migrate(Thing)
    assert report.found == 6
    assert await read_all(db, Thing) == sorted(
        (expect_converted(number) for number in range(6)), key=order_item
    )


# --- options ----------------------------------------------------------------------------------------------


class Abstract(Model, abstract=True):
    size: int


@in_memory
@pytest.mark.parametrize(
    ("model", "options", "problem"),
    [
        (Thing, {"segments": 0}, "segments must be .*, not 0"),
        (Thing, {"segments": 1001}, "segments must be .*, not 1001"),
        (Thing, {"segments": True}, "segments must be .*, not True"),
        (Thing, {"rate": 0}, "rate must be .*, not 0"),
        (Thing, {"rate": -1}, "rate must be .*, not -1"),
        (Thing, {"rate": "fast"}, "rate must be .*, not 'fast'"),
        (Thing, {"rate": float("nan")}, "rate must be .*, not nan"),
        (Abstract, {}, "Abstract is abstract"),
        (Thing.key(1), {}, "is neither a model nor a key"),
    ],
)
async def test_invalid_options_are_refused(db: Db, model: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidOptionsError, match=problem):
        await db.migrate(model, **options)
    assert db.list_sent() == []
