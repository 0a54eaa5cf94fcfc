"""Flows that commit a change, with its participants: once, or again until it succeeds.

This is safe wherever the process dies, because there is exactly one write, which the store carries out as a whole or
not at all. If the write does not happen, what participants prepared before it is garbage, which a sweep deletes. What
they settle after it follows from the store alone, so any process can do it later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.port import Port
from holdall.core.requests import DeleteItem, Request
from holdall.core.values import Item
from holdall.errors import (
    AfterCommitError,
    ConditionFailedError,
    ConflictError,
    ContentionError,
    HoldallError,
    OutcomeUnknown,
    TransactionCanceledError,
)
from holdall.tables.commit.change import Change, Participant
from holdall.tables.commit.explanation import explain_refusal, find_refused
from holdall.tables.commit.plan import CommitPlan, check_size
from holdall.tables.commit.retry import RunOptions, backoff, is_exhausted

T = TypeVar("T")
_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class Refused:
    """A change that was not committed: the labels of the steps whose conditions failed, with the items found there."""

    found: Mapping[str, Item | None]


# --- what models and features share -----------------------------------------------------------------------


async def prepare(change: Change, prepared: list[Participant]) -> CommitPlan:
    """Let the participants add their steps, check the size of the whole, then let them prepare; return the plan.

    ``prepared`` receives the participants that may have stored something.
    """
    port, participants, stated = change.context.port, change.participants, 0
    while waiting := participants[stated:]:  # one that states its part may let another join
        stated = len(participants)
        if len(waiting) == 1:
            await waiting[0].state(change)
            continue
        # concurrently, but their steps are added in the order of the participants
        parts = [Change(change.context) for _ in waiting]
        await _gather(port, [each.state(part) for each, part in zip(waiting, parts, strict=True)])
        for part in parts:
            change.include(part)
    plan = change.plan
    check_size(len(plan.steps))
    prepared += participants
    await _gather(port, [each.prepare(port) for each in participants])
    for each in participants:
        await each.check()
    return plan


async def _gather(port: Port, flows: list[Coroutine[Any, Any, None]]) -> None:
    if len(flows) == 1:
        await flows[0]
    elif flows:
        for outcome in await port.gather(flows):
            outcome.result()


async def send_plan(port: Port, plan: CommitPlan) -> None:
    """Send a plan's one request; if it is refused, raise the error that explains why."""
    try:
        await _send(port, plan.request(port.new_id))
    except OutcomeUnknown:
        raise
    except HoldallError as error:
        meaning = explain_refusal(plan, error)
        if meaning is error:
            raise
        raise meaning from error


def is_plain_no(error: BaseException) -> bool:
    """Whether an error proves that a write that was sent did not happen; an interrupt, for example, proves nothing."""
    if isinstance(error, OutcomeUnknown | AfterCommitError):
        return False
    return isinstance(error, HoldallError) or isinstance(error.__cause__, HoldallError)


def _send(port: Port, request: Request[Any]) -> Coroutine[Any, Any, Any]:
    return _send_delete(port, request) if isinstance(request, DeleteItem) else port.send(request)


async def _send_delete(port: Port, request: DeleteItem) -> None:
    """Delete an item that no other client can delete; if the outcome is unknown, send the request again."""
    try:
        try:
            await port.send(request)
        except OutcomeUnknown:
            await port.send(request)
    except ConditionFailedError as error:
        if error.item is not None:
            raise  # if the item is absent, the first request succeeded


async def settle(port: Port, participants: Iterable[Participant], *handlers: Callable[[], Any]) -> None:
    """Settle all participants and call all handlers. Failures do not affect the commit, and are raised at the end."""
    errors: list[Exception] = []
    for participant in participants:
        await collect_error(errors, participant.settle(port))
    for handler in handlers:
        await collect_error(errors, port.call(handler))
    if errors:
        raise AfterCommitError(
            f"the transaction was committed, but work that follows it failed: {errors[0]!r}", errors=errors
        ) from errors[0]


