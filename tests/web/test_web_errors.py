"""Holdall's errors over HTTP: one table, and the same replies from every framework and the middlewares."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import django_rig
import pytest
from django.http import HttpResponse
from django.test import AsyncClient, Client
from django.urls import path
from fastapi import FastAPI
from flask import Flask
from flask import Response as FlaskResponse
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from web_rig import Counter, ask_app, bump, open_counter

import holdall.web.flask
from holdall import Database, Key, Model, current_transaction, errors, field
from holdall.errors import (
    BodyTooLargeError,
    CancellationReason,
    ConfigurationError,
    ContentionError,
    HoldallError,
    InvalidFieldError,
    InvalidFileError,
    InvalidValueError,
    OutcomeUnknown,
    RecordNotFound,
    StoreBusyError,
    TransactionCanceledError,
    TransactionErrors,
    TransactionFailedError,
    UniqueViolationError,
)
from holdall.web import Problem, TransactionMiddleware, find_problem, install_error_handlers, wsgi

ERRORS_BY_STATUS = {
    404: {
        *("RecordNotFound", "ModelMismatchError", "ObjectNotFoundError", "ArtifactNotFoundError"),
        *("AliasNotFoundError", "JobNotFoundError"),
    },
    409: {
        *(
            "UniqueViolationError",
            "ModelAlreadyExistsError",
            "InvalidModelUpdateError",
            "ConditionFailedError",
        ),
        *(
            "PreconditionFailedError",
            "ForeignKeyViolation",
            "UploadConflictError",
            "ArtifactChangedError",
            "ArtifactInUseError",
        ),
        *("TransactionCanceledError", "ContentionError", "ConflictError", "JobBusyError"),
        "ItemArchivedError",
    },
    413: {"BodyTooLargeError", "ItemTooLargeError"},
    422: {
        *("InvalidFieldError", "InvalidValueError", "InvalidKeyError", "InvalidObjectKeyError"),
        *("InvalidTokenError", "InvalidFileError", "InvalidFieldsError"),
        *("MediaError", "MalformedMediaError", "MediaLimitError", "UnsupportedMediaError"),
        *("InvariableError", "UnpreviewableError", "UnrepresentableError"),
    },
    503: {"EndpointError", "ServiceUnavailableError", "StoreBusyError", "ThrottledError"},
}
"""The status of each error that clients see. Others stay errors of the application; decide for each new class."""

SECRET = "ada@example.com"


def make_example(kind: type[HoldallError]) -> HoldallError:
    if kind is errors.InvalidFieldsError:
        return errors.InvalidFieldsError([InvalidFieldError("Person", "mail", f"{SECRET} is wrong")])
    if issubclass(kind, InvalidFieldError):
        return kind("Person", "mail", f"{SECRET} is wrong")
    if issubclass(kind, TransactionErrors):
        return kind(SECRET, [ValueError(SECRET)])
    if issubclass(kind, TransactionCanceledError):
        return kind(SECRET, reasons=[CancellationReason("ConditionalCheckFailed", SECRET)])
    return kind(SECRET)


def raise_from(cause: Exception) -> TransactionFailedError:
    error = TransactionFailedError(SECRET)
    error.__cause__ = cause
    return error


# --- the table --------------------------------------------------------------------------------------------


def test_every_error_has_its_status_and_its_message_does_not_reach_a_client() -> None:
    found: dict[int, set[str]] = {}
    for name in errors.__all__:
        kind = getattr(errors, name)
        if not issubclass(kind, HoldallError):
            continue
        problem = find_problem(make_example(kind))
        if problem is not None:
            found.setdefault(problem.status, set()).add(name)
            assert problem.type == f"urn:holdall:error:{kind.code}"
            assert problem.members["code"] == kind.code
            assert SECRET.encode() not in problem.encode("/")
            assert (problem.retry_after is not None) is (make_example(kind).retryable)
    assert found == ERRORS_BY_STATUS


def test_a_problem_names_the_field_but_not_its_value() -> None:
    for error in (
        InvalidFieldError("Person", "mail", SECRET),
        InvalidValueError(SECRET, place="mail"),
        InvalidFileError(SECRET, field="mail"),
        UniqueViolationError(SECRET, field="mail"),
    ):
        problem = find_problem(error)
        assert problem is not None
        assert problem.members == {"code": error.code, "field": "mail"}


def test_an_invalid_stored_value_is_not_a_client_error() -> None:
    assert find_problem(InvalidFieldError("Person", "mail", SECRET, stored={"S": SECRET})) is None


def test_a_failed_transaction_is_reported_as_its_cause() -> None:
    contention, busy = ContentionError("no"), StoreBusyError("no")
    group = ExceptionGroup("both", [contention, busy])
    problems = [find_problem(raise_from(cause)) for cause in (contention, busy, group)]
    assert [problem and (problem.status, problem.members["code"]) for problem in problems] == [
        (409, "contention"),
        (503, "store-busy"),
        (503, "store-busy"),
    ]
    assert find_problem(raise_from(ValueError("no"))) is None
    assert find_problem(TransactionFailedError("no")) is None


def test_several_client_errors_become_one_problem_but_not_with_a_server_error_among_them() -> None:
    wrong = InvalidFieldError("Person", "name", SECRET)
    problem = find_problem(TransactionErrors("two", [UniqueViolationError(SECRET, field="mail"), wrong]))
    assert problem is not None
    assert (problem.status, problem.members["code"]) == (422, "invalid-field")
    assert [(each["code"], each["field"]) for each in problem.members["errors"]] == [
        ("unique-violation", "mail"),
        ("invalid-field", "name"),
    ]
    assert find_problem(TransactionErrors("two", [wrong, OutcomeUnknown("lost")])) is None


def test_a_subclass_defined_by_the_application_has_the_status_of_its_parent() -> None:
    class NoSuchPage(RecordNotFound):
        code = "no-such-page"

    problem = find_problem(NoSuchPage("gone"))
    assert problem is not None
    assert (problem.status, problem.type) == (404, "urn:holdall:error:no-such-page")


# --- the frameworks ---------------------------------------------------------------------------------------


class Person(Model):
    name: Key[str]
    mail: str = field(unique=True)


class Views:
    """Bodies of views, each of which raises an error."""

    def __init__(self, db: Database) -> None:
        self.db = db
        db.run(lambda tx: tx.create(Person, name="ada", mail=SECRET))

    def find_missing(self) -> None:
        self.db.get_one(Person, "bo")

    def invalid(self) -> None:
        Person(name="bo", mail=7)  # type: ignore[arg-type]

    def reuse_mail(self) -> None:
        self.db.run(lambda tx: tx.create(Person, name="bo", mail=SECRET))

    def contend(self) -> None:
        with self.db.transaction() as tx:
            tx.get_one(Counter, "c").n += 1
            bump(self.db)

    def large(self) -> None:
        raise BodyTooLargeError(f"{SECRET} sent too much")

    def busy(self) -> None:
        raise StoreBusyError("locked")

    def lose(self) -> None:
        raise OutcomeUnknown("lost")

    def break_down(self) -> None:
        raise ValueError("broken")


class Reply(NamedTuple):
    status: int
    headers: Any
    body: bytes


Ask = Callable[[str], Reply]


def starlette(views: Views) -> Ask:
    async def view(request: Any) -> Any:
        getattr(views, request.path_params["name"])()

    app = Starlette(routes=[Route("/{name}", view)])
    install_error_handlers(app)
    return lambda where: _reply(ask_app(app, "GET", where))


def fastapi(views: Views) -> Ask:
    app = FastAPI()
    install_error_handlers(app)
    app.get("/{name}")(lambda name: getattr(views, name)())
    return lambda where: _reply(ask_app(app, "GET", where))


def _reply(reply: Any) -> Reply:
    return Reply(reply.status_code, reply.headers, reply.content)


def flask(views: Views) -> Ask:
    app = Flask("app")
    holdall.web.flask.install_error_handlers(app)
    app.get("/<name>")(lambda name: getattr(views, name)())

    def ask(where: str) -> Reply:
        reply = app.test_client().get(where)
        return Reply(reply.status_code, reply.headers, reply.data)

    return ask


def django(views: Views) -> Ask:
    django_rig.urlpatterns[:] = [path("<name>", lambda request, name: getattr(views, name)())]
    client = Client(raise_request_exception=False)

    def ask(where: str) -> Reply:
        reply = client.get(where)
        return Reply(reply.status_code, reply.headers, reply.content)

    return ask


def django_async(views: Views) -> Ask:
    async def view(request: Any, name: str) -> None:
        getattr(views, name)()

    django_rig.urlpatterns[:] = [path("<name>", view)]

    def ask(where: str) -> Reply:
        reply = asyncio.run(AsyncClient(raise_request_exception=False).get(where))
        return Reply(reply.status_code, reply.headers, reply.content)

    return ask


@pytest.fixture
def db() -> Iterator[Database]:
    with open_counter() as found:
        yield found


@pytest.fixture(params=[starlette, fastapi, flask, django, django_async])
def ask(request: pytest.FixtureRequest, db: Database, caplog: pytest.LogCaptureFixture) -> Iterator[Ask]:
    caplog.set_level(logging.CRITICAL, "django")
    asking: Ask = request.param(Views(db))
    yield asking
    django_rig.urlpatterns.clear()


def test_client_errors_are_answered_with_problem_documents(ask: Ask) -> None:
    answers = {}
    for name in ("find_missing", "invalid", "reuse_mail", "contend", "large", "busy"):
        reply = ask(f"/{name}")
        assert reply.headers["content-type"] == "application/problem+json", name
        assert reply.headers["cache-control"] == "no-store"
        body = json.loads(reply.body)
        assert (body["status"], body["instance"]) == (reply.status, f"/{name}")
        assert body["type"] == f"urn:holdall:error:{body['code']}"
        assert body["title"]
        assert body["detail"]
        assert SECRET not in reply.body.decode()
        answers[name] = (reply.status, body["code"], body.get("field"), reply.headers.get("retry-after"))
    assert answers == {
        "find_missing": (404, "record-not-found", None, None),
        "invalid": (422, "invalid-field", "mail", None),
        "reuse_mail": (409, "unique-violation", "mail", None),
        "contend": (409, "contention", None, "1"),
        "large": (413, "body-too-large", None, None),
        "busy": (503, "store-busy", None, "1"),
    }


@pytest.mark.parametrize("name", ["lose", "break_down"])
def test_other_errors_stay_a_500(ask: Ask, name: str) -> None:
    reply = ask(f"/{name}")
    assert reply.status == 500
    assert "problem" not in reply.headers["content-type"]


def test_a_busy_store_is_logged(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    starlette(Views(db))("/busy")
    assert [record.getMessage() for record in caplog.records if record.name == "holdall.web"] == [
        "a request was answered with 503: store-busy"
    ]


def test_the_applications_own_error_handlers_take_precedence(db: Database) -> None:
    views = Views(db)
    app = FastAPI()
    app.add_exception_handler(RecordNotFound, lambda request, error: PlainTextResponse("no", 410))
    install_error_handlers(app)
    app.get("/{name}")(lambda name: getattr(views, name)())
    assert [ask_app(app, "GET", f"/{name}").status_code for name in ("find_missing", "invalid")] == [410, 422]

    plain = Flask("app")
    holdall.web.flask.install_error_handlers(plain)
    plain.register_error_handler(RecordNotFound, lambda error: ("no", 410))
    plain.get("/<name>")(lambda name: getattr(views, name)())
    client = plain.test_client()
    assert [client.get(f"/{name}").status_code for name in ("find_missing", "invalid")] == [410, 422]


def test_error_handlers_must_be_installed_before_the_first_request() -> None:
    app = FastAPI()
    assert ask_app(app, "GET", "/").status_code == 404
    with pytest.raises(ConfigurationError, match="after the application has served"):
        install_error_handlers(app)


# --- with a transaction per request -----------------------------------------------------------------------


def read_contended(db: Database, runs: list[int]) -> str:
    """Read twice; in the first run, another writer creates the item in between."""
    tx: Any = current_transaction()
    found = tx.get(Counter, "new")
    runs.append(1)
    if len(runs) == 1:
        db.run(lambda other: other.create(Counter, name="new"))
    return f"{found is not None} {len(tx.query(Counter, name='new').all())}"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_middleware_sees_contention_that_an_error_handler_answers(db: Database, method: str) -> None:
    """It runs the request again if that is allowed; otherwise it sends the error handler's response."""
    for framework in ("fastapi", "flask", "django"):
        runs: list[int] = []
        failures: list[Exception] = []

        def view(*args: Any, runs: list[int] = runs, failures: list[Exception] = failures) -> str:
            current_transaction().after_failure(failures.append)
            return read_contended(db, runs)

        if framework == "fastapi":
            app = FastAPI()
            app.add_middleware(TransactionMiddleware, db=db)
            install_error_handlers(app)
            app.api_route("/", methods=["GET", "POST"])(lambda view=view: PlainTextResponse(view()))
            reply = _reply(ask_app(app, method, "/"))
        elif framework == "flask":
            plain = Flask("app")
            plain.wsgi_app = wsgi.TransactionMiddleware(plain.wsgi_app, db)  # type: ignore[method-assign]
            holdall.web.flask.install_error_handlers(plain)
            plain.route("/", methods=["GET", "POST"])(view)
            found = plain.test_client().open("/", method=method)
            reply = Reply(found.status_code, found.headers, found.data)
        else:
            reply = ask_django_in_transaction(db, view, method)
        db.run(lambda tx: tx.delete(tx.get_one(Counter, "new")))
        if method == "GET":
            assert (reply.status, reply.body, len(runs)) == (200, b"True 1", 2), framework
            assert failures == []
        else:
            assert (reply.status, json.loads(reply.body)["code"], len(runs)) == (409, "contention", 1)
            assert [type(error) for error in failures] == [TransactionFailedError]


