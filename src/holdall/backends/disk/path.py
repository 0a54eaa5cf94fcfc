"""The path of a key's bytes below a root, and the key of a path.

Pure. Keys shaped like those of Active Storage are stored where its disk service stores them: ``abcd…`` in
``ab/cd/abcd…``, and ``variants/abcd…/0123…`` in ``va/ri/variants/abcd…/0123…``. All others are in ``_/objects``, with a
directory for each segment. There a name has only the characters ``a-z 0-9 . _ - %``; every other byte is written as
``%`` and two lower-case digits. A name ends with:

- ``=`` for a segment with more after it, so that ``a`` and ``a/b`` can exist side by side;
- ``+`` for a piece of a segment that is too long for one name;
- neither for the last piece of the key, which is a file.

After 32 segments, the rest of a key counts as one. Dots at either end and names that Windows reserves are written with
``%``, too, and an empty segment is a single ``%``. So no two keys share a path, even if the file system ignores case or
normalizes Unicode, no path leads out of the root, and the key follows from the path. A file with a ``~`` in its name
has the attributes of the bytes beside it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from holdall.core.rules.object import check_key
from holdall.errors import InvalidObjectKeyError

OWN = "_"
"""The directory in a root that is ours alone."""

_OBJECTS = (OWN, "objects")
_DEEPEST = 32
_LONGEST = 200  # with what is added to a piece, and the suffix of attributes, it stays below 255
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789._-")
_UNITS = [chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in range(256)]
_EMPTY = "%"
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")
_RAILS_KEY = re.compile(r"[a-z0-9]{16,128}\Z")
_RAILS_VARIANT = re.compile(r"variants/[a-z0-9]{16,128}/[0-9a-f]{32,128}\Z")
_PAIR = re.compile(r"[a-z0-9]{2}\Z")
_NAME = re.compile(r"(?:[a-z0-9._-]|%[0-9a-f]{2})+\Z")
_CODED = re.compile(rb"%(..)")


class Place(NamedTuple):
    """The directories below the root, and the name of the file in the last of them."""

    directories: tuple[str, ...]
    name: str


Kind: TypeAlias = Literal["root", "shard", "rails", "variants", "variant", "ours", "own"]


class Shelf(NamedTuple):
    """A directory with objects. All keys in it begin with ``covers``."""

    directories: tuple[str, ...]
    covers: bytes
    kind: Kind


ROOT = Shelf((), b"", "root")


def place_of(key: str) -> Place:
    """The path of a key's bytes."""
    if _RAILS_KEY.match(key) or _RAILS_VARIANT.match(key):
        *between, name = key.split("/")
        return Place((key[:2], key[2:4], *between), name)
    *segments, last = key.encode().split(b"/", _DEEPEST)
    *chunks, name = _pieces(last)
    return Place((*_OBJECTS, *_directories(segments), *(f"{chunk}+" for chunk in chunks)), name)


def key_at(directories: tuple[str, ...], name: str) -> str | None:
    """The key of a file; None if the file does not belong to a key."""
    shelf: Shelf | bytes | None = ROOT
    for directory in directories:
        shelf = inside(shelf, directory, True) if isinstance(shelf, Shelf) else None
    text = inside(shelf, name, False) if isinstance(shelf, Shelf) else None
    if not isinstance(text, bytes):
        return None
    try:
        key = text.decode()
        check_key(key)
    except (UnicodeDecodeError, InvalidObjectKeyError):
        return None
    return key if place_of(key) == (directories, name) else None  # another program may spell it differently


def own_shelf(prefix: bytes) -> Shelf:
    """The innermost of our own directories that has all keys with a prefix (except those at Active Storage's paths)."""
    segments = prefix.split(b"/", _DEEPEST)[:-1]
    covers = b"".join(segment + b"/" for segment in segments)
    return Shelf((*_OBJECTS, *_directories(segments)), covers, "own")


def permanent(directories: tuple[str, ...]) -> int:
    """How many of a place's directories stay when they are empty."""
    return len(_OBJECTS) if directories[:1] == (OWN,) else 0


def inside(shelf: Shelf, name: str, directory: bool) -> Shelf | bytes | None:
    """What a name on a shelf means: another shelf, the bytes of a possible key, or None if it is not ours."""
    if shelf.kind == "own":
        return _inside_own(shelf, name, directory)
    return _inner_shelf(shelf, name) if directory else _rails_key(shelf, name)


def _inner_shelf(shelf: Shelf, name: str) -> Shelf | None:
    inner, covers, kind = (*shelf.directories, name), shelf.covers, shelf.kind
    if inner == (OWN,):
        return Shelf(inner, b"", "ours")
    if inner == _OBJECTS:
        return Shelf(inner, b"", "own")
    if kind in ("root", "shard") and _PAIR.match(name):
        return Shelf(inner, covers + name.encode(), "shard" if kind == "root" else "rails")
    if kind == "rails" and covers == b"vari" and name == "variants":
        return Shelf(inner, b"variants/", "variants")
    if kind == "variants" and _RAILS_KEY.match(name):
        return Shelf(inner, covers + name.encode() + b"/", "variant")
    return None


def _rails_key(shelf: Shelf, name: str) -> bytes | None:
    if shelf.kind == "rails" and _RAILS_KEY.match(name) and name.startswith(shelf.covers.decode()):
        return name.encode()
    if shelf.kind == "variant" and name.isalnum() and name.isascii():
        return shelf.covers + name.encode()
    return None


def _inside_own(shelf: Shelf, name: str, directory: bool) -> Shelf | bytes | None:
    end = name[-1:] if directory else ""
    decoded = _decode(name[: len(name) - len(end)])
    if decoded is None:
        return None
    if not directory:
        return shelf.covers + decoded
    if end not in ("=", "+"):
        return None
    covers = shelf.covers + decoded + (b"/" if end == "=" else b"")
    return Shelf((*shelf.directories, name), covers, "own")


def _directories(segments: list[bytes]) -> list[str]:
    names = []
    for segment in segments:
        *chunks, last = _pieces(segment)
        names += [*(f"{chunk}+" for chunk in chunks), f"{last}="]
    return names


def _pieces(segment: bytes) -> list[str]:
    """The names of a segment: one, unless it is too long."""
    whole = segment.decode("latin-1").translate(_UNITS)
    if len(whole) <= _LONGEST:
        return [_safe(whole)]
    pieces, piece = [], ""
    for byte in segment:
        unit = _UNITS[byte]
        if len(piece) + len(unit) > _LONGEST:
            pieces.append(_safe(piece))
            piece = ""
        piece += unit
    return [*pieces, _safe(piece)]


def _safe(name: str) -> str:
    """A name that means the same on all file systems."""
    if not name:
        return _EMPTY
    if name[-1] == ".":
        name = f"{name[:-1]}%2e"
    if name[0] == "." or _RESERVED.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    return name


def _decode(name: str) -> bytes | None:
    if name == _EMPTY:
        return b""
    if not _NAME.match(name):
        return None
    return _CODED.sub(lambda code: bytes.fromhex(code[1].decode()), name.encode())
