"""What a caller can attach: a new file, an existing blob, or a signed id of one.

Pure: nothing is read here, and a caller's file is never closed. An upload is kept open until it is discarded.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, TypeAlias
from weakref import finalize

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.filename import Filename
from holdall.core.frozen import dataclass
from holdall.errors import InvalidOptionsError

PROTECTED = ("analyzed", "identified", "composed")
"""Metadata that records what Holdall itself did; clients cannot set it."""

_OPTIONS = ("io", "filename", "content_type", "metadata", "service_name", "identify", "key")


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to store. ``source`` is bytes, a path, or a stream to read once; ``given`` is what the caller passed.

    ``identify=False`` keeps the content type that was passed. ``key`` is the key for its bytes; None for a random one.
    """

    source: Any
    filename: str
    content_type: str | None = None
    metadata: Mapping[str, Any] = {}
    identify: bool = True
    service: str | None = None
    key: str | None = None
    given: Any = None

    @property
    def identity(self) -> object:
        """Equal for equal bytes or paths, or the identical stream, when a later attempt passes them again."""
        same = isinstance(self.given, bytes) or hasattr(self.given, "__fspath__")
        return (self.given if same else id(self.given), self.filename)


@dataclass(frozen=True, slots=True)
class SignedId:
    """A signed text that identifies a blob."""

    text: str


Given: TypeAlias = NewFile | Blob | SignedId


def read_given(
    given: Any,
    *,
    filename: str | Filename | None = None,
    content_type: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    identify: bool = True,
    service: str | None = None,
    key: str | None = None,
) -> Given:
    """Interpret what a caller passed. Options take precedence over what the object itself says."""
    options = {"filename": filename, "content_type": content_type, "metadata": metadata}
    if isinstance(given, Blob | str):
        stray = [name for name, value in options.items() if value is not None]
        if stray:
            raise InvalidOptionsError(
                f"{' and '.join(stray)} cannot be set on a blob that is already stored",
                hint="a string is taken for a signed id; to attach a file, pass a pathlib.Path or an open file",
            )
        return given if isinstance(given, Blob) else SignedId(given)
    if isinstance(given, Mapping):
        return _read_mapping(given)
    source, name, kind = _look_at(given)
    name = name if filename is None else str(filename)
    if not name:
        raise InvalidOptionsError(
            f"the content to attach, of type {type(given).__name__}, has no file name",
            hint='pass filename="..."',
        )
    return NewFile(source, name, content_type or kind, own_metadata(metadata), identify, service, key, given)


def _read_mapping(given: Mapping[Any, Any]) -> Given:
    unknown = [name for name in given if name not in _OPTIONS]
    if "io" not in given or unknown:
        raise InvalidOptionsError(
            'a mapping to attach must have "io", the file itself'
            if "io" not in given
            else f"a mapping to attach cannot have {unknown[0]!r:.40}",
            hint=f"it may have {', '.join(_OPTIONS)}",
        )
    return read_given(
        given["io"],
        filename=given.get("filename"),
        content_type=given.get("content_type"),
        metadata=given.get("metadata"),
        identify=given.get("identify", True),
        service=given.get("service_name"),
        key=given.get("key"),
    )


def own_metadata(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A client's metadata, without the entries that only Holdall may set."""
    return {name: value for name, value in (metadata or {}).items() if name not in PROTECTED}


def _look_at(given: Any) -> tuple[Any, str, str | None]:
    """The source, the file's name and its type, as far as the object knows them."""
    if hasattr(given, "__fspath__"):
        return given, _last_part(str(given)), None
    if isinstance(given, bytes | bytearray | memoryview):
        return given, "", None
    name = getattr(given, "filename", None)
    kind = getattr(given, "content_type", None)
    if isinstance(name, str):  # an upload of Starlette (file) or Werkzeug (stream)
        return _keep_open(given), name, kind
    name = getattr(given, "name", None)
    name = _last_part(name) if isinstance(name, str) else ""
    if callable(getattr(given, "read", None)):
        return given, name, kind if isinstance(kind, str) else None
    if isinstance(given, Iterable | AsyncIterable):
        return Pieces(given), name, None
    raise InvalidOptionsError(
        f"an object of type {type(given).__name__} cannot be attached",
        hint="pass a pathlib.Path, an open file, bytes, an iterator of bytes, an upload, a blob or a signed id",
    )


def _keep_open(upload: Any) -> Any:
    """The stream of an upload. Flask closes it when the view has returned, and the commit reads it after that."""
    place = "stream" if getattr(upload, "file", None) is None else "file"
    stream = getattr(upload, place, None)
    if stream is None:
        return upload
    if isinstance(stream, _OpenStream):
        return stream.stream
    kept = _OpenStream(stream)
    try:
        setattr(upload, place, kept)
    except AttributeError:  # the upload does not allow it; its framework decides when it is closed
        kept.detach()
    return stream


class _OpenStream:
    """A stream that is closed when its upload is discarded, not before."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        # not __del__: the collector may discard the stream first, which then warns
        finalize(self, stream.close)

    def close(self) -> None:
        """Keep it open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __iter__(self) -> Any:
        return iter(self.stream)


def _last_part(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


class Pieces:
    """An iterator of bytes, plain or async, as a stream that can be read once."""

    def __init__(self, given: Any) -> None:
        self._plain = iter(given) if isinstance(given, Iterable) else None
        self._async = None if isinstance(given, Iterable) else aiter(given)
        self._held = b""

    def read(self, size: int) -> Any:
        """Return up to ``size`` bytes, or an awaitable of them if the iterator is async."""
        if self._plain is None:
            return self._read_async(size)
        while not self._held:
            piece = next(self._plain, None)
            if piece is None:
                return b""
            self._held = bytes(piece)
        return self._take(size)

    async def _read_async(self, size: int) -> bytes:
        assert self._async is not None
        while not self._held:
            piece = await anext(self._async, None)
            if piece is None:
                return b""
            self._held = bytes(piece)
        return self._take(size)

    def _take(self, size: int) -> bytes:
        data, self._held = self._held[:size], self._held[size:]
        return data
