"""Reservations: how a publisher gets a number that no other publisher has, or will have.

One update of the head raises the counter and leaves a mark in one of 256 slots: the number, and until when it is good.
There is nothing to compare, so any number of publishers get theirs without waiting for each other. The transaction
that writes the row removes the mark, and fails if it is gone.

The update is made by hand, because its reply is the point: the number. If the reply is lost, the number is burnt, and
another is reserved.

The next publisher cleans a mark whose time is over. It first makes it the mark of a *burnt* number: the process that
reserved it, if it is merely slow, can no longer write the row. Then it deletes the litter under the number, then the
mark. So after a crash at any step either the mark is there, or nothing is.
"""

from __future__ import annotations

from datetime import timedelta

from holdall.artifacts.home import Home
from holdall.artifacts.name import LAST_NUMBER, encode_version_sk
from holdall.artifacts.record import Head, VersionRow, parse_moment, show_moment
from holdall.core.context import Context
from holdall.core.expressions import IfNotExists, Plus, Set, SetValue, Update, UpdateAction, Value
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject
from holdall.core.requests import UpdateItem
from holdall.errors import ConditionFailedError, ContentionError, OutcomeUnknown, VersionsExhaustedError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import fetch

_BURNT = "burnt"
_SLOTS = tuple(f"{slot:02x}" for slot in range(256))
"""More than publish one artifact at a time. A lone publisher always gets the first: equal requests are cheaper."""

_TRIES = 24
_PATIENCE = 60.0
_SLOWEST = 10_000_000
"""Bytes in a second: a copy that is slower than that may lose its reservation, and then has to be made anew."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A number that is ours: the slot with its mark, and the head just after."""

    slot: str
    mark: str
    number: int
    head: Head

    @property
    def sk(self) -> str:
        """The sort key of the version that it is for."""
        return encode_version_sk(self.number)

    def use(self, change: Change, *, alone: bool, listed: bool) -> None:
        """Remove the mark, as the number is published; ``alone``: refused if another process has published meanwhile.

        ``listed``: refused if the name is no longer in the list of names; otherwise the change has to list it.
        """
        head, slot = self.head, self.slot
        expect = [Head.reserving[slot].equals(self.mark)]
        if alone:
            expect.append(head.same(Head.published))
        if listed:
            expect.append(Head.listed.exists)
        updates: list[UpdateAction] = [*_clear_slot(slot), Head.published.set(self.number)]
        if not listed:
            updates.append(Head.listed.set(True))
        change.update(head, *updates, expect=expect, label="head")

    def is_held(self, head: Head, *, alone: bool) -> bool:
        """Whether a head still has the mark; ``alone``: and no other process has published since."""
        return head.reserving.get(self.slot) == self.mark and not (
            alone and head.published != self.head.published
        )


async def reserve(context: Context, home: Home, name: str, least: int) -> Reservation:
    """The next number: above the counter, or above ``least``, the newest row, if versioned has published since."""
    port, head = context.port, Head.of(home, name)
    slot, behind = _SLOTS[0], False
    for _ in range(_TRIES):  # without a pause: another slot is free at once
        until = port.now() + timedelta(seconds=_PATIENCE)
        mark = f"{show_moment(until)}|{port.new_id()}"
        try:
            item = (await port.send(_request_number(head, slot, mark, least, behind))).item
        except OutcomeUnknown:
            continue  # a number may be burnt
        except ConditionFailedError as error:
            found = Head(head.address, error.item)
            if max(least, found.counter or 0) >= LAST_NUMBER:
                raise VersionsExhaustedError(
                    f"the artifact {name!r:.60} has had {LAST_NUMBER:,} versions",
                    hint="go on under another name",
                ) from None
            behind = found.counter is not None and found.counter < least
            taken = found.reserving
            if slot in taken:  # other processes are publishing: use one of the slots that they do not
                free = [each for each in _SLOTS if each not in taken]
                slot = free[int(port.random() * len(free))] if free else slot
            continue
        found = Head(head.address, item)
        return Reservation(slot, mark, found.reserved[slot], found)
    raise ContentionError(
        f"no version of {name!r:.60} could be reserved: other processes did, again and again"
    )


