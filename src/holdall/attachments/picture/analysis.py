"""Analysis: facts from a file's bytes (a picture's size, a video's duration), stored as metadata of its blob."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.content_type import BINARY
from holdall.attachments.blob.flow import update_metadata
from holdall.attachments.blob.handle import fetch_copy
from holdall.attachments.blob.identification import identify_stored
from holdall.attachments.owner.given import own_metadata
from holdall.core.context import Context
from holdall.core.media import FILM_TYPES, PDF, PICTURE_TYPES, SOUND_TYPES, ProbeMedia
from holdall.errors import InvalidOptionsError
from holdall.local.temporary import remove_directory

if TYPE_CHECKING:
    from pathlib import Path

F = TypeVar("F", bound=Callable[..., Any])

_declared: dict[tuple[tuple[str, ...], Callable[..., Any]], Callable[..., Any]] = {}
"""The analyzers of this process, by their types and themselves; those declared last take precedence."""


def analyzer(*types: str) -> Callable[[F], F]:
    """Decorate a function that analyzes files of these content types; wildcards such as ``"image/*"`` are allowed.

    The function is called with the path of a copy of the file and the blob, and returns a mapping of metadata. It may
    be async. Your analyzers take precedence over Holdall's, and those declared last over earlier ones. Import the
    module both where files are attached and in workers.
    """
    if not types or not all(isinstance(each, str) for each in types):
        raise InvalidOptionsError(
            "analyzer needs the content types that it handles, as strings", hint='as in @analyzer("image/*")'
        )

    def decorate(function: F) -> F:
        _declared.pop((types, function), None)
        _declared[types, function] = function
        return function

    return decorate


def is_analyzable(content_type: str | None) -> bool:
    """Whether an analyzer accepts files of a type."""
    return _find_analyzer(content_type) is not None or _can_probe(content_type or BINARY)


async def analyze(context: Context, blob: Blob | str) -> Blob:
    """Analyze a blob, store the results in its metadata, and return it; `MediaError` if the file cannot be read.

    If no analyzer accepts the file, it is only marked as analyzed.
    """
    found = await identify_stored(context, blob)
    return await update_metadata(context, found, await examine(context, found))


async def examine(context: Context, blob: Blob) -> dict[str, Any]:
    """Analyze a stored file, and return its metadata."""
    kind = blob.content_type or BINARY
    own = _find_analyzer(kind)
    if (own is None and not _can_probe(kind)) or not blob.byte_size:
        return {"analyzed": True}
    path = await fetch_copy(context, blob)
    try:
        if own is None:
            metadata: Mapping[str, Any] = await context.port.send(ProbeMedia(str(path), kind))
        else:
            metadata = await _call(context, own, path, blob)
    finally:
        await context.port.offload(remove_directory, path.parent, None)
    return {**metadata, "analyzed": True}


async def _call(context: Context, function: Callable[..., Any], path: Path, blob: Blob) -> Mapping[str, Any]:
    metadata = await context.port.call(function, path, blob)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidOptionsError(
            f"the analyzer {function.__qualname__} must return a mapping of metadata, not {type(metadata).__name__}"
        )
    return own_metadata(metadata)


def _find_analyzer(content_type: str | None) -> Callable[..., Any] | None:
    kind = content_type or BINARY
    for types, function in reversed(_declared):
        if any(fnmatchcase(kind, each) for each in types):
            return function
    return None


def _can_probe(kind: str) -> bool:
    return kind == PDF or kind in PICTURE_TYPES | FILM_TYPES | SOUND_TYPES
