"""An object's bytes in pieces, for programs that pass them on, such as a web server.

No request is open between two pieces: a slow reader holds no connection and few bytes, and a reader that stops leaves
nothing behind.
"""

from __future__ import annotations

from collections import deque

from holdall.core.objects import DescribeService, GetObject, HeadObject, ObjectInfo, ObjectRange
from holdall.core.port import Outcome
from holdall.errors import IntegrityError, InvalidOptionsError
from holdall.files.download import Vet
from holdall.files.shelf import Shelf

NEAR = 256 * 1024
"""The size of a piece from a service that is read one piece at a time, because requests to it are cheap."""

FAR = 1024 * 1024
"""The size of a piece from a service that is read several pieces at a time, because each request takes a while."""


class Pieces:
    """A cursor over the pieces of a range, which all come from one object: ``known``, or the one found first.

    ``if_match`` is the etag that the object must have at the first piece. When no piece is held, up to ``ahead`` pieces
    are fetched concurrently. A piece that failed can be requested again.
    """

    def __init__(
        self,
        shelf: Shelf,
        key: str,
        start: int = 0,
        size: int | None = None,
        *,
        known: ObjectInfo | None = None,
        vet: Vet | None = None,
        if_match: str | None = None,
        piece_size: int | None = None,
        ahead: int | None = None,
    ) -> None:
        sizes = [each for each in (piece_size, ahead) if each is not None]
        if min(start, size or 0) < 0 or min(sizes, default=1) < 1:
            raise InvalidOptionsError(
                f"start={start}, size={size}, piece_size={piece_size}, ahead={ahead} is not a valid range of pieces",
                hint="start and size must be 0 or more, piece_size and ahead 1 or more",
            )
        self._shelf = shelf
        self._key = key
        self._at = start
        self._size = size
        self._vet = vet
        self._if_match = if_match
        self._piece_size = piece_size or 0
        self._ahead = ahead or 0
        self._held: deque[Outcome[ObjectRange]] = deque()
        self._info: ObjectInfo | None = None
        if known is not None:
            self._know(known)

    def _know(self, info: ObjectInfo) -> None:
        if self._vet is not None:
            self._vet(info)
        self._end = info.size if self._size is None else min(info.size, self._at + self._size)
        self._info = info

    async def next_page(self) -> bytes | None:
        """The next piece; None after the last."""
        if not self._held:
            self._held.extend(await self._fetch())
        if not self._held:
            return None
        try:
            piece = self._held.popleft().result()
            body = piece.body
            if piece.start != self._at or len(body) != min(self._piece_size, self._end - self._at):
                raise IntegrityError(
                    f"the service returned other bytes of {self._key!r:.80} than were requested"
                )
        except BaseException:
            self._held.clear()
            raise
        self._at += len(body)
        return body

    async def _fetch(self) -> list[Outcome[ObjectRange]]:
        """The next few pieces; none at the end."""
        port = self._shelf.context.port
        if not self._piece_size or not self._ahead:
            near = (await port.send(DescribeService(self._shelf.service))).parallel == 1
            self._piece_size = self._piece_size or (NEAR if near else FAR)
            self._ahead = self._ahead or (1 if near else 2)
        if self._info is None:
            return await self._find()
        starts = range(self._at, self._end, self._piece_size)[: self._ahead]
        flows = [port.send(self._request(each, self._end - each, self._info.etag)) for each in starts]
        if len(flows) == 1:
            return [Outcome(await flows[0])]
        return await port.gather(flows, limit=self._ahead) if flows else []

    async def _find(self) -> list[Outcome[ObjectRange]]:
        """Fetch the first piece, which also determines the object."""
        port, service = self._shelf.context.port, self._shelf.service
        if self._size == 0:
            self._know(await port.send(HeadObject(service, self._key)))
            return []
        size = self._piece_size if self._size is None else self._size
        found = await port.send(self._request(self._at, size, self._if_match))
        self._know(found.info)
        return [Outcome(found)] if self._at < self._end else []

    def _request(self, start: int, size: int, etag: str | None) -> GetObject:
        """The request for a range, on condition that the object is still the same."""
        return GetObject(self._shelf.service, self._key, start, min(self._piece_size, size), etag)
