"""Finding something out once for many callers: `holdall.core.context.Once` for threads, and what it shares with tasks.

Several flights may be in progress for one `Memo`, one for all threads and one for each event loop, but each caller
waits only for its own kind: waiting for another loop, or for a thread, could be a deadlock.

**Fork.** A flight of another thread never ends in a forked child, so it is forgotten there, with the lock that it may
hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from holdall.backends.fork import call_after_fork
from holdall.core.port import Outcome

E = TypeVar("E")
T = TypeVar("T")


class Memo:
    """What was found out, if anything. The sync and the async side of a database share it.

    It needs no lock: a stored outcome has its generation, and one of a forgotten generation is ignored.
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
        """Keep the outcome of a flight, unless it failed or was interrupted."""
        if flight.outcome is not None and flight.outcome.error is None:
            self._kept = flight.generation, flight.outcome

    def forget(self) -> None:
        """Forget the outcome."""
        self.generation += 1


class Flight(Generic[E]):
    """One attempt in progress; the other callers wait for ``ended``.

    It ends without an outcome if the caller that makes it is interrupted. Then another caller tries.
    """

    def __init__(self, ended: E, generation: int) -> None:
        self.ended = ended
        self.generation = generation
        self.outcome: Outcome[Any] | None = None


class SharedOnce(Generic[E]):
    """One flight at a time; concurrent callers wait for it."""

    def __init__(self, memo: Memo) -> None:
        self._memo = memo

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the memo holds, or what the flow finds."""
        while True:
            outcome = self._memo.outcome
            if outcome is None:
                flight, ours = self._board()
                if ours:
                    await self._fly(flight, flow())
                else:
                    await self._wait(flight)
                outcome = flight.outcome
            if outcome is not None:
                return outcome.result()  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Make the next caller find out again."""
        self._memo.forget()

    async def _fly(self, flight: Flight[E], flow: Coroutine[Any, Any, Any]) -> None:
        try:
            flight.outcome = Outcome(await flow)
        except Exception as error:  # noqa: BLE001 - all waiting callers get it
            flight.outcome = Outcome(error=error)
        finally:
            self._memo.keep(flight)
            self._land(flight)

    def _board(self) -> tuple[Flight[E], bool]:
        """The flight to wait for, and whether this caller must make it."""
        raise NotImplementedError

    async def _wait(self, flight: Flight[E]) -> None:
        raise NotImplementedError

    def _land(self, flight: Flight[E]) -> None:
        raise NotImplementedError


class BlockingOnce(SharedOnce[threading.Event]):
    """One flight at a time for all threads."""

    _flight: Flight[threading.Event] | None

    def __init__(self, memo: Memo) -> None:
        super().__init__(memo)
        call_after_fork(self.after_fork)
        self.after_fork()

    def _board(self) -> tuple[Flight[threading.Event], bool]:
        with self._lock:
            flight = self._flight
            if flight is not None and flight.generation == self._memo.generation:
                return flight, False
            self._flight = Flight(threading.Event(), self._memo.generation)
            return self._flight, True

    async def _wait(self, flight: Flight[threading.Event]) -> None:
        flight.ended.wait()

    def _land(self, flight: Flight[threading.Event]) -> None:
        with self._lock:
            if self._flight is flight:
                self._flight = None
        flight.ended.set()

    def after_fork(self) -> None:
        """Start afresh in a forked child."""
        self._lock = threading.Lock()
        self._flight = None
