"""The handlers of errors for Starlette and FastAPI."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from holdall.errors import ConfigurationError, HoldallError
from holdall.web.answer import answer_in_application


def install_error_handlers(app: Starlette) -> None:
    """Have a Starlette or FastAPI application answer Holdall's errors as problems (``application/problem+json``).

    A handler that the application adds for one class of them comes before this. Errors that are not the client's are
    raised, as without this.
    """
    if app.middleware_stack is not None:  # it was built with the handlers of that moment
        raise ConfigurationError(
            "the application has already served a request, and takes no more handlers",
            hint="call install_error_handlers where you create the application",
        )
    app.add_exception_handler(HoldallError, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    problem = answer_in_application(error) if request.scope["type"] == "http" else None
    if problem is None:
        raise error
    return Response(problem.encode(request.scope["path"]), problem.status, problem.headers)
