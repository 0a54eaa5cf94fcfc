"""How requests are refused: with problems, which no cache stores."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from holdall.errors import HoldallError, InvalidTokenError
from holdall.web.answer import find_answer
from holdall.web.problem import Problem

NO_CACHE = {"Cache-Control": "no-store"}

TITLES = {
    400: "Bad request",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Timeout",
    409: "Conflict",
    410: "Gone",
    412: "Precondition failed",
    413: "Too large",
    415: "Unsupported type",
    416: "Range not satisfiable",
    422: "Invalid value",
    460: "Checksum mismatch",
    500: "Server error",
}


class RefusedError(Exception):
    """A request is refused; raised and caught only inside this application."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem = Problem(status, TITLES[status], detail)
        self.headers = headers or {}


def not_found() -> RefusedError:
    """The one refusal for URLs that are wrong, expired, or of something deleted; it does not reveal which."""
    return RefusedError(404, "There is nothing at this URL, or it has expired.")


async def answer_refusal(request: Request, error: Exception) -> Response:
    """The reply to a request that is refused."""
    assert isinstance(error, RefusedError)
    return _reply(request, error.problem, error.headers)


async def answer_error(request: Request, error: Exception) -> Response:
    """The reply to a Holdall error; one that is not the client's fault is raised again."""
    problem = not_found().problem if isinstance(error, InvalidTokenError) else find_answer(error)
    if problem is None:
        raise error
    return _reply(request, problem)


async def answer_failure(request: Request, error: Exception) -> Response:
    """The reply to a request that failed; only the server's log has the details."""
    return _reply(request, Problem(500, TITLES[500]))


def _reply(request: Request, problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    body = problem.encode(request.scope["path"])
    return Response(body, problem.status, {**problem.headers, **(headers or {})})


HANDLERS = {RefusedError: answer_refusal, HoldallError: answer_error, 500: answer_failure}
