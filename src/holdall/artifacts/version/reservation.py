"""Reservations: how a publisher gets a number that no other publisher has, or will have.

One update of the head raises the counter and leaves a mark in one of 256 slots: the number, and when the reservation
ends. There is nothing to compare, so any number of publishers get their numbers without waiting for each other. The
transaction that writes the row removes the mark, and fails if it is gone.

The update is not part of a transaction, because its reply is needed: it contains the number. If the reply is lost, the
number is burnt, and another is reserved.

The next publisher cleans up an expired mark. It first turns it into the mark of a *burnt* number: if the process that
reserved it is merely slow, it can no longer write the row. Then it deletes the litter under the number, then the mark.
So after a crash at any step, either the mark exists, or nothing is left.
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
"""More than the processes that publish one artifact at a time. A lone publisher always gets the first slot, because
equal requests are cheaper."""

_TRIES = 24
_PATIENCE = 60.0
_SLOWEST = 10_000_000
"""Bytes per second: a slower copy may lose its reservation, and must then be made again."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A number reserved for this publisher: the slot with its mark, and the head just after."""

    slot: str
    mark: str
    number: int
    head: Head

    @property
    def sk(self) -> str:
        """The sort key of the version that it is for."""
        return encode_version_sk(self.number)

    def use(self, change: Change, *, alone: bool, listed: bool) -> None:
        """Remove the mark because the number is published; ``alone``: refused if another process published meanwhile.

        ``listed``: refused if the name is no longer in the list of names; without it, the change must list the name.
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
        """Whether a head still has the mark and, if ``alone``, no other process has published since."""
        return head.reserving.get(self.slot) == self.mark and not (
            alone and head.published != self.head.published
        )


async def reserve(context: Context, home: Home, name: str, least: int) -> Reservation:
    """Reserve the next number, above the counter and above ``least``, the newest row: versioned may have published."""
    port, head = context.port, Head.of(home, name)
    slot, behind = _SLOTS[0], False
    for _ in range(_TRIES):  # without a pause: another slot is free immediately
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
                    f"the artifact {name!r:.60} has used all {LAST_NUMBER:,} version numbers",
                    hint="continue under another name",
                ) from None
            behind = found.counter is not None and found.counter < least
            taken = found.reserving
            if slot in taken:  # other processes are publishing: use a slot that is free
                free = [each for each in _SLOTS if each not in taken]
                slot = free[int(port.random() * len(free))] if free else slot
            continue
        found = Head(head.address, item)
        return Reservation(slot, mark, found.reserved[slot], found)
    raise ContentionError(
        f"no version number of {name!r:.60} could be reserved, because too many other processes are publishing"
    )


def _request_number(head: Head, slot: str, mark: str, least: int, behind: bool) -> UpdateItem:
    """Set the counter to the number after it, or after ``least`` if it is ``behind``; and reserve that number."""
    counter, reserving = Head.counter, Head.reserving[slot]
    if behind:
        following: SetValue = Value({"N": str(least + 1)})
        counted = counter.below(least)
    else:
        following = Plus(IfNotExists(counter.path, Value({"N": str(least)})), Value({"N": "1"}))
        counted = counter.absent | counter.at_least(least)
    last = counter.below(0) if least >= LAST_NUMBER else counter.differs(LAST_NUMBER)
    updates = Set(counter.path, following), Set(Head.reserved[slot].path, following), reserving.set(mark)
    return UpdateItem(
        head.address.table,
        head.address.key,
        Update(updates),
        reserving.absent & counted & last,
        returns="new",
        item_on_failure=True,
    )


async def raise_counter(context: Context, home: Home, name: str, number: int) -> None:
    """Raise the counter to this number, whose row is deleted: versioned publishes without keeping a counter."""
    change, head, counter = Change(context), Head.of(home, name), Head.counter
    change.update(head, counter.set(number), expect=[counter.absent | counter.below(number)])
    await commit_once(change)  # if it is refused, the counter is already there


async def prolong(context: Context, reservation: Reservation, size: int) -> Reservation:
    """Extend the reservation if there is much to copy; return it."""
    needed = 2 * size / _SLOWEST
    if needed < _PATIENCE:
        return reservation
    until = context.port.now() + timedelta(seconds=needed)
    return await _replace_mark(context, reservation, show_moment(until)) or reservation


async def _replace_mark(context: Context, reservation: Reservation, until: str) -> Reservation | None:
    """Change when a reservation ends, and return it; None if its mark is gone."""
    change, mark = Change(context), Head.reserving[reservation.slot]
    changed = replace(reservation, mark=f"{until}|{reservation.mark.partition('|')[2]}")
    change.update(reservation.head, mark.set(changed.mark), expect=[mark.equals(reservation.mark)])
    return changed if await commit_once(change) is None else None


async def give_up(context: Context, reservation: Reservation) -> None:
    """Remove the mark; the number stays burnt."""
    change, slot = Change(context), reservation.slot
    change.update(
        reservation.head, *_clear_slot(slot), expect=[Head.reserving[slot].equals(reservation.mark)]
    )
    await commit_once(change)


def _clear_slot(slot: str) -> tuple[UpdateAction, ...]:
    return Head.reserving[slot].remove(), Head.reserved[slot].remove()


# --- cleaning ---------------------------------------------------------------------------------------------


async def clean(context: Context, home: Home, name: str, head: Head | None = None) -> int:
    """Delete what dead publishers have left; return how many numbers they had reserved."""
    if head is None:
        head = await fetch(context.port, Head.of(home, name))
    now, cleaned = context.port.now(), 0
    for slot, mark in head.reserving.items():
        until = mark.partition("|")[0]
        if until != _BURNT and parse_moment(until) > now:
            continue
        dead = Reservation(slot, mark, head.reserved[slot], head)
        if until != _BURNT:
            burnt = await _replace_mark(context, dead, _BURNT)
            if burnt is None:
                continue
            dead = burnt
        # versioned may have made the burnt number a version: then the bytes are not litter
        if not (await fetch(context.port, VersionRow.at(home, name, dead.sk))).is_stored:
            await context.port.send(DeleteObject(home.service, home.object_key(name, dead.sk)))
        await give_up(context, dead)
        cleaned += 1
    return cleaned
