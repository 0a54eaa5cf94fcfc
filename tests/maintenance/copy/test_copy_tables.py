"""Copies of tables: complete, repeatable, and careful with what another program changed in the target."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from copy_rig import Rig, Way, everywhere, items, open_rig
from rig.clock import Clock, TimedPort
from rig.colour import finish
from rig.recorder import Recorder
from rig.servers import sign_in

from holdall import Database, Index, Key, Model
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import BatchWrite, CreateTable, DeleteTable, DescribeTtl, PutItem, SetTtl, encode_item
from holdall.core.frozen import replace
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.errors import ConfigurationError, InvalidOptionsError, TableNotFoundError
from holdall.maintenance import CopyReport


class Parcel(Model, table="parcels", indexes=[Index("by_town", key=["town"])]):
    number: Key[int]
    town: str


def counts(report: CopyReport, *names: str) -> tuple[int | None, ...]:
    return tuple(getattr(report.parts[0], name) for name in names)


@everywhere
async def test_everything_is_copied_and_verified(rig: Rig) -> None:
    rig.put(*range(70), text="é" * 10, numbers={1, 2}, data=b"\x00\xff")
    report = await rig.copy()
    assert items(rig.target) == items(rig.source)
    assert counts(report, "scanned", "copied", "verified") == (70, 70, 70)
    assert report.is_current
    assert report.manifest == str(rig.folder / "manifest")


@everywhere
async def test_a_second_pass_copies_only_what_differs(rig: Rig) -> None:
    rig.put(*range(10))
    await rig.copy()
    rig.put(3, colour="red")
    rig.put(10)
    report = await rig.copy()
    assert counts(report, "scanned", "copied", "unchanged", "verified") == (11, 2, 9, 11)
    assert items(rig.target) == items(rig.source)


@everywhere
async def test_deleted_items_stay_in_the_target_unless_delete_is_set(rig: Rig) -> None:
    rig.put(*range(5))
    rig.target.table.create()
    rig.put(100, where=rig.target)
    await rig.copy()
    rig.delete(1, 2)
    report = await rig.copy()
    assert counts(report, "gone", "deleted") == (2, 0)
    assert (report.is_complete, report.is_current) == (True, False)
    report = await rig.copy(delete=True)
    assert counts(report, "gone", "deleted") == (0, 2)
    rig.delete(100, where=rig.target)  # the item did not come from the source, so the copy kept it
    assert items(rig.target) == items(rig.source)


@everywhere
async def test_nothing_is_deleted_if_the_source_s_table_is_empty(rig: Rig) -> None:
    rig.put(0, 1)
    await rig.copy()
    rig.delete(0, 1)  # the same as a new table that contains only figures of a check
    rig.source.table.create(models=[Parcel])
    rig.source.doctor(models=[Parcel], only=["items"])
    for dry_run in (True, False):
        report = await rig.copy(delete=True, dry_run=dry_run)
        assert counts(report, "deleted", "gone") == (0, 2)
        assert report.parts[0].problems[0].startswith("the source's table is empty")
        assert not report.is_current
    assert len(items(rig.target)) == 2
    rig.put(2)
    report = await rig.copy(delete=True)
    assert counts(report, "deleted", "gone") == (2, 0)
    assert report.parts[0].problems == ()


@everywhere
async def test_a_table_that_was_deleted_in_the_target_is_filled_again(rig: Rig) -> None:
    rig.put(*range(5))
    await rig.copy()
    rig.delete(4)
    rig.target.send(DeleteTable(rig.target.table.name))
    rig.target._context.forget_tables()
    rig.target.aio._context.forget_tables()
    report = await rig.copy(dry_run=True, delete=True)
    assert counts(report, "copied", "unchanged", "deleted") == (4, 0, 0)
    report = await rig.copy(verify=False)
    assert counts(report, "copied", "unchanged", "gone") == (4, 0, 0)
    assert items(rig.target) == items(rig.source)


@pytest.mark.parametrize("format", [2, 3])
def test_items_written_before_an_interruption_are_recognized(format: int) -> None:
    target = Recorder(EmbeddedBackend(None))
    with open_rig(Way("file-to-memory", "blocking"), target={"backend": target}) as rig:
        rig.put(*range(3))
        finish("blocking", rig.copy())
        with closing(sqlite3.connect(rig.folder / "manifest")) as manifest:
            if format == 2:
                manifest.executescript(
                    "DROP TABLE drafts; UPDATE facts SET value = '2' WHERE name = 'format'"
                )
        rig.put(1, colour="red")
        target.after = lambda request: 1 / 0 if isinstance(request, BatchWrite) else None
        with pytest.raises(ZeroDivisionError):
            finish("blocking", rig.copy())
        target.after = lambda request: None
        rig.put(1, colour="green")
        for dry_run in (True, False):
            report = finish("blocking", rig.copy(dry_run=dry_run))
            assert counts(report, "copied", "unchanged", "differing") == (1, 2, 0)
        assert items(rig.target) == items(rig.source)


@everywhere
async def test_items_that_another_program_changed_in_the_target_are_reported_and_kept(rig: Rig) -> None:
    rig.put(*range(5))
    await rig.copy()
    rig.put(1, 2, where=rig.target, colour="green")
    rig.put(1, colour="red")
    rig.delete(2)
    report = await rig.copy(delete=True)
    assert counts(report, "copied", "deleted", "differing", "newer") == (0, 0, 2, 0)
    assert not report.is_complete
    assert report.parts[0].differences[:2] == (
        "Thing#1 / 1: changed in the target, so it was not replaced",
        "Thing#2 / 2: changed in the target, so it was not deleted",
    )
    report = await rig.copy(overwrite=True)
    assert counts(report, "copied", "differing") == (1, 0)


@everywhere
async def test_items_that_were_in_the_target_before_are_compared(rig: Rig) -> None:
    rig.target.table.create()
    rig.put(*range(4))
    rig.put(0, 1, where=rig.target)
    rig.put(2, where=rig.target, colour="green")
    report = await rig.copy()
    assert counts(report, "copied", "same", "differing", "newer") == (1, 2, 1, 0)
    report = await rig.copy(overwrite=True)
    assert counts(report, "copied", "unchanged", "differing") == (1, 3, 0)
    assert items(rig.target) == items(rig.source)


@everywhere
async def test_verification_finds_lost_items_and_the_next_pass_copies_them_again(rig: Rig) -> None:
    rig.put(*range(5))
    await rig.copy()
    rig.delete(3, where=rig.target)
    rig.put(4, where=rig.target, colour="green")
    report = await rig.copy()
    assert counts(report, "unchanged", "verified", "missing", "altered") == (5, 3, 1, 1)
    assert set(report.parts[0].differences) == {
        "Thing#0 / 3: missing in the target",
        "Thing#1 / 4: changed in the target",
    }
    report = await rig.copy()
    assert counts(report, "copied", "missing", "altered") == (1, 0, 1)


@everywhere
async def test_a_dry_run_writes_nothing_and_reports_what_a_copy_would_cost(rig: Rig) -> None:
    rig.put(*range(3), text="x" * 2000)
    report = await rig.copy(dry_run=True)
    assert counts(report, "copied", "write_units", "verified") == (3, 6, None)
    assert report.parts[0].copied_bytes > 6000
    assert not rig.target.table.exists()
    assert not (rig.folder / "manifest").exists()
    await rig.copy()
    rig.put(3)
    rig.delete(0)
    report = await rig.copy(dry_run=True, delete=True)
    assert counts(report, "copied", "unchanged", "deleted") == (1, 2, 1)
    assert len(items(rig.target)) == 3


@everywhere
async def test_a_new_table_has_the_keys_indexes_and_expiry_of_the_old_one(rig: Rig) -> None:
    rig.source.table.create(models=[Parcel])
    rig.source.put(Parcel(number=1, town="Ulm"))  # on a server, tests share this table
    await rig.copy(models=[Parcel])
    with rig.target.transaction(read_only=True) as tx:
        assert [each.number for each in tx.query(Parcel, index="by_town", town="Ulm")] == [1]
    assert rig.target.send(DescribeTtl(rig.target.table.name)).attribute == "_ttl"


@everywhere
async def test_a_copy_can_start_over(rig: Rig) -> None:
    rig.put(*range(5))
    await rig.copy()
    rig.delete(4, where=rig.target)
    report = await rig.copy(restart=True)
    assert counts(report, "copied", "same", "verified") == (1, 4, 5)


@everywhere
async def test_a_rate_and_the_number_of_segments_do_not_change_the_result(rig: Rig) -> None:
    rig.put(*range(60))
    report = await rig.copy(rate=1e6, segments=1, verify=False)
    assert counts(report, "copied", "verified") == (60, None)
    assert counts(await rig.copy(segments=5), "unchanged", "verified") == (60, 60)
    assert items(rig.target) == items(rig.source)


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_the_rate_limits_writes_and_deletions(colour: Any) -> None:
    with open_rig(Way("file-to-file", colour)) as rig:
        rig.put(*range(100), 100)
        clock = Clock()
        db: Any = rig.target if colour == "blocking" else rig.target.aio
        db._context = replace(db._context, port=TimedPort(db._context.port, clock))
        source: Any = rig.source if colour == "blocking" else rig.source.aio
        options: dict[str, Any] = {"rate": 10, "segments": 1, "manifest": rig.folder / "m", "delete": True}
        for waited in (10, 19):  # a second between two batches of 10
            result = source.copy_to(db, **options)
            report = result if colour == "blocking" else finish(colour, result)
            assert report.is_current
            assert sum(clock.waits) == pytest.approx(waited)
            rig.delete(*range(100))


@everywhere
async def test_the_figures_of_a_check_stay_with_their_database(rig: Rig) -> None:
    """A check of the target stores its own figures, which the next pass must not take for another program's change."""
    rig.put(1)
    rig.source.table.create(models=[Parcel])
    rig.source.doctor(models=[Parcel], only=["items"])
    assert [figure.model for figure in rig.source.figures()] == ["Parcel"]
    report = await rig.copy(models=[Parcel])
    assert counts(report, "scanned", "copied", "left_out", "verified", "newer") == (2, 1, 1, 1, 0)
    assert rig.target.figures() == []
    rig.target.doctor(models=[Parcel], only=["items"])
    report = await rig.copy(models=[Parcel], delete=True)
    assert counts(report, "unchanged", "verified", "deleted") == (1, 1, 0)
    assert report.is_current
    assert [figure.model for figure in rig.target.figures()] == ["Parcel"]


