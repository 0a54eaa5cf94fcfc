"""Django: error handling as a middleware for ``MIDDLEWARE``, and ASGI applications mounted at a URL."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import URLPattern, re_path

from holdall.errors import HoldallError
from holdall.web.answer import answer_in_application
from holdall.web.asgi_attempt import ASGIApp
from holdall.web.wsgi_adapter import Exchange, make_scope

__all__ = ["ErrorMiddleware", "mount"]


class ErrorMiddleware:
    """Makes Django answer Holdall errors in views as problems (``application/problem+json``).

    Add ``"holdall.web.django.ErrorMiddleware"`` at the end of ``MIDDLEWARE``. A middleware below it can still answer an
    error first. Errors that are not the client's fault are raised as usual.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """Pass the request on."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer an error that a view raised."""
        problem = answer_in_application(error) if isinstance(error, HoldallError) else None
        if problem is None:
            return None
        return HttpResponse(problem.encode(request.path), status=problem.status, headers=problem.headers)


def mount(prefix: str, app: ASGIApp) -> URLPattern:
    """A URL pattern that passes everything below ``prefix`` to an ASGI application, such as `holdall.web.create_app`.

    ``urlpatterns = [mount("files", create_app(db))]``. It works under WSGI and ASGI, and runs as
    `holdall.web.wsgi.adapt_asgi` describes. Django's CSRF check does not apply to these requests: pass ``csrf`` to
    ``create_app`` if its default is not enough.
    """

    def view(request: HttpRequest, rest: str) -> StreamingHttpResponse:
        is_awaited = not hasattr(request, "environ")
        environ = {**request.META, "wsgi.input": request, "wsgi.url_scheme": request.scheme}
        if is_awaited:
            environ["wsgi.input_terminated"] = True  # Django has read the body into a file
        root = request.path.removesuffix(rest)
        exchange = Exchange(app, make_scope(environ, request.path, root), environ)
        chunks = _iterate(exchange) if is_awaited else exchange
        response = StreamingHttpResponse(chunks, status=exchange.status)
        del response.headers["content-type"]  # Django's guess
        for name, value in exchange.headers:
            known = response.headers.get(name)
            response.headers[name] = value if known is None else f"{known}, {value}"
        return response

    view.csrf_exempt = True  # type: ignore[attr-defined]
    return re_path(f"(?s)^{re.escape(prefix.strip('/'))}(?P<rest>/.*|)$", view)


async def _iterate(exchange: Exchange) -> AsyncIterator[bytes]:
    chunks = iter(exchange)
    try:
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk
    finally:
        exchange.close()
