"""The console as an application: access is decided here, once for all pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from holdall import AsyncDatabase
from holdall.errors import (
    HoldallError,
    InvalidRequestError,
    MalformedJobError,
    ProtectedAliasError,
    RolloutError,
)
from holdall.models import describe_model
from holdall.web.answer import find_answer
from holdall.web.console.form import check_csrf, check_origin, read_form
from holdall.web.console.section import Page, Section, list_sections
from holdall.web.console.session import Sessions
from holdall.web.console.settings import Console
from holdall.web.console.sign_in import find_session, show_sign_in, sign_in, sign_out
from holdall.web.console.template import render, serve_static
from holdall.web.console.visit import Desk, RefusedVisitError, Visit
from holdall.web.serving.picture import Pictures

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""The headers of every reply. A reply that sets one of them itself keeps it."""

Answer = Callable[[Visit], Awaitable[Response]]


def create_console(db: AsyncDatabase, console: Console, pictures: Pictures) -> Any:
    """Return the application, to be mounted at the console's path."""
    desk = Desk(
        db=db,
        models={describe_model(model)["model"]: model for model in console.models},
        read_only=console.read_only,
        pictures=pictures,
        sessions=Sessions(console.token, console.session),
        sections=list_sections(),
        render=render,
        memory={},
    )

    async def static(request: Request) -> Response:
        return serve_static(request.path_params["name"])

    routes: list[BaseRoute] = [
        Route("/static/{name}", static),
        Route("/sign-in", partial(_answer_anyone, desk, partial(show_sign_in, console))),
        Route("/sign-in", partial(_answer_anyone, desk, sign_in), methods=["POST"]),
        Route("/sign-out", partial(_answer_change, desk, None, sign_out), methods=["POST"]),
        *(_route(desk, section, page) for section in desk.sections for page in section.pages),
    ]
    handlers: dict[Any, Any] = {
        RefusedVisitError: partial(_show_refusal, desk),
        HTTPException: partial(_show_missing, desk),
        HoldallError: partial(_show_error, desk),
        500: partial(_show_failure, desk),
    }
    return _Guarded(Starlette(routes=routes, exception_handlers=handlers))


def _route(desk: Desk, section: Section, page: Page) -> Route:
    if page.changes:
        answer = partial(_answer_change, desk, section, partial(_require_writing, page.answer))
        return Route(page.path, answer, methods=["POST"])
    return Route(page.path, partial(_answer_visit, desk, section, page.answer))


class _Guarded:
    """Adds the headers that every reply has, errors too."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_guarded)


# --- who is answered ----------------------------------------------------------------------------------------


async def _answer_anyone(desk: Desk, answer: Answer, request: Request) -> Response:
    return await answer(find_session(desk, request))


async def _answer_visit(desk: Desk, section: Section, answer: Answer, request: Request) -> Response:
    """Answer a person who has signed in; others get the form."""
    visit = find_session(desk, request)
    if visit.session is None:
        return RedirectResponse(visit.url("sign-in"), 303)
    return await answer(replace(visit, section=section))


async def _answer_change(desk: Desk, section: Section | None, answer: Answer, request: Request) -> Response:
    """Answer a form of a person who has signed in, if a page of this session sent it."""
    await check_origin(request)
    visit = find_session(desk, request)
    if visit.session is None:
        raise RefusedVisitError(403, "Your session has expired, so nothing was changed.", title="Signed out")
    form = await read_form(request)
    check_csrf(visit.session, form)
    return await answer(replace(visit, section=section, form=form))


async def _require_writing(answer: Answer, visit: Visit) -> Response:
    visit.require_writing()
    return await answer(visit)


# --- errors ---------------------------------------------------------------------------------------------------


_ANSWERS: tuple[tuple[type[HoldallError], int, str | None], ...] = (
    (InvalidRequestError, 422, None),
    (MalformedJobError, 422, "Not a job"),
    (ProtectedAliasError, 403, "Protected"),
    (RolloutError, 409, None),
    (HoldallError, 500, None),
)
"""The answers to errors that are a person's mistake here, though a defect in a program: `find_answer` omits them."""


async def _show_refusal(desk: Desk, request: Request, error: RefusedVisitError) -> Response:
    return _show(desk, request, error)


async def _show_missing(desk: Desk, request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        return _show(
            desk,
            request,
            RefusedVisitError(405, "This address does not answer such a request.", title="Not allowed"),
        )
    return _show(desk, request, RefusedVisitError(404, "There is no page at this address."))


async def _show_error(desk: Desk, request: Request, error: HoldallError) -> Response:
    """Show an error of Holdall; the person at the console may see its message."""
    problem = find_answer(error)
    title: str | None
    if problem is not None:
        status, title = problem.status, problem.title
    else:
        status, title = next((status, title) for kind, status, title in _ANSWERS if isinstance(error, kind))
    return _show(desk, request, RefusedVisitError(status, error.message, error.hint, title=title))


async def _show_failure(desk: Desk, request: Request, error: Exception) -> Response:
    detail = "Something went wrong. The server's log has the details."
    return _show(desk, request, RefusedVisitError(500, detail))


def _show(desk: Desk, request: Request, error: RefusedVisitError) -> Response:
    visit = find_session(desk, request)
    return visit.render("refusal.html", error=error, status=error.status)
