"""One request of a person who has signed in, and what a page needs to answer it.

Every page gets a `Visit`. It reads the request's values, renders templates, and makes URLs that work wherever the
application is mounted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdall import AsyncDatabase, Model
from holdall.errors import HoldallError
from holdall.web.console.session import Session, Sessions
from holdall.web.serving.picture import Pictures
from holdall.web.serving.refusal import TITLES

if TYPE_CHECKING:
    from holdall.web.console.section import Section


@dataclass(frozen=True, slots=True)
class Desk:
    """What all pages share: the database, the models by ``module:Class``, and the options of the console."""

    db: AsyncDatabase
    models: Mapping[str, type[Model]]
    read_only: bool
    pictures: Pictures
    sessions: Sessions
    sections: tuple[Section, ...]
    render: Callable[[str, Mapping[str, Any]], str]
    memory: dict[str, Any]
    """What a section keeps between visits, under its own name."""


class RefusedVisitError(Exception):
    """A request that a page refuses: shown as a page with a title, by default the status's, a sentence and a hint."""

    def __init__(
        self, status: int, detail: str, hint: str | None = None, *, title: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title or TITLES[status]
        self.detail = detail
        self.hint = hint


def explain_problem(error: HoldallError | RefusedVisitError) -> str:
    """Return what went wrong, for a page that can still be shown."""
    if isinstance(error, RefusedVisitError):
        return error.detail
    return error.message if error.hint is None else f"{error.message}\n{error.hint}"


@dataclass(frozen=True, slots=True)
class Visit:
    """A request, its session, and for a change the values of its form, whose CSRF token is already checked."""

    desk: Desk
    request: Request
    session: Session | None
    section: Section | None
    form: Mapping[str, str]

    @property
    def db(self) -> AsyncDatabase:
        """The database."""
        return self.desk.db

    def require_writing(self) -> None:
        """Refuse a page that leads to a change, if the console is read-only."""
        if self.desk.read_only:
            raise RefusedVisitError(
                403,
                "This console is read-only, so nothing was changed.",
                "start it with `holdall serve --read-write`, or with Console(read_only=False)",
                title="Read-only",
            )

    def query(self, name: str, default: str = "") -> str:
        """Return a value of the URL's query."""
        return self.request.query_params.get(name, default)

    def url(self, *parts: str, **query: str | int | None) -> str:
        """Return the URL of a page: ``visit.url("models", name, limit=50)``; parts are quoted, None is left out."""
        path = "".join(f"/{quote(part, safe='')}" for part in parts) or "/"
        given = {name: value for name, value in query.items() if value is not None}
        return f"{self.request.scope.get('root_path', '')}{path}{'?' if given else ''}{urlencode(given)}"

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page, made of a template and values, which are escaped."""
        notice, seal = self.query("notice"), self.query("seal")
        is_ours = bool(notice) and self.desk.sessions.is_sealed("notice", notice, seal)
        shown = {"visit": self, "desk": self.desk, "notice": notice if is_ours else None, **values}
        return Response(self.desk.render(template, shown), status, media_type="text/html")

    def redirect(self, url: str, *, notice: str | None = None) -> Response:
        """Return a redirect after a change; the next page shows the notice, which is signed."""
        if notice is not None:
            seal = self.desk.sessions.seal("notice", notice)
            url = f"{url}{'&' if '?' in url else '?'}{urlencode({'notice': notice, 'seal': seal})}"
        return RedirectResponse(url, 303)
