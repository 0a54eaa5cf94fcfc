"""Finding something out once, though many ask: `holdall.core.context.Once` for threads, and what it shares with tasks.

Several flights may be under way for one finding, one for all threads and one for each event loop, but each caller waits
only for its own kind: waiting for another loop, or for a thread, could be waiting for oneself.

**Fork.** A flight of another thread does not arrive in a child: there it is forgotten, with the lock it may hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar, cast

from holdall.backends.fork import call_after_fork
from holdall.core.port import Outcome

E = TypeVar("E")
T = TypeVar("T")


class Finding:
    """What was found out, or nothing yet. One for both twins of a database.

    It has no lock: what is kept says which generation it is of, and one that was forgotten meanwhile is not believed.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._kept: tuple[int, Outcome[Any]] | None = None

    @property
    def outcome(self) -> Outcome[Any] | None:
        """What is known now."""
        kept = self._kept
        return kept[1] if kept is not None and kept[0] == self.generation else None

    def keep(self, flight: Flight[Any]) -> None:
        """Keep what a flight brought; an error, or the nothing of an interrupted one, never."""
        if flight.outcome is not None and flight.outcome.error is None:
            self._kept = flight.generation, flight.outcome

    def forget(self) -> None:
        """Know nothing again."""
        self.generation += 1


class Flight(Generic[E]):
    """One finding-out under way; ``ended`` is what the others wait for.

    It ends without an outcome if the caller that does it is interrupted. Then another caller does it.
    """

    def __init__(self, ended: E, generation: int) -> None:
        self.ended = ended
        self.generation = generation
        self.outcome: Outcome[Any] | None = None


class SharedOnce(Generic[E]):
    """One flight at a time; those who ask meanwhile wait for it."""

    def __init__(self, finding: Finding) -> None:
        self._finding = finding

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The finding, or what the flow finds."""
        while True:
            outcome = self._finding.outcome
            if outcome is None:
                flight, ours = self._board()
                if ours:
                    await self._fly(flight, flow())
                else:
                    await self._wait(flight)
                outcome = flight.outcome
            if outcome is not None:
                return cast("T", outcome.result())

    def forget(self) -> None:
        """Let the next to ask find out anew."""
        self._finding.forget()

    async def _fly(self, flight: Flight[E], flow: Coroutine[Any, Any, Any]) -> None:
        try:
            flight.outcome = Outcome(await flow)
        except Exception as error:  # noqa: BLE001 - it is for all who wait
            flight.outcome = Outcome(error=error)
        finally:
            self._finding.keep(flight)
            self._land(flight)

    def _board(self) -> tuple[Flight[E], bool]:
        """The flight to wait for, and whether it is ours to fly."""
        raise NotImplementedError

    async def _wait(self, flight: Flight[E]) -> None:
        raise NotImplementedError

    def _land(self, flight: Flight[E]) -> None:
        raise NotImplementedError


class BlockingOnce(SharedOnce[threading.Event]):
    """One flight at a time for all threads."""

    _flight: Flight[threading.Event] | None

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        call_after_fork(self.after_fork)
        self.after_fork()

    def _board(self) -> tuple[Flight[threading.Event], bool]:
        with self._lock:
            flight = self._flight
            if flight is not None and flight.generation == self._finding.generation:
                return flight, False
            self._flight = Flight(threading.Event(), self._finding.generation)
            return self._flight, True

    async def _wait(self, flight: Flight[threading.Event]) -> None:
        flight.ended.wait()

    def _land(self, flight: Flight[threading.Event]) -> None:
        with self._lock:
            if self._flight is flight:
                self._flight = None
        flight.ended.set()

    def after_fork(self) -> None:
        """Begin anew in a child."""
        self._lock = threading.Lock()
        self._flight = None
