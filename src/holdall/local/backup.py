"""Backups on this machine: directories with a copy of a database, the files of its objects, and a manifest.

A backup is filled under a temporary name and gets its own name when it is complete, with the manifest written last. So
a directory with a manifest is complete, and a directory without one is left from an interrupted backup.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from holdall.errors import IntegrityError, InvalidOptionsError
from holdall.local.draft import remove_tree

DATABASE = "database.sqlite"
FILES = "files"
LISTING = "files.jsonl"
MANIFEST = "backup.json"
FORMAT = 1
_PARTS = {"services", "database", "files"}
_PIECE = 1024 * 1024


class BackupDraft:
    """A backup that is being filled: its directory ``beside`` its final ``place``, and the listing of its files."""

    def __init__(self, target: str, place: Path, beside: Path) -> None:
        self.target = target
        self.place = place
        self.beside = beside
        self.waiting: dict[str, Iterator[Path]] = {}
        self.files = 0
        self.bytes = 0
        self.listing: Any = None


def open_backup(target: Any, id: str, roots: Sequence[str]) -> BackupDraft:
    """Make the directory of a new backup; `InvalidOptionsError` if something is at its place.

    It cannot be in one of the ``roots``, the directories whose files are backed up.
    """
    place = Path(target).absolute()
    for root in roots:
        if place.resolve().is_relative_to(Path(root).resolve()):
            raise InvalidOptionsError(
                f"{target} is in {root}, whose files are backed up", hint="choose a directory outside of it"
            )
    if os.path.lexists(place):
        raise InvalidOptionsError(f"{target} exists already", hint="choose the path of a new directory")
    if not place.parent.is_dir():
        raise InvalidOptionsError(f"there is no directory {place.parent}", hint="create it first")
    draft = BackupDraft(str(target), place, place.with_name(f"{place.name}.partial-{id}"))
    try:
        draft.beside.mkdir()
    except OSError as error:
        raise InvalidOptionsError(
            f"{target} cannot be created: {error.strerror}", hint="choose another path"
        ) from None
    draft.listing = (draft.beside / LISTING).open("w", encoding="utf-8")
    return draft


def copy_files(draft: BackupDraft, service: str, source: str, turn: int = 64) -> bool:
    """Copy the next files of a service, and list them with their digests; False once all are copied."""
    root = Path(source)
    if service not in draft.waiting:
        (draft.beside / FILES / service).mkdir(parents=True)
        draft.waiting[service] = _walk(root)
    for path in draft.waiting[service]:
        place = path.relative_to(root)
        size, digest, moment = _copy(path, draft.beside / FILES / service / place)
        facts = [service, place.as_posix(), size, moment, digest]
        draft.listing.write(json.dumps(facts, ensure_ascii=True) + "\n")
        draft.files += 1
        draft.bytes += size
        turn -= 1 + size // _PIECE
        if turn <= 0:
            return True
    return False


def _walk(root: Path) -> Iterator[Path]:
    for path, directories, names in os.walk(root):
        directories.sort()
        yield from (Path(path) / name for name in sorted(names))


def _copy(source: Path, target: Path) -> tuple[int, str, int]:
    """Copy a file with its time; returns its size, its digest and its time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = sha256(), 0
    with source.open("rb") as original, target.open("wb") as copy:
        moment = os.fstat(original.fileno()).st_mtime_ns
        while piece := original.read(_PIECE):
            digest.update(piece)
            size += copy.write(piece)
        copy.flush()
        os.utime(copy.fileno(), ns=(moment, moment))
        os.fsync(copy.fileno())
    return size, digest.hexdigest(), moment


def finish_backup(draft: BackupDraft, facts: dict[str, Any]) -> None:
    """Read everything back and compare digests; then write the manifest, and give the directory its name."""
    _sync_and_close(draft.listing)
    _check_files(draft.beside)
    database = draft.beside / DATABASE
    manifest = {
        "format": FORMAT,
        **facts,
        "database": {"bytes": database.stat().st_size, "sha256": _digest(database)},
        "files": {"count": draft.files, "bytes": draft.bytes, "sha256": _digest(draft.beside / LISTING)},
    }
    with (draft.beside / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=2)
        file.write("\n")
        _sync_and_close(file)
    for path, _, _ in os.walk(draft.beside, topdown=False):
        _sync_directory(Path(path))
    draft.beside.rename(draft.place)
    _sync_directory(draft.place.parent)


def drop_backup(draft: BackupDraft) -> None:
    """Remove a backup that was not finished."""
    if draft.listing is not None:
        draft.listing.close()
    if draft.beside.exists():
        remove_tree(draft.beside)


def read_backup(source: Any) -> dict[str, Any]:
    """Check a backup completely, every file against its digest; returns its manifest."""
    place = Path(source).absolute()
    try:
        manifest: dict[str, Any] = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
        is_ours = isinstance(manifest, dict) and "format" in manifest
        if not is_ours or (manifest["format"] == FORMAT and not manifest.keys() >= _PARTS):
            raise ValueError("it is not the manifest of a backup")
    except FileNotFoundError:
        raise InvalidOptionsError(
            f"{source} is not a complete backup: it has no {MANIFEST}", hint="use another backup"
        ) from None
    except ValueError as error:
        raise IntegrityError(f"{source}/{MANIFEST} cannot be read: {error}") from None
    if manifest["format"] != FORMAT:
        raise IntegrityError(
            f"{source} has the format {manifest['format']!r:.20}, and this version reads {FORMAT}",
            hint="use a newer version of Holdall",
        )
    for name, facts in ((DATABASE, manifest["database"]), (LISTING, manifest["files"])):
        if not (place / name).is_file() or _digest(place / name) != facts["sha256"]:
            raise IntegrityError(f"{source}/{name} is missing or damaged", hint="use another backup")
    _check_files(place)
    _refuse_others(place, manifest["files"]["count"])
    return manifest


def _refuse_others(place: Path, count: int) -> None:
    """Refuse a backup that has other files than the listing, because they would be restored, too."""
    if sum(1 for _ in _walk(place / FILES)) == count:
        return
    with (place / LISTING).open(encoding="utf-8") as listing:
        listed = {place / FILES / service / name for service, name, *_ in map(json.loads, listing)}
    for path in _walk(place / FILES):
        if path not in listed:
            raise IntegrityError(f"{path} is not part of the backup", hint="remove it from there")


def _check_files(place: Path) -> None:
    with (place / LISTING).open(encoding="utf-8") as listing:
        for line in listing:
            service, name, size, moment, digest = json.loads(line)
            path = place / FILES / service / name
            if not path.is_file() or path.stat().st_size != size or _digest(path) != digest:
                raise IntegrityError(f"{path} is missing or damaged", hint="use another backup")
            if path.stat().st_mtime_ns != moment:  # tools that copy backups may not keep it
                os.utime(path, ns=(moment, moment))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _sync_and_close(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
