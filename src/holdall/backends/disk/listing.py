"""Listings: all objects in the order of their keys' bytes, across directories, without holding all of them in memory.

A heap holds the next candidates: files under their keys, and shelves (directories) under the common prefix of their
keys, which is never greater than any of them. So entries leave the heap in order, if a shelf's content is added when
its turn comes. Only a part of a large directory is held at a time; at its end, the heap gets an entry that continues
the directory there.

The names of a large directory are kept for the next page, which would otherwise read and sort all of them again. They
are used only if nothing has been added to the directory, or removed from it, since they were read.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from heapq import heappop, heappush, nsmallest
from itertools import islice
from typing import NamedTuple, TypeAlias

from holdall.backends.disk.attribute import list_object
from holdall.backends.disk.directory import Directories
from holdall.backends.disk.path import ROOT, Shelf, inside, key_at, own_shelf
from holdall.core.objects import ListedObject, ListObjects, ObjectPage

_HELD = 2000
_KEPT = 50_000
_SETTLED = 2_000_000_000  # nanoseconds: file systems record times of change no more finely

_Rank: TypeAlias = tuple[bytes, bool, str]
"""An entry's place in the order: its key or common prefix, files before shelves, its name."""

_Next: TypeAlias = tuple[_Rank, bool, Shelf]
"""A candidate: an entry of a shelf, or (True) the entries that follow it there."""


class _Window(NamedTuple):
    """The first entries of a directory from a position on that match a listing; all of them if ``whole``."""

    shelf: Shelf
    prefix: bytes
    changed: tuple[int, int]
    after: bytes
    beyond: _Rank
    ranks: list[_Rank]
    whole: bool


class Listings:
    """The listings of one root."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories
        self.window: _Window | None = None

    def page(self, request: ListObjects) -> ObjectPage:
        """The objects whose keys begin with a prefix, from a key on."""
        prefix = request.prefix.encode("utf-8", "surrogatepass")
        after = (request.after or "").encode("utf-8", "surrogatepass")
        with ExitStack() as stack:
            walk = _Walk(self, self._directories, prefix, after, stack)
            found = list(islice(walk.objects(), request.limit + 1))
        objects = tuple(found[: request.limit])
        return ObjectPage(objects, objects[-1].key if len(found) > request.limit else None)


class _Walk:
    def __init__(
        self, listings: Listings, directories: Directories, prefix: bytes, after: bytes, stack: ExitStack
    ) -> None:
        self._listings = listings
        self._directories = directories
        self._prefix = prefix
        self._after = after
        self._stack = stack
        self._heap: list[_Next] = []
        self._open: tuple[tuple[str, ...], int] | None = None

    def objects(self) -> Iterator[ListedObject]:
        """All objects, in order."""
        self._add(ROOT)
        self._add(own_shelf(self._prefix))
        while self._heap:
            rank, more, shelf = heappop(self._heap)
            _, is_shelf, name = rank
            if more:
                self._add(shelf, rank)
            elif is_shelf:
                inner = inside(shelf, name, True)
                assert isinstance(inner, Shelf)
                self._add(inner)
            elif (found := self._object(shelf, name)) is not None:
                yield found

    # --- entries ---

    def _add(self, shelf: Shelf, beyond: _Rank = (b"", False, "")) -> None:
        """Put the content of a shelf on the heap, from a position on."""
        with suppress(FileNotFoundError, NotADirectoryError):
            with self._directories.open(shelf.directories) as here:
                ranks, whole = self._reuse(shelf, here, beyond) or self._read(shelf, here, beyond)
            for rank in ranks:
                heappush(self._heap, (rank, False, shelf))
            if ranks and not whole:
                heappush(self._heap, (ranks[-1], True, shelf))

    def _read(self, shelf: Shelf, here: int, beyond: _Rank) -> tuple[list[_Rank], bool]:
        """Some entries of a directory, and whether these are all; many entries are also kept for the next page."""
        changed, now = _read_change_time(here), time.time_ns()
        ranks = nsmallest(_KEPT, (rank for rank in self._ranks(shelf, here) if rank > beyond))
        if len(ranks) <= _HELD:
            return ranks, True
        if changed[1] < now - _SETTLED:
            self._listings.window = _Window(
                shelf, self._prefix, changed, self._after, beyond, ranks, len(ranks) < _KEPT
            )
        return ranks[:_HELD], False

    def _reuse(self, shelf: Shelf, here: int, beyond: _Rank) -> tuple[list[_Rank], bool] | None:
        """The same from what was read for an earlier page, if it was kept."""
        window = self._listings.window
        if window is None or (shelf, self._prefix, _read_change_time(here)) != window[:3]:
            return None
        if self._after < window.after or beyond < window.beyond:
            return None
        ranks = list(
            islice((rank for rank in window.ranks if rank > beyond and self._wants(rank[0], rank[1])), _HELD)
        )
        if len(ranks) == _HELD:
            return ranks, False
        return (ranks, window.whole) if ranks or window.whole else None

    def _ranks(self, shelf: Shelf, here: int) -> Iterator[_Rank]:
        with os.scandir(here) as entries:
            for entry in entries:
                name = entry.name
                if "~" in name:
                    continue  # attributes
                directory = entry.is_dir(follow_symlinks=False)
                meaning = inside(shelf, name, directory)
                if meaning is None or (isinstance(meaning, Shelf) and meaning.kind == "ours"):
                    continue  # our own directory; its objects are added separately
                covers = meaning.covers if isinstance(meaning, Shelf) else meaning
                if self._wants(covers, directory):
                    yield covers, directory, name

    def _wants(self, covers: bytes, directory: bool) -> bool:
        prefix, after = self._prefix, self._after
        if not directory:
            return covers > after and covers.startswith(prefix)
        return (covers > after or after.startswith(covers)) and (
            covers.startswith(prefix) or prefix.startswith(covers)
        )

    # --- objects ---

    def _object(self, shelf: Shelf, name: str) -> ListedObject | None:
        key = key_at(shelf.directories, name)
        if key is None:
            return None
        with suppress(FileNotFoundError, NotADirectoryError):  # it was just deleted
            found = os.stat(name, dir_fd=self._open_directory(shelf.directories), follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                return list_object(key, found)
        return None

    def _open_directory(self, names: tuple[str, ...]) -> int:
        """A directory, kept open because the next object is probably in it, too."""
        if self._open is None or self._open[0] != names:
            self._stack.close()
            self._open = None
            self._open = names, self._stack.enter_context(self._directories.open(names))
        return self._open[1]


def _read_change_time(directory: int) -> tuple[int, int]:
    found = os.fstat(directory)
    return found.st_ino, found.st_mtime_ns
