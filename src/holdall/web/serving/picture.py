"""Pictures that are being made: concurrent requests for the same picture wait for one task that makes it."""

from __future__ import annotations

import asyncio

from holdall import AsyncDatabase
from holdall.attachments import Blob, Representation


class Pictures:
    """The pictures of a database. A request that is cancelled does not cancel the picture for the others."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db
        self._running: dict[tuple[str, str], asyncio.Task[Blob]] = {}

    async def get(self, wanted: Representation) -> Blob:
        """The blob of a picture, which is made if it does not exist yet."""
        key = wanted.blob.id, "" if wanted.variant is None else wanted.variant.digest()
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(self._db.blobs.representation(wanted))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(task)
