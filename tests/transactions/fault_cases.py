"""Representative transactions for the fault tests: what each does, and how often its effect is in the store.

A case creates its items, then its body runs under faults. `done` counts its effect in the store: 0 or 1; any other
number, or half an effect, is an error. A case that only reads has no effect, but a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transactions_rig import Body, Person, Seat, Thing, resolve

from holdall import Database, col

__all__ = ["CASES", "READS", "REPLANNED", "WRITES", "Case"]


@dataclass(frozen=True, eq=False)
class Case:
    """A transaction under test; one without ``done`` only reads, and returns ``result``."""

    name: str
    start: Callable[[Any], Any]
    body: Body
    done: Callable[[Database], int] | None = None
    result: Any = None
    read_only: bool = False

    def __str__(self) -> str:
        return self.name


# --- starts -----------------------------------------------------------------------------------------------


def do_nothing(tx: Any) -> None:
    """Leave the table empty."""


def create_thing(tx: Any) -> None:
    tx.create(Thing, name="a", n=10, m=5)


def create_two_things(tx: Any) -> None:
    create_thing(tx)
    tx.create(Thing, name="b", n=0)


def create_two_people(tx: Any) -> None:
    tx.create(Person, name="ada", mail="ada@example.com")
    tx.create(Person, name="bob", mail="bob@example.com")


# --- bodies and effects -----------------------------------------------------------------------------------


async def create(tx: Any) -> None:
    tx.create(Thing, name="a", n=11)


async def create_if_missing(tx: Any) -> None:
    (await resolve(tx.get(Thing, "a", create_if_missing={"n": 10}))).n += 1


async def update(tx: Any) -> None:
    (await resolve(tx.get_one(Thing, "a"))).n += 1


async def append(tx: Any) -> None:
    (await resolve(tx.get_one(Thing, "a"))).words.append("word")


async def increment(tx: Any) -> None:
    (await resolve(tx.get_one(Thing, "a"))).field("n").increment_by(1)


async def update_and_increment(tx: Any) -> None:
    thing = await resolve(tx.get_one(Thing, "a"))
    thing.m += 1
    thing.field("n").increment_by(1)


async def blind_update(tx: Any) -> None:
    tx.update(Thing, {"name": "a", "n": 10}, {"n": 11})


async def blind_append(tx: Any) -> None:
    tx.update(Thing.key("a"), col(Thing.words).append("word"), where=col(Thing.n) >= 10)


async def append_without_lock(tx: Any) -> None:
    (await resolve(tx.get_one(Thing, "a"))).field("words").append("word")


async def create_by_update(tx: Any) -> None:
    tx.update(Thing.key("a"), col(Thing.n).increment_by(1), create_if_missing={"n": 10})


async def blind_put(tx: Any) -> None:
    tx.create_or_put(Thing, {"name": "a", "n": 10}, {"n": 11} | {"m": 5})


async def delete(tx: Any) -> None:
    tx.delete(await resolve(tx.get_one(Thing, "a")))


async def blind_delete(tx: Any) -> None:
    tx.delete(Thing.key("a"))


async def transfer(tx: Any) -> None:
    payer, payee = await resolve(tx.get_all([Thing.key("a"), Thing.key("b")]))
    payer.n -= 1
    payee.n += 1


async def update_after_reads(tx: Any) -> None:
    """Write one item because of the values of another, and because a third one is missing."""
    if (await resolve(tx.get_one(Thing, "b"))).n == 0 and await resolve(tx.get(Thing, "c")) is None:
        (await resolve(tx.get_one(Thing, "a"))).n += 1


async def take_a_row(tx: Any) -> None:
    rows = await resolve(tx.query(Seat, room="hall").all())
    free = next(seat for seat in rows if not seat.taken)
    free.taken = True


async def pass_on_a_mail(tx: Any) -> None:
    """Move a unique value from one item to another."""
    ada, bob = await resolve(tx.get_one(Person, "ada")), await resolve(tx.get_one(Person, "bob"))
    ada.mail, bob.mail = None, ada.mail


async def create_unique(tx: Any) -> None:
    tx.create(Person, name="eve", mail="eve@example.com")


async def create_and_forget(tx: Any) -> None:
    """Create and delete an item in one transaction, which is a check that it does not exist, and update another."""
    tx.delete(tx.create(Thing, name="c"))
    (await resolve(tx.get_one(Thing, "a"))).n += 1


async def read_both(tx: Any) -> list[int]:
    return [(await resolve(tx.get_one(Thing, name))).n for name in ("a", "b")]


async def read_all(tx: Any) -> list[int | None]:
    found = await resolve(tx.get_all([Thing.key(name) for name in ("a", "b", "c")]))
    return [None if thing is None else thing.n for thing in found]


def create_seats(tx: Any) -> None:
    for number in range(3):
        tx.create(Seat, room="hall", number=number, taken=number == 0)


def _check_changed(name: str, before: Any, after: Any) -> Callable[[Database], int]:
    """Check that a thing's n, m and number of words are those before or those after; None stands for no item."""

    def count_done(db: Database) -> int:
        thing = db.get(Thing, name)
        found = None if thing is None else (thing.n, thing.m, len(thing.words))
        assert found in (before, after), f"neither before nor after: {found}"
        return int(found == after)

    return count_done


