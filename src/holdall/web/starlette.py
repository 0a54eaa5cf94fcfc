"""Error handlers for Starlette and FastAPI."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from holdall.errors import ConfigurationError, HoldallError
from holdall.web.answer import answer_in_application


def install_error_handlers(app: Starlette) -> None:
    """Make a Starlette or FastAPI application answer Holdall errors as problems (``application/problem+json``).

    A handler that the application adds for a specific error class takes precedence. Errors that are not the client's
    fault are raised as usual.
    """
    if app.middleware_stack is not None:  # built from the handlers that were installed at that time
        raise ConfigurationError(
            "error handlers cannot be installed after the application has served a request",
            hint="call install_error_handlers where you create the application",
        )
    app.add_exception_handler(HoldallError, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    problem = answer_in_application(error) if request.scope["type"] == "http" else None
    if problem is None:
        raise error
    return Response(problem.encode(request.scope["path"]), problem.status, problem.headers)
