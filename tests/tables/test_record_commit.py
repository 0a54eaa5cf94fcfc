"""Typed records, and the commit that features share: one attempt, and retries on contention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdall import Database, Key, Model
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.context import Context
from holdall.core.port import Backend, Layer, Port, Send, run
from holdall.core.requests import DeleteItem, PutItem, Request, TransactWrite, UpdateItem
from holdall.core.stamp import STAMP
from holdall.core.values import Item
from holdall.errors import (
    CancellationReason,
    ContentionError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TransactionCanceledError,
)
from holdall.tables.commit.change import Change, Participant
from holdall.tables.commit.flow import Refused, commit, commit_once
from holdall.tables.commit.retry import RETRIES
from holdall.tables.flow import discover
from holdall.tables.layout import Address
from holdall.tables.record import Record, fetch, fetch_all
from holdall.tables.record_column import family, flag, inner_item, number, raw, real, text, texts
from holdall.testing import Fault, FaultyBackend


class Shelf(Record, type="test.Shelf", stamps=True):
    name = text("name")
    note = text("note", None)
    count = number("count", 0)
    full = flag("full", False)
    tags = texts("tags")
    odd = raw("odd")
    holds = family("hold:", lambda name: number(name))


@pytest.fixture
def store(tmp_path: Path) -> FaultyBackend:
    return FaultyBackend(EmbeddedBackend(tmp_path / "app.db", durability="normal"))


@pytest.fixture
def context(store: FaultyBackend) -> Iterator[Context]:
    with Database(backend=store) as db:
        db.table.create()
        yield db._context


def place(context: Context, name: str) -> Address:
    return run(discover(context)).address(name, "#", name)


def make(context: Context, name: str, count: int = 0) -> Shelf:
    shelf = Shelf.new(place(context, name), Shelf.name.set(name), Shelf.count.set(count))
    change = Change(context)
    change.create(shelf)
    assert run(commit_once(change)) is None
    return run(fetch(context.port, Shelf(shelf.address)))


def test_a_record_reads_what_it_wrote(context: Context) -> None:
    shelf = make(context, "a", 3)
    assert (shelf.name, shelf.note, shelf.count, shelf.full, tuple(shelf.tags)) == ("a", None, 3, False, ())
    assert shelf.stored["_type"] == {"S": "test.Shelf"}
    change = Change(context)
    change.update(
        shelf,
        Shelf.note.set("hello"),
        Shelf.full.set(True),
        Shelf.tags.add({"x"}),
        Shelf.odd.set({"NULL": True}),
        Shelf.holds["me"].set(7),
        expect=[shelf.same(Shelf.count, Shelf.note)],
    )
    assert run(commit_once(change)) is None
    found, missing = run(fetch(context.port, shelf, Shelf(place(context, "b"))))
    assert (found.note, found.full, tuple(found.tags), found.odd) == ("hello", True, ("x",), {"NULL": True})
    assert found.holds == {"me": 7}
    assert not missing.is_stored
    assert missing.count == 0
    with pytest.raises(KeyError, match="name"):
        _ = missing.name
    assert [each.is_stored for each in run(fetch_all(context.port, [found, missing]))] == [True, False]


def test_a_record_read_as_missing_is_the_same_until_it_is_created_or_gains_an_attribute(
    context: Context,
) -> None:
    missing = run(fetch(context.port, Shelf(place(context, "a"))))
    make(context, "a", 3)
    change = Change(context)
    change.update(missing, Shelf.full.set(True), expect=[missing.same(Shelf.note)])
    assert isinstance(run(commit_once(change)), Refused)
    for column, outcome in ((Shelf.count, Refused), (Shelf.note, type(None))):
        change = Change(context)
        change.update(missing, Shelf.full.set(True), expect=[missing.same(column, or_created=True)])
        assert isinstance(run(commit_once(change)), outcome)


def test_a_record_can_apply_an_update_to_itself(context: Context) -> None:
    shelf, values = (
        make(context, "a", 3),
        (Shelf.note.set("x"), Shelf.holds["me"].set(7), Shelf.name.remove()),
    )
    change = Change(context)
    change.update(shelf, *values)
    assert run(commit_once(change)) is None
    assert shelf.apply(*values).item == run(fetch(context.port, shelf)).item


class Crate(Record, type="test.Crate"):
    label = text("label", None)
    weight = real("weight", None)
    pieces = number("pieces", 0)
    day = text("day", None).through(date.isoformat, date.fromisoformat)
    content = inner_item("content")


def test_a_value_without_a_stored_form_is_stored_through_another_type(context: Context) -> None:
    values = Crate.weight.set(2.0), Crate.day.set(date(2026, 11, 16)), Crate.content.set({"a": {"N": "1"}})
    crate = Crate.new(place(context, "a"), *values)
    assert crate.stored["weight"] == {"N": "2"}
    assert crate.stored["day"] == {"S": "2026-11-16"}
    assert (crate.weight, crate.day, crate.content) == (2.0, date(2026, 11, 16), {"a": {"N": "1"}})
    assert Crate(crate.address).day is None


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"label": {"N": "1"}}, "label is not text"),
        ({"weight": {"S": "1"}}, "weight is not a number"),
        ({"pieces": {"N": "1.5"}}, "invalid literal"),
        ({"day": {"S": "soon"}}, "isoformat"),
        ({"content": {"L": []}}, "content is not a map"),
    ],
)
def test_an_attribute_of_the_wrong_type_is_refused(context: Context, stored: Item, message: str) -> None:
    crate = Crate(place(context, "a"), stored)
    with pytest.raises(ValueError, match=message):
        _ = crate.label, crate.weight, crate.pieces, crate.day, crate.content
    assert Crate(place(context, "a"), {"pieces": {"N": "1E+2"}}).pieces == 100


def test_an_update_requires_the_attributes_to_be_as_they_were_read(context: Context) -> None:
    shelf, none = make(context, "a"), Shelf(place(context, "b"))
    make(context, "b")
    for record, others in ((shelf, {}), (none, None)):
        change = Change(context)
        change.update(record, Shelf.count.set(1), expect=[record.same(Shelf.note)], label="shelf")
        refused = run(commit_once(change))
        assert (refused is None) == (others == {})
        if refused is not None:
            assert refused.found["shelf"] is not None


def test_a_refusal_has_the_items_that_were_found_by_label(context: Context) -> None:
    make(context, "a", 3)
    change = Change(context)
    change.update(
        Shelf(place(context, "a")), Shelf.count.add(-5), expect=[Shelf.count.at_least(5)], label="stock"
    )
    change.require(Shelf(place(context, "b")), place(context, "b").exists, label="other")
    change.create(Shelf.new(place(context, "c"), Shelf.name.set("c")))
    refused = run(commit_once(change))
    assert isinstance(refused, Refused)
    assert set(refused.found) == {"stock", "other"}
    assert Shelf.count.read(refused.found["stock"]) == 3
    assert refused.found["other"] is None


def test_a_refusal_becomes_the_features_error(context: Context) -> None:
    make(context, "a", 3)
    change = Change(context)
    change.update(
        Shelf(place(context, "a")),
        Shelf.count.add(-5),
        expect=[Shelf.count.at_least(5)],
        refused=lambda found: LookupError(f"only {Shelf.count.read(found)}"),
    )
    with pytest.raises(LookupError, match="only 3"):
        run(commit_once(change))


def test_a_commit_runs_its_body_again_until_it_succeeds(context: Context) -> None:
    shelf = make(context, "a")
    bodies = 0

    async def body(change: Change) -> int:
        nonlocal bodies
        bodies += 1
        found = await fetch(context.port, shelf)
        if bodies < 3:
            other = Change(context)
            other.update(found, Shelf.count.add(10))
            await commit_once(other)
        change.update(found, Shelf.count.set(found.count + 1), expect=[found.same(Shelf.count)])
        return found.count

    assert run(commit(context, body, "the shelf")) == 20
    assert bodies == 3
    assert run(fetch(context.port, shelf)).count == 21


def test_a_body_that_records_nothing_sends_nothing(context: Context, store: FaultyBackend) -> None:
    run(discover(context))
    store.inject(Fault.UNAVAILABLE)

    async def body(change: Change) -> str:
        change.require(Shelf(place(context, "a")), place(context, "a").absent)
        return "nothing to do"

    assert run(commit(context, body, "the shelf")) == "nothing to do"
    assert not store.injected


def test_lasting_contention_ends_in_an_error_that_names_the_item(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdall.tables.commit.retry.PATIENCE", timedelta(0))
    tries = 0

    async def body(change: Change) -> None:
        nonlocal tries
        tries += 1
        change.create(Shelf.new(place(context, "b")))
        change.require(Shelf(place(context, "a")), place(context, "a").exists)

    with pytest.raises(ContentionError, match="other writers changed the shelf"):
        run(commit(context, body, "the shelf"))
    assert tries == RETRIES + 1


def test_single_writes_that_are_safe_to_repeat_need_no_transaction(context: Context) -> None:
    shelf = make(context, "a")
    new, put, update, delete = (Change(context) for _ in range(4))
    new.create(Shelf.new(place(context, "b")))
    put.put(Shelf.new(shelf.address, Shelf.name.set("a")))
    update.update(shelf, Shelf.note.set("x"), expect=[shelf.same(Shelf.note)], stampable=True)
    delete.delete(shelf, expect=[Shelf.name.equals("a")], vanishes=True)
    requests = [each.plan.request(lambda: "id") for each in (new, put, update, delete)]
    assert [type(each) for each in requests] == [PutItem, TransactWrite, UpdateItem, DeleteItem]
    stamped = requests[2]
    assert isinstance(stamped, UpdateItem)
    assert stamped.last_stamp == shelf.stored[STAMP], "a repetition requires that it is still the last stamp"


def test_a_delete_that_vanishes_succeeds_however_often_it_is_delivered(
    context: Context, store: FaultyBackend
) -> None:
    for fault in (None, Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.TWICE):
        shelf = make(context, "a")
        store.inject(fault)
        change = Change(context)
        change.delete(shelf, expect=[Shelf.name.equals("a")], vanishes=True)
        assert run(commit_once(change)) is None
        assert not run(fetch(context.port, shelf)).is_stored
    make(context, "a")
    change = Change(context)
    change.delete(shelf, expect=[Shelf.name.equals("b")], vanishes=True)
    assert isinstance(run(commit_once(change)), Refused)


@pytest.mark.parametrize(
    "write",
    [
        lambda change, shelf: change.create(shelf, label="shelf"),
        lambda change, shelf: change.put(shelf, expect=[shelf.address.absent], label="shelf"),
        lambda change, shelf: change.update(
            shelf, Shelf.full.set(True), expect=[Shelf.count.equals(0)], label="shelf"
        ),
        lambda change, shelf: change.delete(shelf, expect=[Shelf.count.equals(0)], label="shelf"),
        lambda change, shelf: change.require(shelf, Shelf.count.equals(0), label="shelf"),
    ],
)
def test_a_labelled_step_brings_back_the_item_that_was_found(
    context: Context, write: Callable[[Change, Shelf], None]
) -> None:
    shelf = make(context, "a", 3)
    change = Change(context)
    write(change, Shelf.new(shelf.address, Shelf.name.set("other")))
    change.create(Shelf.new(place(context, "b")))
    refused = run(commit_once(change))
    assert isinstance(refused, Refused)
    assert refused.found.keys() == {"shelf"}
    assert Shelf.count.read(refused.found["shelf"]) == 3


def test_a_write_is_sent_again_while_another_transaction_holds_the_item(
    context: Context, store: FaultyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def note_pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(context.port, "sleep", note_pause)
    shelf = make(context, "a")
    for conflicts in (RETRIES + 3, 1):
        store.inject(*[Fault.CONFLICT] * conflicts, into="writes")
        change = Change(context)
        change.update(shelf, Shelf.count.add(1))
        assert run(commit_once(change)) is None
        assert len(pauses) == conflicts, "there is a pause before every repetition"
        pauses.clear()
    assert run(fetch(context.port, shelf)).count == 2

    monkeypatch.setattr("holdall.tables.commit.retry.PATIENCE", timedelta(0))
    store.inject(*[Fault.CONFLICT] * (RETRIES + 1), into="writes")
    change = Change(context)
    change.update(shelf, Shelf.count.add(1))
    with pytest.raises(ContentionError, match=r"other writers changed Shelf\(a"):
        run(commit_once(change))
    assert store.injected[Fault.CONFLICT] == 2 * RETRIES + 5


class Note(Model):
    """An item of a model."""

    id: Key[str]


class CancelingStore(Layer):
    """Cancels the next transaction for the given reasons."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.reasons: list[CancellationReason] | None = None

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if isinstance(request, TransactWrite) and self.reasons is not None:
            reasons, self.reasons = self.reasons, None
            raise TransactionCanceledError("the transaction was cancelled", reasons=reasons)
        return await send(self._backend, request)

    def close(self) -> None:
        self._backend.close()


