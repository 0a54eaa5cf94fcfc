"""Intents: lists of attachments to remove from an owner, if they are too many for one transaction.

First the ids are written, in parts; these have no effect yet. Then one transaction changes the owner, names the intent
in the slot of the owner's name, and enqueues a job. From then on, reads hide the attachments, and the job deletes them.
The ids state exactly which: a file that is attached at the same time stays.

Why it is safe wherever the process dies: before the parts are written, a job is enqueued that drops them an hour later,
unless the transaction has committed. It does so by changing the first part, which the transaction demands to be as it
was written; so one of the two is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdall.attachments.home import Home
from holdall.attachments.owner.proxy import Removal
from holdall.attachments.record import Intent, Slot
from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.tables.commit.change import Change
from holdall.tables.record import delete_all, fetch_all

_PART = 500


def plan_intent(
    change: Change, home: Home, id: str, slot: Slot, leaving: Mapping[Removal, Sequence[str]]
) -> tuple[str, list[Intent]]:
    """Add the steps that put an intent into effect; return its name, and its parts, which must be stored first."""
    pieces = [(how, some) for how, ids in leaving.items() for some in make_batches(ids, _PART)]
    parts = [
        Intent.new(home.intent(id, part), Intent.ids.set(ids), Intent.how.set(how))
        for part, (how, ids) in enumerate(pieces)
    ]
    first = parts[0].address
    change.update(Intent(first), Intent.state.set("kept"), expect=[first.exists, Intent.state.absent])
    named = f"{id}/{len(parts)}"
    intents = [*slot.intents, named]
    change.put(Slot.new(slot.address, Slot.intents.set(intents)), expect=[slot.same(Slot.intents)])
    return named, parts


def plan_end(change: Change, slot: Slot, named: str) -> None:
    """Add the step that removes an intent from the slot."""
    left = [each for each in slot.intents if each != named]
    if left:
        change.put(Slot.new(slot.address, Slot.intents.set(left)), expect=[slot.same(Slot.intents)])
    elif slot.is_stored:
        change.delete(slot, expect=[slot.same(Slot.intents)])


def locate_parts(home: Home, named: str) -> list[Intent]:
    """The parts of an intent, by its name in a slot; they are not read."""
    id, _, parts = named.partition("/")
    return [Intent(home.intent(id, part)) for part in range(int(parts))]


async def delete_parts(context: Context, parts: Sequence[Intent]) -> None:
    """Delete an intent; its first part last, so that nothing is left once that is gone."""
    await delete_all(context.port, parts[1:])
    await delete_all(context.port, parts[:1])


async def read_leaving(context: Context, home: Home, slots: Iterable[Slot | None]) -> frozenset[str]:
    """Read the ids of the attachments that intents are removing. Read the slots before the rows."""
    names = [named for slot in slots if slot is not None for named in slot.intents]
    parts = [part for named in names for part in locate_parts(home, named)]
    return frozenset(id for part in await fetch_all(context.port, parts) for id in part.ids)
