"""Strays: objects of files that no record knows, and that no sweep can therefore find.

One way leads there: a put is held up for more than a day, its hold and its files' records are swept away, and then its
upload goes through after all; if the put dies before it finds out, nobody knows of the object. So now and then all
objects are listed and compared with the records. Why it is safe to delete what none speaks of:

- A key that its file's record has given up (`counting` says when) is never used again.
- For a key that may be used again a record is made first, with ``deleting``, if there is still none. Who needs the file
  from then on uses another key, as always.
"""

from __future__ import annotations

import re
from datetime import timedelta

from holdall.artifacts.directories.counting import file_key, read_files, transact
from holdall.artifacts.directories.sweeping import Freed
from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.expressions import Compare, Condition, Value, path
from holdall.core.objects import DeleteObject, ListedObject, ListObjects
from holdall.core.requests import DeleteItem, PutItem, TransactAction
from holdall.core.values import Attribute, Item
from holdall.errors import TransactionCanceledError

__all__ = ["sweep_strays"]

_AGE = timedelta(days=2)
_NAME = re.compile(r"([0-9a-f]{64})(\.[0-9a-f-]{36})?")


async def sweep_strays(context: Context, home: Home, *, older_than: timedelta = _AGE) -> Freed:
    """Delete objects of files that no record knows, if they are old enough that nobody is just about them.

    All of them are listed, a page at a time: it is for now and then.
    """
    prefix = f"{home.file_key('')}/"
    before = context.port.now() - older_than
    objects = size = 0
    after: str | None = None
    while True:
        page = await context.port.send(ListObjects(home.service, prefix, after))
        old = {each.key: each for each in page.objects if each.modified < before}
        names = {key: found[1] for key in old if (found := _NAME.fullmatch(key.removeprefix(prefix)))}
        items = await read_files(context, home, list(dict.fromkeys(names.values())))
        for key, sha256 in names.items():
            if await _deleted(context, home, sha256, old[key], items[sha256]):
                objects += 1
                size += old[key].size
        after = page.next
        if after is None:
            return Freed(objects, size)


async def _deleted(context: Context, home: Home, sha256: str, found: ListedObject, item: Item | None) -> bool:
    """Delete an object if it is a stray."""
    first = found.key == home.file_key(sha256)
    if item is not None and "moved" not in item:
        if not first or not item.get("deleting", {}).get("S", "").startswith("stray:"):
            return False
        left: dict[str, Attribute] = {"_type": {"S": "holdall.ArtifactFile"}, "moved": {"BOOL": True}}
        keeps = PutItem(home.table, {**file_key(home, sha256), **left}, _is_deleting(item))
        await context.port.send(DeleteObject(home.service, found.key))  # whoever began on it has died
        await _tried(context, keeps)
        return True
    if item is not None or not first:
        if item is not None and _knows(home, sha256, item, found.key):
            return False
        await context.port.send(DeleteObject(home.service, found.key))
        return True
    made: dict[str, Attribute] = {
        **file_key(home, sha256),
        "_type": {"S": "holdall.ArtifactFile"},
        "refs": {"N": "0"},
        "size": {"N": str(found.size)},
        "born": {"S": context.port.new_id()},
        "deleting": {"S": f"stray:{context.port.new_id()}"},
    }
    if not await _tried(context, PutItem(home.table, made, home.absent)):
        return False
    await context.port.send(DeleteObject(home.service, found.key))
    await _tried(context, DeleteItem(home.table, file_key(home, sha256), _is_deleting(made)))
    return True


def _knows(home: Home, sha256: str, item: Item, key: str) -> bool:
    """Whether the record of a file that has moved speaks of a key: its own, be it stored or just coming."""
    return "born" in item and key == f"{home.file_key(sha256)}.{item['born']['S']}"


def _is_deleting(item: Item) -> Condition:
    return Compare("=", path("deleting"), Value(item["deleting"]))


async def _tried(context: Context, action: TransactAction) -> bool:
    """Write, unless somebody else has written."""
    try:
        await transact(context, (action,))
    except TransactionCanceledError as error:
        if error.retryable:
            raise
        return False
    return True
