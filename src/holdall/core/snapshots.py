"""Requests for backups: copies of a store and of its objects as of one moment. All are frozen values.

Pure. Only the embedded engine and the service on disk answer them. While a snapshot of a service is open and not yet
linked, deletions and replacements of its objects wait, so everything that the rows of the store name is still there
when the objects are linked.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.objects import ObjectRequest
from holdall.core.requests import Done, Request

R = TypeVar("R")


class StoreRequest(Request[R]):
    """A request that concerns the whole store, not a table; ``path`` is the file of a copy."""

    __slots__ = ()
    of_tables: ClassVar[bool] = True
    path: str

    @property
    def tables(self) -> tuple[str, ...]:
        """None in particular."""
        return ()


@dataclass(frozen=True, slots=True)
class SnapshotStore(StoreRequest[Done]):
    """Write a copy of the store, as of one moment, to a new file at ``path``, and check its integrity."""

    path: str


@dataclass(frozen=True, slots=True)
class RestoreStore(StoreRequest[Done]):
    """Fill a store that has no tables with the copy at ``path``, in one step."""

    path: str
    writes: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An open snapshot of a service: links to its objects' files are in ``directory``, once they are made."""

    id: str
    directory: str


@dataclass(frozen=True, slots=True)
class BeginSnapshot(ObjectRequest[Snapshot]):
    """Make deletions and replacements of objects wait, until the snapshot is linked or ended."""

    service: str


@dataclass(frozen=True, slots=True)
class LinkSnapshot(ObjectRequest[Done]):
    """Link the files of all objects into the snapshot's directory, and let deletions continue."""

    service: str
    id: str


@dataclass(frozen=True, slots=True)
class EndSnapshot(ObjectRequest[Done]):
    """Let deletions continue, and remove the links."""

    service: str
    id: str


@dataclass(frozen=True, slots=True)
class AdoptObjects(ObjectRequest[Done]):
    """Copy the objects' files in ``directory`` into a service that has no others."""

    service: str
    directory: str
    writes: ClassVar[bool] = True
