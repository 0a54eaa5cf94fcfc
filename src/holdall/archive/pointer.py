"""Pointers: what an archived item leaves in the table. A pointer records where the rest of the item is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from holdall.core.expressions import Compare, Condition, NotExists, Path, Value
from holdall.core.frozen import dataclass
from holdall.core.values import Attribute, Item, decode, encode
from holdall.errors import CorruptArchiveError

POINTER = "_archive"
"""The attribute that makes an item a pointer."""

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where an item's object is, and how to recognize it: its etag, the digest of its text, its size in bytes.

    ``shared``: the put replaced an object with the same content, and the writer of that object may still be about to
    point to it. Only the sweep deletes a shared object.
    ``owner`` marks the item that the object was archived from. If that item is in another table, this table is a copy.
    With an ``offset``, the pointer names a slice of a pack: ``size`` bytes from there on.
    """

    service: str
    key: str
    etag: str
    digest: str
    size: int
    codec: str
    archived_at: datetime
    shared: bool = False
    offset: int | None = None
    owner: str = ""

    @property
    def where(self) -> str:
        """The object's service and key, for messages."""
        return f"{self.service}:{self.key}"

    @property
    def stored(self) -> Attribute:
        """The attribute that stores this pointer."""
        facts: dict[str, Any] = {
            "s": self.service,
            "k": self.key,
            "e": self.etag,
            "h": self.digest,
            "n": self.size,
            "c": self.codec,
            "t": self.archived_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "f": FORMAT,
        }
        if self.shared:
            facts["x"] = True
        if self.offset is not None:
            facts["o"] = self.offset
        if self.owner:
            facts["w"] = self.owner
        return encode(facts)

    @property
    def unchanged(self) -> Condition:
        """The condition that the stored item still has this pointer."""
        return Compare("=", Path((POINTER, "e")), Value({"S": self.etag}))


def check_format(item: Item) -> None:
    """Raise `CorruptArchiveError` for a pointer of a newer format, which may be sound although it cannot be read."""
    _check_format(decode(item[POINTER]))


def _check_format(facts: object) -> None:
    made = facts.get("f") if isinstance(facts, dict) else None
    if isinstance(made, int | Decimal) and made > FORMAT:
        raise CorruptArchiveError(
            f"the pointer of an archived item has format {made}, and this version of Holdall reads format {FORMAT}",
            hint="upgrade Holdall: a newer version archived the item",
        )


def read_pointer(item: Item) -> Pointer:
    """Read the pointer of an archived item; `CorruptArchiveError` if that fails."""
    facts = decode(item[POINTER])
    _check_format(facts)
    try:
        if facts["f"] != FORMAT:
            raise ValueError
        moment = datetime.fromisoformat(facts["t"])
        shared = facts.get("x", False) is True
        offset = None if "o" not in facts else int(facts["o"])
        place = facts["s"], facts["k"], facts["e"]
        return Pointer(
            *place, facts["h"], int(facts["n"]), facts["c"], moment, shared, offset, facts.get("w", "")
        )
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise CorruptArchiveError(
            f"the pointer of an archived item cannot be read: {item[POINTER]!r:.200}"
        ) from None


def demand_same(item: Item, names: Iterable[str]) -> list[Condition]:
    """The conditions that attributes are as they were read; those that the item lacked must still be missing."""
    return [
        Compare("=", Path((name,)), Value(item[name])) if name in item else NotExists(Path((name,)))
        for name in names
    ]


def show_key(key: Item) -> str:
    """A stored key in messages."""
    return ", ".join(str(*part.values()) for part in key.values())


def merge(pointer: Item, body: Item) -> dict[str, Attribute]:
    """Join pointer and body to the whole item. The table's attributes win: only they can have changed since."""
    hot = {name: attribute for name, attribute in pointer.items() if name != POINTER}
    return {**body, **hot}
