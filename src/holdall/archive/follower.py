"""What follows a write to an archived item: after the item is written, its object is deleted."""

from __future__ import annotations

from contextlib import suppress

from holdall.archive.pointer import Pointer
from holdall.archive.template import mark_owner, stamp_owner
from holdall.core.objects import DeleteObject
from holdall.core.port import Port
from holdall.core.requests import GetItem
from holdall.errors import HoldallError
from holdall.tables.commit.change import Participant


class Follower(Participant):
    """Deletes an object that no pointer names any more.

    It deletes only the object with the pointer's etag: if the item was archived again meanwhile, the object at the same
    key is a different one. If the process dies first, the object is left to the sweep. The same holds on a server that
    ignores conditions on deletions: nothing is deleted there.
    """

    def __init__(self, pointer: Pointer, read: GetItem) -> None:
        self._pointer = pointer
        self._read = read

    async def settle(self, port: Port) -> None:
        """Delete the object: the item is whole in the table again, or deleted."""
        await delete_former(port, self._pointer, self._read)


async def delete_former(port: Port, pointer: Pointer, read: GetItem) -> None:
    """Delete an object that its item no longer points to.

    In a copy of a table, such as a restored backup, pointers name objects of the original table, which may still need
    them.
    """
    if pointer.owner == mark_owner(stamp_owner(read.table, read.key)):
        await delete_object(port, pointer)


async def delete_object(port: Port, pointer: Pointer) -> None:
    """Delete the object that a pointer named, unless it is left to the sweep."""
    if pointer.shared or pointer.offset is not None:
        return
    # the transaction is committed; an object that cannot be deleted only costs storage until the sweep
    with suppress(HoldallError):
        await port.send(DeleteObject(pointer.service, pointer.key, if_match=pointer.etag))
