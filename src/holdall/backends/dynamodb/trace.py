"""The trace that a stamped write leaves in its item, and what to send when its reply was lost.

Pure. A write is sent again only if a read of the item does not find the stamp: each write under way may also arrive
late, after its effect was undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.backends.dynamodb.outgoing import Call, outgoing
from holdall.core.frozen import dataclass
from holdall.core.requests import GetItem, PutItem, UpdateItem, has_stamped, resent
from holdall.core.values import Item

__all__ = ["Trace"]


@dataclass(frozen=True, slots=True)
class Trace:
    """A stamped write and the key of its item."""

    write: PutItem | UpdateItem
    key: Item

    def is_in(self, item: Mapping[str, Any] | None) -> bool:
        """Whether the item shows that the write was carried out."""
        return has_stamped(self.write, item)

    def look(self) -> Call:
        """The call that reads the item as it is now."""
        return outgoing(GetItem(self.write.table, self.key, consistent=True))

    def repeat(self) -> Call:
        """The call to send instead of the write once the write may have been carried out."""
        return outgoing(resent(self.write) if isinstance(self.write, UpdateItem) else self.write)
