"""Participants: how a feature joins a commit without the transaction knowing the feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdall.core.port import Port

if TYPE_CHECKING:
    from holdall.tables.commit.change import Change


class Participant:
    """Takes part in one attempt to commit; override what you need.

    All participants `state` their part of the change; the size of the whole is checked; then all `prepare`; then all
    `check`; then one write carries everybody's steps. Participants do each of these side by side. Afterwards:

    - The attempt committed: `settle`.
    - It certainly did not: `abandon`, once the whole run is over. A later attempt may have taken over what was
      prepared; ``tx.carry``, which lives as long as the run, is the place to hand it on.
    - Its outcome is unknown (`OutcomeUnknown`, or the process died): neither. What was prepared may be in use, so
      only a later look at the store can show whether it is garbage.
    """

    async def state(self, change: Change) -> None:
        """Read what is needed, and add steps to the change. Leave nothing behind."""

    async def prepare(self, port: Port) -> None:
        """Do what must be done before the write: upload, say. Whatever it leaves must be harmless garbage."""

    async def check(self) -> None:
        """Raise to stop the commit, right before the write is sent."""

    async def settle(self, port: Port) -> None:
        """The transaction is committed."""

    async def abandon(self, port: Port) -> None:
        """The transaction did not commit, and never will."""
