"""Error handlers for Flask."""

from __future__ import annotations

from flask import Flask, Response, request

from holdall.errors import HoldallError
from holdall.web.answer import answer_in_application

__all__ = ["install_error_handlers"]


def install_error_handlers(app: Flask) -> None:
    """Make a Flask application answer Holdall errors as problems (``application/problem+json``).

    A handler that the application registers for a specific error class takes precedence. Errors that are not the
    client's fault are raised as usual.
    """
    app.register_error_handler(HoldallError, _answer)


def _answer(error: HoldallError) -> Response:
    problem = answer_in_application(error)
    if problem is None:
        raise error
    return Response(problem.encode(request.script_root + request.path), problem.status, problem.headers)
