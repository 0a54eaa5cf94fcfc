"""Material: the bytes of an artifact, with a digest that is known before the first byte is sent.

An object has the digest of its content in its metadata, so the digest must be known when its upload begins. Bytes,
files and seekable streams are read twice, the first time only to be hashed. A stream that is not seekable is held in
memory if it is small; a larger one is uploaded under a temporary key, and copied from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.digests import Digests
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject, DescribeService, ObjectHeaders, ObjectInfo, PutObject
from holdall.core.port import Port
from holdall.core.telemetry import warn
from holdall.errors import IntegrityError, ServiceError
from holdall.files import composition, upload
from holdall.files.mirror import mirror
from holdall.files.progress import Progress
from holdall.files.shelf import Shelf
from holdall.files.source import Continued, hash_bytes, open_source, read_exactly, read_range
from holdall.local.source import BytesSource, FileSource, StreamSource, check_unchanged, hash_range

_PIECE = 1024 * 1024
_TURN = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Material:
    """Bytes with their digest, to be sent from a source, or copied from a temporary key."""

    digest: str
    size: int
    source: Any = None
    waiting: str | None = None

    async def send(
        self,
        context: Context,
        home: Home,
        key: str,
        headers: ObjectHeaders,
        tags: Mapping[str, str],
        *,
        if_match: str | None = None,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Store it under a key."""
        shelf = Shelf(context, home.service)
        if self.waiting is not None:
            return await composition.compose(
                shelf,
                [self.waiting],
                key,
                content_type=headers.content_type,
                metadata=headers.metadata,
                tags=tags,
                if_match=if_match,
            )
        source = self.source
        return await upload.put(
            shelf,
            key,
            await source.rewind(context.port) if isinstance(source, _Again) else source,
            content_type=headers.content_type,
            metadata=headers.metadata,
            tags=tags,
            if_match=if_match,
            sha256=self.digest,
            size=self.size,
            checksums=("sha256",),
            progress=progress,
        )

    async def create(
        self, context: Context, home: Home, key: str, headers: ObjectHeaders, tags: Mapping[str, str]
    ) -> ObjectInfo:
        """Store it under a key that is free; `PreconditionFailedError` if it is not.

        Large content must have been staged before (`is_large`). Small content is put without Holdall's mark, as
        versioned would put it.
        """
        if self.waiting is not None:
            return await composition.compose(
                Shelf(context, home.service),
                [self.waiting],
                key,
                content_type=headers.content_type,
                metadata=headers.metadata,
                tags=tags,
                if_absent=True,
            )
        put = PutObject(
            home.service,
            key,
            await self._read(context),
            headers,
            sha256=self.digest,
            if_absent=context.port.new_id(),
            tags=tags,
            unmarked=True,
        )
        info = await context.port.send(put)
        await mirror(context, home.service, key)
        return info

    async def is_large(self, context: Context, home: Home) -> bool:
        """Whether sending it takes several requests."""
        if self.waiting is not None:
            return False
        return self.size > (await context.port.send(DescribeService(home.service))).single_put

    async def stage(self, context: Context, home: Home, progress: Progress | None) -> Material:
        """Upload it under a temporary key, from which it can be copied; return the material to use."""
        key = home.incoming_key(context.port.new_id())
        await self.send(context, home, key, ObjectHeaders(), {}, progress=progress)
        return replace(self, source=None, waiting=key)

    async def _read(self, context: Context) -> bytes:
        """Read all bytes; if the content has changed, its digest reveals it."""
        port = context.port
        if isinstance(self.source, _Again):
            return await read_exactly(port, await self.source.rewind(port), self.size + 1)
        source = await open_source(port, self.source)
        assert not isinstance(source, StreamSource)
        return await read_range(port, source, 0, min(source.size, self.size + 1))

    async def discard_waiting(self, context: Context, home: Home) -> None:
        """Delete the temporary object. If that fails, the put has still succeeded, and a reindex finds the object."""
        if self.waiting is None:
            return
        try:
            await context.port.send(DeleteObject(home.service, self.waiting))
        except ServiceError as error:
            warn("artifacts", "the temporary object of an upload could not be deleted: %s", error.code)


@dataclass(frozen=True, slots=True)
class _Again:
    """A stream that can be rewound to where it was."""

    stream: Any
    start: int

    async def rewind(self, port: Port) -> Any:
        await port.call(self.stream.seek, self.start)
        return self.stream


async def open_material(
    context: Context, home: Home, given: Any, progress: Progress | None
) -> Material | None:
    """The caller's content, with its digest; None for the path of a directory."""
    port = context.port
    try:
        source = await open_source(port, given)
    except IsADirectoryError:
        return None
    digests = Digests(["sha256"])
    if isinstance(source, BytesSource | FileSource):
        for start in range(0, source.size, _TURN):
            await port.offload(hash_range, source, digests, start, min(_TURN, source.size - start))
        await port.offload(check_unchanged, source)
        if digests.size != source.size:
            raise IntegrityError(
                f"the content changed while it was read: it had {source.size:,} bytes, then {digests.size:,}"
            )
        return _make_material(digests, given)
    if await _can_go_back(context, source):
        start = await port.call(source.stream.tell)
        while piece := await port.read(source.stream, _PIECE):
            await hash_bytes(port, digests, piece)
        return _make_material(digests, _Again(source.stream, start))
    single = (await port.send(DescribeService(home.service))).single_put
    first = await read_exactly(port, source.stream, single + 1)
    if len(first) <= single:
        await hash_bytes(port, digests, first)
        return _make_material(digests, first)
    key = home.incoming_key(port.new_id())
    stream = Continued(first, source.stream)
    del first
    info = await upload.put(
        Shelf(context, home.service), key, stream, checksums=("sha256",), progress=progress
    )
    assert info.sha256 is not None
    return Material(info.sha256, info.size, waiting=key)


def of_manifest(manifest: bytes) -> Material:
    """A directory's manifest."""
    digests = Digests(["sha256"])
    digests.update(manifest)
    return _make_material(digests, manifest)


def _make_material(digests: Digests, source: Any) -> Material:
    digest = digests.sha256
    assert digest is not None
    return Material(digest, digests.size, source)


async def _can_go_back(context: Context, source: StreamSource) -> bool:
    stream = source.stream
    if not all(callable(getattr(stream, each, None)) for each in ("seek", "tell", "seekable")):
        return False
    return bool(await context.port.call(stream.seekable))
