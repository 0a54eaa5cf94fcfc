"""Checkpoints: how far each segment of a run over a whole table has come, stored so that the next run can resume."""

from __future__ import annotations

from typing import Any

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.requests import BatchWrite, DeleteItem, GetItem, PutItem
from holdall.core.values import Item, decode, encode
from holdall.errors import ConfigurationError
from holdall.tables.flow import discover
from holdall.tables.layout import Layout


class Checkpoints:
    """The checkpoints of one kind of run, under H; ``run`` distinguishes runs that must not resume each other."""

    def __init__(self, context: Context, layout: Layout, h: str, run: str) -> None:
        self._context = context
        self._layout = layout
        self._h = h
        self._run = run

    @classmethod
    async def of(cls, context: Context, h: str, run: str) -> Checkpoints | None:
        """The checkpoints; None if the database has no table for them, so that each run starts from the beginning."""
        try:
            layout = await discover(context)
        except ConfigurationError:
            return None
        if layout.mode != "A":
            return None
        return cls(context, layout, h, run)

    async def get(self, segment: int) -> tuple[Item | None, bool, dict[str, Any]]:
        """The key to continue after, whether the segment is done, and its counts so far."""
        item = (await self._context.port.send(GetItem(self._layout.table, self._key(segment), True))).item
        if item is None:
            return None, False, {}
        counted: dict[str, Any] = decode(item["counted"])
        after = item.get("after")
        return (None, True, counted) if after is None else (after["M"], False, counted)

    async def put(self, segment: int, after: Item | None, counted: dict[str, Any]) -> None:
        """Store the key to continue after (None if the segment is done), and the counts."""
        item: dict[str, Any] = {**self._key(segment), "counted": encode(counted)}
        if after is not None:
            item["after"] = {"M": dict(after)}
        # as a batch, which is sent again if a reply is lost; repeating it is harmless here
        await self._context.port.send(BatchWrite((PutItem(self._layout.table, item),)))

    async def forget(self) -> None:
        """Delete all checkpoints, also those of older versions, because every segment is done."""
        listing = self._layout.listing(self._h)
        while True:
            page = await self._context.port.send(listing)
            for item in page.items:
                key = {part.name: item[part.name] for part in (self._layout.partition, self._layout.sort)}
                await self._context.port.send(BatchWrite((DeleteItem(self._layout.table, key),)))
            if page.last_key is None:
                return
            listing = replace(listing, start_after=page.last_key)

    def _key(self, segment: int) -> Item:
        return self._layout.key(self._h, f"{self._run}#{segment}", "")
