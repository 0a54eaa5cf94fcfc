"""The models' part of a commit plan: the steps of all entries, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from holdall.core.requests import TransactGet
from holdall.errors import TransactionTooLarge
from holdall.tables.commit.plan import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry
from holdall.transactions.entry.claim import Claims

MAX_READS = TransactGet.most


def plan_steps(entries: Sequence[tuple[Entry, Binding]], now: datetime) -> list[Step]:
    """The steps of all entries: writes first, then guards of unique values, then checks of items only read."""
    claims = Claims()
    writes: list[Step] = []
    checks: list[Step] = []
    for entry, binding in entries:
        if entry.takes_part:
            for step in entry.steps(binding, now, claims):
                (writes if step.writes else checks).append(step)
    guards = [Step(claim.action(), claim.field, None, claim.refuse) for claim in claims.all()]
    return [*writes, *guards, *checks]


def check_verifiable(entries: Iterable[Entry]) -> None:
    """Refuse more items than a read-only transaction can verify at one moment."""
    count = sum(entry.takes_part for entry in entries)
    if count > MAX_READS:
        raise TransactionTooLarge(
            f"{count} items were read, including rows of queries, but a read-only transaction can verify "
            f"only {MAX_READS}",
            hint="query items that need not be from the same moment with lock=False, or outside the transaction",
        )
