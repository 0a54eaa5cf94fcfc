"""Records of directories: the manifests, the files of each, and how many versions still need them.

The records, in the table of artifacts:

- ``holdall#ArtifactManifest#<sha256>`` / ``#``, a *manifest*: ``refs``, the number of versions that have it;
  ``hold:<until>:<id>`` for each put in progress; ``complete``, once all its files are stored; ``going``, the token of
  the sweep that is taking it apart. ``born`` (an id) and ``changes`` (a count) together differ after every change.
- the same partition / ``file#<sha256>``, a *pair*: the manifest has this file, and is counted in the file's ``refs``;
  with ``taken`` it no longer is.
- ``holdall#ArtifactFile#<sha256>`` / ``#``, a *file*: ``refs``, the number of manifests that have it; ``size``;
  ``stored``, the key of its object, once the object exists; ``deleting``, ``<manifest>:<token>`` of the sweep that
  deletes it, which means that ``refs`` is 0; ``born``, an id, a new one for each life of the record. ``moved``: see
  below.
- ``holdall#ArtifactSweep`` / ``<manifest>``, a *mark*: `sweep` must look at this manifest.

The invariants, which hold because every write that concerns them is one transaction:

1. ``refs`` of a file is the number of its pairs that are not taken; it has ``deleting`` if, and only if, that is 0.
2. A pair is added only under a hold on its manifest, and taken only under the token of a sweep. A manifest has one or
   the other, never both: a hold ends every sweep, and a sweep begins only where there is no version and no live hold.
3. ``complete`` means that there is a pair, and a stored object, for every file of the manifest; a sweep removes it
   first. Versions are counted only where it is set.
4. A manifest that no version has is marked.

**Keys that are not used again.** A file is stored under ``__files/<sha256>``. A process that deletes an object may be
slow, and its request may arrive long after every other process has given it up for dead. So a key is used again only
after the process that ordered its deletion has seen the deletion end. Any other process that finds ``deleting`` (a put
that needs the file, a sweep that follows one that died) permanently marks the record as ``moved``: from then on the
file is stored under ``__files/<sha256>.<born>``, and the old key is one of the ``leftovers``, which are deleted with
the file. This needs no clock and no lock, and no process waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Self

from holdall.artifacts.home import Home
from holdall.artifacts.record import ArtifactRecord
from holdall.core.expressions import Condition, UpdateAction
from holdall.core.frozen import dataclass
from holdall.core.port import Port
from holdall.core.requests import Query
from holdall.tables.commit.change import Change
from holdall.tables.record import RecordPages, fetch_all
from holdall.tables.record_column import RecordColumn, family, flag, number, text, texts

BATCH = 49
"""The number of files in a transaction: each needs two actions, and their manifest one."""

_HELD = timedelta(days=1)
"""How long a hold lasts. This only decides when a sweep may remove it."""

_MANIFEST = "holdall#ArtifactManifest#"
_FILE = "holdall#ArtifactFile#"
_SWEEP = "holdall#ArtifactSweep"
_PAIR = "file#"


class ManifestRecord(ArtifactRecord, type="holdall.ArtifactManifest"):
    """A manifest, and how many versions have it."""

    __slots__ = ()
    refs = number("refs", 0)
    changes = number("changes", 0)
    born = text("born")
    complete = flag("complete", False)
    going = text("going", None)
    holds = family("hold:", flag)

    @classmethod
    def at(cls, home: Home, manifest: str) -> Self:
        """The record of a manifest, not yet read."""
        return cls(home.address(_MANIFEST + manifest, "#"))

    @property
    def sha256(self) -> str:
        """The digest of the manifest."""
        return self.pk.removeprefix(_MANIFEST)

    def remove_expired(self, now: datetime) -> list[UpdateAction]:
        """The updates that remove expired holds."""
        second = now.timestamp()
        return [
            ManifestRecord.holds[name].remove()
            for name in self.holds
            if int(name.partition(":")[0]) <= second
        ]


class PairRecord(ArtifactRecord, type="holdall.ArtifactPair"):
    """A manifest has a file, and is counted for it unless the pair is taken."""

    __slots__ = ()
    taken = flag("taken", False)

    @classmethod
    def at(cls, home: Home, manifest: str, sha256: str) -> Self:
        """The record of a pair, not yet read."""
        return cls(home.address(_MANIFEST + manifest, _PAIR + sha256))

    @classmethod
    def of(cls, home: Home, manifest: str, sha256: str) -> Self:
        """Make the record of a pair."""
        return cls.new(home.address(_MANIFEST + manifest, _PAIR + sha256))

    @property
    def is_counted(self) -> bool:
        """Whether the manifest is counted in the file's ``refs``."""
        return self.is_stored and not self.taken


class FileRecord(ArtifactRecord, type="holdall.ArtifactFile"):
    """A file, and how many manifests have it."""

    __slots__ = ()
    refs = number("refs", 0)
    size = number("size")
    born = text("born", None)
    stored_key = text("stored", None)
    deleting = text("deleting", None)
    moved = flag("moved", False)
    leftovers = texts("leftovers")

    @classmethod
    def at(cls, home: Home, sha256: str) -> Self:
        """The record of a file, not yet read."""
        return cls(home.address(_FILE + sha256, "#"))

    @property
    def sha256(self) -> str:
        """The digest of the file."""
        return self.pk.removeprefix(_FILE)

    def object_key(self, home: Home) -> str:
        """The key of the file's object in this life of the record."""
        key = home.file_key(self.sha256)
        return f"{key}.{self.born}" if self.moved else key

    def retire(self) -> Self:
        """What stays of the record when the file is deleted, but its first key must not be used again."""
        return self.new(self.address, FileRecord.moved.set(True))


