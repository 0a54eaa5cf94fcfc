"""What follows when an archived item is written: its object goes, after the row."""

from __future__ import annotations

from holdall.archive.pointer import Pointer
from holdall.archive.template import mark_owner, stamp_owner
from holdall.core.objects import DeleteObject
from holdall.core.port import Port
from holdall.core.requests import GetItem
from holdall.errors import HoldallError
from holdall.tables.commit.change import Participant


class Follower(Participant):
    """Deletes an object that no pointer names any more.

    Only with the etag that the pointer had: if the item was archived again meanwhile, the object at the same key is
    another. A process that dies before leaves an object that the sweep finds; so does a server that ignores conditions
    on deletions, where nothing is deleted.
    """

    def __init__(self, pointer: Pointer, read: GetItem) -> None:
        self._pointer = pointer
        self._read = read

    async def settle(self, port: Port) -> None:
        """The item is whole in the table again, or gone."""
        await delete_former(port, self._pointer, self._read)


async def delete_former(port: Port, pointer: Pointer, read: GetItem) -> bool:
    """Delete the object of an item that points to it no more; False if that is left to the sweep.

    In a copy of a table, as a restored backup is, pointers name objects of the original, which may need them.
    """
    if pointer.owner != mark_owner(stamp_owner(read.table, read.key)):
        return False
    return await delete_object(port, pointer)


async def delete_object(port: Port, pointer: Pointer) -> bool:
    """Delete the object that a pointer named; False if that is left to the sweep."""
    if pointer.shared or pointer.offset is not None:
        return False
    try:
        await port.send(DeleteObject(pointer.service, pointer.key, if_match=pointer.etag))
    except HoldallError:  # it costs a little storage until the sweep; the transaction itself is committed
        return False
    return True
