"""Hydrators: items that are stored in another form than their model knows, read whole and written back whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from toy_hydrator import SQUEEZED, Letter, Squeezer, is_squeezed, squeeze, stored
from transactions_rig import COLOURS, Colour, Driver, Thing, Watched, driven, now

from holdall import ModelKey
from holdall.core.requests import PutItem, TransactWrite, UpdateItem
from holdall.errors import (
    ContentionError,
    InvalidModelUpdateError,
    ModelAlreadyExistsError,
    TransactionFailedError,
)

KEY: ModelKey[Letter] = Letter.key(writer="ada", number=1)


@pytest.fixture(params=COLOURS)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    colour: Colour = request.param
    with driven(colour, Watched()) as opened:
        opened.db.run(lambda tx: tx.create(Letter, writer="ada", number=1, text="dear", readers=["bob"]))
        yield opened


def values(driver: Driver, key: ModelKey[Letter] = KEY) -> dict[str, Any]:
    return driver.db.get_one(key).to_dict()


def the_hydrator() -> Squeezer:
    hydrator = Letter._schema.hydrator
    assert isinstance(hydrator, Squeezer)
    return hydrator


FULL = {"writer": "ada", "number": 1, "text": "dear", "copies": 1, "readers": ["bob"]}


# --- reading -----------------------------------------------------------------------------------------------


def test_every_way_of_reading_gives_the_whole_item(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> list[Letter]:
        rows = tx.query(Letter, writer="ada").all()
        return [
            await now(tx.get(KEY)),
            *await now(tx.get_all([KEY])),
            *await now(rows),
        ]

    found = [*driver.run(body), *driver.run(body, read_only=True)]
    found += [driver.db.get_one(KEY), *driver.db.get_all([KEY]), *driver.db.query(Letter, writer="ada")]
    assert [letter.to_dict() for letter in found] == [FULL] * 9
    assert is_squeezed(driver.db, KEY), "reading writes nothing"


def test_an_item_is_hydrated_once_however_often_a_transaction_asks_for_it(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    before = the_hydrator().hydrated

    async def body(tx: Any) -> bool:
        return await now(tx.get(KEY)) is await now(tx.get_one(KEY))

    assert driver.run(body) is True
    assert the_hydrator().hydrated == before + 1


# --- writing -----------------------------------------------------------------------------------------------


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
        change(await now(tx.get_one(KEY)))

    driver.run(body)
    assert values(driver) == {**FULL, **expected}
    assert not is_squeezed(driver.db, KEY)


def test_what_the_model_does_not_know_of_is_kept(driver: Driver) -> None:
    item = dict(stored(driver.db, KEY) or {})
    driver.db.send(PutItem("holdall", {**item, "stamp": {"S": "queen"}}))
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        (await now(tx.get_one(KEY))).text = "new"

    driver.run(body)
    found = stored(driver.db, KEY)
    assert found is not None
    assert found["stamp"] == {"S": "queen"}
    assert found["text"] == {"S": "new"}


def test_a_squeezed_item_is_put_and_a_plain_one_updated_each_under_its_guard(driver: Driver) -> None:
    async def body(tx: Any) -> None:
        (await now(tx.get_one(KEY))).text += "!"

    watched = driver.db._backend
    assert isinstance(watched, Watched)
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
        tx.delete(await now(tx.get_one(KEY)))

    driver.run(body)
    assert stored(driver.db, KEY) is None


def test_a_squeezed_item_is_there_already_for_one_who_creates_it(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        tx.create(Letter, writer="ada", number=1, text="another")

    with pytest.raises(ModelAlreadyExistsError):
        driver.run(body)
    assert values(driver) == FULL


BLIND: list[tuple[str, Callable[[Any], None], type[Exception]]] = [
    (
        "update",
        lambda tx: tx.update(
            Letter, {"writer": "ada", "number": 1, "text": "dear"}, {"text": "blindly changed"}
        ),
        InvalidModelUpdateError,
    ),
    (
        "put",
        lambda tx: tx.create_or_put(Letter, {"writer": "ada", "number": 1}, {"text": "blindly put"}),
        TransactionFailedError,
    ),
    ("delete", lambda tx: tx.delete(KEY), TransactionFailedError),
]


@pytest.mark.parametrize(("write", "error"), [pytest.param(w, e, id=name) for name, w, e in BLIND])
def test_a_blind_write_never_touches_a_squeezed_item(
    driver: Driver, write: Callable[[Any], None], error: type[Exception]
) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        write(tx)

    with pytest.raises(error):
        driver.run(body)
    assert is_squeezed(driver.db, KEY)
    assert values(driver) == FULL


# --- races -------------------------------------------------------------------------------------------------


class Meanwhile:
    """A body of somebody who changes or only reads a letter, during whose first attempt something else happens."""

    def __init__(self, other: Callable[[], None], change: Callable[[Any, Any], None]) -> None:
        self.attempts = 0
        self._other = other
        self._change = change

    async def __call__(self, tx: Any) -> None:
        self.attempts += 1
        letter = await now(tx.get_one(KEY))
        self._change(tx, letter)
        if self.attempts == 1:
            self._other()


WISHES: list[tuple[str, Callable[[Any, Any], None], dict[str, Any] | None]] = [
    ("assigns", lambda tx, letter: setattr(letter, "text", letter.text + "!"), {"text": "dear!"}),
    ("overwrites", lambda tx, letter: setattr(letter, "text", "new"), {"text": "new"}),
    ("increments", lambda tx, letter: letter.field("copies").increment_by(1), {"copies": 2}),
    ("deletes", lambda tx, letter: tx.delete(letter), None),
]


@pytest.mark.parametrize(("change", "expected"), [pytest.param(c, e, id=name) for name, c, e in WISHES])
def test_an_item_that_is_squeezed_meanwhile_is_read_again_and_written(
    driver: Driver, change: Callable[[Any, Any], None], expected: dict[str, Any] | None
) -> None:
    body = Meanwhile(lambda: squeeze(driver.db, KEY), change)
    driver.run(body)
    assert body.attempts == 2
    if expected is None:
        assert stored(driver.db, KEY) is None
    else:
        assert values(driver) == {**FULL, **expected}
        assert not is_squeezed(driver.db, KEY)


@pytest.mark.parametrize(("change", "expected"), [pytest.param(c, e, id=name) for name, c, e in WISHES])
def test_of_two_who_write_a_squeezed_item_the_second_sees_what_the_first_wrote(
    driver: Driver, change: Callable[[Any, Any], None], expected: dict[str, Any] | None
) -> None:
    squeeze(driver.db, KEY)
    body = Meanwhile(lambda: _read_by(driver, "eve"), change)
    driver.run(body)
    assert body.attempts == 2
    if expected is None:
        assert stored(driver.db, KEY) is None
    else:
        assert values(driver) == {**FULL, "readers": ["bob", "eve"], **expected}


def _read_by(driver: Driver, name: str) -> None:
    driver.db.run(lambda tx: tx.get_one(KEY).readers.append(name))


def test_contention_on_a_squeezed_item_is_told_as_such(driver: Driver) -> None:
    squeeze(driver.db, KEY)

    async def body(tx: Any) -> None:
        letter = await now(tx.get_one(KEY))
        letter.text = "new"
        if not is_squeezed(driver.db, KEY):
            squeeze(driver.db, KEY)
        else:
            _read_by(driver, "eve")

    with pytest.raises(TransactionFailedError) as failed:
        driver.run(body, retries=3)
    assert isinstance(failed.value.__cause__, ContentionError)
    assert values(driver)["text"] == "dear"


def test_a_squeezed_item_that_was_only_read_is_checked_by_its_guard(driver: Driver) -> None:
    squeeze(driver.db, KEY)
    seen = []

    async def body(tx: Any) -> None:
        letter = await now(tx.get_one(KEY))
        seen.append(list(letter.readers))
        thing = await now(tx.get(Thing, "readers", create_if_missing=True))
        thing.n = len(letter.readers)
        if len(seen) == 1:
            _read_by(driver, "eve")

    driver.run(body)
    assert seen == [["bob"], ["bob", "eve"]]
    assert driver.db.get_one(Thing, "readers").n == 2


@pytest.mark.parametrize("cold", [False, True], ids=["plain", "squeezed"])
def test_a_transaction_that_only_reads_notices_what_was_written_between_its_reads(
    driver: Driver, cold: bool
) -> None:
    if cold:
        squeeze(driver.db, KEY)
    driver.db.run(lambda tx: tx.create(Thing, name="readers", n=1))
    seen: list[tuple[int, int]] = []

    async def body(tx: Any) -> None:
        letter = await now(tx.get_one(KEY))
        readers = len(letter.readers)
        if not seen:
            _read_by(driver, "eve")
            driver.db.run(lambda tx: setattr(tx.get_one(Thing, "readers"), "n", 2))
        seen.append((readers, (await now(tx.get_one(Thing, "readers"))).n))

    driver.run(body, read_only=True)
    assert seen == [(1, 2), (2, 2)]
