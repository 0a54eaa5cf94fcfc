"""The last step of a publish: write the row and the note of a version whose object exists.

One transaction writes both, removes the reservation's mark and counts a directory's files for the version. It fails if
the mark is gone: another process took the publisher for dead, and its number is lost.
"""

from __future__ import annotations

from holdall.artifacts.artifact import Artifact
from holdall.artifacts.events import announce
from holdall.artifacts.home import Home
from holdall.artifacts.latest import (
    LISTED,
    committed,
    directory_item,
    is_counted,
    pauses,
    read_latest,
    uncounted,
)
from holdall.artifacts.origin import Placed
from holdall.artifacts.reservation import Reservation, given_up, is_held
from holdall.artifacts.stored import artifact_of, content_attributes, note_sk, row_item
from holdall.core.context import Context
from holdall.core.objects import DeleteObject
from holdall.core.requests import GetItem, PutItem, TransactAction
from holdall.core.values import Attribute, Item

__all__ = ["write_version"]


async def write_version(
    context: Context, home: Home, name: str, placed: Placed, *, alone: bool
) -> Artifact | None:
    """Write the row of an object; None if its number turns out not to be ours.

    ``alone``: refused if another process has published meanwhile.
    """
    port, reservation, content = context.port, placed.reservation, placed.content
    sk = reservation.sk
    row = row_item(home, name, sk, placed.modified, content.sha256)
    note: dict[str, Attribute] = {
        **home.meta_key(name, note_sk(sk)),
        "_type": {"S": "holdall.ArtifactVersion"},
        **content_attributes(content, row),
        "revision": {"S": port.new_id()},
    }
    event = await announce(context, "published", name, sk, content.sha256)
    listed = LISTED in reservation.head
    for pause in pauses():
        actions: list[TransactAction] = [
            PutItem(home.table, row, home.absent),
            PutItem(home.table, note),
            reservation.used(home, name, alone=alone, listed=listed),
            *event.actions,
            *_count_files(home, placed),
        ]
        if not listed:
            actions.append(PutItem(home.table, directory_item(home, name)))
        if await committed(context, actions):
            await event.settle()
            return artifact_of(home, row, note)
        listed = False  # a purge may have removed the name from the list meanwhile
        there = (await port.send(home.get(name, sk))).item
        if there is not None or not await is_held(context, home, name, reservation, alone=alone):
            break
        if placed.hold is None and not await is_counted(context, home, content.manifest):
            latest = await read_latest(context, home, name)
            if latest.content is not None and latest.content.manifest == content.manifest:
                raise uncounted(name, content.manifest)
            break  # LATEST has changed, and nothing else kept those files
        await port.sleep(pause)  # another process changed the head at the same time
    if there is None:  # no version has the number, so its object is litter
        await port.send(DeleteObject(home.service, content.key, content.etag))
    elif there == row and await _is_ours(context, home, name, reservation, note):
        return artifact_of(home, row, note)
    await given_up(context, home, name, reservation)
    return None


def _count_files(home: Home, placed: Placed) -> tuple[TransactAction, ...]:
    """Count a directory's files for the version: those held for it, or those of LATEST."""
    if placed.content.manifest is None:
        return ()
    from holdall.artifacts.directories.holdings import added_actions, swap_actions

    if placed.hold is None:
        return added_actions(home, placed.content.manifest)
    return swap_actions(home, placed.hold, None)


async def _is_ours(context: Context, home: Home, name: str, reservation: Reservation, note: Item) -> bool:
    """Whether this call wrote the row: an earlier send may have, although its reply did not say so."""
    found = (
        await context.port.send(GetItem(home.table, home.meta_key(name, note_sk(reservation.sk)), True))
    ).item
    return found is not None and found.get("revision") == note["revision"]
