"""Hydrators: items that are stored in a form that their model does not know, but read and written back whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from toy_hydrator import (
    BROKEN,
    SQUEEZED,
    VANISHING,
    Letter,
    Squeezer,
    UnreadableError,
    fetch_stored,
    is_squeezed,
    squeeze,
)
from transactions_rig import COLOURS, Colour, Driver, RecordedStore, Thing, is_commit, open_driver, resolve

from holdall import Key, Model, ModelKey, SortKey, col, field
from holdall.core.context import Context
from holdall.core.expressions import Add, Value, path
from holdall.core.port import Port
from holdall.core.requests import GetItem, PutItem, TransactWrite, UpdateItem
from holdall.core.values import Item
from holdall.errors import (
    ContentionError,
    InvalidFieldError,
    InvalidModelUpdateError,
    InvalidOptionsError,
    ModelAlreadyExistsError,
    TransactionFailedError,
)
from holdall.models.hydrator import Joining
from holdall.tables.commit.change import Change, Participant
from holdall.tables.layout import Address
from holdall.tables.record import Record

KEY: ModelKey[Letter] = Letter.key(writer="ada", number=1)


@pytest.fixture(params=COLOURS)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    colour: Colour = request.param
    with open_driver(colour, RecordedStore()) as opened:
        opened.db.run(lambda tx: tx.create(Letter, writer="ada", number=1, text="dear", readers=["bob"]))
        yield opened


def read_values(driver: Driver, key: ModelKey[Letter] = KEY) -> dict[str, Any]:
    return driver.db.get_one(key).to_dict()


def get_hydrator() -> Squeezer:
    hydrator = Letter._schema.hydrator
    assert isinstance(hydrator, Squeezer)
    return hydrator


FULL = {"writer": "ada", "number": 1, "text": "dear", "copies": 1, "readers": ["bob"]}


# --- reading ----------------------------------------------------------------------------------------------


def test_every_kind_of_read_returns_the_whole_item(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> list[Letter]:
        rows = tx.query(Letter, writer="ada").all()
        return [
            await resolve(tx.get(KEY)),
            *await resolve(tx.get_all([KEY])),
            *await resolve(rows),
        ]

    found = [*driver.run(body), *driver.run(body, read_only=True)]
    found += [driver.db.get_one(KEY), *driver.db.get_all([KEY]), *driver.db.query(Letter, writer="ada")]
    assert [letter.to_dict() for letter in found] == [FULL] * 9
    assert is_squeezed(driver.db, KEY), "reading writes nothing"


def test_a_transaction_hydrates_an_item_once(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    before = get_hydrator().hydrated

    async def body(tx: Any) -> bool:
        return await resolve(tx.get(KEY)) is await resolve(tx.get_one(KEY))

    assert driver.run(body) is True
    assert get_hydrator().hydrated == before + 1


def test_a_hydrator_gets_a_consistent_read_of_the_item_and_so_does_its_follower(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    reads = get_hydrator().reads
    reads.clear()

    async def body(tx: Any) -> None:
        (await resolve(tx.get_one(KEY))).text = "new"

    driver.run(body)
    pk, sk = KEY.encoded
    assert reads == [GetItem("holdall", {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}, True)] * 2


# --- writing ----------------------------------------------------------------------------------------------


CHANGES: list[tuple[str, Callable[[Letter], None], dict[str, Any]]] = [
    ("assigned", lambda letter: setattr(letter, "text", "new"), {"text": "new"}),
    ("changed in place", lambda letter: letter.readers.append("eve"), {"readers": ["bob", "eve"]}),
    ("incremented", lambda letter: letter.field("copies").increment_by(2), {"copies": 3}),
]


@pytest.mark.parametrize(("change", "expected"), [pytest.param(c, e, id=name) for name, c, e in CHANGES])
@pytest.mark.parametrize("cold", [False, True], ids=["plain", "squeezed"])
def test_a_changed_item_is_written_whole_and_plain(
    driver: Driver, change: Callable[[Letter], None], expected: dict[str, Any], cold: bool
) -> None:
    if cold:
        squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        change(await resolve(tx.get_one(KEY)))

    driver.run(body)
    assert read_values(driver) == {**FULL, **expected}
    assert not is_squeezed(driver.db, KEY)


def test_attributes_that_the_model_does_not_know_are_kept(driver: Driver) -> None:
    item = dict(fetch_stored(driver.db, KEY) or {})
    driver.db.send(PutItem("holdall", {**item, "stamp": {"S": "queen"}}))
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        (await resolve(tx.get_one(KEY))).text = "new"

    driver.run(body)
    found = fetch_stored(driver.db, KEY)
    assert found is not None
    assert found["stamp"] == {"S": "queen"}
    assert found["text"] == {"S": "new"}


def test_a_squeezed_item_is_put_and_a_plain_one_updated_each_with_its_guard(driver: Driver) -> None:
    async def body(tx: Any) -> None:
        (await resolve(tx.get_one(KEY))).text += "!"

    watched = driver.db._backend
    assert isinstance(watched, RecordedStore)
    driver.run(body)
    plain = watched.writes[-1]
    assert isinstance(plain, UpdateItem)
    assert SQUEEZED in repr(plain.condition)
    squeeze(driver.db, KEY)
    driver.run(body)
    whole = watched.writes[-1]
    assert isinstance(whole, TransactWrite)
    (put,) = whole.actions
    assert isinstance(put, PutItem)
    assert SQUEEZED in repr(put.condition)
    assert SQUEEZED not in put.item


def test_a_squeezed_item_can_be_deleted(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        tx.delete(await resolve(tx.get_one(KEY)))

    driver.run(body)
    assert fetch_stored(driver.db, KEY) is None


def test_a_squeezed_item_cannot_be_created_again(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        tx.create(Letter, writer="ada", number=1, text="another")

    with pytest.raises(ModelAlreadyExistsError):
        driver.run(body)
    assert read_values(driver) == FULL


BLIND: list[tuple[str, Callable[[Any], None], dict[str, Any] | None]] = [
    (
        "update",
        lambda tx: tx.update(
            Letter, {"writer": "ada", "number": 1, "text": "dear"}, {"text": "blindly changed"}
        ),
        {"text": "blindly changed"},
    ),
    (
        "update of nothing",
        lambda tx: tx.update(Letter, {"writer": "ada", "number": 1, "text": "dear"}, {"text": "dear"}),
        {},
    ),
    (
        "put",
        lambda tx: tx.create_or_put(Letter, {"writer": "ada", "number": 1}, {"text": "blindly put"}),
        {"text": "blindly put", "readers": []},
    ),
    (
        "put as expected",
        lambda tx: tx.create_or_put(Letter, {"writer": "ada", "number": 1, "copies": 1}, {"text": "put"}),
        {"text": "put", "readers": []},
    ),
    ("delete", lambda tx: tx.delete(KEY), None),
    (
        "update of fields",
        lambda tx: tx.update(
            KEY,
            *(
                col(Letter.readers).append("eve"),
                col(Letter.copies).increment_by(1),
                col(Letter.text).set("x"),
            ),
            where=col(Letter.text) == "dear",
        ),
        {"text": "x", "copies": 2, "readers": ["bob", "eve"]},
    ),
    (
        "put on a condition",
        lambda tx: tx.create_or_put(
            Letter, {"writer": "ada", "number": 1}, {"text": "put"}, where=col(Letter.text) == "dear"
        ),
        {"text": "put", "readers": []},
    ),
    ("delete on a condition", lambda tx: tx.delete(KEY, where=col(Letter.text) == "dear"), None),
]


@pytest.mark.parametrize(("write", "expected"), [pytest.param(w, e, id=name) for name, w, e in BLIND])
def test_a_blind_write_of_a_squeezed_item_is_planned_again_in_the_same_attempt(
    driver: Driver, write: Callable[[Any], None], expected: dict[str, Any] | None
) -> None:
    squeeze(driver.db, KEY)
    attempts = 0

    async def body(tx: Any) -> None:
        nonlocal attempts
        attempts += 1
        write(tx)
        tx.create(Thing, name="beside it")
        tx.join(SealParticipant("beside it"))

    before = len(get_hydrator().followed)
    driver.run_block(body)
    assert attempts == 1
    assert driver.db.get(Thing, "beside it") is not None
    assert fetch_seal_count(driver, "beside it") == "1"
    if expected is None:
        assert fetch_stored(driver.db, KEY) is None
    else:
        assert read_values(driver) == {**FULL, **expected}
        assert not is_squeezed(driver.db, KEY)
    assert get_hydrator().followed[before:] == ["deleted" if expected is None else "rewritten"]


class Visitor(Model):
    name: Key[str]
    mail: str | None = field(default=None, unique=True)
    visits: int = 0


def test_a_change_by_another_process_between_two_plans_causes_a_third_one(driver: Driver) -> None:
    """The first write finds the visitor missing, the second one the letter squeezed: one attempt with three writes."""
    watched = driver.db._backend
    assert isinstance(watched, RecordedStore)
    attempts = 0

    def meanwhile(request: Any) -> None:
        if is_commit(request) and len(request.actions) == 4:
            watched.before = lambda request: None
            squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        nonlocal attempts
        attempts += 1
        new = {"mail": "ada@example.com"}
        tx.update(Visitor.key("ada"), col(Visitor.visits).increment_by(1), create_if_missing=new)
        tx.update(KEY, col(Letter.copies).increment_by(1))
        tx.join(SealParticipant("planned again"))
        watched.before = meanwhile

    driver.run_block(body)
    assert attempts == 1
    assert read_values(driver) == {**FULL, "copies": 2}
    assert fetch_seal_count(driver, "planned again") == "1"


def test_a_pointer_that_changes_after_the_second_plan_is_contention(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    watched = driver.db._backend
    assert isinstance(watched, RecordedStore)
    commits = attempts = 0

    def meanwhile(request: Any) -> None:
        nonlocal commits
        commits += is_commit(request)
        if is_commit(request) and commits == 2:
            watched.before = lambda request: None
            _read_by(driver, "eve")
            squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        nonlocal attempts
        attempts += 1
        tx.update(KEY, col(Letter.copies).increment_by(1))

    watched.before = meanwhile
    driver.run(body)
    assert attempts == 2
    assert read_values(driver) == {**FULL, "copies": 2, "readers": ["bob", "eve"]}


def test_a_blind_update_of_an_item_that_is_deleted_meanwhile_is_refused(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    pointer = dict(fetch_stored(driver.db, KEY) or {})
    driver.db.send(PutItem("holdall", {**pointer, SQUEEZED: {"S": VANISHING}}))

    async def body(tx: Any) -> None:
        tx.update(KEY, col(Letter.copies).increment_by(1))

    with pytest.raises(InvalidModelUpdateError):
        driver.run(body)
    assert fetch_stored(driver.db, KEY) is None


def test_a_blind_update_checks_its_expectations_on_the_whole_item(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        tx.update(Letter, {"writer": "ada", "number": 1, "text": "other"}, {"text": "blindly changed"})

    with pytest.raises(InvalidModelUpdateError, match="dear"):
        driver.run(body)
    assert is_squeezed(driver.db, KEY)
    assert read_values(driver) == FULL


@pytest.mark.parametrize(
    "write",
    [
        lambda tx: tx.update(KEY, col(Letter.copies).increment_by(1), where=col(Letter.text) == "x"),
        lambda tx: tx.create_or_put(
            Letter, {"writer": "ada", "number": 1}, {"text": "x"}, where=col(Letter.text) == "x"
        ),
        lambda tx: tx.delete(KEY, where=col(Letter.text) == "x"),
    ],
    ids=["update", "put", "delete"],
)
def test_a_condition_is_checked_on_the_whole_item(driver: Driver, write: Callable[[Any], None]) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        write(tx)

    with pytest.raises(InvalidModelUpdateError, match="text is 'dear', expected 'x'"):
        driver.run(body)
    assert is_squeezed(driver.db, KEY)
    assert read_values(driver) == FULL


def test_updates_of_a_loaded_squeezed_item_are_part_of_the_whole_item(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        (await resolve(tx.get_one(KEY))).field("readers").append("eve")

    driver.run(body)
    assert read_values(driver) == {**FULL, "readers": ["bob", "eve"]}
    assert not is_squeezed(driver.db, KEY)


def test_a_blind_write_of_an_unreadable_item_is_abandoned(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    broken = dict(fetch_stored(driver.db, KEY) or {})
    driver.db.send(PutItem("holdall", {**broken, SQUEEZED: {"S": BROKEN}}))
    events: list[str] = []

    class Witness(Participant):
        async def settle(self, port: Port) -> None:
            events.append("settle")

        async def abandon(self, port: Port) -> None:
            events.append("abandon")

    async def body(tx: Any) -> None:
        tx.update(Letter, {"writer": "ada", "number": 1, "text": "dear"}, {"text": "blindly changed"})
        tx.join(Witness())
        tx.after_failure(lambda error: events.append(type(error).__name__))

    for way in (driver.run, driver.run_block):
        events.clear()
        with pytest.raises(UnreadableError):
            way(body)
        assert events == ["abandon", "UnreadableError"], (
            "the write was refused, so it certainly did not happen"
        )


def test_an_unreadable_item_can_be_deleted_by_its_key(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    broken = dict(fetch_stored(driver.db, KEY) or {})
    driver.db.send(PutItem("holdall", {**broken, SQUEEZED: {"S": BROKEN}}))
    hydrator = get_hydrator()
    before = hydrator.hydrated, len(hydrator.followed)

    async def body(tx: Any) -> None:
        tx.delete(KEY)

    driver.run(body)
    assert fetch_stored(driver.db, KEY) is None
    assert (hydrator.hydrated, hydrator.followed[before[1] :]) == (before[0], ["deleted"])


def test_the_hydrator_follows_rewrites_and_deletions_of_squeezed_items(driver: Driver) -> None:
    def body(change: Callable[[Any, Letter], object]) -> Callable[[Any], Any]:
        async def run(tx: Any) -> None:
            change(tx, await resolve(tx.get_one(KEY)))

        return run

    squeeze(driver.db, KEY)
    before = len(get_hydrator().followed)
    driver.run(body(lambda tx, letter: letter.text))
    driver.run(body(lambda tx, letter: setattr(letter, "text", "new")))
    driver.run(body(lambda tx, letter: setattr(letter, "text", "newer")))
    assert get_hydrator().followed[before:] == ["rewritten"], (
        "reads, and writes of a plain item, are not followed"
    )
    squeeze(driver.db, KEY)
    driver.run(body(lambda tx, letter: tx.delete(letter)))
    assert get_hydrator().followed[before:] == ["rewritten", "deleted"]


# --- many rows -------------------------------------------------------------------------------------


def write_letters(driver: Driver, count: int, *, squeezed: Callable[[int], bool]) -> None:
    for start in range(2, count + 1, 100):
        with driver.db.transaction() as tx:
            for number in range(start, min(start + 100, count + 1)):
                tx.create(Letter, writer="ada", number=number, text=f"letter {number}")
    for number in range(1, count + 1):
        if squeezed(number):
            squeeze(driver.db, Letter.key(writer="ada", number=number))


def run_in_body(driver: Driver, how: Callable[[Any], Any]) -> Any:
    async def body(tx: Any) -> Any:
        return await resolve(how(tx))

    return driver.run(body)


def test_a_filter_sees_the_whole_item_although_the_store_does_not(driver: Driver) -> None:
    write_letters(driver, 8, squeezed=lambda number: number % 2 == 0)
    wanted = col(Letter.text).begins_with("letter") & (col(Letter.text) != "letter 4")
    query = {"writer": "ada", "where": wanted}
    assert [it.number for it in run_in_body(driver, lambda tx: tx.query(Letter, **query).all())] == [
        2,
        3,
        5,
        6,
        7,
        8,
    ]
    assert run_in_body(driver, lambda tx: tx.query(Letter, **query).count()) == 6
    assert [it.number for it in run_in_body(driver, lambda tx: tx.query(Letter, limit=3, **query).all())] == [
        2,
        3,
        5,
    ]
    assert run_in_body(driver, lambda tx: tx.query(Letter, **query).first()).number == 2
    assert {it.number for it in driver.db.scan(Letter, where=wanted)} == {2, 3, 5, 6, 7, 8}
    assert driver.db.scan(Letter, where=wanted).count() == 6


def test_no_more_rows_are_hydrated_than_a_limit_needs(driver: Driver) -> None:
    write_letters(driver, 9, squeezed=lambda number: True)
    before = get_hydrator().hydrated
    assert len(run_in_body(driver, lambda tx: tx.query(Letter, writer="ada", limit=4).all())) == 4
    assert get_hydrator().hydrated == before + 4
    wanted = col(Letter.text).begins_with("letter")
    found = run_in_body(driver, lambda tx: tx.query(Letter, writer="ada", where=wanted, limit=3).all())
    assert [letter.number for letter in found] == [2, 3, 4]
    assert get_hydrator().hydrated == before + 8, "the first of four did not match"


def test_no_more_rows_are_hydrated_than_the_caller_asks_for(driver: Driver) -> None:
    write_letters(driver, 9, squeezed=lambda number: True)
    wanted = col(Letter.text).begins_with("letter")
    rows = driver.db.query(Letter, writer="ada", where=wanted)
    before = get_hydrator().hydrated
    first = rows.first()
    assert first is not None
    assert first.number == 2
    assert get_hydrator().hydrated == before + 2, "the first of two did not match"
    with pytest.raises(InvalidOptionsError, match="more than one"):
        rows.one()
    assert get_hydrator().hydrated == before + 2 + 3, "the first of three did not match"
    before = get_hydrator().hydrated
    page = rows.page(size=3, secret="s" * 32)
    assert [letter.number for letter in page.items] == [2, 3, 4]
    assert get_hydrator().hydrated == before + 5, (
        "the first did not match, and the last shows that there are more"
    )
    page = rows.page(size=5, after=page.next, secret="s" * 32)
    assert [letter.number for letter in page.items] == [5, 6, 7, 8, 9]


def test_the_rows_of_a_page_are_hydrated_in_batches_as_the_caller_reaches_them(driver: Driver) -> None:
    write_letters(driver, 300, squeezed=lambda number: True)
    for rows in (driver.db.query(Letter, writer="ada"), driver.db.scan(Letter, segments=1)):
        before, taken = get_hydrator().hydrated, iter(rows)
        numbers = [next(taken).number]
        assert get_hydrator().hydrated == before + 256
        numbers += [letter.number for letter in taken]
        assert get_hydrator().hydrated == before + 300
        assert sorted(numbers) == list(range(1, 301))


def test_rows_of_other_models_and_items_deleted_meanwhile_are_omitted(driver: Driver) -> None:
    write_letters(driver, 4, squeezed=lambda number: True)
    foreign = dict(fetch_stored(driver.db, Letter.key(writer="ada", number=1)) or {})
    driver.db.send(PutItem("holdall", {**foreign, "_type": {"S": "Bill"}, SQUEEZED: {"S": BROKEN}}))
    vanishing = Letter.key(writer="ada", number=3)
    broken = dict(fetch_stored(driver.db, vanishing) or {})
    driver.db.send(PutItem("holdall", {**broken, SQUEEZED: {"S": VANISHING}}))
    before = get_hydrator().hydrated
    found = run_in_body(driver, lambda tx: tx.query(Letter, writer="ada", limit=2).all())
    assert [letter.number for letter in found] == [2, 4]
    assert get_hydrator().hydrated == before + 3, "the row of another model is not hydrated"
    assert driver.db.get(vanishing) is None
    keys = [vanishing, Letter.key(writer="ada", number=4)]
    assert [letter and letter.number for letter in driver.db.get_all(keys)] == [None, 4]


def test_an_unreadable_row_is_an_error_when_a_caller_reaches_it(driver: Driver) -> None:
    write_letters(driver, 5, squeezed=lambda number: True)
    broken = dict(fetch_stored(driver.db, Letter.key(writer="ada", number=3)) or {})
    driver.db.send(PutItem("holdall", {**broken, SQUEEZED: {"S": BROKEN}}))
    letters = iter(driver.db.query(Letter, writer="ada"))
    assert [next(letters).number, next(letters).number] == [1, 2]
    with pytest.raises(UnreadableError):
        next(letters)
    with driver.db.transaction() as tx:
        for number in (1, 2, 4, 5):
            tx.get_one(Letter, writer="ada", number=number).copies = 2
    letters = iter(driver.db.query(Letter, writer="ada"))
    assert [next(letters).number, next(letters).number] == [1, 2], "only the third item has to be hydrated"
    with pytest.raises(UnreadableError):
        next(letters)
    assert [letter.number for letter in driver.db.query(Letter, writer="ada", limit=2)] == [1, 2]
    keys = [Letter.key(writer="ada", number=number) for number in (1, 3)]
    with pytest.raises(UnreadableError):
        driver.db.get_all(keys)
    assert driver.db.get_all(keys[:1])[0] is not None


class CountingSqueezer(Squeezer):
    """A hydrator that counts concurrent hydrations; each waits until there are ``waits_for``."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_for = 0
        self.most = 0
        self._here = 0
        self._patience = 10_000
        self._lock = threading.Lock()

    async def hydrate(self, context: Context, read: GetItem, item: Item) -> Item | None:
        with self._lock:
            self._here += 1
            self.most = max(self.most, self._here)
        await context.port.sleep(0.001)
        while self.most < self.waits_for and self._patience:
            self._patience -= 1
            await context.port.sleep(0.001)
        with self._lock:
            self._here -= 1
        return await super().hydrate(context, read, item)


