"""What follows when an archived item is written: its object goes, after the row."""

from __future__ import annotations

from holdall.archive.pointer import Pointer
from holdall.core.objects import DeleteObject
from holdall.core.port import Port
from holdall.errors import HoldallError
from holdall.tables.commit.change import Participant


class Follower(Participant):
    """Deletes an object that no pointer names any more.

    Only with the etag that the pointer had: if the item was archived again meanwhile, the object at the same key is
    another. A process that dies before leaves an object that the sweep finds; so does a server that ignores conditions
    on deletions, where nothing is deleted.
    """

    def __init__(self, pointer: Pointer) -> None:
        self._pointer = pointer

    async def settle(self, port: Port) -> None:
        """The item is whole in the table again, or gone."""
        await delete_object(port, self._pointer)


async def delete_object(port: Port, pointer: Pointer) -> bool:
    """Delete the object that a pointer named; False if that is left to the sweep."""
    if pointer.shared or pointer.offset is not None:
        return False
    try:
        await port.send(DeleteObject(pointer.service, pointer.key, if_match=pointer.etag))
    except HoldallError:  # it costs a little storage until the sweep; the transaction itself is committed
        return False
    return True
