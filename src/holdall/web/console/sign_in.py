"""Signing in with the console's token or a one-time link, and signing out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdall.web.console.form import check_origin, read_form
from holdall.web.console.settings import Console
from holdall.web.console.visit import Desk, Visit


async def show_sign_in(console: Console, visit: Visit) -> Response:
    """Show the form, or follow a one-time link."""
    once = visit.query("once")
    if once and console.links.take(once):
        return _begin(visit)
    if visit.session is not None:
        return RedirectResponse(visit.url(), 303)
    problem = "This link was already used or has expired. Sign in with the token." if once else None
    return visit.render("sign_in.html", problem=problem, status=403 if problem else 200)


async def sign_in(visit: Visit) -> Response:
    """Begin a session if the token is right."""
    await check_origin(visit.request)
    form = await read_form(visit.request)
    if not visit.desk.sessions.is_token(form.get("token", "")):
        return visit.render("sign_in.html", problem="This is not the console's token.", status=403)
    return _begin(visit)


async def sign_out(visit: Visit) -> Response:
    """End the session."""
    if visit.session is not None:
        visit.desk.sessions.end(visit.session)
    response = visit.redirect(visit.url("sign-in"))
    name, path = visit.desk.sessions.cookie, _path_of(visit.request)
    response.delete_cookie(name, path, httponly=True, samesite="strict")
    return response


def _begin(visit: Visit) -> Response:
    sessions = visit.desk.sessions
    response = visit.redirect(visit.url())
    response.set_cookie(
        sessions.cookie,
        sessions.begin(),
        max_age=int(sessions.lifetime.total_seconds()),
        path=_path_of(visit.request),
        secure=visit.request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


def _path_of(request: Request) -> str:
    return str(request.scope.get("root_path", "")) or "/"


def find_session(desk: Desk, request: Request) -> Visit:
    """Return the visit that a request is, with its session if it has one."""
    cookie = request.cookies.get(desk.sessions.cookie)
    return Visit(desk, request, None if cookie is None else desk.sessions.read(cookie), None, {})
