"""Vacating LATEST: deleting the object of a purged LATEST while another process may put a new one in its place.

The row is gone, and a mark on the head names the object to delete, with the time. The object is deleted on the
condition that it is still that one. If equal content has equal etags, as in S3, the condition cannot distinguish it
from a put of the same content; so a put of the same content waits until the mark is gone.

Why nothing is lost, and every wait ends, wherever a purge dies:

- The mark is written with the time, in the transaction that deletes the row, and removed once the deletion has ended.
- A mark that stays has *lapsed* after five minutes: no request sent under it can still arrive. The next put or purge
  then takes it over, writing a mark of its own first, deletes the object, and removes the mark.
- Before that, a put of the same content gives up within seconds, with `ContentionError`. Nothing else waits.
- Before that, another purge sets the mark to its own time, so that the wait starts again, and deletes the object; the
  mark stays until it has lapsed, because the first purge may merely be slow.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from holdall.artifacts.home import Home
from holdall.artifacts.latest import PURGING, Latest, committed, read_latest
from holdall.artifacts.naming import LATEST
from holdall.artifacts.stored import HEAD, moment_of, moment_text
from holdall.core.context import Context
from holdall.core.expressions import Remove, Set, Update, Value, path
from holdall.core.objects import DeleteObject
from holdall.core.requests import UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import ContentionError, PreconditionFailedError

__all__ = ["await_vacancy", "delete_marked", "finish_purge", "purge_mark"]

_LAPSE = timedelta(minutes=5)
"""Longer than a request can be retried and waited for, plus a minute for clocks that differ."""

_WAIT = 5.0
_GLANCE = 0.2


def purge_mark(context: Context, etag: str, sha256: str | None) -> Attribute:
    """The mark of an object to delete."""
    said = {
        "etag": {"S": etag},
        "id": {"S": context.port.new_id()},
        "at": {"S": moment_text(context.port.now())},
    }
    return {"M": said if sha256 is None else {**said, "sha256": {"S": sha256}}}


async def await_vacancy(context: Context, home: Home, latest: Latest, sha256: str) -> Latest:
    """Wait until no process can be about to delete an object with this content; return LATEST.

    Raises `ContentionError` if a purge has not ended within some seconds.
    """
    waited = 0.0
    while latest.purged and _is_of(latest, sha256):
        assert latest.head is not None
        if _has_lapsed(context, latest.head):
            await finish_purge(context, home, latest.name, latest.head)
        elif waited >= _WAIT:
            raise _explain_wait(latest.name, latest.head)
        await context.port.sleep(_GLANCE)
        waited += _GLANCE
        latest = await read_latest(context, home, latest.name)
    return latest


def _is_of(latest: Latest, sha256: str) -> bool:
    """Whether the object to delete may have this content."""
    assert latest.head is not None
    said: Item = latest.head[PURGING]["M"]
    return "sha256" not in said or said["sha256"]["S"] == sha256


def _lapse_of(head: Item) -> datetime:
    return moment_of(head[PURGING]["M"]["at"]["S"]) + _LAPSE


def _has_lapsed(context: Context, head: Item) -> bool:
    return context.port.now() >= _lapse_of(head)


def _explain_wait(name: str, head: Item) -> ContentionError:
    return ContentionError(
        f"LATEST of {name!r:.60} cannot be put: another process is purging the same content and has not finished, "
        "so it could delete the new object",
        hint=f"put it again; if that process has died, this works from {_lapse_of(head):%Y-%m-%d %H:%M:%S} UTC on",
    )


async def finish_purge(context: Context, home: Home, name: str, head: Item) -> None:
    """Delete the object that another process's mark names, under our own mark; remove ours if the other has lapsed."""
    said = head[PURGING]["M"]
    mark = purge_mark(context, said["etag"]["S"], said.get("sha256", {}).get("S"))
    take = UpdateItem(
        home.table,
        home.meta_key(name, HEAD),
        Update((Set(path(PURGING), Value(mark)),)),
        home.unchanged(head, PURGING),
    )
    if not await committed(context, (take,)):
        return
    await _delete_object(context, home, name, mark)
    if _has_lapsed(context, head):
        await _remove_mark(context, home, name, mark)


async def delete_marked(context: Context, home: Home, name: str, mark: Attribute) -> None:
    """Delete the object that our own mark names, then the mark."""
    await _delete_object(context, home, name, mark)
    await _remove_mark(context, home, name, mark)


async def _delete_object(context: Context, home: Home, name: str, mark: Attribute) -> None:
    with suppress(PreconditionFailedError):  # it has been replaced: then there is nothing to delete
        etag = mark["M"]["etag"]["S"]
        await context.port.send(DeleteObject(home.service, home.object_key(name, LATEST), etag))


async def _remove_mark(context: Context, home: Home, name: str, mark: Attribute) -> None:
    remove = UpdateItem(
        home.table,
        home.meta_key(name, HEAD),
        Update((Remove(path(PURGING)),)),
        home.unchanged({PURGING: mark}, PURGING),
    )
    await committed(context, (remove,))
