"""Pictures that are being made: those who ask for the same one meanwhile wait for it, and make no second."""

from __future__ import annotations

import asyncio

from holdall import AsyncDatabase
from holdall.attachments import Blob, Representation


class Pictures:
    """The pictures of a database. Who leaves while one is made does not keep the others from it."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db
        self._running: dict[tuple[str, str], asyncio.Task[Blob]] = {}

    async def get(self, wanted: Representation) -> Blob:
        """The blob of a picture, which is made if it is not there yet."""
        key = wanted.blob.id, "" if wanted.variant is None else wanted.variant.digest()
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(self._db.blobs.representation(wanted))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(task)
