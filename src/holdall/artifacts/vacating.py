"""Vacating LATEST: deleting the object of a LATEST that was purged, when another may just be put in its place.

The row is gone, and a mark on the head says which object is to go. It is deleted on the condition that it is still that
one. Where equal content has equal etags, as in S3, that cannot tell it from a put of the same content; so who puts that
waits until the mark is gone. If it stays, because whoever purged has died, they delete the object themselves, once
nobody can be about to any more: the mark has then been the same for longer than a request can take to arrive. A mark
changes hands before anything is deleted in its name, and the wait is by the waiting one's own clock.
"""

from __future__ import annotations

from contextlib import suppress

from holdall.artifacts.home import Home
from holdall.artifacts.latest import PURGING, Latest, committed, read_latest
from holdall.artifacts.naming import LATEST
from holdall.artifacts.stored import HEAD
from holdall.core.context import Context
from holdall.core.expressions import Remove, Set, Update, Value, path
from holdall.core.objects import DeleteObject
from holdall.core.requests import UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import PreconditionFailedError

__all__ = ["delete_marked", "finish_purge", "purge_mark", "vacated"]

_PATIENCE = 240.0
"""Seconds: longer than a request is sent again and again, and then waited for."""

_GLANCE = 0.2


def purge_mark(context: Context, etag: str, sha256: str | None) -> Attribute:
    """The mark of an object that is to go."""
    said = {"etag": {"S": etag}, "id": {"S": context.port.new_id()}}
    return {"M": said if sha256 is None else {**said, "sha256": {"S": sha256}}}


async def vacated(context: Context, home: Home, latest: Latest, sha256: str) -> Latest:
    """LATEST once nobody is about to delete an object with this content, which is to be put."""
    waited, seen = 0.0, None
    while latest.purged and _is_of(latest, sha256):
        assert latest.head is not None
        mark = latest.head[PURGING]
        waited, seen = (waited, seen) if mark == seen else (0.0, mark)
        if waited >= _PATIENCE:
            await finish_purge(context, home, latest.name, latest.head)
        else:
            await context.port.sleep(_GLANCE)
            waited += _GLANCE
        latest = await read_latest(context, home, latest.name)
    return latest


def _is_of(latest: Latest, sha256: str) -> bool:
    """Whether the object that is to go may have this content."""
    assert latest.head is not None
    said: Item = latest.head[PURGING]["M"]
    return "sha256" not in said or said["sha256"]["S"] == sha256


async def finish_purge(context: Context, home: Home, name: str, head: Item) -> None:
    """Delete the object that a mark names, then the mark; in a name of one's own, so that who waits begins anew."""
    said = head[PURGING]["M"]
    mark = purge_mark(context, said["etag"]["S"], said.get("sha256", {}).get("S"))
    taken = UpdateItem(
        home.table,
        home.meta_key(name, HEAD),
        Update((Set(path(PURGING), Value(mark)),)),
        home.unchanged(head, PURGING),
    )
    if await committed(context, (taken,)):
        await delete_marked(context, home, name, {**head, PURGING: mark})


async def delete_marked(context: Context, home: Home, name: str, head: Item) -> None:
    """The same for a mark that is our own."""
    etag = head[PURGING]["M"]["etag"]["S"]
    with suppress(PreconditionFailedError):  # it has been replaced: then there is nothing to delete
        await context.port.send(DeleteObject(home.service, home.object_key(name, LATEST), etag))
    gone = UpdateItem(
        home.table,
        home.meta_key(name, HEAD),
        Update((Remove(path(PURGING)),)),
        home.unchanged(head, PURGING),
    )
    await committed(context, (gone,))
