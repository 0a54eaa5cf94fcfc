"""Strays: objects of files that no record knows, so that no sweep can find them.

A stray appears in one way only: a put is held up for more than a day, its hold and its files' records are swept away,
and then its upload goes through after all; if the put dies before it notices, nothing refers to the object. So now and
then all objects are listed and compared with the records. Why it is safe to delete an object that no record knows:

- A key that its file's record has given up (`record` explains when) is never used again.
- For a key that may be used again, a record with ``deleting`` is made first, if there is still none. A process that
  needs the file from then on uses another key, as always.
"""

from __future__ import annotations

import re
from datetime import timedelta

from holdall.artifacts.directory.record import FileRecord, fetch_files
from holdall.artifacts.directory.sweep import Freed
from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.objects import DeleteObject, ListedObject, ListObjects
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once

_AGE = timedelta(days=2)
_NAME = re.compile(r"([0-9a-f]{64})(\.[0-9a-f-]{36})?")
_STRAY = "stray:"


async def sweep_strays(context: Context, home: Home, *, older_than: timedelta = _AGE) -> Freed:
    """Delete objects of files that no record knows, if they are old enough not to belong to a put under way.

    This lists all objects, a page at a time: run it now and then.
    """
    prefix = f"{home.file_key('')}/"
    before = context.port.now() - older_than
    objects = size = 0
    after: str | None = None
    while True:
        page = await context.port.send(ListObjects(home.service, prefix, after))
        old = [
            (listed, name[1])
            for listed in page.objects
            if listed.modified < before and (name := _NAME.fullmatch(listed.key.removeprefix(prefix)))
        ]
        files = await fetch_files(context.port, home, list(dict.fromkeys(sha256 for _, sha256 in old)))
        for listed, sha256 in old:
            if await _delete_stray(context, home, listed, files[sha256]):
                objects += 1
                size += listed.size
        after = page.next
        if after is None:
            return Freed(objects, size)


async def _delete_stray(context: Context, home: Home, listed: ListedObject, file: FileRecord) -> bool:
    """Delete an object if it is a stray; whether it was."""
    port, delete = context.port, DeleteObject(home.service, listed.key)
    is_first = listed.key == home.file_key(file.sha256)
    if file.moved or not (file.is_stored or is_first):
        if file.born is not None and listed.key == file.object_key(home):
            return False
        await port.send(delete)
        return True
    change = Change(context)
    if file.is_stored:
        if not is_first or not (file.deleting or "").startswith(_STRAY):
            return False
        await port.send(delete)  # the process that began on it has died
        change.put(file.retire(), expect=[file.same(FileRecord.deleting)])
        await commit_once(change)
        return True
    made = FileRecord.new(
        file.address,
        FileRecord.refs.set(0),
        FileRecord.size.set(listed.size),
        FileRecord.born.set(port.new_id()),
        FileRecord.deleting.set(_STRAY + port.new_id()),
    )
    change.create(made)
    if await commit_once(change) is not None:
        return False
    await port.send(delete)
    change = Change(context)
    change.delete(made, expect=[made.same(FileRecord.deleting)])
    await commit_once(change)
    return True
