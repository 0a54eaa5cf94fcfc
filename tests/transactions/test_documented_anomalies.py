"""What transactions do not promise, shown: each anomaly that the documentation names, and what keeps it away.

Nothing here is left to chance: the other transaction runs, as a whole, in the midst of the first attempt of one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from expiring_workload import Clock, Lease
from serial_stores import Awaited, Way, everywhere

from holdall import Key, Model, SortKey
from holdall.errors import InvalidModelUpdateError


class Seat(Model):
    flight: Key[str]
    number: SortKey[int]
    passenger: str = ""
    paid: bool = False


class Flight(Model):
    flight: Key[str]
    changes: int = 0


class Account(Model):
    name: Key[str]
    euros: int = 0
    note: str = ""


Body = Callable[[Any], Coroutine[Any, Any, Any]]


class Meanwhile:
    """Lets another transaction run in the first attempt of one, and counts the attempts."""

    def __init__(self, way: Way, other: Body) -> None:
        self.attempts = 0
        self._way, self._other = way, other

    async def __call__(self) -> None:
        self.attempts += 1
        if self.attempts == 1:
            await self._way.run(self._other)


async def open_accounts(way: Way) -> None:
    async def body(tx: Awaited) -> None:
        tx.create(Account, name="ada", euros=100)
        tx.create(Account, name="bob", euros=100)

    await way.run(body)


async def euros(way: Way, name: str) -> int:
    async def body(tx: Awaited) -> int:
        found: int = (await tx.get(Account, name)).euros
        return found

    return await way.run(body)


async def move(tx: Awaited) -> None:
    """Moves fifty euros from ada to bob."""
    (await tx.get(Account, "ada")).euros -= 50
    (await tx.get(Account, "bob")).euros += 50


async def add(tx: Awaited) -> None:
    """Gives ada ten euros."""
    (await tx.get(Account, "ada")).euros += 10


# --- phantoms -------------------------------------------------------------------------------------------------------


async def book_if_empty(tx: Awaited, number: int) -> bool:
    empty = not await tx.query(Seat, flight="F1")
    if empty:
        tx.create(Seat, flight="F1", number=number)
    return empty


@everywhere
async def test_a_query_does_not_notice_rows_that_appear_after_it(way: Way) -> None:
    async def other(tx: Awaited) -> None:
        assert await book_if_empty(tx, 2)

    meanwhile = Meanwhile(way, other)

    async def body(tx: Awaited) -> None:
        assert await book_if_empty(tx, 1)
        await meanwhile()

    await way.run(body)

    async def seats(tx: Awaited) -> list[int]:
        return [seat.number for seat in await tx.query(Seat, flight="F1")]

    assert meanwhile.attempts == 1
    assert await way.run(seats) == [1, 2]  # each transaction was to be the only one


@everywhere
async def test_a_guard_item_keeps_phantoms_away(way: Way) -> None:
    async def book_guarded(tx: Awaited, number: int) -> bool:
        flight = await tx.get(Flight.key("F1"), create_if_missing=True)
        if await book_if_empty(tx, number):
            flight.changes += 1
            return True
        return False

    meanwhile = Meanwhile(way, lambda tx: book_guarded(tx, 2))

    async def body(tx: Awaited) -> bool:
        done = await book_guarded(tx, 1)
        await meanwhile()
        return done

    assert await way.run(body) is False
    assert meanwhile.attempts == 2


@everywhere
async def test_rows_of_a_query_that_nobody_looked_at_may_change(way: Way) -> None:
    meanwhile = await _paid_meanwhile(way)

    async def body(tx: Awaited) -> None:
        rows = await tx.query(Seat, flight="F1")
        await meanwhile()
        rows[0].passenger = "Ada"  # the second row is the one that was paid for

    await way.run(body)
    assert meanwhile.attempts == 1


@everywhere
async def test_rows_of_a_query_that_somebody_looked_at_may_not_change(way: Way) -> None:
    meanwhile = await _paid_meanwhile(way)

    async def body(tx: Awaited) -> None:
        rows = await tx.query(Seat, flight="F1")
        paid = rows[1].paid
        await meanwhile()
        rows[0].passenger = "Ada" if paid else "nobody"

    await way.run(body)
    assert meanwhile.attempts == 2


@everywhere
async def test_rows_that_were_not_to_be_locked_may_change_though_looked_at(way: Way) -> None:
    meanwhile = await _paid_meanwhile(way)

    async def body(tx: Awaited) -> None:
        rows = await tx.query(Seat, flight="F1", lock=False)
        paid = rows[1].paid
        await meanwhile()
        tx.create(Account, name="ada", euros=int(paid))

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await euros(way, "ada") == 0


async def _paid_meanwhile(way: Way) -> Meanwhile:
    """Two seats, and a transaction that pays for the second."""

    async def book(tx: Awaited) -> None:
        tx.create(Seat, flight="F1", number=1)
        tx.create(Seat, flight="F1", number=2)

    async def pay(tx: Awaited) -> None:
        (await tx.get(Seat, flight="F1", number=2)).paid = True

    await way.run(book)
    return Meanwhile(way, pay)


# --- increments -----------------------------------------------------------------------------------------------------


@everywhere
async def test_an_increment_goes_through_though_the_value_that_was_read_is_out_of_date(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: Awaited) -> int:
        account = await tx.get(Account, "ada")
        seen: int = account.euros
        await meanwhile()
        account.field("euros").increment_by(1)
        return seen

    assert await way.run(body) == 100  # it was 110 by then
    assert meanwhile.attempts == 1
    assert await euros(way, "ada") == 111


@everywhere
async def test_an_assignment_does_not(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: Awaited) -> int:
        account = await tx.get(Account, "ada")
        seen: int = account.euros
        await meanwhile()
        account.euros = seen + 1
        return seen

    assert await way.run(body) == 110
    assert meanwhile.attempts == 2
    assert await euros(way, "ada") == 111


# --- reading without writing ----------------------------------------------------------------------------------------


async def _sum(way: Way, meanwhile: Meanwhile, *, write: bool = False, **options: Any) -> int:
    async def body(tx: Awaited) -> int:
        ada: int = (await tx.get(Account, "ada")).euros
        await meanwhile()
        bob: int = (await tx.get(Account, "bob")).euros
        if write:
            tx.create(Account, name="sum", euros=ada + bob)
        return ada + bob

    return await way.run(body, **options)


@everywhere
async def test_a_transaction_that_writes_nothing_may_have_seen_what_never_was(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, move)
    assert await _sum(way, meanwhile) == 250  # there were always 200
    assert meanwhile.attempts == 1


@everywhere
async def test_a_read_only_transaction_has_seen_what_was(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, move)
    assert await _sum(way, meanwhile, read_only=True) == 200
    assert meanwhile.attempts == 2


@everywhere
async def test_a_transaction_that_writes_has_seen_what_was(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, move)
    assert await _sum(way, meanwhile, write=True) == 200
    assert meanwhile.attempts == 2


@everywhere
async def test_looking_at_all_values_at_once_is_no_reading(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: Awaited) -> None:
        values = (await tx.get(Account, "ada")).to_dict()
        await meanwhile()
        tx.create(Account, name="copy", euros=values["euros"])

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await euros(way, "copy") == 100  # there were 110 by then


# --- blind writes ---------------------------------------------------------------------------------------------------


@everywhere
async def test_a_put_without_expectations_overwrites_what_it_never_saw(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: Awaited) -> None:
        tx.create_or_put(Account, {"name": "ada"}, {"euros": 1})
        await meanwhile()

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await euros(way, "ada") == 1


@everywhere
async def test_a_delete_by_key_deletes_what_it_never_saw(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: Awaited) -> None:
        tx.delete(Account.key("ada"))
        await meanwhile()

    async def look(tx: Awaited) -> Any:
        return await tx.get(Account, "ada")

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await way.run(look) is None


@everywhere
async def test_a_blind_update_only_minds_what_it_expects(way: Way) -> None:
    await open_accounts(way)

    async def annotate(tx: Awaited) -> None:
        (await tx.get(Account, "ada")).note = "a friend"

    meanwhile = Meanwhile(way, annotate)

    async def body(tx: Awaited) -> None:
        tx.update(Account, {"name": "ada", "euros": 100}, {"euros": 99})
        await meanwhile()

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await euros(way, "ada") == 99


@everywhere
async def test_a_blind_update_whose_expectation_is_wrong_fails_for_good(way: Way) -> None:
    await open_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: Awaited) -> None:
        tx.update(Account, {"name": "ada", "euros": 100}, {"euros": 99})
        await meanwhile()

    with pytest.raises(InvalidModelUpdateError):
        await way.run(body)
    assert meanwhile.attempts == 1
    assert await euros(way, "ada") == 110


# --- expiry ---------------------------------------------------------------------------------------------------------


@everywhere
async def test_an_item_that_expired_before_the_commit_counts_as_changed(way: Way) -> None:
    """Another transaction has acted on its being gone; to have seen it, and what that one did, cannot be."""
    clock = Clock()
    way.port.now = clock.now  # type: ignore[method-assign]

    async def lease(tx: Awaited) -> None:
        tx.create(Lease, name="x", values=[1], ends=clock.seconds + 40)

    await way.run(lease)

    async def other(tx: Awaited) -> None:
        assert clock.tick(50)
        assert await tx.get(Lease, "x") is None
        tx.create(Lease, name="y", values=[2], ends=clock.seconds + 40)

    meanwhile = Meanwhile(way, other)

    async def body(tx: Awaited) -> list[bool]:
        x = await tx.get(Lease, "x")
        there = x is not None and x.values == [1]
        await meanwhile()
        y = await tx.get(Lease, "y")
        tx.create(Lease, name="z", values=[3], ends=clock.seconds + 40)
        return [there, y is not None]

    assert await way.run(body) == [False, True]
    assert meanwhile.attempts == 2
