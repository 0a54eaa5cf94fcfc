"""Pointers: what is left of an archived item in its place, and says where the rest is. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from holdall.core.expressions import Compare, Condition, Exists, NotExists, Path, Value
from holdall.core.frozen import dataclass
from holdall.core.values import Attribute, Item, decode, encode
from holdall.errors import CorruptArchiveError

POINTER = "_archive"
"""The attribute that makes an item a pointer."""

FORMAT = 1
_PATH = Path((POINTER,))
IS_POINTER: Condition = Exists(_PATH)
IS_HOT: Condition = NotExists(_PATH)


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where an item's object is, and what it has to be: its etag, the digest of its text, its size in bytes.

    ``shared``: its put replaced one of the same content, whose writer may still be about to point to it. Such an object
    is deleted by the sweep alone.
    ``owner`` marks the item that it was archived from, whose table may be another: this one is a copy then.
    With an ``offset`` it is a slice of a pack: ``size`` bytes from there on.
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
        """The object, in messages."""
        return f"{self.service}:{self.key}"

    @property
    def stored(self) -> Attribute:
        """The attribute."""
        said: dict[str, Any] = {
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
            said["x"] = True
        if self.offset is not None:
            said["o"] = self.offset
        if self.owner:
            said["w"] = self.owner
        return encode(said)

    @property
    def unchanged(self) -> Condition:
        """The stored item is still this pointer."""
        return Compare("=", Path((POINTER, "e")), Value({"S": self.etag}))


def check_format(item: Item) -> None:
    """Refuse the pointer of a newer version of Holdall, which may be sound though it cannot be read."""
    said = decode(item[POINTER])
    made = said.get("f") if isinstance(said, dict) else None
    if isinstance(made, int | Decimal) and made > FORMAT:
        raise CorruptArchiveError(
            f"a pointer of format {made}", hint="a newer version of Holdall wrote it: use that"
        )


def read_pointer(item: Item) -> Pointer:
    """The pointer that an item is; `CorruptArchiveError` if it cannot be read."""
    check_format(item)
    try:
        said = decode(item[POINTER])
        if said["f"] != FORMAT:
            raise ValueError
        moment = datetime.fromisoformat(said["t"])
        shared = said.get("x", False) is True
        offset = None if "o" not in said else int(said["o"])
        place = said["s"], said["k"], said["e"]
        return Pointer(
            *place, said["h"], int(said["n"]), said["c"], moment, shared, offset, said.get("w", "")
        )
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise CorruptArchiveError(f"a pointer that cannot be read: {item[POINTER]!r:.200}") from None


def merge(pointer: Item, body: Item) -> dict[str, Attribute]:
    """The whole item: what is in the table wins, because only that can have changed since."""
    hot = {name: attribute for name, attribute in pointer.items() if name != POINTER}
    return {**body, **hot}
