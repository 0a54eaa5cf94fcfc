"""A manifest: the content of a directory, as bytes that are always the same for the same directory.

Pure. It is JSON in UTF-8, in one canonical form: ``{"holdall":1,"entries":[...]}`` without spaces, the entries in the
order of their paths' bytes. A file is ``{"path":"bin/run","sha256":"…","size":5,"executable":true}`` (``executable``
only if it is true), an empty directory is ``{"path":"empty/"}``. Other directories appear only in the paths of their
files.

Paths are relative and have forward slashes. These raise `InvalidArtifactError`: a path that leads out of the directory
(``..``, a leading slash, a drive), one that some system interprets differently (a backslash, control characters), and
two paths of which one would overwrite the other on a file system that ignores case or the encoding of accents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from json import dumps, loads
from typing import Any

from holdall.core.frozen import dataclass
from holdall.core.rules.object import MAX_OBJECT
from holdall.errors import InvalidArtifactError

CONTENT_TYPE = "application/vnd.holdall.manifest+json"
"""The content type of a manifest."""

MAX_MANIFEST = 64 * 1024**2
"""The largest manifest, in bytes: about 400,000 files. It is read as a whole."""

_FORMAT = 1
_LONGEST = 4096
_LONGEST_SEGMENT = 255
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FOREIGN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\]")
_DRIVE = re.compile(r"[A-Za-z]:")
_FILE_KEYS = ({"path", "sha256", "size"}, {"path", "sha256", "size", "executable"})


@dataclass(frozen=True, slots=True)
class Member:
    """A file; or, with a slash at the end of its path, an empty directory, which has no digest."""

    path: str
    sha256: str | None = None
    size: int = 0
    executable: bool = False

    @property
    def is_directory(self) -> bool:
        """Whether it is an empty directory."""
        return self.path.endswith("/")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries of a directory, validated and sorted; `Manifest.of` makes one."""

    entries: tuple[Member, ...]

    @classmethod
    def of(cls, entries: Iterable[Member]) -> Manifest:
        """Make a manifest of entries in any order; `InvalidArtifactError` if they cannot be in one directory."""
        ordered = tuple(sorted(entries, key=lambda entry: _encode(entry.path)))
        for entry in ordered:
            _check_member(entry)
        _check_all(ordered)
        return cls(ordered)

    @classmethod
    def parse(cls, data: bytes) -> Manifest:
        """Parse the bytes that `to_bytes` returns; `InvalidArtifactError` for any others."""
        if len(data) > MAX_MANIFEST:
            raise InvalidArtifactError(
                f"the manifest has {len(data):,} bytes, and a manifest may have at most {MAX_MANIFEST:,}"
            )
        try:
            document = loads(data.decode())
        except (ValueError, RecursionError):
            raise InvalidArtifactError("the manifest is not valid JSON") from None
        match document:
            case {"holdall": int(number), "entries": list(listed)} if not isinstance(number, bool):
                pass
            case _:
                raise InvalidArtifactError("the JSON document is not a manifest of a directory")
        if number != _FORMAT:
            raise InvalidArtifactError(
                f"the manifest has format {number}, and this version of Holdall reads format {_FORMAT}",
                hint="upgrade Holdall: a newer version wrote the manifest",
            )
        found = cls.of(_parse_member(each) for each in listed)
        if found.to_bytes() != data:
            raise InvalidArtifactError("the manifest is not in canonical form")
        return found

    def to_bytes(self) -> bytes:
        """The manifest in its canonical form."""
        listed = [_describe(entry) for entry in self.entries]
        text = dumps({"holdall": _FORMAT, "entries": listed}, ensure_ascii=False, separators=(",", ":"))
        return text.encode()

    @property
    def total(self) -> int:
        """The size of all files together, in bytes."""
        return sum(entry.size for entry in self.entries)

    @property
    def sizes(self) -> dict[str, int]:
        """The digests of the files, each once, with their sizes."""
        return {entry.sha256: entry.size for entry in self.entries if entry.sha256 is not None}


def manifest_sha256(data: bytes) -> str:
    """The digest that identifies a manifest, in hexadecimal digits."""
    return sha256(data).hexdigest()


