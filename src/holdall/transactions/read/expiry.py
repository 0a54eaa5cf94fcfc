"""Expiry: an expired item counts as missing, whether or not the store has deleted it yet.

Pure. In the shared table, ``_ttl`` holds the time at which an item expires, in seconds since 1970. In a model's own
table the field itself does, with the rules of the JavaScript library: 0 means never, as does a time five years ago.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from holdall.core.expressions import Compare, Condition, NotExists, Path, Value
from holdall.core.values import Item
from holdall.models.definition.derived import epoch_seconds
from holdall.tables.commit.lock import any_of
from holdall.transactions.binding import Binding

_FIVE_YEARS = 157_680_000


def seconds_now(binding: Binding, now: datetime) -> int:
    """The current time for expiry: rounded down, so that no item expires early; up in a model's own table."""
    return epoch_seconds(now) if binding.own else int(now.timestamp())


def has_expired(binding: Binding, item: Item, now: datetime) -> bool:
    """Whether the item has expired, for a model whose items expire."""
    stored = None if binding.ttl is None or binding.schema.ttl is None else item.get(binding.ttl)
    if stored is None or "N" not in stored:
        return False
    moment, seconds = Decimal(stored["N"]), seconds_now(binding, now)
    if binding.own:
        return moment != 0 and seconds - _FIVE_YEARS < moment <= seconds
    return moment <= seconds


def absent(binding: Binding, now: datetime) -> Condition:
    """The condition that the item does not exist, or has expired."""
    gone: Condition | None = None
    if binding.schema.ttl is not None:
        assert binding.ttl is not None
        path, seconds = Path((binding.ttl,)), seconds_now(binding, now)
        gone = Compare("<=", path, Value({"N": str(seconds)}))
        if binding.own:
            gone &= Compare(">", path, Value({"N": str(seconds - _FIVE_YEARS)}))
            gone &= Compare("<>", path, Value({"N": "0"}))
    return any_of(NotExists(Path((binding.partition.name,))), gone)


def alive(binding: Binding, now: datetime) -> Condition | None:
    """The condition that an item has not expired, for a model whose items expire."""
    if binding.schema.ttl is None or binding.ttl is None:
        return None
    path, seconds = Path((binding.ttl,)), seconds_now(binding, now)
    later = Compare(">", path, Value({"N": str(seconds)}))
    if not binding.own:
        return NotExists(path) | later
    long_ago = Compare("<=", path, Value({"N": str(seconds - _FIVE_YEARS)}))
    return any_of(NotExists(path), later, long_ago)
