"""Flows that hand artifacts out: their bytes, a file, a directory, or a URL.

What comes is checked against the digest in the table, whatever the object says of itself; a file or a directory appears
under its name when it is complete and right, and not before. LATEST may be replaced while it is read: its bytes are
those of one object all the same, and who finds another than was meant asks once more what is meant.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from holdall.artifacts.home import Home, home_of
from holdall.artifacts.name import LATEST, check_name
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.content import object_sha256
from holdall.artifacts.version.lookup import read_artifact, resolve_reference
from holdall.artifacts.version.retrieval import (
    Means,
    Stream,
    fetch_bytes,
    fetch_file,
    fetch_stream,
    find_cache,
    source_at,
)
from holdall.core.context import Context
from holdall.core.objects import ObjectInfo
from holdall.errors import (
    IntegrityError,
    InvalidOptionsError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from holdall.files import upkeep
from holdall.files.download import find_place
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf

if TYPE_CHECKING:
    from pathlib import Path

_TRIES = 3


async def download(
    context: Context,
    name: str,
    version_or_alias: int | str | None = None,
    to: Any = None,
    *,
    key: str | int | None = None,
    progress: Progress | None = None,
    resume: bool = False,
    cache: bool | None = None,
) -> bytes | Path | None:
    """The content of a version, or of what an alias serves: its bytes, or written to the path or stream ``to``.

    Returns the bytes, the path, or None for a stream. All of it is checked: `IntegrityError`, and no file is left, when
    it is not what was published; a stream has all bytes by then. For a directory, ``to`` is a path where nothing is
    yet, or an empty directory. ``key`` decides what an alias with several versions serves. ``resume``
    continues a download to the same path that broke off, and leaves one that fails to be resumed. ``cache=False``
    bypasses the cache. Files that killed downloads left in the target's directory are removed after an hour, or after a
    week if they could be resumed. ``progress`` is called with the bytes done and the total; it starts over if LATEST
    was replaced while it was read.
    """
    target: Path | Stream | None = None
    if callable(getattr(to, "write", None)):
        target = Stream(context.port, to)
    elif to is not None:
        target = await find_place(context, to)
    home = await home_of(context)
    means = Means(context, home, await find_cache(context, cache), resume)
    meter = Meter(context.port, progress)
    meant: str | None = None
    failure: Exception | None = None
    for left in reversed(range(_TRIES)):
        artifact = await _find_meant(context, home, name, version_or_alias, key)
        unchanged = failure is not None and artifact.sha256 == meant
        if failure is not None and unchanged and not isinstance(failure, PreconditionFailedError):
            raise failure
        meant = artifact.sha256
        try:
            # an object that goes on saying something else of itself than the table does is judged by its bytes
            return await _deliver(means, artifact, target, meter, vetted=not unchanged)
        except (IntegrityError, ObjectNotFoundError, PreconditionFailedError) as error:
            if not left or (isinstance(target, Stream) and target.begun):
                raise
            if isinstance(error, IntegrityError) and artifact.sk != LATEST:
                raise  # a version never changes: that is damage
            failure = error
    raise AssertionError("the last try neither failed nor succeeded")


async def _deliver(
    means: Means, artifact: Artifact, target: Path | Stream | None, meter: Meter, *, vetted: bool
) -> bytes | Path | None:
    key = _key_of(means.home, artifact)
    if artifact.manifest:
        if target is None or isinstance(target, Stream):
            raise _refuse_directory(artifact, "give to= the path of a new directory")
        from holdall.artifacts.directory.extraction import unpack

        await unpack(means, source_at(key, artifact.sha256), target, meter)
        return target
    vet = partial(_vet_latest, artifact) if vetted and artifact.sk == LATEST else None
    source = source_at(key, artifact.sha256, artifact.size, vet)
    if target is None:
        return await fetch_bytes(means, source, meter)
    if isinstance(target, Stream):
        await fetch_stream(means, source, target, meter)
        return None
    await fetch_file(means, source, target, meter)
    return target


def _vet_latest(artifact: Artifact, info: ObjectInfo) -> None:
    """Refuse an object that came after what is meant, before any of its bytes goes anywhere."""
    found = object_sha256(info)
    if found is not None and found != artifact.sha256:
        raise PreconditionFailedError(f"LATEST of {artifact.name!r:.60} was replaced while it was read")


async def _find_meant(
    context: Context, home: Home, name: str, reference: int | str | None, key: str | int | None
) -> Artifact:
    """The version that a caller names; who else serves it does not matter here."""
    check_name(name)
    return await read_artifact(context, home, name, await resolve_reference(context, name, reference, key))


async def url(
    context: Context,
    name: str,
    version_or_alias: int | str | None = None,
    *,
    key: str | int | None = None,
    expires: float | timedelta = 300,
    filename: str | None = None,
    disposition: str | None = None,
    content_type: str | None = None,
) -> str:
    """A URL by which anyone can get the content for a while, served with these headers.

    It is of the version that is meant now: an alias that moves does not move it.
    """
    home = await home_of(context)
    artifact = await _find_meant(context, home, name, version_or_alias, key)
    if artifact.manifest:
        raise _refuse_directory(artifact, "a directory has no URL: download it")
    return await upkeep.url(
        Shelf(context, home.service),
        _key_of(home, artifact),
        expires=expires,
        filename=filename,
        disposition=disposition,
        content_type=content_type,
    )


def _refuse_directory(artifact: Artifact, hint: str) -> InvalidOptionsError:
    return InvalidOptionsError(
        f"version {artifact.version} of {artifact.name!r:.60} is a directory", hint=hint
    )


def _key_of(home: Home, artifact: Artifact) -> str:
    return artifact.key or home.object_key(artifact.pk, artifact.sk)