def _count_moved(db: Database) -> int:
    payer, payee = db.get_one(Thing, "a").n, db.get_one(Thing, "b").n
    assert (payer, payee) in ((10, 0), (9, 1)), f"half a transfer, or two: {payer, payee}"
    return payee


def _count_seated(db: Database) -> int:
    taken = [seat.number for seat in db.query(Seat, room="hall") if seat.taken]
    assert taken in ([0], [0, 1]), taken
    return len(taken) - 1


def _count_passed_on(db: Database) -> int:
    """Check the mails and their guards: a mail that is in use cannot be taken."""
    mails = {name: db.get_one(Person, name).mail for name in ("ada", "bob")}
    before = {"ada": "ada@example.com", "bob": "bob@example.com"}
    after = {"ada": None, "bob": "ada@example.com"}
    assert mails in (before, after), mails
    free = _is_free(db, "bob@example.com")
    assert not _is_free(db, "ada@example.com")
    assert free == (mails == after)
    return int(free)


def _is_free(db: Database, mail: str) -> bool:
    """Whether the address can be taken: take it, and release it again."""
    from holdall.errors import UniqueViolationError

    try:
        db.run(lambda tx: tx.create(Person, name="trial", mail=mail))
    except UniqueViolationError:
        return False
    db.run(lambda tx: tx.delete(tx.get_one(Person, "trial")))
    return True


def _count_eve(db: Database) -> int:
    exists = db.get(Person, "eve") is not None
    assert exists != _is_free(db, "eve@example.com")
    return int(exists)


THING = (10, 5, 0)
WRITES = [
    Case("create", do_nothing, create, _check_changed("a", None, (11, 0, 0))),
    Case("create if missing", do_nothing, create_if_missing, _check_changed("a", None, (11, 0, 0))),
    Case("update", create_thing, update, _check_changed("a", THING, (11, 5, 0))),
    Case("append", create_thing, append, _check_changed("a", THING, (10, 5, 1))),
    Case("increment", create_thing, increment, _check_changed("a", THING, (11, 5, 0))),
    Case("update and increment", create_thing, update_and_increment, _check_changed("a", THING, (11, 6, 0))),
    Case("blind update", create_thing, blind_update, _check_changed("a", THING, (11, 5, 0))),
    Case("blind append", create_thing, blind_append, _check_changed("a", THING, (10, 5, 1))),
    Case("append without a lock", create_thing, append_without_lock, _check_changed("a", THING, (10, 5, 1))),
    Case("blind put", create_thing, blind_put, _check_changed("a", THING, (11, 5, 0))),
    Case("delete", create_thing, delete, _check_changed("a", THING, None)),
    Case("blind delete", create_thing, blind_delete, _check_changed("a", THING, None)),
    Case("two items", create_two_things, transfer, _count_moved),
    Case("update after reads", create_two_things, update_after_reads, _check_changed("a", THING, (11, 5, 0))),
    Case("row of a query", create_seats, take_a_row, _count_seated),
    Case("unique value passed on", create_two_people, pass_on_a_mail, _count_passed_on),
    Case("unique creation", create_two_people, create_unique, _count_eve),
    Case("created and deleted", create_thing, create_and_forget, _check_changed("a", THING, (11, 5, 0))),
]
REPLANNED = [Case("create by update", do_nothing, create_by_update, _check_changed("a", None, (11, 0, 0)))]
"""A write that is refused first, because the item is missing, and then planned again."""
READS = [
    Case("verified reads", create_two_things, read_both, result=[10, 0], read_only=True),
    Case("get_all", create_two_things, read_all, result=[10, 0, None]),
]
CASES = WRITES + REPLANNED + READS
