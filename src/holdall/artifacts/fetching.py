"""Getting one object whose digest is known: into a stream or a file, from the cache where it is there.

Whatever comes is checked against the digest: `IntegrityError` when it is something else.
"""

from __future__ import annotations

import re
from binascii import a2b_hex, b2a_base64
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from holdall.artifacts.cache import Cache
from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.port import Port
from holdall.errors import IntegrityError
from holdall.files.download import Take, Vet, Wanted, check_place, give, read_into, read_into_file
from holdall.files.leftover import place_beside
from holdall.files.progress import Told
from holdall.files.shelf import Shelf
from holdall.files.sources import aside

__all__ = ["Means", "Source", "Stream", "fetch_bytes", "fetch_file", "fetch_stream", "source_at", "written"]

_SHA256 = re.compile(r"[0-9a-f]{64}")

Copy: TypeAlias = Callable[[Take], Coroutine[Any, Any, bool]]
"""Hands bytes over, and then says whether they were the right ones."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a download works with."""

    context: Context
    home: Home
    cache: Cache | None
    resume: bool = False

    @property
    def port(self) -> Port:
        """The way to the world."""
        return self.context.port

    def wanted(self, source: Source) -> Wanted:
        """An object, for those who read it."""
        digest = b2a_base64(a2b_hex(source.sha256), newline=False).decode()
        return Wanted(Shelf(self.context, self.home.service), source.key, True, digest, source.vet)


@dataclass(frozen=True, slots=True)
class Source:
    """An object that is to be had: where it is, its digest, its size where that is known; what else it has to be."""

    key: str
    sha256: str
    size: int | None = None
    vet: Vet | None = None


def source_at(key: str, sha256: str | None, size: int | None = None, vet: Vet | None = None) -> Source:
    """An object with the digest that a table says, which others write as well, and which becomes part of a path."""
    if sha256 is None or not _SHA256.fullmatch(sha256):
        raise IntegrityError(f"{sha256!r:.80} is no SHA-256, and should be that of {key!r:.80}")
    return Source(key, sha256, size, vet)


class Stream:
    """A stream of a caller's; ``begun`` when it was given anything, which cannot be taken back."""

    def __init__(self, port: Port, stream: Any) -> None:
        self._port = port
        self._stream = stream
        self.begun = False

    async def take(self, piece: bytes) -> None:
        """Give it all of a piece."""
        self.begun = self.begun or bool(piece)
        await give(self._port, self._stream, piece)


async def fetch_bytes(means: Means, source: Source, told: Told) -> bytes:
    """The bytes of an object."""
    pieces: list[bytes] = []

    async def take(piece: bytes) -> None:
        pieces.append(piece)

    if means.cache is not None and await means.cache.take_out(source.sha256, source.size, take):
        await told.begin(sum(map(len, pieces)))
        await told.add(sum(map(len, pieces)))
    else:
        pieces.clear()
        await _fetch(means, source, take, told)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def fetch_stream(means: Means, source: Source, stream: Stream, told: Told) -> None:
    """An object into a stream; one in the cache is looked through before, as nothing can be taken back."""
    cache = means.cache
    if cache is not None and await cache.take_out(source.sha256, source.size, _nowhere):

        async def take(piece: bytes) -> None:
            await stream.take(piece)
            await told.add(len(piece))

        await told.begin(source.size)
        if await cache.take_out(source.sha256, source.size, take):
            return
        if stream.begun:
            raise IntegrityError(f"the cache's copy of {source.key!r:.80} was changed while it was read")
    await _fetch(means, source, stream.take, told)


async def _nowhere(piece: bytes) -> None:
    pass


async def _fetch(means: Means, source: Source, take: Take, told: Told) -> None:
    """From the service, and into the cache on the way."""
    cache = means.cache
    fits = cache is not None and (source.size is None or source.size <= cache.limit)
    filling = cache.filling(source.sha256) if cache is not None and fits else None

    async def both(piece: bytes) -> None:
        await take(piece)
        if filling is not None:
            await filling.add(piece)

    try:
        await read_into(means.wanted(source), both, told)
        if filling is not None:
            await filling.keep()
    except BaseException:
        if filling is not None:
            filling.drop()
        raise


async def fetch_file(means: Means, source: Source, path: Path, told: Told) -> None:
    """An object into a file, in place of what is there; it appears when it is complete."""
    cache = means.cache
    await means.port.call(check_place, path)
    if (
        cache is not None
        and await cache.has(source.sha256)
        and await written(means.port, path, partial(cache.take_out, source.sha256, source.size))
    ):
        await told.begin(source.size)
        await told.add(source.size or 0)
        return
    info = await read_into_file(means.wanted(source), path, told, resume=means.resume)
    if cache is not None:
        await cache.keep_file(source.sha256, path, info.size)


async def written(port: Port, path: Path, copy: Copy) -> bool:
    """Whether a file is there now, with what was copied: not if those were the wrong bytes."""
    beside = place_beside(path, port.new_id()[:16])
    file: Any = await port.call(beside.open, "xb")

    async def take(piece: bytes) -> None:
        await port.finish(aside(port, partial(file.write, piece)))

    right = False
    try:
        right = await copy(take)
        await port.finish(aside(port, file.close))
        if right:
            await port.call(beside.replace, path)
    except BaseException:
        right = False
        raise
    finally:
        if not right:
            file.close()
            beside.unlink(missing_ok=True)
    return right
