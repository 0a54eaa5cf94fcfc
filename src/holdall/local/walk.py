"""Walks: the files of a directory and their digests, each file read once.

Symbolic links, sockets and other special files are refused by name (`InvalidArtifactError`), because their content is
not in the directory. A file that is written to meanwhile is detected (`IntegrityError`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_IXUSR
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass
from holdall.errors import IntegrityError, InvalidArtifactError
from holdall.local.source import hash_file

if TYPE_CHECKING:
    from os import stat_result


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, or an empty directory if its path ends with a slash, as the walk found it.

    ``state`` is different for every file, and changes when the file is written to.
    """

    path: str
    place: Path
    size: int
    executable: bool
    state: tuple[int, ...]


def walk_directory(given: Any, check_path: Callable[[str], str]) -> list[FoundFile]:
    """All files and empty directories below a directory; ``check_path`` refuses paths by raising."""
    root = Path(given)
    if not root.is_dir():
        raise InvalidArtifactError(f"{root} is not a directory")
    return list(_walk(root, check_path))


def _walk(root: Path, check_path: Callable[[str], str]) -> Iterator[FoundFile]:
    waiting = [(root, "")]
    while waiting:
        directory, prefix = waiting.pop()
        empty = True
        for place in directory.iterdir():
            empty = False
            path = check_path(prefix + place.name)
            status = place.lstat()
            if S_ISDIR(status.st_mode):
                waiting.append((place, f"{path}/"))
            elif S_ISREG(status.st_mode):
                yield FoundFile(
                    path, place, status.st_size, bool(status.st_mode & S_IXUSR), _state_of(status)
                )
            else:
                what = "a symbolic link" if S_ISLNK(status.st_mode) else "not a regular file"
                raise InvalidArtifactError(
                    f"{path!r:.200} is {what}, so it cannot be part of an artifact",
                    hint="copy the file itself into the directory",
                )
        if empty and prefix:
            yield FoundFile(prefix, directory, 0, False, ())


def _state_of(status: stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev, status.st_mode


def hash_files(found: Sequence[FoundFile]) -> list[str | None]:
    """The digest of each file, None for an empty directory."""
    digests: list[str | None] = []
    for each in found:
        if each.path.endswith("/"):
            digests.append(None)
            continue
        digest = sha256()
        hash_found_range(each, digest, 0, each.size + 1)
        check_files([each])
        digests.append(digest.hexdigest())
    return digests


def hash_found_range(found: FoundFile, digest: Any, start: int, size: int) -> None:
    """Hash a range of a file."""
    try:
        with found.place.open("rb", buffering=0) as file:
            hash_file(file, digest, start, size)
    except FileNotFoundError:
        raise _refuse_changed(found) from None


def check_files(found: Sequence[FoundFile]) -> None:
    """Refuse files that were written to since the walk."""
    for each in found:
        try:
            unchanged = _state_of(each.place.lstat()) == each.state
        except FileNotFoundError:
            unchanged = False
        if not unchanged:
            raise _refuse_changed(each)


def _refuse_changed(found: FoundFile) -> IntegrityError:
    return IntegrityError(f"the file {found.path!r:.200} was changed while it was read")