async def abandon(port: Port, participants: Iterable[Participant], error: BaseException) -> None:
    """Let the participants of a failed attempt clean up; their errors become notes on ``error``."""
    for problem in await abandon_all(port, participants):
        error.add_note(f"cleaning up failed as well: {problem!r}")


async def abandon_all(port: Port, participants: Iterable[Participant]) -> list[Exception]:
    """Let participants clean up after attempts that did not commit; return their errors."""
    errors: list[Exception] = []
    for participant in participants:
        await collect_error(errors, participant.abandon(port))
    return errors


async def collect_error(errors: list[Exception], work: Awaitable[Any]) -> None:
    """Do some work, and collect its error instead of raising it, so that the rest is done too."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - it is kept
        errors.append(error)


# --- features ---------------------------------------------------------------------------------------------


async def commit(context: Context, body: Callable[[Change], Coroutine[Any, Any, T]], what: str) -> T:
    """Run a body that reads and records a change, then commit it; after contention, start over.

    Returns the body's result. If the body records no write, the run ends. ``what`` names the thing that is changed, for
    the `ContentionError` that is raised after half a minute of contention.
    """
    attempts = Attempts(context, what)
    while await attempts.another():
        change = Change(context)
        result = await body(change)
        if await commit_once(change) is None:
            return result
    raise AssertionError  # `another` returns True or raises


def commit_once(change: Change, id: str | None = None) -> Coroutine[Any, Any, Refused | None]:
    """Commit a change; return None if it succeeded, otherwise the items found where a condition failed.

    An error of a step's ``refused`` is raised. While another transaction holds an item, the write is sent again. ``id``
    is a new id that identifies the write, if the caller has one.
    """
    if change.participants:
        return _prepare_and_write(change, id)
    return _write(change, id)  # nothing follows the write, and the port always awaits its reply


async def _prepare_and_write(change: Change, id: str | None) -> Refused | None:
    port = change.context.port
    prepared: list[Participant] = []
    sent = False
    try:
        await prepare(change, prepared)
        sent = True
        refused = await port.finish(_write(change, id))
    except BaseException as error:
        if not sent or is_plain_no(error):
            await port.finish(abandon(port, prepared, error))
        raise
    if refused is not None and prepared:
        errors = await port.finish(abandon_all(port, prepared))
        if errors:
            raise errors[0]
    return refused


async def _write(change: Change, id: str | None) -> Refused | None:
    port, plan = change.context.port, change.plan
    attempts: Attempts | None = None
    while plan.writes:
        try:
            await _send(port, plan.request(port.new_id if id is None else lambda: id))
            break
        except (ConditionFailedError, TransactionCanceledError) as error:
            meaning = explain_refusal(plan, error)
            if meaning is error:
                raise
            if not isinstance(meaning, ContentionError):
                raise meaning from error
            found = find_refused(plan, error)
            if found:
                return Refused({step.label or repr(step.item): item for step, item in found})
        except ConflictError:
            pass
        attempts = attempts or Attempts(change.context, plan.steps[0].item, made=1)
        await attempts.another()
    if change.participants:
        await settle(port, change.participants)
    return None


class Attempts:
    """Attempts to do something that other writers may change at the same time: ``while await attempts.another():``

    For work on objects and the table together, which no single commit covers. The pauses are those for contention.
    """

    __slots__ = ("_made", "_port", "_since", "_what")

    def __init__(self, context: Context, what: object, made: int = 0) -> None:
        self._port = context.port
        self._what = what
        self._made = made
        self._since: datetime | None = None

    async def another(self) -> bool:
        """Return True, after a pause before each attempt but the first; raise `ContentionError` after the last."""
        made = self._made
        self._made += 1
        if not made:
            return True
        port, now = self._port, self._port.now()
        if self._since is None:
            self._since = now
        error = ContentionError(
            f"other writers changed {self._what} during every attempt", items=[str(self._what)]
        )
        pause = port.random() * backoff(_OPTIONS, made - 1)
        if is_exhausted(_OPTIONS, made, now + timedelta(seconds=pause) - self._since, error):
            raise error
        await port.sleep(pause)
        return True
