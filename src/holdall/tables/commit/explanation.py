"""Explains a refused commit, step by step: as contention, or as permanent errors. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from holdall.core.values import Attribute, Item, decode
from holdall.errors import (
    CancellationReason,
    ConditionFailedError,
    ContentionError,
    Difference,
    HoldallError,
    ServiceError,
    TransactionCanceledError,
    TransactionErrors,
)
from holdall.tables.commit.plan import CommitPlan, Step

_FAILED = "ConditionalCheckFailed"
_PASSING = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


def explain_refusal(plan: CommitPlan, error: HoldallError) -> Exception:
    """Return the error that a refused write means for its transaction; the same error if the write was not refused."""
    reasons = _reasons(error)
    if not reasons:
        return error
    permanent: list[Exception] = []
    stale: list[Difference] = []
    busy: list[str] = []
    contended_for: list[str] = []
    outdated = False  # also if a hydrator's guard failed, which no field shows
    for step, reason in zip(plan.steps, reasons, strict=False):
        if reason.code == _FAILED:
            refusal = None if step.refuse is None else step.refuse(reason.item)
            if refusal is not None:
                permanent.append(refusal)
                continue
            outdated = True
            if step.was_read:
                contended_for.append(repr(step.item))
            stale += step.differences(reason.item)
        elif reason.code in _PASSING:
            contended_for.append(repr(step.item))
            busy.append(f"{step.item!r}: {reason.code}")
        elif reason.code != "None":
            permanent.append(ServiceError(f"{step.item!r}: {reason.message or reason.code}"))
    if outdated:
        # What was read is outdated, so the permanent errors may result from outdated data too: try again.
        return ContentionError(describe_contention(stale, busy), differences=stale, items=contended_for)
    if permanent:
        if len(permanent) == 1:
            return permanent[0]
        return TransactionErrors(f"the transaction failed for {len(permanent)} reasons", permanent)
    return ContentionError(describe_contention(stale, busy), items=contended_for) if busy else error


def find_refused(plan: CommitPlan, error: HoldallError) -> list[tuple[Step, Item | None]]:
    """Return the steps whose conditions failed, each with the item that was found."""
    reasons = zip(plan.steps, _reasons(error), strict=False)
    return [(step, reason.item) for step, reason in reasons if reason.code == _FAILED]


def _reasons(error: HoldallError) -> Sequence[CancellationReason]:
    if isinstance(error, ConditionFailedError):
        return [CancellationReason(_FAILED, error.message, error.item)]
    return error.reasons if isinstance(error, TransactionCanceledError) else ()


def describe_contention(stale: Sequence[Difference], busy: Sequence[str] = ()) -> str:
    """Describe contention for a message."""
    if stale:
        return "; ".join(describe_difference(difference) for difference in stale)
    return "; ".join(busy) or "another transaction changed the same data first"


def describe_difference(difference: Difference) -> str:
    """Describe one difference for a message."""
    item, field, expected, stored = difference
    if field is not None and expected is stored is None:
        return f"{item}.{field} is not as expected"  # its values are not shown
    if field is not None:
        return f"{item}.{field} is {show_attribute(stored)}, expected {show_attribute(expected)}"
    return f"{item} exists now" if stored is not None else f"{item} does not exist"


def show_attribute(attribute: Attribute | None) -> str:
    """Show a stored attribute in a message; None is an absent one."""
    if attribute is None:
        return "absent"
    text = attribute["N"] if "N" in attribute else repr(decode(attribute))
    return text if len(text) <= 200 else f"{text[:200]}…"
