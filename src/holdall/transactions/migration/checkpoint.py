"""Checkpoints: how far each segment of a bulk run has come, kept in the database's table."""

from __future__ import annotations

from typing import Any

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.requests import BatchWrite, DeleteItem, GetItem, PutItem
from holdall.core.values import Item, decode, encode
from holdall.errors import ConfigurationError
from holdall.models.schema import ModelSchema
from holdall.tables.flow import discover
from holdall.tables.layout import Layout


class Checkpoints:
    """The places of one run. A run over other segments, or to another version of the model, has places of its own."""

    def __init__(self, context: Context, layout: Layout, name: str, run: str) -> None:
        self._context = context
        self._layout = layout
        self._h = f"holdall#Migration#{name}"
        self._run = run

    @classmethod
    async def of(cls, context: Context, schema: ModelSchema, segments: int) -> Checkpoints | None:
        """Where the places are kept; None when the database has no table for them: then each run starts anew."""
        try:
            layout = await discover(context)
        except ConfigurationError:
            return None
        if layout.mode != "A":
            return None
        return cls(context, layout, schema.name, f"{_version(schema)}#{segments}")

    async def get(self, segment: int) -> tuple[Item | None, bool, dict[str, Any]]:
        """Where to go on after, whether the segment is done, and what was counted there so far."""
        item = (await self._context.port.send(GetItem(self._layout.table, self._key(segment), True))).item
        if item is None:
            return None, False, {}
        counted: dict[str, Any] = decode(item["counted"])
        after = item.get("after")
        return (None, True, counted) if after is None else (after["M"], False, counted)

    async def put(self, segment: int, after: Item | None, counted: dict[str, Any]) -> None:
        """Keep a place, None when the segment is done, and what was counted."""
        item: dict[str, Any] = {**self._key(segment), "counted": encode(counted)}
        if after is not None:
            item["after"] = {"M": dict(after)}
        # as a batch: where a reply is lost it is sent again, which does no harm here
        await self._context.port.send(BatchWrite((PutItem(self._layout.table, item),)))

    async def forget(self) -> None:
        """All segments are done: the next run is a new one. Places that older versions left go too."""
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


def _version(schema: ModelSchema) -> str:
    """A digest of all that a run brings items up to date with, for the model and those derived from it."""
    from hashlib import sha256

    told = []
    for each in schema.family():
        renames = {} if each.migrations is None else each.migrations.renames
        told.append([each.name, len(each.conversions), sorted(renames.items())])
        told.append([repr(index.declared) for index in each.indexes.values()])
        told.append([None if each.ttl is None else each.ttl.name])
    return sha256(repr(told).encode()).hexdigest()[:16]
