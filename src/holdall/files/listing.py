"""Lists of objects, page by page."""

from __future__ import annotations

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.objects import ListObjects, ObjectPage


class Listing:
    """A listing, page by page; no request is open between two pages."""

    def __init__(self, context: Context, service: str, prefix: str = "") -> None:
        self._port = context.port
        self._next: ListObjects | None = ListObjects(service, prefix)

    async def next_page(self) -> ObjectPage | None:
        """The next page, None after the last."""
        if self._next is None:
            return None
        page = await self._port.send(self._next)
        self._next = None if page.next is None else replace(self._next, after=page.next)
        return page
