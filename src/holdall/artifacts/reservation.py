"""Reservations: how a publisher gets a number that nobody else has, or will have.

One update of the head adds to the counter and leaves a mark in one of 256 slots: the number, and until when it is good.
There is nothing to compare, so any number of publishers get theirs without waiting for each other. The transaction
that writes the row takes the mark away, and fails if it is gone.

A mark whose time is over is cleaned by the next who publishes. It is first made one of a *burnt* number: whoever
reserved that, if they are only slow, can no longer write the row. Then the litter under the number is deleted, then the
mark. So after a crash at any step either the mark is there, or nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from holdall.artifacts.home import Home
from holdall.artifacts.latest import LISTED, PUBLISHED, committed, pauses
from holdall.artifacts.naming import LAST_NUMBER, encode_meta_pk, encode_version_sk
from holdall.artifacts.stored import HEAD, moment_of, moment_text
from holdall.core.context import Context
from holdall.core.expressions import (
    Compare,
    Condition,
    Exists,
    IfNotExists,
    NotExists,
    Path,
    Plus,
    Remove,
    Set,
    SetValue,
    Update,
    UpdateAction,
    Value,
    path,
)
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject
from holdall.core.requests import UpdateItem
from holdall.core.values import Item
from holdall.errors import ConditionFailedError, ContentionError, OutcomeUnknown, VersionsExhaustedError

__all__ = ["Reservation", "clean", "clean_old", "given_up", "is_held", "prolonged", "reserve"]

_MARK = "reserving_"
_NUMBER = "reserved_"
_BURNT = "burnt"
_COUNTER = Path(("counter",))
_SLOTS = tuple(f"{slot:02x}" for slot in range(256))
"""More than publish one artifact at a time. Who is alone has always the first: requests that look alike are cheaper."""

_PATIENCE = 60.0
_SLOWEST = 10_000_000
"""Bytes in a second: a copy that is slower than that may lose its reservation, and then has to be made anew."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A number that is ours: the slot with its mark, and the head just after."""

    slot: str
    mark: str
    number: int
    head: Item

    @property
    def sk(self) -> str:
        """The sort key of the version that it is for."""
        return encode_version_sk(self.number)

    def ended(self, home: Home, name: str) -> UpdateItem:
        """Take the mark away; refused when it is no longer ours."""
        return _cleared(home, name, self.slot, self.mark)

    def used(self, home: Home, name: str, *, alone: bool, listed: bool) -> UpdateItem:
        """Take the mark away, as the number is published; ``alone``: refused when others have published meanwhile.

        ``listed``: refused when the name is no longer in the list of names; otherwise it comes there with this.
        """
        steps: list[UpdateAction] = [
            *_clearing(self.slot),
            Set(path(PUBLISHED), Value({"N": str(self.number)})),
        ]
        condition: Condition = _is(self.slot, self.mark)
        if alone:
            condition = condition & home.unchanged(self.head, PUBLISHED)
        if listed:
            condition = condition & Exists(path(LISTED))
        else:
            steps.append(Set(path(LISTED), Value({"BOOL": True})))
        return UpdateItem(home.table, home.meta_key(name, HEAD), Update(tuple(steps)), condition)


def _cleared(home: Home, name: str, slot: str, mark: str) -> UpdateItem:
    return UpdateItem(home.table, home.meta_key(name, HEAD), Update(_clearing(slot)), _is(slot, mark))


def _clearing(slot: str) -> tuple[UpdateAction, ...]:
    return Remove(path(_MARK + slot)), Remove(path(_NUMBER + slot))


def _is(slot: str, mark: str) -> Compare:
    return Compare("=", path(_MARK + slot), Value({"S": mark}))


async def reserve(context: Context, home: Home, name: str, least: int) -> Reservation:
    """The next number: above the counter, or above ``least``, the newest row, where versioned has published since."""
    port = context.port
    slot, behind = _SLOTS[0], False
    for _ in range(2 * len(pauses())):
        until = port.now() + timedelta(seconds=_PATIENCE)
        mark = f"{moment_text(until)}|{port.new_id()}"
        try:
            head = (await port.send(_reserving(home, name, slot, mark, least, behind))).item
        except OutcomeUnknown:
            continue  # a number may be burnt, and nobody has it
        except ConditionFailedError as error:
            counter = int((error.item or {}).get("counter", {"N": "0"})["N"])
            if max(least, counter) >= LAST_NUMBER:
                raise VersionsExhaustedError(
                    f"the artifact {name!r:.60} has had {LAST_NUMBER:,} versions",
                    hint="go on under another name",
                ) from None
            found = error.item or {}
            behind = "counter" in found and counter < least
            if _MARK + slot in found:  # others are publishing just now: one of the slots that they have not
                free = [each for each in _SLOTS if _MARK + each not in found]
                slot = free[int(port.random() * len(free))] if free else slot
            continue
        assert head is not None
        return Reservation(slot, mark, int(head[_NUMBER + slot]["N"]), head)
    raise ContentionError(f"no version of {name!r:.60} could be reserved: others did, again and again")


