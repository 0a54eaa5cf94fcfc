"""A toy that joins commits: it uploads a file before, adds a row that refers to it, and cleans up after.

An album's pictures are files in a directory, and a row for each in the table. While it is not known yet whether a file
will be referred to, there is a marker beside it. Whatever happens to a process, `swept` can tell later: a file that a
row refers to is in use, and any other is garbage. (A sweep of real files would leave the young alone, as their commit
may be under way; here nothing is under way when it sweeps.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdall import Database, Key, Model, SortKey
from holdall.core.port import Port
from holdall.core.values import Item
from holdall.tables.commit.change import Change, Participant
from holdall.tables.layout import Address
from holdall.tables.record import Record
from holdall.tables.record_column import text

__all__ = ["TABLE", "Album", "NameTakenError", "Picture", "Upload", "swept"]

TABLE = "holdall"


class Album(Model):
    """The owner: it knows how many pictures it has."""

    title: Key[str]
    size: int = 0


class Picture(Model):
    """A row: which file is the picture of that name."""

    album: Key[str]
    name: SortKey[str]
    file: str


class Row(Record, type="Picture"):
    """A picture's item, as a feature writes it."""

    album = text("album")
    name = text("name")
    file = text("file")


class NameTakenError(Exception):
    """The album already has a picture of that name."""


class Uploads(dict[Path, "Upload"]):
    """Who has the say over each file of a run."""


class Upload(Participant):
    """One picture of one album; ``uploads`` are the run's, so that a later attempt takes over what was uploaded.

    ``step`` hears what is about to be done; a test may have the process die there.
    """

    def __init__(
        self,
        files: Path,
        uploads: Uploads,
        album: str,
        name: str,
        data: bytes = b"picture",
        step: Callable[[str], Any] = lambda name: None,
    ) -> None:
        self.events: list[str] = []
        self._files = files
        self._uploads = uploads
        self._album = album
        self._name = name
        self._data = data
        self._step = step

    @property
    def file(self) -> Path:
        """Where the picture is kept."""
        return self._files / f"{self._album}-{self._name}"

    @property
    def marker(self) -> Path:
        """Exists for as long as it is unknown whether the file is in use."""
        return Path(f"{self.file}.pending")

    async def state(self, change: Change) -> None:
        """A row that is there already is there to stay."""
        pk, sk = ({"S": str(part)} for part in Picture.key(album=self._album, name=self._name).encoded)
        place = {"pk": pk, "sk": sk}
        row = Row.new(
            Address(TABLE, place, place),
            Row.album.set(self._album),
            Row.name.set(self._name),
            Row.file.set(self.file.name),
        )
        change.create(row, refused=self._refuse)

    def _refuse(self, found: Item | None) -> Exception:
        self.events.append("refuse")
        return NameTakenError(f"{self._album} has a picture called {self._name}")

    async def prepare(self, port: Port) -> None:
        self.events.append("prepare")
        await port.call(self._step, "before the upload")
        if self.file not in self._uploads:
            await port.call(self.marker.touch)
            await port.call(self.file.write_bytes, self._data[:3])
            await port.call(self._step, "in the upload")
            await port.call(self.file.write_bytes, self._data)
            self.events.append("upload")
        self._uploads[self.file] = self  # the participant that prepared last decides about it
        await port.call(self._step, "after the upload")

    async def settle(self, port: Port) -> None:
        self.events.append("settle")
        await port.call(self._step, "before settling")
        await port.call(self.marker.unlink)
        await port.call(self._step, "after settling")

    async def abandon(self, port: Port) -> None:
        self.events.append("abandon")
        if self._uploads.get(self.file, self) is self:  # no other participant took it over
            await port.call(self.file.unlink, True)
            await port.call(self.marker.unlink, True)


@dataclass(frozen=True)
class Sweep:
    """What a sweep found: files that were garbage, and files that only lacked settling."""

    garbage: frozenset[str]
    settled: frozenset[str]


def swept(db: Database, files: Path, albums: Sequence[str]) -> Sweep:
    """Tell garbage from what is referred to, by a look at the store alone; delete the one, settle the other."""
    referred = {picture.file for album in albums for picture in db.query(Picture, album=album)}
    garbage, settled = set(), set()
    for file in sorted(files.iterdir()):
        marker = Path(f"{file}.pending")
        if file.suffix == ".pending":
            if not file.with_suffix(
                ""
            ).exists():  # it died before the first byte, or was garbage a moment ago
                file.unlink(missing_ok=True)
        elif file.name not in referred:
            garbage.add(file.name)
            file.unlink()
            marker.unlink(missing_ok=True)
        elif marker.exists():
            settled.add(file.name)
            marker.unlink()
    return Sweep(frozenset(garbage), frozenset(settled))