@everywhere
async def test_expired_items_are_not_copied(rig: Rig) -> None:
    """A store may delete them at any moment, and the next verification would report their copies as lost."""
    rig.put(1, _ttl=int(time.time()) - 10)
    rig.put(2, _ttl=1)  # too long ago: stores ignore such an expiry
    rig.put(3, _ttl=int(time.time()) + 1000)
    report = await rig.copy()
    assert counts(report, "copied", "left_out", "verified", "missing", "newer") == (2, 1, 2, 0, 0)
    assert sorted(item["sk"]["S"] for item in items(rig.target)) == ["2", "3"]


@everywhere
async def test_progress_receives_the_report_so_far(rig: Rig) -> None:
    rig.put(*range(5))
    seen: list[CopyReport] = []
    report = await rig.copy(progress=seen.append)
    assert seen[-1] == report
    assert [each.scanned for each in seen] == sorted(each.scanned for each in seen)


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_key_attributes_can_have_other_names(colour: Any) -> None:
    with open_rig(Way("file-to-file", colour), target={"partition_key": "h", "sort_key": "r"}) as rig:
        rig.put(*range(5))
        finish(colour, rig.copy())
        found = [{"pk": item["h"], "sk": item["r"], "n": item["n"]} for item in items(rig.target)]
        assert sorted(found, key=str) == sorted(items(rig.source), key=str)
        rig.put(5, r="taken")
        report = finish(colour, rig.copy(delete=True))
        assert counts(report, "failed", "deleted") == (1, 0)
        assert report.parts[0].problems == (
            "Thing#2 / 5: the item has an attribute r, which is a key attribute of the table holdall",
        )


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    with open_rig(Way("file-to-file", "blocking")) as rig:
        yield rig


