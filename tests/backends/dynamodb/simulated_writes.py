"""Every kind of write: how to attempt it, and how to find out afterwards which attempts took effect.

Each attempt has an id and stores it together with its effect, so the final state shows which attempts took effect, and
counters beside the ids show whether one did so twice. `audit` compares that with the results that the callers received:

- ``ok``: the attempt took effect exactly once;
- ``failed``: it did not take effect;
- ``unknown``: it took effect exactly once or not at all.
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
    "Contents",
    "Kind",
    "Ledger",
    "Send",
    "Results",
    "Result",
    "decode_items",
    "kinds",
    "schema",
    "await_result",
]

Send: TypeAlias = Callable[[Request[Any]], Awaitable[Any]]
Result: TypeAlias = Literal["ok", "failed", "unknown"]
Results: TypeAlias = Mapping[str, Result]
"""The result that the caller of each attempt received."""

Contents: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The items of a table as Python values, by their key."""

LATE = "late"
"""Prefix of the keys of items whose requests the proxy may also deliver late."""


def schema(table: str) -> TableSchema:
    return TableSchema(table, KeyAttribute("pk"))


def key(name: str) -> Item:
    return encode_item({"pk": name})


class Kind(Protocol):
    """A kind of write."""

    @property
    def name(self) -> str:
        """Its name, with which the keys of its items begin."""

    @property
    def repeated(self) -> bool:
        """Whether it is sent again after a lost reply, so that its outcome is always known."""

    def start(self) -> Iterable[Mapping[str, Any]]:
        """The initial items."""

    async def attempt(self, send: Send, table: str, id: str) -> None:
        """Write once; raise if the write did not happen or its outcome is unknown."""

    def effects(self, contents: Contents, results: Results) -> set[str]:
        """The attempts that took effect; a partial or repeated effect fails."""


async def await_result(attempt: Awaitable[None]) -> Result:
    """Await an attempt and return the result that its caller receives."""
    try:
        await attempt
    except OutcomeUnknown:
        return "unknown"
    except ConditionFailedError:
        return "failed"
    except TransactionCanceledError as error:
        if error.retryable:  # the backend gave up too early, which is a failure of the test
            raise
        return "failed"
    return "ok"