def _describe(entry: Member) -> dict[str, Any]:
    if entry.is_directory:
        return {"path": entry.path}
    described: dict[str, Any] = {"path": entry.path, "sha256": entry.sha256, "size": entry.size}
    if entry.executable:
        described["executable"] = True
    return described


def _parse_member(described: object) -> Member:
    if not isinstance(described, dict) or not isinstance(described.get("path"), str):
        raise InvalidArtifactError("the manifest has an entry without a path")
    path = described["path"]
    if path.endswith("/") and set(described) == {"path"}:
        return Member(path)
    size, executable = described.get("size"), described.get("executable", False)
    if (
        set(described) not in _FILE_KEYS
        or not isinstance(described["sha256"], str)
        or not isinstance(executable, bool)
        or not isinstance(size, int)
        or isinstance(size, bool)
    ):
        raise InvalidArtifactError(
            f"the entry {path!r:.120} of the manifest is neither a file nor an empty directory"
        )
    return Member(path, described["sha256"], size, executable)


# --- checks -----------------------------------------------------------------------------------------------


def check_path(path: str) -> str:
    """Return the path; `InvalidArtifactError` unless it means the same place in the directory on every system."""
    if not isinstance(path, str) or not path.removesuffix("/"):
        raise _refuse(path, "is not a path")
    if len(_encode(path)) > _LONGEST:
        raise _refuse(path, f"has more than {_LONGEST:,} bytes")
    if _FOREIGN.search(path):
        raise _refuse(path, "contains a backslash or a control character")
    if path.startswith("/") or _DRIVE.match(path):
        raise _refuse(path, "is not relative to the directory")
    for segment in path.removesuffix("/").split("/"):
        if segment in ("", ".", ".."):
            raise _refuse(path, "has a segment that is empty or only dots")
        if len(segment.encode()) > _LONGEST_SEGMENT:
            raise _refuse(path, f"has a segment of more than {_LONGEST_SEGMENT} bytes")
    return path


def _check_member(entry: Member) -> None:
    check_path(entry.path)
    if entry.is_directory:
        if entry != Member(entry.path):
            raise _refuse(entry.path, "is an empty directory, but has content")
        return
    if entry.sha256 is None or not _SHA256.fullmatch(entry.sha256):
        raise _refuse(entry.path, "lacks a SHA-256 of 64 hexadecimal digits")
    if not 0 <= entry.size <= MAX_OBJECT:
        raise _refuse(
            entry.path, f"has a size of {entry.size:,} bytes, which is not from 0 to {MAX_OBJECT:,}"
        )


def _check_all(entries: tuple[Member, ...]) -> None:
    """Raise `InvalidArtifactError` for entries that cannot be in one directory on every file system."""
    folded: dict[str, Member] = {}
    sizes: dict[str, int] = {}
    for entry in entries:
        place = _fold(entry.path.removesuffix("/"))
        if place in folded:
            raise _refuse_both(folded[place], entry)
        folded[place] = entry
        if entry.sha256 is not None and sizes.setdefault(entry.sha256, entry.size) != entry.size:
            raise _refuse(entry.path, "has the same digest as another file, but a different size")
    for entry in entries:
        for above in _list_parents(entry.path):
            other = folded.get(_fold(above))
            if other is not None and (not other.is_directory or other.path == f"{above}/"):
                raise _refuse_both(other, entry)


def _list_parents(path: str) -> Iterable[str]:
    """The directories that a path goes through."""
    at = path.find("/")
    while 0 <= at < len(path) - 1:
        yield path[:at]
        at = path.find("/", at + 1)


def _fold(path: str) -> str:
    """The path in a form that is equal for paths that some file system treats as the same."""
    if path.isascii():
        return path.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", path).casefold())


def _encode(path: str) -> bytes:
    try:
        return path.encode()
    except UnicodeEncodeError:
        raise _refuse(path, "cannot be encoded in UTF-8") from None


def _refuse_both(one: Member, other: Member) -> InvalidArtifactError:
    if one.path == other.path:
        return _refuse(one.path, "appears twice")
    return InvalidArtifactError(
        f"a directory cannot contain both {one.path!r:.200} and {other.path!r:.200}",
        hint="rename one of them: on some file systems one would overwrite the other",
    )


def _refuse(path: object, problem: str) -> InvalidArtifactError:
    return InvalidArtifactError(f"the path {path!r:.200} in a directory {problem}")
