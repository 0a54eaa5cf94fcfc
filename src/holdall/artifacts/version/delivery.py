"""Flows that deliver artifacts: as bytes, a file, a directory, or a URL.

The content is verified against the digest in the table, whatever the object's metadata claims; a file or a directory
appears under its name only when it is complete and correct. LATEST may be replaced while it is read. Its bytes still
come from one object; if that is not the expected one, the table is read again.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from holdall.artifacts.home import Home, find_home
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
from holdall.errors import IntegrityError, InvalidOptionsError, ObjectNotFoundError, PreconditionFailedError
from holdall.files import upkeep
from holdall.files.download import find_place
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf
from holdall.tables.commit.flow import Attempts

if TYPE_CHECKING:
    from pathlib import Path


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
    """Download a version, or the version that an alias serves: return its bytes, or write them to ``to``.

    ``to`` is a path, which is returned, or a stream; for a stream, None is returned. For a directory, ``to`` must be a
    path that does not exist yet, or an empty directory. The content is verified: if it is not what was published, this
    raises `IntegrityError`, and no file is left; a stream may have received all bytes by then. ``key`` decides which
    version is served by an alias that splits its traffic.

    ``resume=True`` continues an interrupted download to the same path, and keeps a download that fails, so that it can
    be resumed. ``cache=False`` bypasses the cache. Files that killed downloads left in the target's directory are
    removed after an hour, or after a week if they could be resumed. ``progress`` is called with the bytes done and the
    total; it starts over if LATEST is replaced while it is read.
    """
    target: Path | Stream | None = None
    if callable(getattr(to, "write", None)):
        target = Stream(context.port, to)
    elif to is not None:
        target = await find_place(context, to)
    home = await find_home(context)
    means = Means(context, home, await find_cache(context, cache), resume)
    meter = Meter(context.port, progress)
    meant: str | None = None
    failure: Exception | None = None
    attempts = Attempts(context, f"the artifact {name!r:.60}")
    while True:
        await attempts.another()
        artifact = await _find_meant(context, home, name, version_or_alias, key)
        unchanged = failure is not None and artifact.sha256 == meant
        if failure is not None and unchanged and not isinstance(failure, PreconditionFailedError):
            raise failure
        meant = artifact.sha256
        try:
            # an object whose metadata keeps contradicting the table is judged by its bytes
            return await _deliver(means, artifact, target, meter, vetted=not unchanged)
        except (IntegrityError, ObjectNotFoundError, PreconditionFailedError) as error:
            if isinstance(target, Stream) and target.begun:
                raise
            if isinstance(error, IntegrityError) and artifact.sk != LATEST:
                raise  # a version never changes, so it is damaged
            failure = error


async def _deliver(
    means: Means, artifact: Artifact, target: Path | Stream | None, meter: Meter, *, vetted: bool
) -> bytes | Path | None:
    key = _key_of(means.home, artifact)
    if artifact.manifest:
        if target is None or isinstance(target, Stream):
            raise _refuse_directory(artifact, "pass the path of a new directory as to=")
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
    """Raise `PreconditionFailedError` if the object is a newer one, before any of its bytes are delivered."""
    found = object_sha256(info)
    if found is not None and found != artifact.sha256:
        raise PreconditionFailedError(f"LATEST of {artifact.name!r:.60} was replaced during the download")


async def _find_meant(
    context: Context, home: Home, name: str, reference: int | str | None, key: str | int | None
) -> Artifact:
    """Read the version that a caller refers to, without the aliases that serve it."""
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
    """Return a temporary URL from which anyone can download the content, served with these headers.

    It expires after ``expires``, a number of seconds or a timedelta. It leads to the version that is meant now: if an
    alias moves later, the URL still leads to the same version.
    """
    home = await find_home(context)
    artifact = await _find_meant(context, home, name, version_or_alias, key)
    if artifact.manifest:
        raise _refuse_directory(artifact, "a directory cannot have a URL; use download")
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
