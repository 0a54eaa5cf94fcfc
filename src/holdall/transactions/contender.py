"""A contender: one of several runs in this process that want the same items.

After contention, a run waits for its turn before its next attempt, so that only one contender in a process tries at a
time and the others waste no attempts. No run waits before its first attempt, or inside an attempt. The turn passes on
when the write is done or another attempt cannot help. A run that fails again during its turn keeps the turn while it
waits: then it contends with another process, and more contenders from this process would only make it worse.
"""

from __future__ import annotations

from datetime import datetime

from holdall.core.port import Port, Turn
from holdall.errors import ContentionError
from holdall.transactions.current import is_retry
from holdall.transactions.unit import Unit


class Contender:
    """One run's turns."""

    __slots__ = ("_alone", "_port", "_turn", "since")

    def __init__(self, port: Port) -> None:
        self.since = port.now()
        self._port = port
        self._turn: Turn | None = None
        # inside another run's later attempt: the outer run may hold the turn, and ends only after this one
        self._alone = is_retry()

    def attach(self, unit: Unit) -> None:
        """Pass the turn on as soon as this attempt is committed, before the caller's handlers run."""
        if self._turn is not None:
            unit.on_commit.append(self._turn.end)

    async def pause(self, error: BaseException, seconds: float, latest: datetime) -> None:
        """Wait before another attempt: for ``seconds``, then, after contention, for our turn."""
        names: frozenset[str] = frozenset()
        if isinstance(error, ContentionError) and not self._alone:
            names = frozenset(error.items)
        if self._turn is not None and self._turn.names != names:
            self.leave()
        await self._port.sleep(seconds)
        if names and (self._turn is None or self._turn.over):
            left = (latest - self._port.now()).total_seconds()
            self._turn = await self._port.take_turn(names, self.since, left)

    def leave(self) -> None:
        """Let the other contenders continue."""
        if self._turn is not None:
            self._turn.end()
            self._turn = None
