"""Vacating LATEST: deleting the object of a purged LATEST while another process may put a new one in its place.

The row is gone, and a mark on the head names the object to delete, with the time. The object is deleted on the
condition that it is still that one. If equal content has equal etags, as in S3, the condition cannot distinguish it
from a put of the same content; so a put of the same content waits until the mark is gone.

Why nothing is lost, and every wait ends, wherever a purge dies:

- The mark is written with the time, in the transaction that deletes the row, and removed once the deletion has ended.
- A mark that stays has *lapsed* after five minutes: no request sent under it can still arrive. The next put or purge
  then takes it over: it first writes its own mark, then deletes the object, and removes the mark.
- Before that, a put of the same content gives up within seconds, with `ContentionError`. Nothing else waits.
- Before that, another purge sets the mark to its own time, so that the wait starts again, and deletes the object; the
  mark stays until it has lapsed, because the first purge may merely be slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from holdall.artifacts.home import Home
from holdall.artifacts.name import LATEST
from holdall.artifacts.record import Head, parse_moment, show_moment
from holdall.artifacts.version.latest import Latest, read_latest
from holdall.core.context import Context
from holdall.core.objects import DeleteObject
from holdall.errors import ContentionError, PreconditionFailedError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once

_LAPSE = timedelta(minutes=5)
"""Longer than a request can be retried and waited for, plus a minute for differences between clocks."""

_WAIT = 5.0
_GLANCE = 0.2


def make_mark(context: Context, etag: str, sha256: str | None) -> dict[str, str]:
    """The mark of an object to delete."""
    mark = {"etag": etag, "id": context.port.new_id(), "at": show_moment(context.port.now())}
    return mark if sha256 is None else {**mark, "sha256": sha256}


async def await_vacancy(context: Context, home: Home, latest: Latest, sha256: str) -> Latest:
    """Wait until no process can be about to delete an object with this content; return LATEST.

    Raises `ContentionError` if a purge has not ended within some seconds.
    """
    waited = 0.0
    while latest.is_purged:
        mark = _mark_of(latest.head)
        if mark.get("sha256", sha256) != sha256:
            break  # the object to delete has other content
        if context.port.now() >= _lapse_of(mark):
            await finish_purge(context, home, latest.name, latest.head)
        elif waited >= _WAIT:
            raise ContentionError(
                f"LATEST of {latest.name!r:.60} cannot be put yet: another process is purging the same content, and "
                "could delete the new object",
                hint="put it again in a moment; if that process has died, this works after "
                f"{_lapse_of(mark):%Y-%m-%d %H:%M:%S} UTC",
            )
        await context.port.sleep(_GLANCE)
        waited += _GLANCE
        latest = await read_latest(context, home, latest.name)
    return latest


def _mark_of(head: Head) -> Mapping[str, Any]:
    assert head.purging is not None
    return head.purging


def _lapse_of(mark: Mapping[str, Any]) -> datetime:
    return parse_moment(mark["at"]) + _LAPSE


async def finish_purge(context: Context, home: Home, name: str, head: Head) -> None:
    """Delete the object that another process's mark names, under a new mark; remove that if the other has lapsed."""
    theirs = _mark_of(head)
    ours = make_mark(context, theirs["etag"], theirs.get("sha256"))
    change = Change(context)
    change.update(head, Head.purging.set(ours), expect=[head.same(Head.purging)])
    if await commit_once(change) is not None:
        return
    await _delete_object(context, home, name, ours)
    if context.port.now() >= _lapse_of(theirs):
        await _remove_mark(context, home, name, ours)


async def delete_marked(context: Context, home: Home, name: str, mark: Mapping[str, Any]) -> None:
    """Delete the object that this process's mark names, then the mark."""
    await _delete_object(context, home, name, mark)
    await _remove_mark(context, home, name, mark)


async def _delete_object(context: Context, home: Home, name: str, mark: Mapping[str, Any]) -> None:
    with suppress(PreconditionFailedError):  # it was replaced, so there is nothing to delete
        await context.port.send(DeleteObject(home.service, home.object_key(name, LATEST), mark["etag"]))


async def _remove_mark(context: Context, home: Home, name: str, mark: Mapping[str, Any]) -> None:
    change = Change(context)
    change.update(Head.of(home, name), Head.purging.remove(), expect=[Head.purging.equals(mark)])
    await commit_once(change)
