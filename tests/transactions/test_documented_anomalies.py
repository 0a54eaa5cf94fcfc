"""The limits of transactions: each anomaly that the documentation names, and the means that prevents it.

The tests are deterministic: another transaction runs, as a whole, inside the first attempt of the tested one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from expiring_workload import Clock, Lease
from serial_stores import AwaitableTransaction, Way, everywhere

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
    """Runs another transaction in the first attempt of the tested one, and counts the attempts."""

    def __init__(self, way: Way, other: Body) -> None:
        self.attempts = 0
        self._way, self._other = way, other

    async def __call__(self) -> None:
        self.attempts += 1
        if self.attempts == 1:
            await self._way.run(self._other)


async def create_accounts(way: Way) -> None:
    async def body(tx: AwaitableTransaction) -> None:
        tx.create(Account, name="ada", euros=100)
        tx.create(Account, name="bob", euros=100)

    await way.run(body)


async def fetch_euros(way: Way, name: str) -> int:
    async def body(tx: AwaitableTransaction) -> int:
        found: int = (await tx.get(Account, name)).euros
        return found

    return await way.run(body)


async def move(tx: AwaitableTransaction) -> None:
    """Move fifty euros from ada to bob."""
    (await tx.get(Account, "ada")).euros -= 50
    (await tx.get(Account, "bob")).euros += 50


async def add(tx: AwaitableTransaction) -> None:
    """Give ada ten euros."""
    (await tx.get(Account, "ada")).euros += 10


# --- phantoms ---------------------------------------------------------------------------------------------


async def book_if_empty(tx: AwaitableTransaction, number: int) -> bool:
    empty = not await tx.query(Seat, flight="F1")
    if empty:
        tx.create(Seat, flight="F1", number=number)
    return empty


@everywhere
async def test_a_query_does_not_notice_rows_that_appear_after_it(way: Way) -> None:
    async def other(tx: AwaitableTransaction) -> None:
        assert await book_if_empty(tx, 2)

    meanwhile = Meanwhile(way, other)

    async def body(tx: AwaitableTransaction) -> None:
        assert await book_if_empty(tx, 1)
        await meanwhile()

    await way.run(body)

    async def seats(tx: AwaitableTransaction) -> list[int]:
        return [seat.number for seat in await tx.query(Seat, flight="F1")]

    assert meanwhile.attempts == 1
    assert await way.run(seats) == [1, 2]  # each transaction found the flight empty


@everywhere
async def test_a_guard_item_prevents_phantoms(way: Way) -> None:
    async def book_guarded(tx: AwaitableTransaction, number: int) -> bool:
        flight = await tx.get(Flight.key("F1"), create_if_missing=True)
        if await book_if_empty(tx, number):
            flight.changes += 1
            return True
        return False

    meanwhile = Meanwhile(way, lambda tx: book_guarded(tx, 2))

    async def body(tx: AwaitableTransaction) -> bool:
        done = await book_guarded(tx, 1)
        await meanwhile()
        return done

    assert await way.run(body) is False
    assert meanwhile.attempts == 2


@everywhere
async def test_rows_of_a_query_whose_fields_were_not_read_can_change(way: Way) -> None:
    meanwhile = await _pay_meanwhile(way)

    async def body(tx: AwaitableTransaction) -> None:
        rows = await tx.query(Seat, flight="F1")
        await meanwhile()
        rows[0].passenger = "Ada"  # the other transaction pays for the second row

    await way.run(body)
    assert meanwhile.attempts == 1


@everywhere
async def test_rows_of_a_query_whose_fields_were_read_must_not_change(way: Way) -> None:
    meanwhile = await _pay_meanwhile(way)

    async def body(tx: AwaitableTransaction) -> None:
        rows = await tx.query(Seat, flight="F1")
        paid = rows[1].paid
        await meanwhile()
        rows[0].passenger = "Ada" if paid else "none"

    await way.run(body)
    assert meanwhile.attempts == 2


@everywhere
async def test_rows_without_a_lock_can_change_even_if_their_fields_were_read(way: Way) -> None:
    meanwhile = await _pay_meanwhile(way)

    async def body(tx: AwaitableTransaction) -> None:
        rows = await tx.query(Seat, flight="F1", lock=False)
        paid = rows[1].paid
        await meanwhile()
        tx.create(Account, name="ada", euros=int(paid))

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await fetch_euros(way, "ada") == 0


async def _pay_meanwhile(way: Way) -> Meanwhile:
    """Create two seats, and return a transaction that pays for the second."""

    async def book(tx: AwaitableTransaction) -> None:
        tx.create(Seat, flight="F1", number=1)
        tx.create(Seat, flight="F1", number=2)

    async def pay(tx: AwaitableTransaction) -> None:
        (await tx.get(Seat, flight="F1", number=2)).paid = True

    await way.run(book)
    return Meanwhile(way, pay)


# --- increments -------------------------------------------------------------------------------------------


@everywhere
async def test_an_increment_succeeds_even_if_the_value_that_was_read_has_changed(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: AwaitableTransaction) -> int:
        account = await tx.get(Account, "ada")
        seen: int = account.euros
        await meanwhile()
        account.field("euros").increment_by(1)
        return seen

    assert await way.run(body) == 100  # it is 110 at commit
    assert meanwhile.attempts == 1
    assert await fetch_euros(way, "ada") == 111


@everywhere
async def test_an_assignment_is_contention_if_the_value_that_was_read_has_changed(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: AwaitableTransaction) -> int:
        account = await tx.get(Account, "ada")
        seen: int = account.euros
        await meanwhile()
        account.euros = seen + 1
        return seen

    assert await way.run(body) == 110
    assert meanwhile.attempts == 2
    assert await fetch_euros(way, "ada") == 111


# --- transactions without writes --------------------------------------------------------------------------


async def _sum(way: Way, meanwhile: Meanwhile, *, write: bool = False, **options: Any) -> int:
    async def body(tx: AwaitableTransaction) -> int:
        ada: int = (await tx.get(Account, "ada")).euros
        await meanwhile()
        bob: int = (await tx.get(Account, "bob")).euros
        if write:
            tx.create(Account, name="sum", euros=ada + bob)
        return ada + bob

    return await way.run(body, **options)


@everywhere
async def test_a_transaction_without_writes_can_read_values_that_never_existed_together(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, move)
    assert await _sum(way, meanwhile) == 250  # the sum was always 200
    assert meanwhile.attempts == 1


@everywhere
async def test_a_read_only_transaction_reads_values_that_existed_together(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, move)
    assert await _sum(way, meanwhile, read_only=True) == 200
    assert meanwhile.attempts == 2


@everywhere
async def test_a_transaction_with_writes_reads_values_that_existed_together(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, move)
    assert await _sum(way, meanwhile, write=True) == 200
    assert meanwhile.attempts == 2


@everywhere
async def test_to_dict_does_not_count_as_reading_the_fields(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: AwaitableTransaction) -> None:
        values = (await tx.get(Account, "ada")).to_dict()
        await meanwhile()
        tx.create(Account, name="copy", euros=values["euros"])

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await fetch_euros(way, "copy") == 100  # it is 110 at commit


# --- blind writes -----------------------------------------------------------------------------------------


@everywhere
async def test_a_put_without_expectations_overwrites_unseen_changes(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: AwaitableTransaction) -> None:
        tx.create_or_put(Account, {"name": "ada"}, {"euros": 1})
        await meanwhile()

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await fetch_euros(way, "ada") == 1


@everywhere
async def test_a_delete_by_key_deletes_unseen_changes(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: AwaitableTransaction) -> None:
        tx.delete(Account.key("ada"))
        await meanwhile()

    async def read(tx: AwaitableTransaction) -> Any:
        return await tx.get(Account, "ada")

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await way.run(read) is None


@everywhere
async def test_a_blind_update_checks_only_its_expectations(way: Way) -> None:
    await create_accounts(way)

    async def annotate(tx: AwaitableTransaction) -> None:
        (await tx.get(Account, "ada")).note = "a friend"

    meanwhile = Meanwhile(way, annotate)

    async def body(tx: AwaitableTransaction) -> None:
        tx.update(Account, {"name": "ada", "euros": 100}, {"euros": 99})
        await meanwhile()

    await way.run(body)
    assert meanwhile.attempts == 1
    assert await fetch_euros(way, "ada") == 99


@everywhere
async def test_a_blind_update_with_a_wrong_expectation_fails_without_a_retry(way: Way) -> None:
    await create_accounts(way)
    meanwhile = Meanwhile(way, add)

    async def body(tx: AwaitableTransaction) -> None:
        tx.update(Account, {"name": "ada", "euros": 100}, {"euros": 99})
        await meanwhile()

    with pytest.raises(InvalidModelUpdateError):
        await way.run(body)
    assert meanwhile.attempts == 1
    assert await fetch_euros(way, "ada") == 110


# --- expiry -----------------------------------------------------------------------------------------------


@everywhere
async def test_an_item_that_expired_before_the_commit_counts_as_changed(way: Way) -> None:
    """Another transaction acted on the expiry; one that saw the item must not see the effects of that transaction."""
    clock = Clock()
    way.port.now = clock.now  # type: ignore[method-assign]

    async def lease(tx: AwaitableTransaction) -> None:
        tx.create(Lease, name="x", values=[1], ends=clock.seconds + 40)

    await way.run(lease)

    async def other(tx: AwaitableTransaction) -> None:
        assert clock.tick(50)
        assert await tx.get(Lease, "x") is None
        tx.create(Lease, name="y", values=[2], ends=clock.seconds + 40)

    meanwhile = Meanwhile(way, other)

    async def body(tx: AwaitableTransaction) -> list[bool]:
        x = await tx.get(Lease, "x")
        found = x is not None and x.values == [1]
        await meanwhile()
        y = await tx.get(Lease, "y")
        tx.create(Lease, name="z", values=[3], ends=clock.seconds + 40)
        return [found, y is not None]

    assert await way.run(body) == [False, True]
    assert meanwhile.attempts == 2