def ask_django_in_transaction(db: Database, view: Callable[..., str], method: str) -> Reply:
    from django.core.wsgi import get_wsgi_application
    from werkzeug.test import Client as WSGIClient

    django_rig.urlpatterns[:] = [path("", lambda request: HttpResponse(view()))]
    client = WSGIClient(wsgi.TransactionMiddleware(get_wsgi_application(), db))
    found = client.open("/", method=method)
    django_rig.urlpatterns.clear()
    return Reply(found.status_code, found.headers, found.data)


def create_again() -> str:
    current_transaction().create(Counter, name="c")
    return "created"


def test_a_failed_commit_is_answered_with_a_problem_document_too(db: Database) -> None:
    app = FastAPI()
    app.add_middleware(TransactionMiddleware, db=db)
    app.post("/{name}")(lambda: create_again())
    plain = Flask("app")
    plain.wsgi_app = wsgi.TransactionMiddleware(plain.wsgi_app, db)  # type: ignore[method-assign]
    plain.post("/<name>")(lambda name: create_again())
    found = plain.test_client().post("/ä")
    for reply in (_reply(ask_app(app, "POST", "/ä")), Reply(found.status_code, found.headers, found.data)):
        assert reply.headers["content-type"] == "application/problem+json"
        assert int(reply.headers["content-length"]) == len(reply.body)
        assert json.loads(reply.body) == {
            "type": "urn:holdall:error:model-already-exists",
            "title": "Already exists",
            "status": 409,
            "detail": "The resource already exists.",
            "instance": "/%C3%A4",
            "code": "model-already-exists",
        }


