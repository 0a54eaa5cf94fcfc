"""Checkpoints: how far each part of a run over many items has come, stored so that the next run can resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.values import Item
from holdall.errors import ConfigurationError
from holdall.tables.flow import discover
from holdall.tables.layout import Layout
from holdall.tables.record import Record, delete_all, fetch, put_all
from holdall.tables.record_column import flag, inner_item, mapping, text

_NOTHING: Mapping[str, Any] = {}


class Checkpoint(Record, type="holdall.Run"):
    """How far one part of a run has come: to the key ``after``, or to its end if it is ``done``.

    ``run`` identifies what the run does. ``mark`` is different after each write.
    """

    run = text("run")
    mark = text("mark")
    after = inner_item("after")
    done = flag("done", False)
    counted = mapping("counted", _NOTHING)

    def advance(
        self, run: str, mark: str, after: Item | None, counted: Mapping[str, Any], *, done: bool
    ) -> Checkpoint:
        """The checkpoint that takes the place of this one."""
        columns = Checkpoint
        return columns.new(
            self.address,
            columns.run.set(run),
            columns.mark.set(mark),
            columns.after.set(after),
            columns.done.set(done),
            columns.counted.set(counted),
        )


class Checkpoints:
    """The checkpoints of a run, under H. Those that a run with another ``run`` left there are not resumed."""

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

    async def get(self, part: int) -> Checkpoint:
        """A part's checkpoint; one that is not stored if the part has not begun."""
        found = await fetch_checkpoint(self._context, self._layout, self._h, part)
        return found if found.is_stored and found.run == self._run else Checkpoint(found.address)

    async def put(self, last: Checkpoint, after: Item | None, counted: Mapping[str, Any]) -> None:
        """Store that a part has come to the key ``after``; to its end if that is None."""
        port = self._context.port
        new = last.advance(self._run, port.new_id(), after, counted, done=after is None)
        # as a batch, which is sent again if a reply is lost; repeating it is harmless
        await put_all(port, [new])

    async def forget(self) -> None:
        """Delete all checkpoints, also those of other runs, because every part is done."""
        port = self._context.port
        cursor = PageCursor(port, self._layout.listing(self._h))
        while (page := await cursor.next_page()) is not None:
            await delete_all(port, [Checkpoint(self._layout.address_of(item)) for item in page.items])


async def fetch_checkpoint(context: Context, layout: Layout, h: str, part: int) -> Checkpoint:
    """The checkpoint of a part, of whatever run, as it is stored."""
    return await fetch(context.port, Checkpoint(layout.address(h, str(part), f"{h}#{part}")))
