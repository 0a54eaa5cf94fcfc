"""Types, for type checkers, of methods whose result depends on their arguments.

``blocking`` and ``awaiting`` keep the signature of a flow, which has one type for all its results. The declarations
here have the same parameters; a test compares them.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, Unpack, overload

from holdall.artifacts.alias.alias import Version
from holdall.files.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path


class PathLike(Protocol):
    """An object that represents a path, as `pathlib.Path` does."""

    def __fspath__(self) -> str:
        """The path as text."""
        ...


PathText: TypeAlias = str | PathLike


class Writable(Protocol):
    """A stream that bytes are written to; in async code its ``write`` may have to be awaited."""

    def write(self, data: bytes, /) -> Any:
        """Take some bytes."""
        ...


class DownloadOptions(TypedDict, total=False):
    """The options of a download."""

    key: str | int | None
    progress: Progress | None
    resume: bool
    cache: bool | None


class Download(Protocol):
    """A download: returns the bytes, the path that was passed, or None for a stream."""

    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        to: None = None,
        **options: Unpack[DownloadOptions],
    ) -> bytes: ...
    @overload
    def __call__(
        self, name: str, version_or_alias: Version | None, to: PathText, **options: Unpack[DownloadOptions]
    ) -> Path: ...
    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        *,
        to: PathText,
        **options: Unpack[DownloadOptions],
    ) -> Path: ...
    @overload
    def __call__(
        self, name: str, version_or_alias: Version | None, to: Writable, **options: Unpack[DownloadOptions]
    ) -> None: ...
    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        *,
        to: Writable,
        **options: Unpack[DownloadOptions],
    ) -> None: ...


class AwaitedDownload(Protocol):
    """The same, to be awaited."""

    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        to: None = None,
        **options: Unpack[DownloadOptions],
    ) -> Coroutine[Any, Any, bytes]: ...
    @overload
    def __call__(
        self, name: str, version_or_alias: Version | None, to: PathText, **options: Unpack[DownloadOptions]
    ) -> Coroutine[Any, Any, Path]: ...
    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        *,
        to: PathText,
        **options: Unpack[DownloadOptions],
    ) -> Coroutine[Any, Any, Path]: ...
    @overload
    def __call__(
        self, name: str, version_or_alias: Version | None, to: Writable, **options: Unpack[DownloadOptions]
    ) -> Coroutine[Any, Any, None]: ...
    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        *,
        to: Writable,
        **options: Unpack[DownloadOptions],
    ) -> Coroutine[Any, Any, None]: ...
