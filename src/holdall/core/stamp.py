"""Stamped writes: puts and updates that store an id, from which a repetition learns that it had already succeeded.

Pure. `requests` explains how they differ from the other classes of writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from holdall.core.expressions import Compare, NotExists, Path, Set, Update, Value
from holdall.core.frozen import replace
from holdall.core.requests import DeleteItem, PutItem, UpdateItem
from holdall.core.values import Attribute
from holdall.errors import InvalidRequestError

W = TypeVar("W", bound=PutItem | UpdateItem)

STAMP = "_w"
"""The attribute in which a stamped write stores its id."""

NO_STAMP: Attribute = {"NULL": True}
"""The stamp of an item that had none when it was read."""


def require_last_stamp(write: UpdateItem) -> UpdateItem:
    """Return a stamped update for a second attempt after a lost reply: it also requires the last stamp to be unchanged.

    The first attempt may have succeeded, and another writer may have undone its effect. The condition is then true
    again although the update has happened; only the stamp of the last writer reveals it. The first attempt does not
    check the stamp, because other writers may change other fields.
    """
    path, last = Path((STAMP,)), write.last_stamp
    if last is None or write.condition is None:
        return write  # the last stamp is unknown
    untouched = NotExists(path) if last == NO_STAMP else Compare("=", path, Value(last))
    return replace(write, condition=write.condition & untouched)


def leave_stamp(write: W, stamp: str) -> W:
    """Return the same write, with ``stamp`` stored in ``_w``."""
    return replace(write, **_set_stamp(write, stamp))


def _set_stamp(write: PutItem | UpdateItem, stamp: str) -> dict[str, Any]:
    if isinstance(write, PutItem):
        return {"item": {**write.item, STAMP: {"S": stamp}}}
    return {"update": Update((*write.update.actions, Set(Path((STAMP,)), Value({"S": stamp}))))}


def stamped(write: W, stamp: str) -> W:
    """Return the same write as a *Stamp* write: it stores ``stamp`` in ``_w``, and fails if it is repeated.

    The write must make its own condition false; only the caller can know that it does.
    """
    if write.condition is None:
        raise InvalidRequestError("a stamped write needs a condition, one that the write makes false")
    return replace(write, **_set_stamp(write, stamp), stamp=stamp, item_on_failure=True)


def has_stamped(write: PutItem | UpdateItem | DeleteItem, item: Mapping[str, object] | None) -> bool:
    """Whether the stored item carries the write's stamp, which proves that the write succeeded."""
    stamp = None if isinstance(write, DeleteItem) else write.stamp
    return stamp is not None and item is not None and item.get(STAMP) == {"S": stamp}
