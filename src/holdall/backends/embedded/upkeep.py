"""Upkeep beside the user's writes: old client tokens and expired items are deleted, a few at a time.

It rides in a write transaction that is happening anyway, at most once a minute per process. Like DynamoDB's own
expiry it comes some time after the moment, and ignores moments more than five years past (they are taken for
mistakes).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from holdall.backends.embedded.catalog import Catalog
from holdall.backends.embedded.row import Row, Stale, Work, replace_row
from holdall.backends.embedded.token import TOKEN_SECONDS

T = TypeVar("T")

EVERY_SECONDS = 60.0
AT_A_TIME = 100
FIVE_YEARS = 5 * 365 * 24 * 3600


class Upkeep:
    """Says when it is time, and does it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due = 0.0

    def combine(self, catalog: Catalog, work: Work[T]) -> Work[T]:
        """The work, with housekeeping before it when it is due.

        Before, because the work checks that the catalog is still the plan's (and may change it).
        """
        now = self._clock()
        if self._due - EVERY_SECONDS <= now < self._due:  # a clock set back makes it due, too
            return work

        def both(connection: sqlite3.Connection) -> T:
            connection.execute("DELETE FROM tokens WHERE created < ?", (now - TOKEN_SECONDS,))
            rest = self._expire(connection, catalog, now)
            # Also when the work fails: then it is undone once, and not again with every failing write.
            self._due = now if rest else now + EVERY_SECONDS
            try:
                return work(connection)
            except Stale:
                self._due = 0.0  # planned anew, and this with it
                raise

        return both

    def _expire(self, connection: sqlite3.Connection, catalog: Catalog, now: float) -> bool:
        """Delete some expired items; whether there may be more."""
        tables = {table.number: table for table in catalog.tables.values() if table.ttl is not None}
        if not tables:
            return False
        expired = connection.execute(
            "SELECT id, t, pk, sk, body, size FROM items WHERE ttl > ? AND ttl < ? LIMIT ?",
            (int(now) - FIVE_YEARS, int(now), AT_A_TIME),
        ).fetchall()
        for number, owner, pk, sk, body, size in expired:
            if owner in tables:
                replace_row(connection, tables[owner], (pk, sk), Row(number, body, size), None)
        return len(expired) == AT_A_TIME
