"""Types, for type checkers, of methods whose result depends on their arguments.

``blocking`` and ``awaiting`` keep the signature of a flow, which has one type for all its results. The declarations
here have the same parameters; a test compares them.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, overload

from holdall.artifacts.alias.alias import Version
from holdall.files.progress import Progress

B_co = TypeVar("B_co", covariant=True)
P_co = TypeVar("P_co", covariant=True)
N_co = TypeVar("N_co", covariant=True)


class PathLike(Protocol):
    """An object that represents a path, as `pathlib.Path` does."""

    def __fspath__(self) -> str:
        """The path as text."""
        ...


PathText: TypeAlias = str | PathLike


class Writable(Protocol):
    """A stream for bytes; in async code its ``write`` may be async."""

    def write(self, data: bytes, /) -> Any:
        """Write bytes."""
        ...


class DownloadOptions(TypedDict, total=False):
    """The options of a download."""

    key: str | int | None
    progress: Progress | None
    resume: bool
    cache: bool | None


class Download(Protocol[B_co, P_co, N_co]):
    """A download: returns the bytes, the path that was passed, or None for a stream; or an awaitable of these."""

    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        to: None = None,
        **options: Unpack[DownloadOptions],
    ) -> B_co: ...
    @overload
    def __call__(
        self, name: str, version_or_alias: Version | None, to: PathText, **options: Unpack[DownloadOptions]
    ) -> P_co: ...
    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        *,
        to: PathText,
        **options: Unpack[DownloadOptions],
    ) -> P_co: ...
    @overload
    def __call__(
        self, name: str, version_or_alias: Version | None, to: Writable, **options: Unpack[DownloadOptions]
    ) -> N_co: ...
    @overload
    def __call__(
        self,
        name: str,
        version_or_alias: Version | None = None,
        *,
        to: Writable,
        **options: Unpack[DownloadOptions],
    ) -> N_co: ...