def test_a_transaction_that_meets_another_is_sent_again_and_one_cancelled_without_a_reason_is_not() -> None:
    store = CancelingStore(EmbeddedBackend(None))
    with Database(backend=store) as db:
        db.table.create()
        shelf = make(db._context, "a")

        def add() -> Refused | None:
            change = Change(db._context)
            change.update(shelf, Shelf.count.add(1))
            return run(commit_once(change))

        store.reasons = [CancellationReason("TransactionConflict", "busy", None)]
        assert add() is None
        assert run(fetch(db._context.port, shelf)).count == 1

        store.reasons = []
        with pytest.raises(TransactionCanceledError) as caught:
            add()
        assert caught.value.__cause__ is None, "an error is not its own cause"
        assert run(fetch(db._context.port, shelf)).count == 1

        store.reasons = []
        with pytest.raises(TransactionCanceledError) as caught:
            db.run(lambda tx: [tx.create(Note, id=id) for id in ("a", "b")])
        assert caught.value.__cause__ is None


class Helper(Participant):
    """Adds a step, and records what is asked of it."""

    def __init__(self, step: Shelf, trouble: Exception | None = None) -> None:
        self._step = step
        self._trouble = trouble
        self.calls: list[str] = []

    async def state(self, change: Change) -> None:
        change.create(self._step)

    async def prepare(self, port: Port) -> None:
        self.calls.append("prepare")

    async def settle(self, port: Port) -> None:
        self.calls.append("settle")

    async def abandon(self, port: Port) -> None:
        self.calls.append("abandon")
        if self._trouble is not None:
            raise self._trouble


