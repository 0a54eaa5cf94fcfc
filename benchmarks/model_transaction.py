"""A transaction of one and of two items on the embedded engine, against the same requests sent directly."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.harness import Figure, time_pair
from benchmarks.model_items import TABLE, values
from benchmarks.model_ours import Order, fill
from holdall import Database, Transaction
from holdall.core import Compare, GetItem, Set, TransactWrite, Update, UpdateItem, Value, path
from holdall.core.stamp import stamped

BAR = 2.0
ORDERS = 1_000
PER_SLICE = 200

Key = tuple[str, str]
Pairs = list[tuple[Key, Key]]
Act = Callable[[Database, Key, Key], object]

_QUANTITY = path("quantity")


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per number of items; each is read, changed and written under a lock on what was read."""
    with Database(f"embedded:{workshop / 'model_transaction.db'}", durability="normal") as db:
        fill(db, ORDERS)
        yield _figure(db, "two items", _swap, _swap_directly)
        yield _figure(db, "one item", _sell, _sell_directly)


def _figure(db: Database, name: str, ours: Act, direct: Act) -> Figure:
    drawn = random.Random(20)
    known = [(order["customer"], order["number"]) for order in map(values, range(ORDERS))]

    def prepare() -> Pairs:
        keys = drawn.sample(known, 2 * PER_SLICE)
        return list(zip(keys[::2], keys[1::2], strict=True))

    _check(db, prepare()[0], ours, direct)
    result = time_pair(
        prepare,
        lambda pairs: [ours(db, *pair) for pair in pairs],
        lambda pairs: [direct(db, *pair) for pair in pairs],
    )
    return Figure("model_transaction", (name,), result.ratio, BAR, note=result.each(PER_SLICE))


# --- through models ---


def _swap(db: Database, one: Key, other: Key) -> None:
    db.run(_move, one, other)


def _move(tx: Transaction, one: Key, other: Key) -> None:
    source = tx.get_one(Order, customer=one[0], number=one[1])
    target = tx.get_one(Order, customer=other[0], number=other[1])
    source.quantity -= 1
    target.quantity += 1


def _sell(db: Database, one: Key, other: Key) -> None:
    db.run(_take, one)


def _take(tx: Transaction, one: Key) -> None:
    tx.get_one(Order, customer=one[0], number=one[1]).quantity -= 1


# --- with requests ---


def _swap_directly(db: Database, one: Key, other: Key) -> None:
    source, target = _read(db, one), _read(db, other)
    updates = (_update(one, source, source - 1), _update(other, target, target + 1))
    db.send(TransactWrite(updates, db.port.new_id()))


def _sell_directly(db: Database, one: Key, other: Key) -> None:
    quantity = _read(db, one)
    db.send(stamped(_update(one, quantity, quantity - 1), db.port.new_id()))


def _read(db: Database, key: Key) -> int:
    item = db.send(GetItem(TABLE, _attributes(key), True)).item
    assert item is not None
    return int(item["quantity"]["N"])


def _update(key: Key, old: int, new: int) -> UpdateItem:
    changes = Update((Set(_QUANTITY, Value({"N": str(new)})),))
    unchanged = Compare("=", _QUANTITY, Value({"N": str(old)}))
    return UpdateItem(TABLE, _attributes(key), changes, unchanged, item_on_failure=True)


def _attributes(key: Key) -> dict[str, dict[str, str]]:
    return {"pk": {"S": f"Order#{key[0]}"}, "sk": {"S": key[1]}}


def _check(db: Database, pair: tuple[Key, Key], *acts: Act) -> None:
    """Check that both ways change the same quantities."""
    before = [_read(db, key) for key in pair]
    steps = []
    for act in acts:
        act(db, *pair)
        after = [_read(db, key) for key in pair]
        steps.append([new - old for new, old in zip(after, before, strict=True)])
        before = after
    assert steps[0] == steps[1], f"{steps[0]} is not {steps[1]}"
    assert any(steps[0]), "nothing was changed"
