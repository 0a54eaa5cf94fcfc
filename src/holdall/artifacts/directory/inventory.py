"""Taking inventory of a directory: each file is read once and hashed.

Special files, and files that change meanwhile, are refused (`holdall.local.walk`). A file that changes later is noticed
when it is uploaded, because its bytes must have the digest that was found here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from holdall.artifacts.directory.manifest import MAX_MANIFEST, Manifest, Member, check_path, manifest_sha256
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.errors import InvalidArtifactError
from holdall.files.progress import Meter, Progress
from holdall.local.walk import FoundFile, check_files, hash_files, hash_found_range, walk_directory

if TYPE_CHECKING:
    from pathlib import Path

_TURN = 64 * 1024**2
_TURN_FILES = 500


@dataclass(frozen=True, slots=True)
class Directory:
    """The inventory of a directory: its manifest as bytes, their digest (hexadecimal), and the size of all files.

    For the digest of each file, ``sizes`` has the size, ``copies`` how many files have that content, and ``places`` the
    path of one of them.
    """

    manifest: bytes
    sha256: str
    total: int
    sizes: Mapping[str, int]
    copies: Mapping[str, int]
    places: Mapping[str, Path]


async def gather_directory(context: Context, path: Any, *, progress: Progress | None = None) -> Directory:
    """Take inventory of a directory; ``progress`` is called with the bytes that were read."""
    port = context.port
    found = await port.offload(walk_directory, path, check_path)
    meter = Meter(port, progress)
    await meter.begin(sum(each.size for each in found))
    entries: list[Member] = []
    places: dict[str, Path] = {}
    for turn in _turns(found):
        if turn[0].size > _TURN:
            digests: list[str | None] = [await _hash_large(context, turn[0], meter)]
        else:
            digests = await port.offload(hash_files, turn)
            await meter.add(sum(each.size for each in turn))
        for each, digest in zip(turn, digests, strict=True):
            if digest is None:
                entries.append(Member(each.path))
            else:
                entries.append(Member(each.path, digest, each.size, each.executable))
                places.setdefault(digest, each.place)
    return await port.offload(_describe, entries, places)


def _describe(entries: list[Member], places: Mapping[str, Path]) -> Directory:
    manifest = Manifest.of(entries)
    data = manifest.to_bytes()
    if len(data) > MAX_MANIFEST:
        raise InvalidArtifactError(
            f"the directory has too many files: the manifest of {len(entries):,} files has {len(data):,} bytes, and "
            f"may have at most {MAX_MANIFEST:,}",
            hint="put its subdirectories as separate artifacts, or the directory as one archive file",
        )
    copies = Counter(entry.sha256 for entry in entries if entry.sha256 is not None)
    return Directory(data, manifest_sha256(data), manifest.total, manifest.sizes, copies, places)


# --- the hashing ------------------------------------------------------------------------------------------


def _turns(found: list[FoundFile]) -> Iterator[list[FoundFile]]:
    """Group small files together, large ones alone: work that has begun cannot be cancelled."""
    turn: list[FoundFile] = []
    size = 0
    for each in found:
        if turn and (size + each.size > _TURN or len(turn) >= _TURN_FILES):
            yield turn
            turn, size = [], 0
        turn.append(each)
        size += each.size
    if turn:
        yield turn


async def _hash_large(context: Context, found: FoundFile, meter: Meter) -> str:
    digest = sha256()
    for start in range(0, found.size, _TURN):
        size = min(_TURN, found.size - start)
        await context.port.offload(hash_found_range, found, digest, start, size)
        await meter.add(size)
    await context.port.offload(check_files, [found])
    return digest.hexdigest()