@pytest.mark.parametrize(
    ("fault", "key", "trouble", "error", "end"),
    [
        (None, "b", None, None, "settle"),
        (None, "a", None, None, "abandon"),
        (None, "a", LookupError("stuck"), LookupError, "abandon"),
        (Fault.UNAVAILABLE, "b", None, ServiceUnavailableError, "abandon"),
        (Fault.UNAVAILABLE, "b", LookupError("stuck"), ServiceUnavailableError, "abandon"),
        (Fault.LOST_AFTER, "b", None, OutcomeUnknown, None),
    ],
)
def test_a_participant_of_a_change_learns_how_it_ended(
    context: Context,
    store: FaultyBackend,
    fault: Fault | None,
    key: str,
    trouble: Exception | None,
    error: type[Exception] | None,
    end: str | None,
) -> None:
    shelf = make(context, "a")
    change = Change(context)
    helper = Helper(Shelf.new(place(context, key)), trouble)
    change.update(shelf if key == "b" else Shelf(place(context, "c")), Shelf.count.add(1))
    change.join(helper)
    store.inject(fault, into="writes")
    if error is None:
        assert isinstance(run(commit_once(change)), Refused) == (end == "abandon")
    else:
        with pytest.raises(error) as caught:
            run(commit_once(change))
        notes = getattr(caught.value, "__notes__", [])
        assert ["stuck" in note for note in notes] == [True] * bool(trouble and fault)
    assert helper.calls == ["prepare", *([end] if end else [])]
