"""The commit plan: every entry's steps and the participants' actions as one atomic write; and what its failure means.

Pure. The order is kept: reason *i* of a cancelled transaction explains step *i*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdall.core.frozen import dataclass
from holdall.core.requests import PutItem, TransactAction, TransactWrite, UpdateItem, marked, stamped
from holdall.core.values import Item
from holdall.errors import (
    CancellationReason,
    ConditionFailedError,
    ContentionError,
    Difference,
    HoldallError,
    InvalidModelUpdateError,
    ServiceError,
    TransactionCanceledError,
    TransactionErrors,
    TransactionTooLarge,
)
from holdall.transactions.binding import Binding
from holdall.transactions.entry import Entry
from holdall.transactions.guard import Claims
from holdall.transactions.participant import Participant
from holdall.transactions.step import Step

__all__ = ["CommitPlan", "check_size", "check_verifiable", "explained", "plan_commit", "told"]

MAX_ACTIONS = 100
MAX_READS = 100
_PASSING = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The steps in the order of their actions, then what each participant adds."""

    steps: tuple[Step, ...]
    joined: tuple[tuple[Participant, tuple[TransactAction, ...]], ...] = ()

    @property
    def writes(self) -> bool:
        """Whether there is anything to send; checks alone guard nothing."""
        return any(step.writes for step in self.steps) or any(actions for _, actions in self.joined)

    @property
    def actions(self) -> tuple[TransactAction, ...]:
        """All actions, in order."""
        return (*(step.action for step in self.steps), *(a for _, actions in self.joined for a in actions))

    def request(self, new_id: str) -> TransactWrite | PutItem | UpdateItem:
        """The one request: a single write that makes its own condition false is stamped, all else has a token."""
        actions = self.actions
        if len(actions) == 1 and self.steps and self.steps[0].stampable:
            (action,) = actions
            assert isinstance(action, PutItem | UpdateItem)
            return stamped(action, new_id)
        own = tuple(_marked(step, new_id) for step in self.steps)
        return TransactWrite((*own, *actions[len(own) :]), new_id)


def _marked(step: Step, new_id: str) -> TransactAction:
    action = step.action
    return marked(action, new_id) if step.marked and isinstance(action, PutItem) else action


def plan_commit(entries: Sequence[tuple[Entry, Binding]], now: datetime) -> CommitPlan:
    """The steps of all entries: writes first, then guards of unique values, then checks of what was only read."""
    claims = Claims()
    steps = [
        step for entry, binding in entries if entry.takes_part for step in entry.steps(binding, now, claims)
    ]
    guards = [Step(claim.action(), claim.field, None, claim=claim) for claim in claims.settled()]
    writes = [step for step in steps if step.writes]
    checks = [step for step in steps if not step.writes]
    return CommitPlan((*writes, *guards, *checks))


def check_size(plan: CommitPlan, participants: Sequence[Participant]) -> None:
    """Refuse what cannot be one transaction, before participants prepare anything."""
    count = len(plan.steps) + sum(participant.weight for participant in participants)
    if count > MAX_ACTIONS:
        raise TransactionTooLarge(
            f"a transaction of {count} actions; DynamoDB takes {MAX_ACTIONS}",
            hint='every item written, read or found missing counts, as does every row of a query with lock="rows": '
            "split the work, or read with lock=False",
        )


def check_verifiable(entries: Iterable[Entry]) -> None:
    """Refuse more items than a read-only transaction can verify at one moment."""
    count = sum(entry.takes_part for entry in entries)
    if count > MAX_READS:
        raise TransactionTooLarge(
            f"{count} items were read, rows of queries included; DynamoDB can verify {MAX_READS} at one moment",
            hint="read items that need not be from one moment with lock=False, or outside the transaction",
        )


# --- failure ----------------------------------------------------------------------------------------------


def explained(plan: CommitPlan, error: HoldallError) -> Exception:
    """What a refused write means for the transaction: contention, or what is permanently wrong."""
    if isinstance(error, ConditionFailedError):
        return _explained(
            plan, [CancellationReason("ConditionalCheckFailed", error.message, error.item)], error
        )
    if isinstance(error, TransactionCanceledError) and error.reasons:
        return _explained(plan, error.reasons, error)
    return error


def _explained(plan: CommitPlan, reasons: Sequence[CancellationReason], error: HoldallError) -> Exception:
    permanent: list[Exception] = []
    stale: list[Difference] = []
    busy: list[str] = []
    contended_for: list[str] = []
    outdated = False  # also where a hydrator's guard failed, and no field tells how
    for step, reason in zip(plan.steps, reasons, strict=False):
        if reason.code == "ConditionalCheckFailed":
            refusal = _refusal(step, reason.item)
            if refusal is None:
                outdated = True
                if step.was_read:
                    contended_for.append(repr(step.item))
                stale += step.differences(reason.item)
            else:
                permanent.append(refusal)
        elif reason.code in _PASSING:
            contended_for.append(repr(step.item))
            busy.append(f"{step.item!r}: {reason.code}")
        elif reason.code != "None":
            permanent.append(ServiceError(f"{step.item!r}: {reason.message or reason.code}"))
    contended = _ask_participants(plan, reasons, permanent)
    if outdated or (contended and not permanent):
        # what was read is out of date, and so may be the wish to do what turned out impossible: try again
        return ContentionError(told(stale, busy), differences=stale, items=contended_for)
    if permanent:
        return permanent[0] if len(permanent) == 1 else TransactionErrors(_counted(permanent), permanent)
    return ContentionError(told(stale, busy), items=contended_for) if busy else error


def _refusal(step: Step, stored: Item | None) -> Exception | None:
    """The permanent error of a step, told with what is stored."""
    refusal = step.permanent
    if isinstance(refusal, InvalidModelUpdateError):
        told = "; ".join(_difference(difference) for difference in step.differences(stored))
        return InvalidModelUpdateError(told or refusal.message, hint=refusal.hint)
    if step.claim is not None:
        return step.claim.refusal(stored)
    return refusal


def _ask_participants(
    plan: CommitPlan, reasons: Sequence[CancellationReason], permanent: list[Exception]
) -> bool:
    """Whether a participant met contention; its permanent errors are added."""
    contended = False
    at = len(plan.steps)
    for participant, actions in plan.joined:
        failures: Mapping[int, CancellationReason] = {
            place: reason
            for place, reason in enumerate(reasons[at : at + len(actions)])
            if reason.code != "None"
        }
        at += len(actions)
        if failures:
            refusal = participant.explain(failures)
            if refusal is None:
                contended = True
            else:
                permanent.append(refusal)
    return contended


def told(stale: Sequence[Difference], busy: Sequence[str] = ()) -> str:
    """Contention in words."""
    if stale:
        return "; ".join(_difference(difference) for difference in stale)
    return "; ".join(busy) or "another transaction was faster"


def _difference(difference: Difference) -> str:
    item, field, expected, stored = difference
    if field is not None:
        return f"{item}.{field} is {_shown(stored)}, and was expected to be {_shown(expected)}"
    return f"{item} exists now" if stored is not None else f"{item} is not there"


def _shown(attribute: Any) -> str:
    text = "absent" if attribute is None else repr(dict(attribute))
    return text if len(text) <= 200 else f"{text[:200]}…"


def _counted(errors: Sequence[Exception]) -> str:
    return f"{len(errors)} things are wrong with the transaction"