class Page(Model, archive=CountingSqueezer()):
    """A model whose items are hydrated concurrently."""

    writer: Key[str]
    number: SortKey[int]
    text: str = ""


def test_rows_are_hydrated_concurrently_up_to_a_limit(driver: Driver) -> None:
    hydrator, numbers = Page._schema.hydrator, range(70)
    assert isinstance(hydrator, CountingSqueezer)
    with driver.db.transaction() as tx:
        for number in numbers:
            tx.create(Page, writer="ada", number=number, text=str(number))
    for number in numbers:
        squeeze(driver.db, Page.key(writer="ada", number=number))
    keys = [Page.key(writer="ada", number=number) for number in numbers]
    ways: list[Callable[[Any], Any]] = [
        lambda tx: tx.query(Page, writer="ada").all(),
        lambda tx: tx.get_all(keys),
    ]
    for way in ways:
        hydrator.most, hydrator.waits_for = 0, 2 if driver.colour == "blocking" else 64
        found = run_in_body(driver, way)
        assert [(page.number, page.text) for page in found] == [(number, str(number)) for number in numbers]
        assert hydrator.waits_for <= hydrator.most <= 64


# --- partial items ----------------------------------------------------------------------------------------


def test_a_partial_read_of_a_squeezed_item_returns_fields_of_the_whole_item(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    ways: list[Callable[[Any], Any]] = [
        lambda tx: tx.get_one(KEY, only=["text"]),
        lambda tx: tx.get_all([KEY], only=["text"]),
        lambda tx: tx.query(Letter, writer="ada", only=["text"]).all(),
        lambda tx: tx.query(Letter, writer="ada", only=["text"], where=col(Letter.copies) == 1).all(),
        lambda tx: tx.query(Letter, writer="ada", only=["text"]).first(),
    ]
    found = [*map(partial(run_in_body, driver), ways), *(way(driver.db) for way in ways)]
    found += [list(driver.db.scan(Letter, only=["text"]))]
    for each in found:
        (part,) = each if isinstance(each, list) else [each]
        assert part.to_dict() == {"writer": "ada", "number": 1, "text": "dear"}
        with pytest.raises(InvalidFieldError, match="copies: it was not fetched"):
            part.copies  # noqa: B018
    assert driver.db.query(Letter, writer="ada", only=["text"], where=col(Letter.copies) == 2).first() is None


PARTS: list[tuple[str, Callable[[Any], Any]]] = [
    ("get", lambda tx: tx.get_one(KEY, only=["text"])),
    ("get_all", lambda tx: tx.get_all([KEY], only=["text"])),
    ("query", lambda tx: tx.query(Letter, writer="ada", only=["text"], lock="rows").all()),
]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("read", [pytest.param(read, id=name) for name, read in PARTS])
def test_a_partial_read_locks_the_item_as_it_was_stored(
    driver: Driver, read: Callable[[Any], Any], read_only: bool
) -> None:
    squeeze(driver.db, KEY)
    driver.db.create(Thing(name="beside it"))
    attempts = 0

    async def body(tx: Any) -> None:
        nonlocal attempts
        attempts += 1
        found = await resolve(read(tx))
        assert (found[0] if isinstance(found, list) else found).text == "dear"
        if attempts <= 2:
            _read_by(driver, f"eve {attempts}")
        if attempts == 1:
            squeeze(driver.db, KEY)
        thing = await resolve(tx.get_one(Thing, "beside it"))
        if not read_only:
            thing.n += 1

    driver.run(body, read_only=read_only)
    assert attempts == 3, "the fields can depend on the whole stored item"


def test_a_partial_item_can_be_read_again_as_a_whole(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    before = len(get_hydrator().followed)

    async def body(tx: Any) -> None:
        part = await resolve(tx.get_one(KEY, only=["text"]))
        whole = await resolve(tx.get_one(KEY))
        whole.text = part.text + "!"

    driver.run(body)
    assert read_values(driver) == {**FULL, "text": "dear!"}
    assert get_hydrator().followed[before:] == ["rewritten"]


# --- derived models ---------------------------------------------------------------------------------------


class Paper(Model):
    """A model that is never squeezed."""

    writer: Key[str]
    number: SortKey[int]
    text: str = ""
    copies: int = 1


class Folded(Paper, archive=Squeezer()):
    """A derived model, which a key of `Paper` can find."""


SHEET: ModelKey[Paper] = Paper.key(writer="ada", number=1)


def test_a_key_of_a_model_finds_squeezed_items_of_derived_models(driver: Driver) -> None:
    with driver.db.transaction() as tx:
        tx.create(Folded, writer="ada", number=1, text="dear")
        tx.create(Paper, writer="ada", number=2, text="dear")
    squeeze(driver.db, SHEET)
    wanted = {"writer": "ada", "where": col(Paper.text) == "dear"}
    found = run_in_body(driver, lambda tx: tx.query(Paper, **wanted).all())
    assert [(type(each), each.text, each.copies) for each in found] == [
        (Folded, "dear", 1),
        (Paper, "dear", 1),
    ]
    assert run_in_body(driver, lambda tx: tx.query(Paper, **wanted, only=["text"]).count()) == 2
    assert run_in_body(driver, lambda tx: tx.get_one(SHEET)).text == "dear"
    assert driver.db.get_one(SHEET, only=["copies"]).copies == 1
    stored = driver.db.get_stored(SHEET)
    assert stored is not None
    assert stored.archived


SHEET_WRITES: list[tuple[str, Callable[[Any], Any], dict[str, Any] | None]] = [
    ("update", lambda tx: tx.update(SHEET, col(Paper.copies).increment_by(1)), {"copies": 2}),
    (
        "update of a value",
        lambda tx: tx.update(Paper, {"writer": "ada", "number": 1, "text": "dear"}, {"text": "x"}),
        {"text": "x"},
    ),
    ("delete", lambda tx: tx.delete(SHEET), None),
    ("delete on a condition", lambda tx: tx.delete(SHEET, where=col(Paper.text) == "dear"), None),
    ("put", lambda tx: tx.create_or_put(Paper, {"writer": "ada", "number": 1}, {"text": "x"}), {"text": "x"}),
]


@pytest.mark.parametrize(
    ("write", "expected"), [pytest.param(write, found, id=name) for name, write, found in SHEET_WRITES]
)
def test_a_blind_write_with_a_key_of_a_model_rewrites_squeezed_items_of_derived_models(
    driver: Driver, write: Callable[[Any], Any], expected: dict[str, Any] | None
) -> None:
    driver.db.create(Folded(writer="ada", number=1, text="dear"))
    squeeze(driver.db, SHEET)
    hydrator = Folded._schema.hydrator
    assert isinstance(hydrator, Squeezer)
    before = len(hydrator.followed)

    async def body(tx: Any) -> None:
        write(tx)

    driver.run(body)
    found = driver.db.get(SHEET)
    assert (found and found.to_dict()) == (
        expected and {"writer": "ada", "number": 1, "text": "dear", "copies": 1, **expected}
    )
    assert not is_squeezed(driver.db, SHEET)
    assert hydrator.followed[before:] == ["deleted" if expected is None else "rewritten"]


# --- descriptors ------------------------------------------------------------------------------------------


class Seal:
    """A class attribute that joins the transactions of its items, and can be loaded."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, str, bool]] = []
        self.models: list[str] = []
        self.loaded: list[list[str]] = []

    kind = "seal"

    def participate(
        self, key: ModelKey[Any], item: Model | None, role: str, run: Joining
    ) -> Participant | None:
        assert item is None or item.key == key
        self.seen.append((key.components["name"], role, item is not None))
        self.models.append(key.model.__name__)
        return None if role == "read" else SealParticipant(key.components["name"])

    async def load_for(self, context: Context, items: Sequence[Any], names: Sequence[str]) -> None:
        assert len(set(names)) == len(names)
        self.loaded.append([item.name for item in items])


class SealParticipant(Participant):
    def __init__(self, name: str) -> None:
        self._name = name

    async def state(self, change: Change) -> None:
        key = {"pk": {"S": f"seal {self._name}"}, "sk": {"S": "#"}}
        change.update(Record(Address("holdall", key, key)), Add(path("count"), Value({"N": "1"})))


class Parcel(Model):
    name: Key[str]
    weight: int = 0
    seal = Seal()


class Crate(Model):
    name: Key[str]
    seal = Seal()


def fetch_seal_count(driver: Driver, name: str) -> str | None:
    found = driver.db.send(GetItem("holdall", {"pk": {"S": f"seal {name}"}, "sk": {"S": "#"}}, True)).item
    return None if found is None else found["count"]["N"]


def test_a_descriptor_joins_every_transaction_of_its_item(driver: Driver) -> None:
    seal = Parcel.__dict__["seal"]
    seal.seen.clear()

    async def create(tx: Any) -> None:
        tx.create(Parcel, name="a")

    async def update(tx: Any) -> None:
        (await resolve(tx.get_one(Parcel, "a"))).weight += 1

    async def read(tx: Any) -> None:
        (await resolve(tx.get_one(Parcel, "a"))).weight  # noqa: B018 - reading is the point

    async def update_blindly(tx: Any) -> None:
        tx.update(Parcel, {"name": "a", "weight": 1}, {"weight": 2})

    async def put(tx: Any) -> None:
        tx.create_or_put(Parcel, {"name": "a"}, {})

    async def delete(tx: Any) -> None:
        tx.delete(await resolve(tx.get_one(Parcel, "a")))

    async def delete_by_key(tx: Any) -> None:
        tx.delete(Parcel.key(name="a"))

    for body in (create, update, read, update_blindly, put, delete, delete_by_key):
        driver.run(body)
    assert seal.seen == [
        ("a", "created", True),
        ("a", "updated", True),
        ("a", "read", True),
        ("a", "updated", False),
        ("a", "put", False),
        ("a", "deleted", True),
        ("a", "deleted", False),
    ]
    assert fetch_seal_count(driver, "a") == "6"


def test_a_descriptor_does_not_join_for_missing_partial_and_unwritten_items(driver: Driver) -> None:
    driver.db.create(Parcel(name="a"))
    seal = Parcel.__dict__["seal"]
    seal.seen.clear()

    async def body(tx: Any) -> None:
        await resolve(tx.get(Parcel, "missing"))
        await resolve(tx.get(Parcel, "a", only=["weight"]))
        tx.create(Parcel, name="b")
        tx.delete(Parcel.key("b"))
        tx.create(Thing, name="a")

    driver.run(body)
    assert seal.seen == []


class Chest(Model):
    name: Key[str]
    weight: int = 0
    seal = Seal()


class Insured(Chest):
    policy = Seal()


class Fragile(Insured):
    seal = Seal()


def test_descriptors_of_derived_models_join_even_with_a_key_of_their_base(driver: Driver) -> None:
    seals = [Chest.__dict__["seal"], Insured.__dict__["policy"], Fragile.__dict__["seal"]]

    async def read(tx: Any) -> None:
        (await resolve(tx.get_one(Chest, "a"))).weight += 1

    async def delete(tx: Any) -> None:
        tx.delete(Chest.key("a"))

    driver.db.create(Fragile(name="a"))
    for body, expected in ((read, [[], ["updated"], ["updated"]]), (delete, [["deleted"], ["deleted"], []])):
        for seal in seals:
            seal.seen.clear()
        driver.run(body)
        # without the item, one descriptor joins for all with its name
        assert [[role for _, role, _ in seal.seen] for seal in seals] == expected
    assert [seal.models[-1] for seal in seals] == ["Chest", "Insured", "Fragile"], (
        "each has a key of its own model"
    )


class Careless:
    """A class attribute that returns a value that is not a participant."""

    def participate(self, key: ModelKey[Any], item: Model | None, role: str, run: Joining) -> object:
        return "me"


class Bag(Model):
    name: Key[str]
    careless = Careless()


def test_a_descriptor_must_return_a_participant(driver: Driver) -> None:
    async def body(tx: Any) -> None:
        tx.create(Bag, name="a")

    with pytest.raises(InvalidOptionsError, match="'me' is not a participant"):
        driver.run(body)
    assert driver.db.get(Bag, "a") is None


def test_descriptors_are_loaded_for_many_items_at_once(driver: Driver) -> None:
    with driver.db.transaction() as tx:
        tx.create(Parcel, name="a")
        tx.create(Parcel, name="b")
        tx.create(Crate, name="c")
    parcels, crates = Parcel.__dict__["seal"].loaded, Crate.__dict__["seal"].loaded
    parcels.clear()
    crates.clear()

    async def body(tx: Any) -> None:
        items = await resolve(tx.get_all([Parcel.key("a"), Parcel.key("b"), Crate.key("c"), Crate.key("d")]))
        await resolve(tx.load([item for item in items if item is not None], "seal"))

    driver.run(body)
    assert (parcels, crates) == ([["a", "b"]], [["c"]])
    driver.db.get(Parcel.key("a"), include=["seal"])
    driver.db.get_all([Parcel.key("b"), Crate.key("c"), Crate.key("d")], include=iter(["seal"]))
    assert (parcels, crates) == ([["a", "b"], ["a"], ["b"]], [["c"], ["c"]])
    with pytest.raises(InvalidOptionsError, match="weight"):
        driver.db.get(Parcel.key("missing"), include=["weight"])
    with pytest.raises(InvalidOptionsError, match="weight"):
        driver.db.get_all([Parcel.key("missing")], include=["weight"])
    with pytest.raises(InvalidOptionsError, match="not an item"):
        driver.db.load([None], "seal")


class WaitingDescriptor:
    """A class attribute whose load waits until two models are being loaded, and fails for an item called ``bad``."""

    kind = "meeting"
    arrived = 0

    async def load_for(self, context: Context, items: Sequence[Any], names: Sequence[str]) -> None:
        assert list(names) == ["first", "second"]
        WaitingDescriptor.arrived += 1
        for _ in range(10_000):
            if WaitingDescriptor.arrived == 2:
                break
            await context.port.sleep(0.001)
        else:
            raise AssertionError("the other model is not loaded concurrently")
        if any(item.name == "bad" for item in items):
            raise UnreadableError("bad")


class Desk(Model):
    name: Key[str]
    first = WaitingDescriptor()
    second = WaitingDescriptor()


class Chair(Model):
    name: Key[str]
    first = WaitingDescriptor()
    second = WaitingDescriptor()


def test_descriptors_are_loaded_concurrently_once_for_each_model_and_kind(
    driver: Driver,
) -> None:
    driver.db.create(Desk(name="a"))
    driver.db.create(Chair(name="a"))
    driver.db.create(Chair(name="bad"))

    async def body(tx: Any, name: str) -> None:
        items = await resolve(tx.get_all([Desk.key("a"), Chair.key(name)]))
        WaitingDescriptor.arrived = 0
        await resolve(tx.load(items, "first", "second", "first"))
        assert WaitingDescriptor.arrived == 2

    driver.run(lambda tx: body(tx, "a"))
    with pytest.raises(UnreadableError):
        driver.run(lambda tx: body(tx, "bad"))


# --- races ------------------------------------------------------------------------------------------------


class Meanwhile:
    """A body that reads and changes a letter; another function runs during its first attempt."""

    def __init__(self, other: Callable[[], None], change: Callable[[Any, Any], None]) -> None:
        self.attempts = 0
        self._other = other
        self._change = change

    async def __call__(self, tx: Any) -> None:
        self.attempts += 1
        letter = await resolve(tx.get_one(KEY))
        self._change(tx, letter)
        if self.attempts == 1:
            self._other()


LETTER_CHANGES: list[tuple[str, Callable[[Any, Any], None], dict[str, Any] | None]] = [
    ("assigns", lambda tx, letter: setattr(letter, "text", letter.text + "!"), {"text": "dear!"}),
    ("overwrites", lambda tx, letter: setattr(letter, "text", "new"), {"text": "new"}),
    ("increments", lambda tx, letter: letter.field("copies").increment_by(1), {"copies": 2}),
    ("deletes", lambda tx, letter: tx.delete(letter), None),
]


@pytest.mark.parametrize(
    ("change", "expected"), [pytest.param(c, e, id=name) for name, c, e in LETTER_CHANGES]
)
def test_an_item_that_is_squeezed_meanwhile_is_read_again_and_written(
    driver: Driver, change: Callable[[Any, Any], None], expected: dict[str, Any] | None
) -> None:
    body = Meanwhile(lambda: squeeze(driver.db, KEY), change)
    driver.run(body)
    assert body.attempts == 2
    if expected is None:
        assert fetch_stored(driver.db, KEY) is None
    else:
        assert read_values(driver) == {**FULL, **expected}
        assert not is_squeezed(driver.db, KEY)


@pytest.mark.parametrize(
    ("change", "expected"), [pytest.param(c, e, id=name) for name, c, e in LETTER_CHANGES]
)
def test_a_write_of_a_squeezed_item_that_another_process_rewrote_meanwhile_is_retried(
    driver: Driver, change: Callable[[Any, Any], None], expected: dict[str, Any] | None
) -> None:
    squeeze(driver.db, KEY)
    body = Meanwhile(lambda: _read_by(driver, "eve"), change)
    driver.run(body)
    assert body.attempts == 2
    if expected is None:
        assert fetch_stored(driver.db, KEY) is None
    else:
        assert read_values(driver) == {**FULL, "readers": ["bob", "eve"], **expected}


def _read_by(driver: Driver, name: str) -> None:
    driver.db.run(lambda tx: tx.get_one(KEY).readers.append(name))


def test_contention_on_a_squeezed_item_is_reported_as_contention(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        letter = await resolve(tx.get_one(KEY))
        letter.text = "new"
        if not is_squeezed(driver.db, KEY):
            squeeze(driver.db, KEY)
        else:
            _read_by(driver, "eve")

    with pytest.raises(TransactionFailedError) as failed:
        driver.run(body, retries=3)
    assert isinstance(failed.value.__cause__, ContentionError)
    assert read_values(driver)["text"] == "dear"


def test_a_squeezed_item_that_was_only_read_is_checked_by_its_guard(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    seen = []

    async def body(tx: Any) -> None:
        letter = await resolve(tx.get_one(KEY))
        seen.append(list(letter.readers))
        thing = await resolve(tx.get(Thing, "readers", create_if_missing=True))
        thing.n = len(letter.readers)
        if len(seen) == 1:
            _read_by(driver, "eve")

    driver.run(body)
    assert seen == [["bob"], ["bob", "eve"]]
    assert driver.db.get_one(Thing, "readers").n == 2


@pytest.mark.parametrize("cold", [False, True], ids=["plain", "squeezed"])
def test_a_read_only_transaction_detects_a_write_between_its_reads(driver: Driver, cold: bool) -> None:
    if cold:
        squeeze(driver.db, KEY)
    driver.db.run(lambda tx: tx.create(Thing, name="readers", n=1))
    seen: list[tuple[int, int]] = []

    async def body(tx: Any) -> None:
        letter = await resolve(tx.get_one(KEY))
        readers = len(letter.readers)
        if not seen:
            _read_by(driver, "eve")
            driver.db.run(lambda tx: setattr(tx.get_one(Thing, "readers"), "n", 2))
        seen.append((readers, (await resolve(tx.get_one(Thing, "readers"))).n))

    driver.run(body, read_only=True)
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize("cold", [False, True], ids=["plain", "squeezed"])
def test_a_read_only_transaction_explains_what_changed(driver: Driver, cold: bool) -> None:
    if cold:
        squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        (await resolve(tx.get_one(KEY))).readers  # noqa: B018 - reading is the point
        await resolve(tx.get(Thing, "missing"))
        _read_by(driver, "eve")

    with pytest.raises(TransactionFailedError) as failed:
        driver.run(body, read_only=True, retries=0)
    differing = "_squeezed is absent" if cold else "readers is"
    assert f"Letter(writer='ada', number=1).{differing}" in str(failed.value)


def convert_to_upper_case(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "text": values["text"].upper()}


class Poster(Model, archive=Squeezer(), migrations=[convert_to_upper_case]):
    """A model with a conversion."""

    writer: Key[str]
    text: str = ""


@pytest.mark.parametrize("form", ["plain", "squeezed", VANISHING])
def test_an_item_of_an_older_version_is_converted_after_it_is_hydrated(driver: Driver, form: str) -> None:
    key, hydrator = Poster.key("ada"), Poster._schema.hydrator
    assert isinstance(hydrator, Squeezer)
    raw = {"pk": {"S": "Poster#ada"}, "sk": {"S": "#"}, "_type": {"S": "Poster"}, "writer": {"S": "ada"}}
    driver.db.send(PutItem("holdall", {**raw, "text": {"S": "dear"}}))
    if form == VANISHING:
        driver.db.send(PutItem("holdall", {**raw, SQUEEZED: {"S": VANISHING}}))
        assert driver.db.get(key) is None
        return
    if form == "plain":  # the store filters by the stored value, and Holdall does not filter again
        assert driver.db.query(Poster, writer="ada", where=col(Poster.text) == "dear").count() == 1
    if form == "squeezed":
        squeeze(driver.db, key)
    before = len(hydrator.followed)

    async def body(tx: Any) -> None:
        poster = await resolve(tx.get_one(key))
        poster.text += "!"

    driver.run(body)
    assert driver.db.get_one(key).text == "DEAR!"
    assert hydrator.followed[before:] == (["rewritten"] if form == "squeezed" else [])


class Notice(Model, archive=Squeezer(), ttl="until"):
    """A model whose items expire."""

    writer: Key[str]
    text: str = ""
    until: int | None = None


def test_an_expired_pointer_counts_as_missing_for_create_if_missing(driver: Driver) -> None:
    key = Notice.key("ada")
    driver.db.create(Notice(writer="ada", text="old", until=1))
    raw = {"pk": {"S": "Notice#ada"}, "sk": {"S": "#"}, "_type": {"S": "Notice"}, "_ttl": {"N": "1"}}
    driver.db.send(PutItem("holdall", {**raw, SQUEEZED: {"S": BROKEN}}))

    async def body(tx: Any) -> None:
        tx.update(key, col(Notice.text).set("new"), create_if_missing=True)

    driver.run(body)
    assert driver.db.get_one(key).to_dict() == {"writer": "ada", "text": "new", "until": None}
