"""Aliases as the table has them: versioned's row, our note beside it, and what the two together say."""

from __future__ import annotations

from datetime import UTC, datetime

from holdall.artifacts.alias import Alias, Arms, Dice, two_arms
from holdall.artifacts.home import Home
from holdall.artifacts.naming import check_alias_text, encode_alias_pk, encode_meta_pk
from holdall.artifacts.stored import moment_in, revision_of
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import BatchGet
from holdall.core.values import Item
from holdall.errors import AliasNotFoundError

__all__ = ["FIELDS", "LONG_AGO", "AliasState", "no_alias", "read_aliases", "read_state"]

FIELDS = ("update_at", "version", "secondary_version", "secondary_version_weight")
"""The attributes of an alias's row; a note repeats them."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""When an alias was changed whose row does not say."""


@dataclass(frozen=True, slots=True)
class AliasState:
    """An alias as the table has it: versioned's row, and our note."""

    name: str
    alias: str
    row: Item | None
    note: Item | None
    dice: Dice = Dice()

    @property
    def noted(self) -> bool:
        """Whether the row is the one that we wrote last, and versioned has not written since."""
        row, note = self.row, self.note
        return (
            row is not None and note is not None and all(row.get(each) == note.get(each) for each in FIELDS)
        )

    @property
    def arms(self) -> Arms:
        """The versions it serves; none when it is not there."""
        if self.row is None:
            return ()
        if self.noted and self.note is not None and "arms" in self.note:
            return tuple(
                (arm["M"]["version"]["S"], int(arm["M"]["weight"]["N"])) for arm in self.note["arms"]["L"]
            )
        return _row_arms(self.row)

    @property
    def protected(self) -> bool:
        """Whether it is changed only with ``allow_protected``; a deleted alias keeps its protection."""
        return self.note is not None and bool(self.note.get("protected", {}).get("BOOL", False))

    @property
    def changes(self) -> int:
        """How many entries its history has."""
        return int(self.note["changes"]["N"]) if self.note is not None and "changes" in self.note else 0

    @property
    def revision(self) -> str:
        """What changes with every change."""
        return revision_of(self.row, self.note)

    def value(self) -> Alias | None:
        """The alias; None when it is not there."""
        row, arms = self.row, self.arms
        if row is None:
            return None
        return Alias(
            encode_alias_pk(self.name),
            self.alias,
            moment_in(row) or LONG_AGO,
            *two_arms(arms),
            arms,
            self.protected,
            self.revision,
            self.dice,
        )


def _row_arms(row: Item) -> Arms:
    """What versioned's fields say, also where others were less strict than it is."""
    primary = _padded(row["version"]["S"])
    second = row.get("secondary_version", {}).get("S")
    if second is None:
        return ((primary, 100),)
    weight = int(float(row.get("secondary_version_weight", {}).get("N", "0")))
    weight = min(max(weight, 0), 100)
    return ((primary, 100 - weight), (_padded(second), weight))


def _padded(text: str) -> str:
    return text.zfill(6) if text.isascii() and text.isdigit() else text


async def read_aliases(context: Context, home: Home, name: str) -> list[Alias]:
    """All aliases of an artifact, as they are now."""
    reads = [
        _partition(context, home, encode_alias_pk(name)),
        _partition(context, home, encode_meta_pk(name), "alias#"),
    ]
    rows, notes = [outcome.result() for outcome in await context.port.gather(reads)]
    dice = Dice(context.port.random)
    noted = {home.sk_of(note).removeprefix("alias#"): note for note in notes}
    found = []
    for row in rows:
        each = AliasState(name, home.sk_of(row), row, noted.get(home.sk_of(row)), dice).value()
        assert each is not None
        found.append(each)
    return found


async def _partition(context: Context, home: Home, pk: str, prefix: str = "") -> list[Item]:
    query = home.query(pk, prefix=prefix)
    found: list[Item] = []
    while True:
        page = await context.port.send(query)
        found += page.items
        if page.last_key is None:
            return found
        query = replace(query, start_after=page.last_key)


async def read_state(context: Context, home: Home, name: str, alias: str) -> AliasState:
    """The row and the note of an alias."""
    check_alias_text(alias)
    reads = (home.get(encode_alias_pk(name), alias), home.get(encode_meta_pk(name), f"alias#{alias}"))
    before: tuple[Item | None, ...] = ()
    while True:
        row, note = (await context.port.send(BatchGet(reads))).items
        state = AliasState(name, alias, row, note, Dice(context.port.random))
        if row is None or note is None or state.noted or before == (row, note):
            return state
        before = (
            row,
            note,
        )  # versioned wrote it, or we read one before a change of ours and the other after it


def no_alias(name: str, alias: str) -> AliasNotFoundError:
    """There is no such alias."""
    return AliasNotFoundError(f"the artifact {name!r:.60} has no alias {alias!r:.60}")
