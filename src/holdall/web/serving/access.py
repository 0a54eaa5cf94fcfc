"""Who may do what: the hooks of the application that mounts ours, and the defaults without them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from holdall.attachments import Blob, Representation
from holdall.web.serving.refusal import RefusedError

__all__ = ["Asked"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for: the second argument of ``authorize``.

    ``"view"``: the file of ``blob``, or ``representation``, a picture of it. ``"upload"``: to upload a file whose
    ``filename``, ``content_type`` and ``byte_size`` are those that the client claims. ``"download"``: ``version`` of
    ``artifact``, or the version that an alias of that name serves.
    """

    action: Literal["view", "upload", "download"]
    blob: Blob | None = None
    representation: Representation | None = None
    filename: str | None = None
    content_type: str | None = None
    byte_size: int | None = None
    artifact: str | None = None
    version: str | None = None


Authorize: TypeAlias = Callable[[Request, Asked], bool | Awaitable[bool]]
Csrf: TypeAlias = Callable[[Request], bool | Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Access:
    """The hooks. Without them, every signed URL is served, and pages of other sites cannot start an upload."""

    authorize: Authorize | None
    csrf: Csrf | None

    async def check(self, request: Request, asked: Asked) -> None:
        """Refuse a request that the application does not allow."""
        if self.authorize is not None and not await _call(self.authorize, request, asked):
            raise RefusedError(403, "This is not allowed.")

    async def check_origin(self, request: Request) -> None:
        """Refuse a request that a page of another site made on behalf of its visitor."""
        if not await _call(self.csrf or is_same_origin, request):
            raise RefusedError(403, "The request comes from another site.")


async def _call(hook: Callable[..., Any], *args: Any) -> Any:
    """Call a hook; one that is not async may block, so it is called in a thread."""
    if iscoroutinefunction(hook) or iscoroutinefunction(getattr(hook, "__call__", None)):  # noqa: B004
        return await hook(*args)
    found = await run_in_threadpool(hook, *args)
    return await found if isawaitable(found) else found


async def is_same_origin(request: Request) -> bool:
    """Whether a request comes from a page of this origin, or not from a page at all.

    Browsers state where a request comes from. Other programs do not, but they cannot misuse a visitor's cookies either.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")
