"""A shelf: one service of a database, on which the flows of ``db.files`` work."""

from __future__ import annotations

from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Shelf:
    """A service's name, and the context through which it is reached."""

    context: Context
    service: str

    @property
    def settings(self) -> Settings:
        """The database's settings."""
        return self.context.settings
