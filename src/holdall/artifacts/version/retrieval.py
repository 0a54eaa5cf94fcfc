"""Fetching an object whose digest is known into a stream or a file; from the cache, if it is there.

The bytes are verified against the digest: `IntegrityError` if they differ.
"""

from __future__ import annotations

import re
from binascii import a2b_hex, b2a_base64
from typing import TYPE_CHECKING, Any

from holdall.artifacts.home import Home
from holdall.artifacts.settings import artifact_settings
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.port import Port
from holdall.errors import ConfigurationError, IntegrityError, InvalidOptionsError
from holdall.files.download import Take, Vet, Wanted, give, read_into, read_into_file
from holdall.files.progress import Meter
from holdall.files.shelf import Shelf
from holdall.local.cache import (
    Cache,
    CachedFile,
    Filling,
    drop_filling,
    fill_turn,
    keep_filling,
    open_cache,
    write_piece,
)
from holdall.local.copy import CheckedFile, copy_turn, drop_copy, read_checked
from holdall.local.draft import Draft

if TYPE_CHECKING:
    from pathlib import Path

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Means:
    """What a download works with."""

    context: Context
    home: Home
    cache: Cache | None
    resume: bool = False

    @property
    def port(self) -> Port:
        """The port of the context."""
        return self.context.port

    def describe(self, source: Source) -> Wanted:
        """Describe an object for a download."""
        digest = b2a_base64(a2b_hex(source.sha256), newline=False).decode()
        return Wanted(Shelf(self.context, self.home.service), source.key, True, digest, source.vet)


@dataclass(frozen=True, slots=True)
class Source:
    """An object to fetch: its key, its digest, its size if known, and a further check of the object."""

    key: str
    sha256: str
    size: int | None = None
    vet: Vet | None = None


def source_at(key: str, sha256: str | None, size: int | None = None, vet: Vet | None = None) -> Source:
    """Make a source; check the digest, because other programs write the table too, and it becomes part of a path."""
    if sha256 is None or not _SHA256.fullmatch(sha256):
        raise IntegrityError(f"the digest of {key!r:.80} in the table, {sha256!r:.80}, is not a SHA-256")
    return Source(key, sha256, size, vet)


class Stream:
    """A caller's stream; ``begun`` once bytes were written, which cannot be taken back."""

    def __init__(self, port: Port, stream: Any) -> None:
        self._port = port
        self._stream = stream
        self.begun = False

    async def take(self, piece: bytes) -> None:
        """Write a whole piece."""
        self.begun = self.begun or bool(piece)
        await give(self._port, self._stream, piece)


class _KnownCache:
    """The cache of a database's artifacts, once it has been opened."""

    def __init__(self) -> None:
        self.cache: Cache | None = None


async def find_cache(context: Context, wanted: bool | None) -> Cache | None:
    """Open the cache that the settings name; None if there is none, or it is not wanted."""
    settings = artifact_settings(context.settings)
    if wanted is False:
        return None
    if settings.cache is None:
        if wanted:
            raise InvalidOptionsError(
                "cache=True needs a cache, and the database has none for artifacts",
                hint='open the database with artifacts=ArtifactSettings(cache="PATH")',
            )
        return None
    known = context.state.of(_KnownCache)
    if known.cache is None:
        try:
            cache = await context.port.offload(open_cache, settings.cache, settings.cache_size)
        except (OSError, RuntimeError) as error:
            raise ConfigurationError(
                f"the cache of artifacts at {settings.cache} cannot be opened: {error}",
                hint="set cache to the path of a directory that can be written",
            ) from error
        known.cache = known.cache or cache  # another caller may have opened it meanwhile
    return known.cache


async def fetch_bytes(means: Means, source: Source, meter: Meter) -> bytes:
    """Fetch the bytes of an object."""
    pieces: list[bytes] = []

    async def take(piece: bytes) -> None:
        pieces.append(piece)

    if means.cache is not None and await _read_cached(means, source, take):
        size = sum(map(len, pieces))
        await meter.begin(size)
        await meter.add(size)
    else:
        pieces.clear()
        await _fetch(means, source, take, meter)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def fetch_stream(means: Means, source: Source, stream: Stream, meter: Meter) -> None:
    """Write an object to a stream; a cached file is verified first, because written bytes cannot be taken back."""
    if means.cache is not None and await copy_file(
        means.port, CachedFile(means.cache, source.sha256, source.size), None
    ):

        async def take(piece: bytes) -> None:
            await stream.take(piece)
            await meter.add(len(piece))

        await meter.begin(source.size)
        if await _read_cached(means, source, take):
            return
        if stream.begun:
            raise IntegrityError(f"the cached copy of {source.key!r:.80} was changed while it was read")
    await _fetch(means, source, stream.take, meter)


async def _read_cached(means: Means, source: Source, take: Take) -> bool:
    """Deliver the bytes of the cached file; return whether they are correct, which is known after the last."""
    assert means.cache is not None
    entry = CachedFile(means.cache, source.sha256, source.size)
    try:
        while piece := await means.port.offload(read_checked, entry):
            await take(piece)
    except BaseException:
        await means.port.offload(drop_copy, entry, None)
        raise
    return entry.is_right


async def _fetch(means: Means, source: Source, take: Take, meter: Meter) -> None:
    """Fetch an object from the service, and write it to the cache on the way."""
    filling = _begin_filling(means, source)
    if filling is None:
        await read_into(means.describe(source), take, meter)
        return

    async def write_both(piece: bytes) -> None:
        await take(piece)
        await means.port.offload(write_piece, filling, piece)

    try:
        await read_into(means.describe(source), write_both, meter)
        await means.port.offload(keep_filling, filling, means.port.now().timestamp())
    except BaseException:
        await means.port.offload(drop_filling, filling)
        raise


def _begin_filling(means: Means, source: Source) -> Filling | None:
    """Begin a new file in the cache, unless it would not fit."""
    if means.cache is None or (source.size is not None and source.size > means.cache.limit):
        return None
    return Filling(means.cache, source.sha256, means.port.new_id()[:16])


async def fetch_file(means: Means, source: Source, path: Path, meter: Meter) -> None:
    """Write an object to a file, replacing what is there; it appears when it is complete."""
    port = means.port
    if means.cache is not None and await copy_file(
        port, CachedFile(means.cache, source.sha256, source.size), Draft(path, port.new_id()[:16])
    ):
        await meter.begin(source.size)
        await meter.add(source.size or 0)
        return
    info = await read_into_file(means.describe(source), path, meter, resume=means.resume)
    filling = _begin_filling(means, replace(source, size=info.size))
    if filling is None:
        return
    written = CheckedFile(path, source.sha256, info.size)  # the caller may already be changing it
    try:
        while not await port.offload(fill_turn, filling, written):
            pass
        await port.offload(keep_filling, filling, port.now().timestamp())
    except BaseException:
        await port.offload(drop_copy, written, None)
        await port.offload(drop_filling, filling)
        raise


async def copy_file(port: Port, checked: CheckedFile, draft: Draft | None) -> bool:
    """Copy a file on this machine, or only verify it; False, and nothing is written, if its content is wrong."""
    try:
        while not await port.offload(copy_turn, checked, draft):
            pass
    except BaseException:
        await port.offload(drop_copy, checked, draft)
        raise
    return checked.is_right
