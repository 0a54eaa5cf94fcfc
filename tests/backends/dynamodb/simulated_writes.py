"""Every kind of write, each with what to do, and how to tell afterwards what was done.

An attempt has an id of its own and leaves it behind with its effect, so that the state shows which attempts took
effect, and counts beside the ids show whether one did so twice. `audit` compares that with what the callers were told:

- told ``ok``: it took effect, exactly once;
- told ``failed``: it did not;
- told ``unknown``: it did, exactly once, or it did not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias
from uuid import uuid4
from zlib import crc32

from holdall.core.expressions import (
    Add,
    Compare,
    Exists,
    Minus,
    NotExists,
    Plus,
    Set,
    Update,
    path,
    value,
)
from holdall.core.requests import (
    BatchWrite,
    DeleteItem,
    GetItem,
    PutItem,
    Request,
    TransactWrite,
    UpdateItem,
)
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.settings import SingleWrites
from holdall.core.stamp import stamped
from holdall.core.values import Item, decode_item, encode_item
from holdall.errors import ConditionFailedError, OutcomeUnknown, TransactionCanceledError

__all__ = [
    "KINDS",
    "Held",
    "Kind",
    "Ledger",
    "Send",
    "Told",
    "Word",
    "decode_items",
    "kinds",
    "schema",
    "hear",
]

Send: TypeAlias = Callable[[Request[Any]], Awaitable[Any]]
Word: TypeAlias = Literal["ok", "failed", "unknown"]
Told: TypeAlias = Mapping[str, Word]
"""What the caller of each attempt was told."""

Held: TypeAlias = Mapping[str, Mapping[str, Any]]
"""What a table holds: items as Python values, by their key."""

LATE = "late"
"""Begins the keys of the items whose requests may also arrive too late."""


def schema(table: str) -> TableSchema:
    return TableSchema(table, KeyAttribute("pk"))


def key(name: str) -> Item:
    return encode_item({"pk": name})


class Kind(Protocol):
    """A kind of write."""

    @property
    def name(self) -> str:
        """What it is called; its items' keys begin with it."""

    @property
    def repeated(self) -> bool:
        """Whether a lost reply is made good by sending again, so that its fate is always known."""

    def start(self) -> Iterable[Mapping[str, Any]]:
        """The items there at first."""

    async def attempt(self, send: Send, table: str, id: str) -> None:
        """Do it once; raises if it was not done, or if the outcome is unknown."""

    def effects(self, held: Held, told: Told) -> set[str]:
        """The attempts that took effect; an effect that is half or double is an error."""


async def hear(attempt: Awaitable[None]) -> Word:
    """What the caller of an attempt is told."""
    try:
        await attempt
    except OutcomeUnknown:
        return "unknown"
    except ConditionFailedError:
        return "failed"
    except TransactionCanceledError as error:
        if error.retryable:  # our patience was at an end, which it must not be
            raise
        return "failed"
    return "ok"