def _reserving(home: Home, name: str, slot: str, mark: str, least: int, behind: bool) -> UpdateItem:
    known, lowest = Value({"N": str(least)}), NotExists(path(_MARK + slot))
    following: SetValue
    counted: Condition
    if behind:
        following = Value({"N": str(least + 1)})
        counted = Compare("<", _COUNTER, known)
    else:
        following = Plus(IfNotExists(_COUNTER, known), Value({"N": "1"}))
        counted = NotExists(_COUNTER) | Compare(">=", _COUNTER, known)
    steps = (
        Set(_COUNTER, following),
        Set(path(_NUMBER + slot), following),
        Set(path(_MARK + slot), Value({"S": mark})),
    )
    last = Compare("<>", _COUNTER, Value({"N": str(LAST_NUMBER)}))
    if least >= LAST_NUMBER:
        last = Compare("<", _COUNTER, Value({"N": "0"}))
    return UpdateItem(
        home.table,
        home.meta_key(name, HEAD),
        Update(steps),
        lowest & counted & last,
        returns="new",
        item_on_failure=True,
    )


async def prolonged(
    context: Context, home: Home, name: str, reservation: Reservation, size: int
) -> Reservation:
    """The reservation, good for longer when there is much to copy."""
    needed = 2 * size / _SLOWEST
    if needed < _PATIENCE:
        return reservation
    until = context.port.now() + timedelta(seconds=needed)
    longer = replace(reservation, mark=f"{moment_text(until)}|{reservation.mark.split('|')[1]}")
    change = _remarked(home, name, reservation.slot, reservation.mark, longer.mark)
    return longer if await committed(context, (change,)) else reservation


def _remarked(home: Home, name: str, slot: str, old: str, new: str) -> UpdateItem:
    update = Update((Set(path(_MARK + slot), Value({"S": new})),))
    return UpdateItem(home.table, home.meta_key(name, HEAD), update, _is(slot, old))


async def given_up(context: Context, home: Home, name: str, reservation: Reservation) -> None:
    """Take the mark away: the number stays burnt."""
    await committed(context, (reservation.ended(home, name),))


async def is_held(
    context: Context, home: Home, name: str, reservation: Reservation, *, alone: bool = False
) -> bool:
    """Whether the mark is still there; ``alone``: and nobody else has published since."""
    head = (await context.port.send(home.get(encode_meta_pk(name), HEAD))).item
    if head is None or (alone and head.get(PUBLISHED) != reservation.head.get(PUBLISHED)):
        return False
    return head.get(_MARK + reservation.slot) == {"S": reservation.mark}


# --- cleaning ---------------------------------------------------------------------------------------------


async def clean(context: Context, home: Home, name: str) -> int:
    """Delete what publishers who died have left; gives how many numbers those were."""
    head = (await context.port.send(home.get(encode_meta_pk(name), HEAD))).item
    return 0 if head is None else await clean_old(context, home, name, head)


async def clean_old(context: Context, home: Home, name: str, head: Item) -> int:
    """The same, of a head that is known."""
    now = context.port.now()
    cleaned = 0
    for slot, mark, number in _marks(head):
        until, _, id = mark.partition("|")
        if until != _BURNT:
            burnt = f"{_BURNT}|{id}"
            if moment_of(until) > now:
                continue
            if not await committed(context, (_remarked(home, name, slot, mark, burnt),)):
                continue
            mark = burnt
        await _clear(context, home, name, slot, mark, number)
        cleaned += 1
    return cleaned


def _marks(head: Item) -> Iterator[tuple[str, str, str]]:
    for each in head:
        if each.startswith(_MARK):
            slot = each.removeprefix(_MARK)
            yield slot, head[each]["S"], head[_NUMBER + slot]["N"]


async def _clear(context: Context, home: Home, name: str, slot: str, mark: str, number: str) -> None:
    """Delete the bytes under a burnt number, unless versioned has made it a version; then the mark."""
    sk = encode_version_sk(number)
    if (await context.port.send(home.get(name, sk))).item is None:
        await context.port.send(DeleteObject(home.service, home.object_key(name, sk)))
    await committed(context, (_cleared(home, name, slot, mark),))
