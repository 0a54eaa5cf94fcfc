"""Checkpoints: how far each segment of a bulk run has come, kept in the database's table."""

from __future__ import annotations

from typing import Any

from holdall.core.context import Context
from holdall.core.requests import DeleteItem, GetItem, PutItem
from holdall.core.values import Item
from holdall.errors import ConfigurationError
from holdall.models.schema import ModelSchema
from holdall.tables.flow import discover
from holdall.tables.layout import Layout

__all__ = ["Checkpoints"]


class Checkpoints:
    """The places of one run. A run over other segments, or to another version of the model, has places of its own."""

    def __init__(self, context: Context, layout: Layout, h: str, segments: int) -> None:
        self._context = context
        self._layout = layout
        self._h = h
        self._segments = segments

    @classmethod
    async def of(cls, context: Context, schema: ModelSchema, segments: int) -> Checkpoints | None:
        """Where the places are kept; None when the database has no table for them: then each run starts anew."""
        try:
            layout = await discover(context)
        except ConfigurationError:
            return None
        if layout.mode != "A":
            return None
        version = 0 if schema.migrations is None else schema.migrations.version
        indexes = "+".join(sorted(schema.indexes))
        return cls(context, layout, f"holdall#Migration#{schema.name}#{version}#{indexes}", segments)

    async def get(self, segment: int) -> tuple[Item | None, bool]:
        """Where to go on after, and whether the segment is done."""
        item = (await self._context.port.send(GetItem(self._layout.table, self._key(segment), True))).item
        if item is None:
            return None, False
        after = item.get("after")
        return (None, True) if after is None else (after["M"], False)

    async def put(self, segment: int, after: Item | None) -> None:
        """Keep a place; None when the segment is done."""
        item: dict[str, Any] = dict(self._key(segment))
        if after is not None:
            item["after"] = {"M": dict(after)}
        await self._context.port.send(PutItem(self._layout.table, item))

    async def forget(self) -> None:
        """All segments are done: the next run is a new one."""
        for segment in range(self._segments):
            await self._context.port.send(DeleteItem(self._layout.table, self._key(segment)))

    def _key(self, segment: int) -> Item:
        return self._layout.key(self._h, f"{self._segments}#{segment}", "")
