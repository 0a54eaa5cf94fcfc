"""Artifacts by version or alias: a redirect to the current bytes."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdall.errors import InvalidRequestError
from holdall.web.serving.access import Asked
from holdall.web.serving.refusal import NO_CACHE, RefusedError
from holdall.web.serving.site import Site


def list_routes(site: Site) -> list[Route]:
    """The route for artifacts."""
    return [Route("/artifacts/{name}/{version}", partial(_show, site))]


async def _show(site: Site, request: Request) -> Response:
    """Redirect to a version; the same ``?key=`` always gets the same one from an alias with several versions."""
    name, version = request.path_params["name"], request.path_params["version"]
    await site.access.check(request, Asked("download", artifact=name, version=version))
    try:
        url = await site.db.artifacts.url(
            name,
            int(version) if version.isascii() and version.isdigit() else version,
            key=request.query_params.get("key"),
            filename=name,
            disposition="attachment",
            content_type="application/octet-stream",
        )
    except InvalidRequestError:
        raise RefusedError(422, "This version cannot be downloaded as a file.") from None
    return RedirectResponse(url, 302, NO_CACHE)
