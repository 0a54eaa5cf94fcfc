"""Who may do what: the hooks of the application that mounts ours, and what holds without them."""

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

    ``"view"``: the file of ``blob``, or ``representation``, a picture of it. ``"upload"``: to upload a file with this
    ``filename``, ``content_type`` and ``byte_size``, which the client states. ``"download"``: ``version`` of
    ``artifact``, or what an alias of that name serves.
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
    """The hooks; without them every signed URL is answered, and no other site's page can begin an upload."""

    authorize: Authorize | None
    csrf: Csrf | None

    async def check(self, request: Request, asked: Asked) -> None:
        """Refuse what the application does not allow."""
        if self.authorize is not None and not await _call(self.authorize, request, asked):
            raise RefusedError(403, "This is not allowed.")

    async def check_origin(self, request: Request) -> None:
        """Refuse a request that a page of another site made in the name of its visitor."""
        if not await _call(self.csrf or is_same_origin, request):
            raise RefusedError(403, "The request comes from another site.")


async def _call(hook: Callable[..., Any], *args: Any) -> Any:
    """Call a hook; one that is not async may take its time, so a thread calls it."""
    if iscoroutinefunction(hook) or iscoroutinefunction(getattr(hook, "__call__", None)):  # noqa: B004
        return await hook(*args)
    found = await run_in_threadpool(hook, *args)
    return await found if isawaitable(found) else found


async def is_same_origin(request: Request) -> bool:
    """Whether a request comes from a page of this origin, or from no page at all.

    Browsers say where a request comes from; other programs do not, and have no visitor whose cookies they could use.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")