class Ledger:
    """The results that the callers received, by kind and attempt."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = tuple(kinds)
        self.results: dict[str, dict[str, Result]] = {kind.name: {} for kind in self.kinds}

    def record(self, kind: str, id: str, result: Result) -> None:
        self.results[kind][id] = result

    def list_results(self, *kinds: str) -> list[Result]:
        return [result for kind in kinds or self.results for result in self.results[kind].values()]

    def audit(self, contents: Contents) -> None:
        """Compare the results with the final state."""
        for kind in self.kinds:
            results = self.results[kind.name]
            done = kind.effects(contents, results)
            lost = [id for id, result in results.items() if result == "ok" and id not in done]
            assert not lost, f"{kind.name}: reported as done, but not done: {lost}"
            secret = [id for id, result in results.items() if result == "failed" and id in done]
            assert not secret, f"{kind.name}: reported as failed, but done: {secret}"


# --- the kinds --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decrement:
    """Take one from a limited stock: a plain update with a condition."""

    name: str = "stock"
    repeated: bool = False
    stock: int = 12

    def start(self) -> Iterable[Mapping[str, Any]]:
        yield {"pk": self.name, "left": self.stock}

    async def attempt(self, send: Send, table: str, id: str) -> None:
        update = Update((Set(path("left"), Minus(path("left"), value(1))), Add(path("ids"), value({id}))))
        await send(UpdateItem(table, key(self.name), update, Compare(">=", path("left"), value(1))))

    def effects(self, contents: Contents, results: Results) -> set[str]:
        item = contents[self.name]
        done = set(item.get("ids", ()))
        assert item["left"] == self.stock - len(done), f"{self.name}: {item}"
        return done


@dataclass(frozen=True)
class Tally:
    """Increment a counter without a condition: a plain update, or a transaction of one update with its token."""

    name: str
    repeated: bool

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ()

    async def attempt(self, send: Send, table: str, id: str) -> None:
        update = UpdateItem(
            table, key(self.name), Update((Add(path("n"), value(1)), Add(path("ids"), value({id}))))
        )
        await send(TransactWrite((update,), str(uuid4())) if self.repeated else update)

    def effects(self, contents: Contents, results: Results) -> set[str]:
        item = contents.get(self.name, {"n": 0, "ids": set()})
        assert item["n"] == len(item["ids"]), f"{self.name}: {item}"
        return set(item["ids"])


@dataclass(frozen=True)
class Claim:
    """Put an item under a contended key unless the key is taken: plain, or stamped."""

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

    def effects(self, contents: Contents, results: Results) -> set[str]:
        names = (f"{self.name}-{number}" for number in range(self.places))
        done = {contents[name]["id"]: name for name in names if name in contents}
        for id, name in done.items():
            assert name == f"{self.name}-{place(id, self.places)}", f"{id} is in {name}"
        return set(done)


@dataclass(frozen=True)
class Edit:
    """Read a version and replace it by the next one: stamped, because the write makes its own condition false."""

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

    def effects(self, contents: Contents, results: Results) -> set[str]:
        item = contents[self.name]
        done = set(item.get("ids", ()))
        assert item["version"] == len(done), f"{self.name}: {item}"
        return done


@dataclass(frozen=True)
class Remove:
    """Delete an item that other workers delete too: plain, or a transaction of one deletion with its token."""

    name: str
    repeated: bool
    victims: int = 8

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ({"pk": f"{self.name}-{number}"} for number in range(self.victims))

    async def attempt(self, send: Send, table: str, id: str) -> None:
        delete = DeleteItem(table, key(f"{self.name}-{place(id, self.victims)}"), Exists(path("pk")))
        await send(TransactWrite((delete,), str(uuid4())) if self.repeated else delete)

    def effects(self, contents: Contents, results: Results) -> set[str]:
        """A deletion stores no id: exactly one attempt reports it, or none does and the result of one is unknown."""
        done: set[str] = set()
        for number in range(self.victims):
            if f"{self.name}-{number}" not in contents:
                here = {id: result for id, result in results.items() if place(id, self.victims) == number}
                by = {id for id, result in here.items() if result == "ok"}
                assert len(by) == 1 or (not by and "unknown" in here.values()), f"{self.name}: {here}"
                done |= by
        return done


@dataclass(frozen=True)
class Transfer:
    """Move one from an account that may be empty to another: a transaction of two updates."""

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

    def effects(self, contents: Contents, results: Results) -> set[str]:
        payer, payee = contents[f"{self.name}-from"], contents[f"{self.name}-to"]
        done = set(payer.get("ids", ()))
        assert done == set(payee.get("ids", ())), f"half a transfer: {payer}, {payee}"
        assert (payer["balance"], payee["balance"]) == (self.balance - len(done), len(done)), (
            f"{payer}, {payee}"
        )
        return done


@dataclass(frozen=True)
class Recycle:
    """Delete the item under a contended key, then create one there.

    Only a token distinguishes an item that was created and deleted from one that was never created: a stamp disappears
    with its item, so a second send would create the item again.
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
            await await_result(self._evict(send, table, where, found["id"]["S"]))
        put = PutItem(table, encode_item({"pk": where, "id": id}), NotExists(path("pk")))
        await send(stamped(put, str(uuid4())))

    async def _evict(self, send: Send, table: str, where: str, id: str) -> None:
        noted = Update((Add(path("n"), value(1)), Add(path("ids"), value({id}))))
        delete = DeleteItem(table, key(where), Compare("=", path("id"), value(id)))
        await send(TransactWrite((delete, UpdateItem(table, key(self.name), noted)), str(uuid4())))

    def effects(self, contents: Contents, results: Results) -> set[str]:
        evicted = contents.get(self.name, {"n": 0, "ids": set()})
        assert evicted["n"] == len(evicted["ids"]), f"evicted twice: {evicted}"
        names = (f"{self.name}-{number}" for number in range(self.places))
        present = {contents[name]["id"] for name in names if name in contents}
        assert not present & evicted["ids"], f"present after their eviction: {present & evicted['ids']}"
        return present | set(evicted["ids"])


@dataclass(frozen=True)
class Note:
    """Put an item that no other worker writes: plain, or several in a batch."""

    name: str
    repeated: bool = False

    def start(self) -> Iterable[Mapping[str, Any]]:
        return ()

    async def attempt(self, send: Send, table: str, id: str) -> None:
        puts = [PutItem(table, encode_item({"pk": f"{self.name}-{id}-{part}"})) for part in "abc"]
        await send(BatchWrite(tuple(puts)) if self.repeated else puts[0])

    def effects(self, contents: Contents, results: Results) -> set[str]:
        return {id for id in results if all(f"{self.name}-{id}-{part}" in contents for part in self._parts)}

    @property
    def _parts(self) -> str:
        return "abc" if self.repeated else "a"


def place(id: str, places: int) -> int:
    """The place that an attempt writes to."""
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
    """The kinds for which we guarantee exactly-once when single writes are sent this way."""
    return KINDS if single_writes == "auto" else (*KINDS, RECYCLE)


def decode_items(items: Iterable[Item]) -> Contents:
    """Decode items into Python values, by their key."""
    values = map(decode_item, items)
    return {item["pk"]: item for item in values}
