"""The database in the blocking colour."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from holdall.backends.blocking_port import BlockingPort
from holdall.backends.configuration import opened
from holdall.core.context import Context
from holdall.core.cursor import BlockingPages, PageCursor
from holdall.core.port import Backend, Port, run
from holdall.core.requests import Page, Query, Request, Scan
from holdall.core.settings import Durability

if TYPE_CHECKING:
    from holdall.async_database import AsyncDatabase

__all__ = ["Database"]

R = TypeVar("R")


class Database:
    """A database: embedded in one file, or in memory.

    ``Database()`` opens ``./holdall.db``; ``Database("embedded:data/app.db")`` another file;
    ``Database("memory:")`` one that is gone when it is closed. ``durability="normal"`` trades the last commits
    before a power cut for speed. Settings not given here come from the URL's query, the environment
    (``HOLDALL_URL``, ``HOLDALL_DURABILITY``) or ``holdall.toml``.

    ``backend`` is a store of your own kind in place of all that.

    Safe to share between threads, and to keep over a fork.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        durability: Durability | None = None,
        backend: Backend | None = None,
    ) -> None:
        self._backend, settings = opened(backend, url=url, durability=durability)
        self._context = Context(BlockingPort(self._backend), settings)

    def send(self, request: Request[R]) -> R:
        """Send one request and give its reply; its type follows the request's."""
        return run(self._context.port.send(request))

    def pages(self, request: Query | Scan) -> Iterator[Page]:
        """The pages of a query or scan, fetched one by one; ``limit`` is the most items looked at for each."""
        return BlockingPages(PageCursor(self._context.port, request))

    @property
    def port(self) -> Port:
        """The port, for flows of your own: ``run(my_flow(db.port))``."""
        return self._context.port

    @property
    def aio(self) -> AsyncDatabase:
        """The awaiting twin, on the same store."""
        from holdall.async_database import AsyncDatabase

        return AsyncDatabase(self._context.settings.url, backend=self._backend)

    def close(self) -> None:
        """Finish what is under way and close the store, for the twin too. Closing twice is harmless."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._context.settings.url!r})"