def test_a_database_is_not_copied_to_itself(pair: Rig) -> None:
    path = pair.source.path
    assert path is not None
    with (
        Database(f"embedded:{Path(path).parent}/../{Path(path).parent.name}/{Path(path).name}") as again,
        pytest.raises(InvalidOptionsError, match="the source and the target are the same table, holdall"),
    ):
        pair.source.copy_to(again)


def test_a_table_that_both_databases_share_is_not_copied_to_itself(pair: Rig) -> None:
    path = pair.source.path
    options: dict[str, Any] = {"models": [Parcel], "manifest": pair.folder / "m"}
    pair.source.table.create(models=[Parcel])
    with (
        Database(f"embedded:{path}?table_name=another") as again,
        pytest.raises(InvalidOptionsError, match="the same table, parcels") as refusal,
    ):
        pair.source.copy_to(again, **options)
    assert "another table_prefix" in str(refusal.value)
    with Database(f"embedded:{path}?table_name=another&table_prefix=p-") as again:
        report = pair.source.copy_to(again, **options)
        assert [part.target for part in report.parts[:2]] == ["another", "p-parcels"]


def test_a_table_on_a_server_is_recognized_however_its_url_is_written() -> None:
    with open_rig(Way("ministack-to-file", "blocking")) as rig:
        settings = rig.source._context.settings
        url = f"dynamodb://{settings.table_name}?endpoint={settings.endpoint}&region=us-east-1&connect_timeout=3"
        with (
            Database(url, credentials=sign_in, files="memory:", region=None) as again,
            pytest.raises(InvalidOptionsError, match="the same table, "),
        ):
            rig.source.copy_to(again)


