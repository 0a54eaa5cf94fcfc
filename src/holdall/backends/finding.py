"""What was found out once for a database, and one attempt at finding it out. Shared by both colours."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from holdall.backends.port.turn import Turns
from holdall.core.port import Outcome

__all__ = ["Finding", "Flight"]

E = TypeVar("E")


class Finding:
    """What was found out, or nothing yet. One for both twins of a database.

    It has no lock: what is kept says which generation it is of, and one that was forgotten meanwhile is not believed.
    ``bindings`` caches what callers derived from it. ``turns`` are those of the database's contenders, sync and async.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.bindings: dict[Any, Any] = {}
        self.turns = Turns()
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
        self.bindings.clear()


class Flight(Generic[E]):
    """One finding-out under way; ``ended`` is what the others wait for.

    It may end without an outcome, when whoever does it is interrupted. Then somebody else has to.
    """

    def __init__(self, ended: E, generation: int) -> None:
        self.ended = ended
        self.generation = generation
        self.outcome: Outcome[Any] | None = None

    async def fly(self, flow: Coroutine[Any, Any, Any]) -> None:
        """Run the flow for all who wait."""
        try:
            self.outcome = Outcome(await flow)
        except Exception as error:  # noqa: BLE001 - it is for all who wait
            self.outcome = Outcome(error=error)