class Ledger:
    """What the callers were told, by kind and attempt."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = tuple(kinds)
        self.told: dict[str, dict[str, Word]] = {kind.name: {} for kind in self.kinds}

    def note(self, kind: str, id: str, word: Word) -> None:
        self.told[kind][id] = word

    def words(self, *kinds: str) -> list[Word]:
        return [word for kind in kinds or self.told for word in self.told[kind].values()]

    def audit(self, held: Held) -> None:
        """Compare what was told with what is there."""
        for kind in self.kinds:
            words = self.told[kind.name]
            done = kind.effects(held, words)
            lost = [id for id, word in words.items() if word == "ok" and id not in done]
            assert not lost, f"{kind.name}: told ok, not done: {lost}"
            secret = [id for id, word in words.items() if word == "failed" and id in done]
            assert not secret, f"{kind.name}: told failed, yet done: {secret}"


# --- the kinds --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decrement:
    """Take one of a stock that runs out: a plain update under a condition."""

    name: str = "stock"
    repeated: bool = False
    stock: int = 12

    def start(self) -> Iterable[Mapping[str, Any]]:
        yield {"pk": self.name, "left": self.stock}

    async def attempt(self, send: Send, table: str, id: str) -> None:
        update = Update((Set(path("left"), Minus(path("left"), value(1))), Add(path("ids"), value({id}))))
        await send(UpdateItem(table, key(self.name), update, Compare(">=", path("left"), value(1))))

    def effects(self, held: Held, told: Told) -> set[str]:
        item = held[self.name]
        done = set(item.get("ids", ()))
        assert item["left"] == self.stock - len(done), f"{self.name}: {item}"
        return done


@dataclass(frozen=True)
class Tally:
    """Count up without a condition: a plain update, or a transaction of one with its token."""

    name: str
    repeated: bool

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ()

    async def attempt(self, send: Send, table: str, id: str) -> None:
        update = UpdateItem(
            table, key(self.name), Update((Add(path("n"), value(1)), Add(path("ids"), value({id}))))
        )
        await send(TransactWrite((update,), str(uuid4())) if self.repeated else update)

    def effects(self, held: Held, told: Told) -> set[str]:
        item = held.get(self.name, {"n": 0, "ids": set()})
        assert item["n"] == len(item["ids"]), f"{self.name}: {item}"
        return set(item["ids"])


@dataclass(frozen=True)
class Claim:
    """Put an item under a contended key, if it is free: plain, or stamped."""

    name: str
    stamped: bool
    repeated: bool = False
    places: int = 8

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ()

    async def attempt(self, send: Send, table: str, id: str) -> None:
        item = encode_item({"pk": f"{self.name}-{place(id, self.places)}", "id": id})
        put = PutItem(table, item, NotExists(path("pk")))
        await send(stamped(put, str(uuid4())) if self.stamped else put)

    def effects(self, held: Held, told: Told) -> set[str]:
        names = (f"{self.name}-{number}" for number in range(self.places))
        done = {held[name]["id"]: name for name in names if name in held}
        for id, name in done.items():
            assert name == f"{self.name}-{place(id, self.places)}", f"{id} is in {name}"
        return set(done)


@dataclass(frozen=True)
class Edit:
    """Read a version, write the next one over just that: stamped, because it falsifies its own condition."""

    name: str = "page"
    repeated: bool = False

    def start(self) -> Iterable[Mapping[str, Any]]:
        yield {"pk": self.name, "version": 0}

    async def attempt(self, send: Send, table: str, id: str) -> None:
        item = (await send(GetItem(table, key(self.name), consistent=True))).item
        version = int(item["version"]["N"])
        update = Update((Set(path("version"), value(version + 1)), Add(path("ids"), value({id}))))
        condition = Compare("=", path("version"), value(version))
        await send(stamped(UpdateItem(table, key(self.name), update, condition), str(uuid4())))

    def effects(self, held: Held, told: Told) -> set[str]:
        item = held[self.name]
        done = set(item.get("ids", ()))
        assert item["version"] == len(done), f"{self.name}: {item}"
        return done


@dataclass(frozen=True)
class Remove:
    """Delete an item that others want to delete too: plain, or a transaction of one with its token."""

    name: str
    repeated: bool
    victims: int = 8

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ({"pk": f"{self.name}-{number}"} for number in range(self.victims))

    async def attempt(self, send: Send, table: str, id: str) -> None:
        delete = DeleteItem(table, key(f"{self.name}-{place(id, self.victims)}"), Exists(path("pk")))
        await send(TransactWrite((delete,), str(uuid4())) if self.repeated else delete)

    def effects(self, held: Held, told: Told) -> set[str]:
        """A deletion leaves nothing behind to tell who did it; one did who was told so, or who does not know."""
        done: set[str] = set()
        for number in range(self.victims):
            if f"{self.name}-{number}" not in held:
                words = {id: word for id, word in told.items() if place(id, self.victims) == number}
                by = {id for id, word in words.items() if word == "ok"}
                assert len(by) == 1 or (not by and "unknown" in words.values()), f"{self.name}: {words}"
                done |= by
        return done


@dataclass(frozen=True)
class Transfer:
    """Move one from an account that may be empty to another: a transaction of two."""

    name: str = "account"
    repeated: bool = True
    balance: int = 12

    def start(self) -> Iterable[Mapping[str, Any]]:
        yield {"pk": f"{self.name}-from", "balance": self.balance}
        yield {"pk": f"{self.name}-to", "balance": 0}

    async def attempt(self, send: Send, table: str, id: str) -> None:
        mark = Add(path("ids"), value({id}))
        paid = Update((Set(path("balance"), Minus(path("balance"), value(1))), mark))
        got = Update((Set(path("balance"), Plus(path("balance"), value(1))), mark))
        enough = Compare(">=", path("balance"), value(1))
        actions = (
            UpdateItem(table, key(f"{self.name}-from"), paid, enough),
            UpdateItem(table, key(f"{self.name}-to"), got),
        )
        await send(TransactWrite(actions, str(uuid4())))

    def effects(self, held: Held, told: Told) -> set[str]:
        payer, payee = held[f"{self.name}-from"], held[f"{self.name}-to"]
        done = set(payer.get("ids", ()))
        assert done == set(payee.get("ids", ())), f"half a transfer: {payer}, {payee}"
        assert (payer["balance"], payee["balance"]) == (self.balance - len(done), len(done)), (
            f"{payer}, {payee}"
        )
        return done


@dataclass(frozen=True)
class Recycle:
    """Delete the item under a contended key, then create one there. Only a token distinguishes a created and deleted
    item from one that was never created: a stamp is gone with its item, and a second send would create it again.
    """

    name: str = "recycled"
    repeated: bool = True
    places: int = 3

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ()

    async def attempt(self, send: Send, table: str, id: str) -> None:
        where = f"{self.name}-{place(id, self.places)}"
        found = (await send(GetItem(table, key(where), consistent=True))).item
        if found is not None:
            await hear(self._evict(send, table, where, found["id"]["S"]))
        put = PutItem(table, encode_item({"pk": where, "id": id}), NotExists(path("pk")))
        await send(stamped(put, str(uuid4())))

    async def _evict(self, send: Send, table: str, where: str, id: str) -> None:
        noted = Update((Add(path("n"), value(1)), Add(path("ids"), value({id}))))
        delete = DeleteItem(table, key(where), Compare("=", path("id"), value(id)))
        await send(TransactWrite((delete, UpdateItem(table, key(self.name), noted)), str(uuid4())))

    def effects(self, held: Held, told: Told) -> set[str]:
        evicted = held.get(self.name, {"n": 0, "ids": set()})
        assert evicted["n"] == len(evicted["ids"]), f"evicted twice: {evicted}"
        names = (f"{self.name}-{number}" for number in range(self.places))
        present = {held[name]["id"] for name in names if name in held}
        assert not present & evicted["ids"], f"back after their eviction: {present & evicted['ids']}"
        return present | set(evicted["ids"])


@dataclass(frozen=True)
class Note:
    """Put an item that no other writer touches: plain, or several in a batch."""

    name: str
    repeated: bool = False

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ()

    async def attempt(self, send: Send, table: str, id: str) -> None:
        puts = [PutItem(table, encode_item({"pk": f"{self.name}-{id}-{part}"})) for part in "abc"]
        await send(BatchWrite(tuple(puts)) if self.repeated else puts[0])

    def effects(self, held: Held, told: Told) -> set[str]:
        return {id for id in told if all(f"{self.name}-{id}-{part}" in held for part in self._parts)}

    @property
    def _parts(self) -> str:
        return "abc" if self.repeated else "a"


def place(id: str, places: int) -> int:
    """Which of the places an attempt goes for."""
    return crc32(id.encode()) % places


RECYCLE = Recycle()
KINDS: tuple[Kind, ...] = (
    Decrement(),
    Tally("plain-tally", repeated=False),
    Tally("token-tally", repeated=True),
    Tally(f"{LATE}-tally", repeated=True),
    Claim("claim", stamped=False),
    Claim("create", stamped=True),
    Claim(f"{LATE}-create", stamped=True),
    Edit(),
    Remove("plain-victim", repeated=False),
    Remove("token-victim", repeated=True),
    Transfer(),
    Note("note"),
    Note(f"{LATE}-note"),
    Note("batch", repeated=True),
)


def kinds(single_writes: SingleWrites) -> tuple[Kind, ...]:
    """The kinds of which exactly-once is promised when single writes are sent that way."""
    return KINDS if single_writes == "auto" else (*KINDS, RECYCLE)


def decode_items(items: Iterable[Item]) -> Held:
    """Items by their key, as Python values."""
    values = map(decode_item, items)
    return {item["pk"]: item for item in values}