def test_an_application_can_choose_the_response_to_a_failed_commit(db: Database) -> None:
    def answer_asgi(error: Exception) -> Any:
        return PlainTextResponse(f"own {type(error).__name__}", 418)

    def answer_wsgi(error: Exception) -> Any:
        return FlaskResponse(f"own {type(error).__name__}", 418)

    app = FastAPI()
    app.add_middleware(TransactionMiddleware, db=db, answer=answer_asgi)
    app.post("/")(lambda: create_again())
    reply = ask_app(app, "POST", "/")
    assert (reply.status_code, reply.text) == (418, "own ModelAlreadyExistsError")

    plain = Flask("app")
    inner = plain.wsgi_app
    plain.post("/")(create_again)
    plain.wsgi_app = wsgi.TransactionMiddleware(inner, db, answer=answer_wsgi)  # type: ignore[method-assign]
    found = plain.test_client().post("/")
    assert (found.status_code, found.text) == (418, "own ModelAlreadyExistsError")

    plain.wsgi_app = wsgi.TransactionMiddleware(  # type: ignore[method-assign]
        inner, db, answer=lambda error: Problem(410, "Too late", members={"code": "late"})
    )
    found = plain.test_client().post("/")
    assert (found.status_code, found.get_json(force=True)["code"]) == (410, "late")

    plain.wsgi_app = wsgi.TransactionMiddleware(inner, db, answer=lambda error: None)  # type: ignore[method-assign]
    with pytest.raises(errors.ModelAlreadyExistsError):
        plain.test_client().post("/")
    with pytest.raises(errors.InvalidOptionsError, match="answer must be a function, not 409"):
        wsgi.TransactionMiddleware(inner, db, answer=409)  # type: ignore[arg-type]
