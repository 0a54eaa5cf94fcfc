"""Aliases as they are stored: versioned's row, Holdall's note beside it, and what follows from the two."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

from holdall.artifacts.alias.alias import Alias, Arms, Dice, two_arms
from holdall.artifacts.home import Home
from holdall.artifacts.name import check_alias_text, encode_alias_pk, encode_meta_pk
from holdall.artifacts.record import FIELDS, AliasNote, AliasRow
from holdall.artifacts.version.content import revision_of
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.values import Item
from holdall.errors import AliasNotFoundError
from holdall.tables.record import RecordPages, fetch

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of change of an alias whose row has no time."""


@dataclass(frozen=True, slots=True)
class AliasState:
    """An alias as it is stored: versioned's row, and Holdall's note."""

    name: str
    alias: str
    row: AliasRow
    note: AliasNote
    dice: Dice = Dice()

    @property
    def is_noted(self) -> bool:
        """Whether the row is the one that Holdall wrote last; versioned has not written it since."""
        row, note = self.row.item, self.note.item
        if row is None or note is None:
            return False
        return [row.get(field.name) for field in FIELDS] == [note.get(field.name) for field in FIELDS]

    @property
    def arms(self) -> Arms:
        """The versions that the alias serves; none if it does not exist."""
        if not self.row.is_stored:
            return ()
        noted = self.note.arms if self.is_noted else None
        return _row_arms(self.row) if noted is None else tuple(noted)

    @property
    def protected(self) -> bool:
        """Whether changes need ``allow_protected``; a deleted alias keeps its protection."""
        return self.note.protected

    @property
    def revision(self) -> str:
        """A text that differs after every change."""
        return revision_of(self.row, self.note)

    def value(self) -> Alias | None:
        """The alias; None if it does not exist."""
        arms = self.arms
        if not arms:
            return None
        return Alias(
            encode_alias_pk(self.name),
            self.alias,
            self.row.moment or LONG_AGO,
            *two_arms(arms),
            arms,
            self.protected,
            self.revision,
            self.dice,
        )


def _row_arms(row: AliasRow) -> Arms:
    """The arms in versioned's fields, even if another program wrote them less strictly."""
    primary, second = _pad(row.version), row.secondary_version
    if second is None:
        return ((primary, 100),)
    weight = min(max(row.weight, 0), 100)
    return ((primary, 100 - weight), (_pad(second), weight))


def _pad(text: str) -> str:
    return text.zfill(6) if text.isascii() and text.isdigit() else text


async def read_aliases(context: Context, home: Home, name: str) -> list[Alias]:
    """Read all aliases of an artifact, strongly consistent."""
    port, noted_query = context.port, home.query(encode_meta_pk(name), prefix=AliasNote.prefix)
    reads: list[Coroutine[Any, Any, list[Any]]] = [
        RecordPages(port, AliasRow, home.query(encode_alias_pk(name)), home.address_of).read_all(),
        RecordPages(port, AliasNote, noted_query, home.address_of).read_all(),
    ]
    rows, notes = [outcome.result() for outcome in await port.gather(reads)]
    dice = Dice(port.random)
    noted = {note.sk.removeprefix(AliasNote.prefix): note for note in notes}
    found = []
    for row in rows:
        note = noted.get(row.sk) or AliasNote.at(home, name, row.sk)
        each = AliasState(name, row.sk, row, note, dice).value()
        assert each is not None
        found.append(each)
    return found


async def read_state(context: Context, home: Home, name: str, alias: str) -> AliasState:
    """Read the row and the note of an alias."""
    check_alias_text(alias)
    row, note = AliasRow.at(home, name, alias), AliasNote.at(home, name, alias)
    before: tuple[Item | None, ...] = ()
    while True:
        row, note = await fetch(context.port, row, note)
        state = AliasState(name, alias, row, note, Dice(context.port.random))
        if not row.is_stored or not note.is_stored or state.is_noted or before == (row.item, note.item):
            return state
        # versioned wrote the row; or a change of Holdall's fell between the two reads
        before = (row.item, note.item)


def explain_no_alias(name: str, alias: str) -> AliasNotFoundError:
    """The error for an alias that does not exist."""
    return AliasNotFoundError(f"the artifact {name!r:.60} has no alias {alias!r:.60}")
