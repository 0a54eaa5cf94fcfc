"""A change: the steps and participants of one attempt to commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdall.core.context import Context
from holdall.core.expressions import Add, Condition, Path, Set, Update, UpdateAction, Value
from holdall.core.expressions.evaluation import holds
from holdall.core.frozen import replace
from holdall.core.internal import internal
from holdall.core.numbers import add
from holdall.core.port import Port
from holdall.core.requests import (
    ConditionCheck,
    DeleteItem,
    PutItem,
    TransactAction,
    UpdateItem,
)
from holdall.core.stamp import NO_STAMP, STAMP
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidOptionsError, InvalidRequestError
from holdall.tables.commit.lock import all_of
from holdall.tables.commit.plan import CommitPlan, Refuse, Step
from holdall.tables.record import Record


class Change:
    """The steps of one atomic write; nothing is sent before the commit.

    ``expect`` lists conditions on the stored item. If one fails, the commit counts as contention and is tried again,
    unless ``refused`` turns the item that was found into an error. ``label`` names the step for `commit_once`. Steps on
    the same item become one action: additions to the same attribute are summed.
    """

    @internal
    def __init__(self, context: Context, steps: Iterable[Step] = ()) -> None:
        self.context = context
        self.participants: list[Participant] = []
        self._steps = list(steps)
        self._positions: dict[str, int] | None = None

    @property
    def plan(self) -> CommitPlan:
        """All steps so far."""
        return CommitPlan(tuple(self._steps))

    def join(self, participant: Participant) -> None:
        """Add a participant to the commit."""
        self.participants.append(require_participant(participant))

    def create(self, record: Record, *, label: str | None = None, refused: Refuse | None = None) -> None:
        """Write a record that must not exist yet."""
        absent = record.address.absent
        put = PutItem(record.address.table, record.stored, absent, item_on_failure=bool(label or refused))
        self._add(record, Step(put, record, None, refused, label, stampable=record.stamps))

    def put(
        self,
        record: Record,
        *,
        expect: Sequence[Condition] = (),
        label: str | None = None,
        refused: Refuse | None = None,
    ) -> None:
        """Write a whole record, replacing the stored one."""
        asks = bool(label or refused)
        put = PutItem(record.address.table, record.stored, all_of(expect), item_on_failure=asks)
        self._add(record, Step(put, record, (), refused, label))

    def update(
        self,
        record: Record,
        *actions: UpdateAction,
        expect: Sequence[Condition] = (),
        stampable: bool = False,
        label: str | None = None,
        refused: Refuse | None = None,
    ) -> None:
        """Change attributes of a record. ``stampable``: the update makes ``expect`` false."""
        address = record.address
        last = None if record.item is None else record.item.get(STAMP, NO_STAMP)
        update = UpdateItem(
            address.table,
            address.key,
            Update(actions),
            all_of(expect),
            item_on_failure=bool(label or refused),
            last_stamp=last if stampable else None,
        )
        self._add(record, Step(update, record, (), refused, label, stampable=stampable))

    def delete(
        self,
        record: Record,
        *,
        expect: Sequence[Condition] = (),
        vanishes: bool = False,
        label: str | None = None,
        refused: Refuse | None = None,
    ) -> None:
        """Delete a record. ``vanishes``: no other client can delete it while ``expect`` holds."""
        address, asks = record.address, bool(vanishes or label or refused)
        delete = DeleteItem(address.table, address.key, all_of(expect), item_on_failure=asks)
        self._add(record, Step(delete, record, (), refused, label, vanishes=vanishes))

    def require(
        self,
        record: Record,
        *expect: Condition,
        label: str | None = None,
        refused: Refuse | None = None,
    ) -> None:
        """Require conditions of a record that the change does not write."""
        condition = all_of(expect)
        assert condition is not None
        address = record.address
        check = ConditionCheck(address.table, address.key, condition, item_on_failure=bool(label or refused))
        self._add(record, Step(check, record, (), refused, label, writes=False))

    def include(self, other: Change) -> None:
        """Add the steps and participants of another change."""
        self.participants += other.participants
        for step in other._steps:
            assert isinstance(step.item, Record)
            self._add(step.item, step)

    def _add(self, record: Record, step: Step) -> None:
        steps = self._steps
        if not steps:
            steps.append(step)
            return
        if self._positions is None:
            numbered = enumerate(steps)
            self._positions = {
                known.item.address.identity: position
                for position, known in numbered
                if isinstance(known.item, Record)
            }
        position = self._positions.setdefault(record.address.identity, len(steps))
        if position == len(steps):
            steps.append(step)
        else:
            steps[position] = _merge(steps[position], step)


def _merge(first: Step, second: Step) -> Step:
    """Merge two steps on the same item."""
    action = _merge_actions(first.action, second.action)
    if action is None:
        raise InvalidRequestError(
            f"one transaction changes {first.item!r} twice, in ways that cannot be combined",
        )
    return Step(
        action,
        first.item,
        (),
        _refuse_either(first, second),
        first.label or second.label,
        writes=first.writes or second.writes,
    )


def _refuse_either(*steps: Step) -> Refuse | None:
    """Return a function that uses the refusal of the step whose own condition failed."""
    if all(step.refuse is None for step in steps):
        return None

    def refuse(found: Item | None) -> Exception | None:
        for step in steps:
            condition = step.action.condition
            if step.refuse is not None and condition is not None and not holds(condition, found or {}):
                return step.refuse(found)
        return None

    return refuse


def _merge_actions(first: TransactAction, second: TransactAction) -> TransactAction | None:
    condition = all_of((first.condition, second.condition))
    asks = first.item_on_failure or second.item_on_failure
    if isinstance(first, ConditionCheck):
        first, second = second, first
    if isinstance(second, ConditionCheck):
        assert condition is not None
        return replace(first, condition=condition, item_on_failure=asks)
    if not isinstance(first, UpdateItem) or not isinstance(second, UpdateItem):
        return None
    actions = _merge_updates(first.update.actions, second.update.actions)
    if actions is None:
        return None
    return replace(first, update=Update(actions), condition=condition, item_on_failure=asks)


def _merge_updates(
    first: Sequence[UpdateAction], second: Sequence[UpdateAction]
) -> tuple[UpdateAction, ...] | None:
    """Merge two updates; None if they change the same attribute in another way than by adding to it."""
    merged: dict[Path, UpdateAction] = {action.path: action for action in first}
    for action in second:
        known = merged.get(action.path)
        if known is None:
            merged[action.path] = action
        elif isinstance(known, Add) and isinstance(action, Add):
            total = _sum(known.value.attribute, action.value.attribute)
            if total is None:
                return None
            merged[action.path] = Add(action.path, Value(total))
        elif known != action or (isinstance(action, Set) and action.value.outermost):
            return None  # a sum or a longer list, computed twice, differs from one computed once
    return tuple(merged.values())


def _sum(first: Attribute, second: Attribute) -> Attribute | None:
    """Merge two additions: of numbers, or of members to a set."""
    (kind, left), (other, right) = *first.items(), *second.items()
    if kind != other:
        return None
    if kind == "N":
        return {"N": add(left, right)}
    return {kind: [*left, *(member for member in right if member not in left)]}


class Participant:
    """Takes part in one attempt to commit; override the methods that you need.

    All participants `state` their part of the change. After the size of the whole was checked, all `prepare`, then all
    `check`, and one write carries the steps of all. Participants run each of these concurrently. Afterwards:

    - If the attempt committed, `settle` is called.
    - If it certainly did not, `abandon` is called, once the whole run is over. A later attempt may have taken over what
      was prepared; pass it on in ``tx.carry``, which lasts as long as the run.
    - If its outcome is unknown (`OutcomeUnknown`, or the process died), neither is called. What was prepared may be in
      use, so only a later look at the store can show whether it is garbage.
    """

    async def state(self, change: Change) -> None:
        """Read what is needed, and add steps to the change. This must not store anything."""

    async def prepare(self, port: Port) -> None:
        """Do what must precede the write, such as an upload. If there is no commit, it must be harmless garbage."""

    async def check(self) -> None:
        """Raise an error to stop the commit, right before the write is sent."""

    async def settle(self, port: Port) -> None:
        """Called after the transaction was committed."""

    async def abandon(self, port: Port) -> None:
        """Called if the transaction did not commit and never will."""


def require_participant(found: object) -> Participant:
    """Return what joins a commit, if it is a participant."""
    if not isinstance(found, Participant):
        raise InvalidOptionsError(
            f"{found!r:.80} is not a participant",
            hint="derive its class from holdall.transactions.Participant",
        )
    return found