def test_a_missing_table_is_explained_before_anything_is_written(pair: Rig) -> None:
    with pytest.raises(TableNotFoundError, match="there is no table other in the source"):
        pair.source.copy_to(pair.target, tables=["other"])
    with pytest.raises(ConfigurationError, match="there is no table holdall in the target") as refusal:
        pair.source.copy_to(pair.target, create=False)
    assert "CreateTable" not in str(refusal.value)
    assert '"KeySchema"' in str(refusal.value.hint)
    assert not pair.target.table.exists()
    assert pair.source.copy_to(pair.target, create=False, dry_run=True).is_complete
    assert not pair.target.table.exists()


def test_an_index_that_the_target_lacks_is_reported(pair: Rig) -> None:
    local = IndexSchema("local", KeyAttribute("id"), KeyAttribute("town"), local=True)
    schema = TableSchema("extra", KeyAttribute("id"), KeyAttribute("n", "N"))
    other = IndexSchema("by_town", KeyAttribute("town"))
    pair.source.send(CreateTable(replace(schema, indexes=(local, other))))
    pair.target.send(CreateTable(schema))
    for create, lacking in ((False, ["local", "by_town"]), (True, ["local"])):
        pair.target.table.create()
        options: dict[str, Any] = {"tables": ["extra"], "manifest": pair.folder / "m", "create": create}
        report = pair.source.copy_to(pair.target, **options)
        assert report.is_current
        assert [line.split("index ")[1].split(";")[0] for line in report.parts[1].problems] == lacking
    assert report.parts[1].problems == (
        "the target's table lacks the index local; DynamoDB can create it only together with the table",
    )


def test_a_numeric_sort_key_is_refused(pair: Rig) -> None:
    pair.target.table.create(mode="B")
    with pytest.raises(ConfigurationError, match=r"table holdall has a numeric sort key \(mode B\)"):
        pair.source.copy_to(pair.target)


