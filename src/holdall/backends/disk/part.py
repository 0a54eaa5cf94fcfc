"""The parts of an upload in its directory.

A part's bytes are in ``data``, the file that all parts share, at the offset where they belong if the parts around them
have the usual length; or in a separate file, if they do not fit there. Its record is the name of a file, which is empty
or is that separate file: so a part appears in one step, and the names alone list all parts.

A process that changes anything here has locked ``data``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from holdall.backends.disk.transfer import READ, WRITE, checksum, pieces, write_file
from holdall.core.frozen import dataclass
from holdall.core.rules.object import MAX_OBJECT

DATA = "data"
_NAME = re.compile(r"([0-9]{5})\.([0-9a-f]+)\.([0-9a-f]+|apart)\.([0-9a-f]+-[0-9a-f]+)\.([0-9a-f]+)\Z")
_lies_there = re.compile(r"[0-9]{5}\.[0-9a-f]+\.[0-9a-f]+\.[0-9a-f]+-").match


@dataclass(frozen=True, slots=True)
class Piece:
    """A stored part: from ``offset`` on in the file that all parts share, or in a separate file (None).

    ``etag`` is the checksum of its bytes; ``stamp`` distinguishes it from all other parts ever stored under its number.
    """

    number: int
    size: int
    offset: int | None
    etag: str
    stamp: str

    @property
    def end(self) -> int:
        """Where it ends in the shared file."""
        assert self.offset is not None
        return self.offset + self.size

    @property
    def name(self) -> str:
        """Its record."""
        offset = "apart" if self.offset is None else f"{self.offset:x}"
        return f"{self.number:05}.{self.size:x}.{offset}.{self.etag}.{self.stamp}"


def piece_of(name: str) -> Piece | None:
    """The part that a name records; None if it is not a record."""
    found = _NAME.match(name)
    if found is None:
        return None
    number, size, offset, etag, stamp = found.groups()
    return Piece(int(number), int(size, 16), None if offset == "apart" else int(offset, 16), etag, stamp)


def offset_for(number: int, size: int, lower: Piece | None, upper: Piece | None) -> int | None:
    """Where a part belongs in the shared file, between its neighbours there; None if there is no room for it.

    Missing parts in between are assumed to be as long as a neighbour. Wrong guesses cost time, not data: no part is
    ever stored over another.
    """
    before, end = (lower.number, lower.end) if lower else (0, 0)
    neighbour = lower or upper
    offset = end + (number - before - 1) * (neighbour.size if neighbour else size)
    room = MAX_OBJECT if upper is None or upper.offset is None else upper.offset
    return offset if offset + size <= room else None


class Parts:
    """The parts in the open directory of an upload."""

    def __init__(self, directory: int) -> None:
        self._directory = directory

    def all(self) -> dict[int, Piece]:
        """The parts by their numbers, in order."""
        found = map(piece_of, self._names())
        return {piece.number: piece for piece in sorted(filter(None, found), key=lambda piece: piece.number)}

    def keep(self, number: int, size: int, data: int, write: Callable[[int, int], str]) -> Piece:
        """Store a part instead of an earlier one with its number; ``write`` writes its bytes and returns their etag.

        The record of the earlier part is removed before any byte is written, and the new one is created after all are.
        """
        names = self._names()
        mine = f"{number:05}."
        for name in names:
            if name.startswith(mine):
                os.unlink(name, dir_fd=self._directory)
        offset = offset_for(number, size, *_neighbours(mine, names))
        stamp = os.urandom(8).hex()
        if offset is not None:
            piece = Piece(number, size, offset, write(data, offset), stamp)
            write_file(self._directory, piece.name, b"")
            return piece
        draft = f"draft.{stamp}"
        with self._new(draft) as file:
            piece = Piece(number, size, None, write(file, 0), stamp)
            os.rename(draft, piece.name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        return piece

    @contextmanager
    def open(self, piece: Piece) -> Iterator[tuple[int, int]]:
        """The file with a part's bytes, and the offset where they begin."""
        file = os.open(piece.name if piece.offset is None else DATA, READ, dir_fd=self._directory)
        try:
            yield file, piece.offset or 0
        finally:
            os.close(file)

    def is_whole(self, piece: Piece) -> bool:
        """Whether a part's bytes match its record."""
        with suppress(FileNotFoundError), self.open(piece) as (file, start):
            return checksum(pieces(file, start, piece.size)) == piece.etag
        return False

    def _names(self) -> list[str]:
        return os.listdir(self._directory)  # noqa: PTH208 - an open directory

    @contextmanager
    def _new(self, name: str) -> Iterator[int]:
        file = os.open(name, WRITE, 0o666, dir_fd=self._directory)
        try:
            yield file
        finally:
            with suppress(OSError):  # it was renamed, or is removed with its upload
                os.unlink(name, dir_fd=self._directory)
            os.close(file)


def _neighbours(mine: str, names: list[str]) -> tuple[Piece | None, Piece | None]:
    """The parts before and after a part in the shared file; there may be thousands, so only these two are parsed."""
    lower, upper = "", "~"
    for name in names:
        if name < mine:
            if lower < name and _lies_there(name):
                lower = name
        elif name < upper and name[:6] != mine and _lies_there(name):
            upper = name
    return piece_of(lower), piece_of(upper)
