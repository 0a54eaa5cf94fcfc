"""Participants: how a feature joins a commit without the transaction knowing the feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from holdall.core.port import Port
from holdall.core.requests import TransactAction
from holdall.errors import CancellationReason

__all__ = ["Participant"]


class Participant(Protocol):
    """Takes part in one attempt to commit: `prepare`, then its actions in the transaction's own write, then an end.

    - The attempt commits: `settle`.
    - It certainly does not: `abandon`, once the whole run is over. Another attempt may have taken over what was
    prepared;
      ``tx.carry``, which lives as long as the run, is the place to hand it on.
    - Nobody knows (`OutcomeUnknown`, or the process died): neither. What was prepared may be in use, so only a later
    look
      at the store can tell whether it is garbage.
    """

    @property
    def weight(self) -> int:
        """The most actions that it adds; a transaction over its limits is refused before anything is prepared."""

    async def prepare(self, port: Port) -> Sequence[TransactAction]:
        """Do what has to be done before (upload, read), and give the actions. All it may leave is harmless garbage."""

    def explain(self, failures: Mapping[int, CancellationReason]) -> Exception | None:
        """The permanent error behind failed actions, by their place among those given; None when it is contention."""

    async def settle(self, port: Port) -> None:
        """The transaction is committed."""

    async def abandon(self, port: Port) -> None:
        """The transaction did not commit, and never will."""