def _request_number(head: Head, slot: str, mark: str, least: int, behind: bool) -> UpdateItem:
    counter, following = Head.counter, _advance(least, behind)
    counted = counter.below(least) if behind else counter.absent | counter.at_least(least)
    last = counter.below(0) if least >= LAST_NUMBER else counter.differs(LAST_NUMBER)
    updates = (
        Set(counter.path, following),
        Set(Head.reserved[slot].path, following),
        Head.reserving[slot].set(mark),
    )
    return UpdateItem(
        head.address.table,
        head.address.key,
        Update(updates),
        Head.reserving[slot].absent & counted & last,
        returns="new",
        item_on_failure=True,
    )


def _advance(least: int, behind: bool) -> SetValue:
    """The number after ``least`` if the counter is behind it, else the one after the counter."""
    if behind:
        return Value({"N": str(least + 1)})
    return Plus(IfNotExists(Head.counter.path, Value({"N": str(least)})), Value({"N": "1"}))


async def raise_counter(context: Context, home: Home, name: str, number: int) -> None:
    """See that the counter is at least this: versioned keeps none, and the row that shows the number goes.

    By hand: repeated, it changes nothing, so that it needs no transaction.
    """
    head, counter = Head.of(home, name), Head.counter
    below = counter.absent | counter.below(number)
    update = UpdateItem(head.address.table, head.address.key, Update((counter.set(number),)), below)
    try:
        try:
            await context.port.send(update)
        except OutcomeUnknown:
            await context.port.send(update)
    except ConditionFailedError:
        return


async def prolong(context: Context, reservation: Reservation, size: int) -> Reservation:
    """The reservation, good for longer if there is much to copy."""
    needed = 2 * size / _SLOWEST
    if needed < _PATIENCE:
        return reservation
    until = context.port.now() + timedelta(seconds=needed)
    longer = replace(reservation, mark=f"{show_moment(until)}|{reservation.mark.split('|')[1]}")
    done = await _replace_mark(context, reservation.head, reservation.slot, reservation.mark, longer.mark)
    return longer if done else reservation


async def _replace_mark(context: Context, head: Head, slot: str, old: str, new: str) -> bool:
    change, mark = Change(context), Head.reserving[slot]
    change.update(head, mark.set(new), expect=[mark.equals(old)])
    return await commit_once(change) is None


async def give_up(context: Context, reservation: Reservation) -> None:
    """Remove the mark: the number stays burnt."""
    await _remove_mark(context, reservation.head, reservation.slot, reservation.mark)


async def _remove_mark(context: Context, head: Head, slot: str, mark: str) -> None:
    change = Change(context)
    change.update(head, *_clear_slot(slot), expect=[Head.reserving[slot].equals(mark)])
    await commit_once(change)


def _clear_slot(slot: str) -> tuple[UpdateAction, ...]:
    return Head.reserving[slot].remove(), Head.reserved[slot].remove()


# --- cleaning ---------------------------------------------------------------------------------------------


async def clean(context: Context, home: Home, name: str, head: Head | None = None) -> int:
    """Delete what publishers that died have left; returns how many numbers those were."""
    if head is None:
        head = await fetch(context.port, Head.of(home, name))
    now, cleaned = context.port.now(), 0
    for slot, mark in head.reserving.items():
        until, _, id = mark.partition("|")
        if until != _BURNT:
            burnt = f"{_BURNT}|{id}"
            if parse_moment(until) > now or not await _replace_mark(context, head, slot, mark, burnt):
                continue
            mark = burnt
        await _delete_litter(context, home, name, encode_version_sk(head.reserved[slot]))
        await _remove_mark(context, head, slot, mark)
        cleaned += 1
    return cleaned


async def _delete_litter(context: Context, home: Home, name: str, sk: str) -> None:
    """Delete the bytes under a burnt number, unless versioned has made it a version."""
    if not (await fetch(context.port, VersionRow.at(home, name, sk))).is_stored:
        await context.port.send(DeleteObject(home.service, home.object_key(name, sk)))
