"""A typical Flask application, called in process and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import pytest
from flask import Flask, Response, abort, request, stream_with_context
from httpx import Client
from web_rig import Counter, bump, count_of, open_counter, serve_wsgi

from holdall import Database, Key, Model, Transaction, current_transaction, has_one_attached
from holdall.errors import NoTransactionError
from holdall.web import retry_on_contention
from holdall.web.wsgi import TransactionMiddleware


class Application:
    """Views that use a counter; in the next ``contended`` runs, another writer changes the counter first."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.events: list[Any] = []
        self.contended = 0
        self.app = app = Flask("counting")
        app.wsgi_app = TransactionMiddleware(app.wsgi_app, db)  # type: ignore[method-assign]
        app.get("/count")(self.count)
        app.post("/add")(self.add)
        app.post("/add-again")(self.add_again)
        app.post("/fail")(self.fail)
        app.post("/refuse")(self.refuse)
        app.post("/create")(self.create)
        app.post("/upload")(self.upload)
        app.get("/stream")(self.stream)

    def count_up(self, by: int) -> str:
        counter = current_transaction(Transaction).get_one(Counter, "c")
        self.events.append("run")
        if self.contended:
            self.contended -= 1
            bump(self.db)
        counter.n += by
        return str(counter.n)

    def count(self) -> str:
        return self.count_up(1)

    def add(self) -> str:
        return self.count_up(request.get_json()["by"])

    def add_again(self) -> str:
        retry_on_contention()
        return self.count_up(request.get_json()["by"])

    def fail(self) -> str:
        self.count_up(1)
        raise ValueError("broken")

    def refuse(self) -> str:
        self.count_up(1)
        abort(418)

    def create(self) -> tuple[str, int]:
        current_transaction().create(Counter, name=request.get_json()["name"])
        return "created", 201

    def upload(self) -> str:
        retry_on_contention()
        file = request.files["file"]
        return self.count_up(len(file.read())) + f" {request.form['note']}"

    def stream(self) -> Response:
        self.count_up(1)

        def chunks() -> Iterator[str]:
            self.events.append(count_of(self.db))
            yield "one "
            self.events.append(count_of(self.db))
            with pytest.raises(NoTransactionError):
                current_transaction()
            yield request.path

        return Response(stream_with_context(chunks()))


@pytest.fixture
def application() -> Iterator[Application]:
    with open_counter() as db:
        yield Application(db)


class Answer(NamedTuple):
    status: int
    text: str
    headers: Any


Ask = Callable[..., Answer]


@pytest.fixture(params=["in process", "over HTTP"])
def ask(request: pytest.FixtureRequest, application: Application) -> Iterator[Ask]:
    if request.param == "in process":

        def in_process(method: str, path: str, **options: Any) -> Answer:
            with application.app.test_client() as client:
                files = {name: (content, name) for name, content in options.pop("files", {}).items()}
                data = {**options.pop("data", {}), **files}
                answer = client.open(path, method=method, data=data or None, **options)
                return Answer(answer.status_code, answer.text, answer.headers)

        yield in_process
        return
    with serve_wsgi(application.app) as url, Client(base_url=url, trust_env=False) as client:

        def over_http(method: str, path: str, **options: Any) -> Answer:
            answer = client.request(method, path, **options)
            return Answer(answer.status_code, answer.text, answer.headers)

        yield over_http


def test_changes_are_committed_when_the_view_returns(ask: Ask, application: Application) -> None:
    assert ask("POST", "/add", json={"by": 3}).text == "3"
    assert ask("GET", "/count").text == "4"
    assert count_of(application.db) == 4


@pytest.mark.parametrize(("path", "status"), [("/fail", 500), ("/refuse", 418), ("/nowhere", 404)])
def test_an_error_commits_nothing(ask: Ask, application: Application, path: str, status: int) -> None:
    assert ask("POST", path).status == status
    assert count_of(application.db) == 0


def test_creating_twice_is_a_conflict(ask: Ask) -> None:
    assert ask("POST", "/create", json={"name": "new"}).status == 201
    again = ask("POST", "/create", json={"name": "new"})
    assert (again.status, "retry-after" in again.headers) == (409, False)


def test_the_commit_precedes_the_first_chunk_of_a_stream(ask: Ask, application: Application) -> None:
    assert ask("GET", "/stream").text == "one /stream"
    assert application.events == ["run", 0, 1]


def test_a_view_that_asks_for_it_is_run_again_with_its_body(ask: Ask, application: Application) -> None:
    application.contended = 2
    assert ask("POST", "/add-again", json={"by": 3}).text == "203"
    assert (application.events, count_of(application.db)) == (["run"] * 3, 203)


def test_the_next_run_can_read_a_form_with_a_file_again(ask: Ask, application: Application) -> None:
    import io

    application.contended = 1
    answer = ask("POST", "/upload", data={"note": "hello"}, files={"file": io.BytesIO(b"x" * 100_000)})
    assert answer.text == "100100 hello"


def test_a_get_request_is_run_again(ask: Ask, application: Application) -> None:
    application.contended = 1
    assert ask("GET", "/count").text == "101"
    assert application.events == ["run"] * 2


def test_a_view_that_does_not_ask_for_retries_is_run_once(ask: Ask, application: Application) -> None:
    application.contended = 1
    refused = ask("POST", "/add", json={"by": 3})
    assert (refused.status, refused.headers["retry-after"]) == (409, "1")
    assert (application.events, count_of(application.db)) == (["run"], 100)


def test_contention_while_a_view_reads_is_retried_if_flask_propagates_exceptions(
    application: Application,
) -> None:
    runs: list[int] = []

    @application.app.get("/meeting")
    def read_twice() -> str:
        tx = current_transaction()
        found = tx.get(Counter, "new")
        runs.append(1)
        if len(runs) == 1:
            application.db.run(lambda other: other.create(Counter, name="new"))
        return f"{found is not None} {len(tx.query(Counter, name='new').all())}"

    application.app.config["PROPAGATE_EXCEPTIONS"] = True
    with application.app.test_client() as client:
        assert client.get("/meeting").text == "True 1"
    assert len(runs) == 2


def test_an_exception_that_flask_propagates_is_raised_unchanged(application: Application) -> None:
    application.app.testing = True
    with application.app.test_client() as client, pytest.raises(ValueError, match="broken"):
        client.post("/fail")
    assert count_of(application.db) == 0


class Folder(Model):
    name: Key[str]
    paper = has_one_attached()


@pytest.mark.parametrize("size", [10, 1_000_000], ids=["in memory", "on disk"])
def test_an_upload_is_attached_although_flask_closes_it_before_the_commit(size: int) -> None:
    with open_counter() as db:
        app = Flask("folders")
        app.wsgi_app = TransactionMiddleware(app.wsgi_app, db)  # type: ignore[method-assign]

        @app.post("/")
        def attach() -> str:
            folder = current_transaction(Transaction).create(Folder, name="blue")
            paper = request.files["paper"]
            folder.paper = paper
            assert paper.stream.tell() == 0
            folder.paper = paper  # the same file can be assigned again
            return "attached"

        data = bytes(size)
        answer = app.test_client().post("/", data={"paper": (BytesIO(data), "paper.bin")})
        answer.request.environ["wsgi.input"].close()  # the test client keeps a large body in a temporary file
        assert answer.text == "attached"
        blob = db.get_one(Folder, "blue", include=["paper"]).paper.blob
        assert blob is not None
        assert db.blobs.download(blob) == data
