"""A toy participant: it uploads a file before the commit, adds a row that refers to it, and cleans up afterwards.

An album's pictures are files in a directory, each with a row in the table. A marker beside a file means that the commit
of its row is not settled. If a process dies at any moment, `sweep_files` can decide later: a file that a row refers to
is in use, and any other is garbage. (A sweep of real files would keep young files, whose commit may be in progress;
here no commit is in progress during a sweep.)
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

__all__ = ["TABLE", "Album", "NameTakenError", "Picture", "Upload", "sweep_files"]

TABLE = "holdall"


class Album(Model):
    """The owner of pictures; it stores their number."""

    title: Key[str]
    size: int = 0


class Picture(Model):
    """A row: the file of a named picture."""

    album: Key[str]
    name: SortKey[str]
    file: str


class Row(Record, type="Picture"):
    """The item of a picture, as a feature writes it."""

    album = text("album")
    name = text("name")
    file = text("file")


class NameTakenError(Exception):
    """The album already has a picture of that name."""


class Uploads(dict[Path, "Upload"]):
    """The participant that is responsible for each file of a run."""


class Upload(Participant):
    """One picture of an album; ``uploads`` belongs to the run, so that a later attempt takes over an uploaded file.

    ``step`` is called with the name of each step; a test can kill the process there.
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
        """The file of the picture."""
        return self._files / f"{self._album}-{self._name}"

    @property
    def marker(self) -> Path:
        """Exists until the commit is settled or abandoned."""
        return Path(f"{self.file}.pending")

    async def state(self, change: Change) -> None:
        """State the row, which must not exist yet."""
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
        self._uploads[self.file] = self  # the participant that prepared last is responsible
        await port.call(self._step, "after the upload")

    async def settle(self, port: Port) -> None:
        self.events.append("settle")
        await port.call(self._step, "before settling")
        await port.call(self.marker.unlink)
        await port.call(self._step, "after settling")

    async def abandon(self, port: Port) -> None:
        self.events.append("abandon")
        if self._uploads.get(self.file, self) is self:  # no other participant took over the file
            await port.call(self.file.unlink, True)
            await port.call(self.marker.unlink, True)


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep: files that were garbage, and files whose commit was not settled yet."""

    garbage: frozenset[str]
    settled: frozenset[str]


def sweep_files(db: Database, files: Path, albums: Sequence[str]) -> Sweep:
    """Delete files without a row, and settle the others; only the store decides which is which."""
    referred = {picture.file for album in albums for picture in db.query(Picture, album=album)}
    garbage, settled = set(), set()
    for file in sorted(files.iterdir()):
        marker = Path(f"{file}.pending")
        if file.suffix == ".pending":
            # without its file, if the process died before the first byte or the file was garbage
            if not file.with_suffix("").exists():
                file.unlink(missing_ok=True)
        elif file.name not in referred:
            garbage.add(file.name)
            file.unlink()
            marker.unlink(missing_ok=True)
        elif marker.exists():
            settled.add(file.name)
            marker.unlink()
    return Sweep(frozenset(garbage), frozenset(settled))
