"""A shelf: one service of a database, which is what the flows of ``db.files`` work on."""

from __future__ import annotations

from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Shelf:
    """A service by its name, and the way to it."""

    context: Context
    service: str

    @property
    def settings(self) -> Settings:
        """The database's settings."""
        return self.context.settings