def test_a_key_of_another_type_is_refused(pair: Rig) -> None:
    for db, kind in ((pair.source, "S"), (pair.target, "N")):
        db.send(CreateTable(TableSchema("extra", KeyAttribute("id", kind))))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"table extra \(id: S\) and table extra \(id: N\)"):
        pair.source.copy_to(pair.target, tables=["extra"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments": 0}, "segments must be"),
        ({"rate": -1}, "rate must be"),
        ({"bandwidth": 0}, "bandwidth must be a number of bytes per second above 0, not 0"),
        ({"bandwidth": "1MB"}, "bandwidth must be"),
        ({"tables": "extra"}, "tables must be a list of names"),
        ({"manifest": 3}, "manifest must be a path, not 3"),
    ],
)
def test_options_are_checked(pair: Rig, options: Any, message: str) -> None:
    with pytest.raises(InvalidOptionsError, match=message):
        pair.source.copy_to(pair.target, **options)


def test_databases_of_different_colours_are_refused(pair: Rig) -> None:
    hint = r"hint: open it with Database\(URL\), or pass its \.sync"
    other: Any
    for other in (pair.target.aio, "embedded:copy.db"):
        with pytest.raises(InvalidOptionsError, match=hint) as refusal:
            pair.source.copy_to(other)
        assert refusal.value.message.startswith("the target must be of type Database, not ")
    with pytest.raises(InvalidOptionsError, match=r"AsyncDatabase, not Database\((.*\n)*hint: .* its \.aio"):
        finish("awaiting", pair.source.aio.copy_to(cast("Any", pair.target)))


def test_the_manifest_of_another_copy_is_refused(pair: Rig) -> None:
    pair.source.copy_to(pair.target, manifest=pair.folder / "m")
    with (
        Database(f"embedded:{pair.folder}/third.db") as third,
        pytest.raises(ConfigurationError, match="is the manifest of another copy"),
    ):
        pair.source.copy_to(third, manifest=pair.folder / "m")
    (pair.folder / "m").write_text("not a manifest" * 100)
    with pytest.raises(ConfigurationError, match="is not the manifest of a copy"):
        pair.source.copy_to(pair.target, manifest=pair.folder / "m")


def test_two_copies_do_not_share_a_manifest(pair: Rig) -> None:
    pair.put(*range(5))
    refused: list[str] = []

    def copy_again(report: CopyReport) -> None:
        with pytest.raises(ConfigurationError, match="another copy is using the manifest") as refusal:
            pair.source.copy_to(pair.target, manifest=pair.folder / "m", restart=True)
        refused.append(refusal.value.message)
        assert pair.source.copy_to(pair.target, manifest=pair.folder / "m", dry_run=True).is_complete

    for _ in range(2):
        assert pair.source.copy_to(pair.target, manifest=pair.folder / "m", progress=copy_again).is_current
    assert refused


def test_starting_over_does_not_delete_files_that_are_not_manifests(pair: Rig) -> None:
    with pytest.raises(ConfigurationError, match="is not the manifest of a copy"):
        pair.source.copy_to(pair.target, manifest=pair.source.path, restart=True)
    pair.put(1)
    assert len(items(pair.source)) == 1


def test_a_table_of_another_program_is_copied_unchanged(pair: Rig) -> None:
    pair.source.send(CreateTable(TableSchema("extra", KeyAttribute("id", "N"))))
    pair.source.send(SetTtl("extra", "expires"))
    pair.source.send(PutItem("extra", encode_item({"id": 7, "expires": 99})))
    report = pair.source.copy_to(pair.target, tables=["extra"], manifest=pair.folder / "m")
    assert [part.name for part in report.parts] == ["holdall", "extra", "default"]
    assert items(pair.target, "extra") == items(pair.source, "extra")
    assert pair.target.send(DescribeTtl("extra")).attribute == "expires"
