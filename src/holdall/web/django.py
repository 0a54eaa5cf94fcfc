"""The handlers of errors for Django: a middleware for ``MIDDLEWARE``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse

from holdall.errors import HoldallError
from holdall.web.answer import answer_in_application

__all__ = ["ErrorMiddleware"]


class ErrorMiddleware:
    """Has Django answer Holdall's errors in views as problems (``application/problem+json``).

    Add ``"holdall.web.django.ErrorMiddleware"`` to ``MIDDLEWARE``, at its end. A middleware below it that answers an
    error comes before this. Errors that are not the client's are raised, as without this.
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