class SweepMark(ArtifactRecord, type="holdall.ArtifactSweep"):
    """Marks a manifest that a sweep must look at."""

    __slots__ = ()

    @classmethod
    def of(cls, home: Home, manifest: str) -> Self:
        """Make the mark of a manifest."""
        return cls.new(home.address(_SWEEP, manifest))

    @staticmethod
    def query(home: Home) -> Query:
        """The query for all marks, a hundred at a time."""
        return home.query(_SWEEP, limit=100)


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold on a manifest: all its files are stored, and stay so until the hold is dropped or a day is over."""

    manifest: str
    id: str
    until: int

    @classmethod
    def begin(cls, manifest: str, id: str, now: datetime) -> Hold:
        """Make a hold for a day from now."""
        return cls(manifest, id, int((now + _HELD).timestamp()))

    @property
    def alive(self) -> Condition:
        """The condition that the manifest's record still has this hold."""
        return self._column().exists

    def set(self) -> UpdateAction:
        """The update that adds the hold to the manifest's record."""
        return self._column().set(True)

    def remove(self) -> UpdateAction:
        """The update that removes the hold from the manifest's record."""
        return self._column().remove()

    def _column(self) -> RecordColumn[bool]:
        return ManifestRecord.holds[f"{self.until}:{self.id}"]

    def renew(self, now: datetime) -> Hold | None:
        """The hold extended to a day from now; None while more than half of its day is left."""
        new = Hold.begin(self.manifest, self.id, now)
        return None if new.until - self.until < _HELD.total_seconds() / 2 else new


@dataclass(frozen=True, slots=True)
class Life:
    """A counted file in one life of its record: the key of its object, and whether the object is stored."""

    sha256: str
    born: str
    key: str
    is_stored: bool

    @classmethod
    def of(cls, home: Home, file: FileRecord) -> Life:
        """The current life of a file's record."""
        assert file.born is not None
        return cls(file.sha256, file.born, file.object_key(home), file.stored_key is not None)


# --- changes ----------------------------------------------------------------------------------------------


def change_manifest(
    change: Change,
    manifest: ManifestRecord,
    *actions: UpdateAction,
    expect: Sequence[Condition],
    label: str | None = None,
) -> None:
    """Change a manifest's record so that it differs from all its earlier states."""
    change.update(manifest, *actions, ManifestRecord.changes.add(1), expect=expect, label=label)


def count_file(change: Change, home: Home, manifest: str, file: FileRecord, size: int) -> Life:
    """Pair a manifest with a file and count it, if the file's record is as it was read; return the file's life."""
    sha256 = file.sha256
    pair = PairRecord.of(home, manifest, sha256)
    change.put(pair, expect=[pair.address.absent | PairRecord.taken.exists])
    expect = [file.same(FileRecord.born, FileRecord.deleting if file.born is not None else FileRecord.moved)]
    if file.born is not None and file.deleting is None:
        change.update(file, FileRecord.refs.add(1), expect=expect)
        return Life.of(home, file)
    born, key = change.context.port.new_id(), home.file_key(sha256)
    actions: list[UpdateAction] = [
        FileRecord.refs.set(1),
        FileRecord.size.set(size),
        FileRecord.born.set(born),
    ]
    if not file.is_stored:
        actions.append(FileRecord.tag())
    elif file.deleting is not None:
        actions += [
            FileRecord.moved.set(True),
            FileRecord.deleting.remove(),
            FileRecord.stored_key.remove(),
            FileRecord.leftovers.add([file.object_key(home)]),
        ]
    change.update(file, *actions, expect=expect)
    return Life(sha256, born, f"{key}.{born}" if file.is_stored else key, is_stored=False)


def name_directory(manifest: str) -> str:
    """The name of a directory in error messages."""
    return f"the directory with the manifest {manifest[:12]}…"


# --- reads ------------------------------------------------------------------------------------------------


async def fetch_files(port: Port, home: Home, digests: Sequence[str]) -> dict[str, FileRecord]:
    """Fetch the records of files, strongly consistent."""
    found = await fetch_all(port, [FileRecord.at(home, sha256) for sha256 in digests])
    return dict(zip(digests, found, strict=True))


async def fetch_pairs(port: Port, home: Home, manifest: str, digests: Sequence[str]) -> dict[str, PairRecord]:
    """Fetch the pairs of a manifest and these files, strongly consistent."""
    found = await fetch_all(port, [PairRecord.at(home, manifest, sha256) for sha256 in digests])
    return dict(zip(digests, found, strict=True))


async def fetch_all_pairs(port: Port, home: Home, manifest: str) -> dict[str, PairRecord]:
    """Fetch all pairs of a manifest, by the digests of their files."""
    query = home.query(_MANIFEST + manifest, prefix=_PAIR)
    found = await RecordPages(port, PairRecord, query, home.address_of).read_all()
    return {pair.sk.removeprefix(_PAIR): pair for pair in found}
