"""A request's transaction under WSGI: commits, abandoned requests, retries, and the order of events."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from web_rig import Counter, Counting, bump, count_of, open_counter

from holdall import Database, Key, Model, Transaction, current_transaction
from holdall.backends.embedded import EmbeddedBackend
from holdall.errors import (
    AfterCommitError,
    ConfigurationError,
    InvalidOptionsError,
    InvalidRequestError,
    ModelAlreadyExistsError,
    NoTransactionError,
    OutcomeUnknown,
    RequestAbandoned,
    TransactionClosedError,
    TransactionFailedError,
)
from holdall.testing import Fault, FaultyBackend
from holdall.web import retry_on_contention
from holdall.web.wsgi import TransactionMiddleware


@dataclass
class Ask:
    """One request as a server makes it; ``events`` records what was sent and closed, in order."""

    method: str = "POST"
    body: bytes = b""
    events: list[Any] = field(default_factory=list)
    watch: Callable[[], Any] = lambda: None
    environ: dict[str, Any] = field(default_factory=dict)

    def to(self, app: Any) -> Ask:
        """Send it to an application; return itself."""
        self.environ |= {"REQUEST_METHOD": self.method, "wsgi.input": io.BytesIO(self.body)}
        response = app(self.environ, self._start_response)
        try:
            for chunk in response:
                self._write(chunk)
        finally:
            if hasattr(response, "close"):
                response.close()
        return self

    def _start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        if exc_info:
            raise exc_info[1]
        self.watch()
        self.events.append((status, dict(headers)))
        return self._write

    def _write(self, chunk: bytes) -> None:
        self.watch()
        self.events.append(chunk)

    @property
    def status(self) -> int | None:
        """The status, if a response has begun."""
        return int(self.events[0][0][:3]) if self.events else None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        found: dict[str, str] = self.events[0][1]
        return found

    @property
    def sent(self) -> bytes:
        """The whole body of the response."""
        return b"".join(event for event in self.events if isinstance(event, bytes))


def add_one() -> Counter:
    counter = current_transaction(Transaction).get_one(Counter, "c")
    counter.n += 1
    return counter


class Contended:
    """An application that increments a counter; in its first ``times`` runs, another writer changes it first."""

    def __init__(self, db: Database, times: int = 1) -> None:
        self.runs = 0
        self.db = db
        self.times = times
        self.bodies: list[bytes] = []

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        self.runs += 1
        counter = add_one()
        self.handle(environ)
        if self.runs <= self.times:
            bump(self.db)
        start_response("200 OK", [])
        return [b"%d" % counter.n]

    def handle(self, environ: Any) -> None:
        """Overridden by applications that do more."""


class Asking(Contended):
    def handle(self, environ: Any) -> None:
        retry_on_contention()
        self.bodies.append(environ["wsgi.input"].read())


# --- commits ----------------------------------------------------------------------------------------------


def plain(environ: Any, start_response: Any) -> Iterable[bytes]:
    add_one()
    start_response("200 OK", [("x-count", "1")])
    return [b"do", b"ne"]


def generate(environ: Any, start_response: Any) -> Iterator[bytes]:
    add_one()
    yield b""
    start_response("200 OK", [("x-count", "1")])
    yield b"do"
    yield b"ne"


def write_body(environ: Any, start_response: Any) -> Iterable[bytes]:
    write = start_response("200 OK", [("x-count", "1")])
    write(b"do")
    add_one()
    return [b"ne"]


def replace_the_response(environ: Any, start_response: Any) -> Iterable[bytes]:
    start_response("500 Broken", [])
    try:
        raise ValueError("broken")
    except ValueError:
        start_response("200 OK", [("x-count", "1")], sys.exc_info())
    add_one()
    return [b"done"]


@pytest.mark.parametrize("app", [plain, generate, write_body, replace_the_response])
def test_the_transaction_commits_before_the_first_byte_is_sent(app: Any) -> None:
    with open_counter() as db:
        stored: list[int] = []
        ask = Ask(watch=lambda: stored.append(count_of(db))).to(TransactionMiddleware(app, db))
        assert (ask.status, ask.headers, ask.sent) == (200, {"x-count": "1"}, b"done")
        assert set(stored) == {1}


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "302 Found"])
def test_a_response_below_400_commits(status: str) -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        add_one()
        start_response(status, [])
        return []

    with open_counter() as db:
        assert Ask().to(TransactionMiddleware(app, db.aio)).events == [(status, {})]
        assert count_of(db) == 1


def test_a_request_that_does_not_use_its_transaction_sends_nothing_to_the_store() -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        current_transaction()
        start_response("200 OK", [])
        return [b"done"]

    store = Counting()
    with open_counter(store) as db:
        store.requests = 0
        assert Ask().to(TransactionMiddleware(app, db)).status == 200
        assert store.requests == 0


# --- abandoned transactions -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "500 Broken"])
def test_an_error_response_abandons_the_transaction_and_is_sent_unchanged(status: str) -> None:
    failures: list[Any] = []

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        add_one()
        current_transaction().after_failure(failures.append)
        start_response(status, [("x", "y")])
        return [b"so ", b"sorry"]

    with open_counter() as db:
        ask = Ask("GET").to(TransactionMiddleware(app, db))
        assert ask.events == [(status, {"x": "y"}), b"so ", b"sorry"]
        assert count_of(db) == 0
    assert isinstance(failures[0], RequestAbandoned)
    assert failures[0].status == int(status[:3])


@pytest.mark.parametrize("late", [False, True])
def test_an_exception_abandons_the_transaction_and_is_raised_unchanged(late: bool) -> None:
    problem = ValueError("broken")

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        add_one()
        if not late:
            raise problem
        return stream(start_response)

    def stream(start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [])
        raise problem
        yield b""

    with open_counter() as db:
        ask = Ask()
        with pytest.raises(ValueError, match="broken") as caught:
            ask.to(TransactionMiddleware(app, db))
        assert caught.value is problem
        assert (ask.events, count_of(db)) == ([], 0)


@pytest.mark.parametrize("status", [None, "fine"])
def test_a_response_without_a_valid_status_is_rejected(status: str | None) -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        add_one()
        if status is not None:
            start_response(status, [])
        return [b"done"]

    with open_counter() as db:
        with pytest.raises(InvalidRequestError, match="status"):
            Ask().to(TransactionMiddleware(app, db))
        assert count_of(db) == 0


def test_a_second_response_is_rejected() -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        add_one()
        start_response("200 OK", [])
        start_response("201 Created", [])
        return [b"done"]

    with open_counter() as db:
        with pytest.raises(InvalidRequestError, match="twice"):
            Ask().to(TransactionMiddleware(app, db))
        assert count_of(db) == 0


# --- streams ----------------------------------------------------------------------------------------------


def test_a_stream_continues_after_the_commit_without_the_transaction() -> None:
    events: list[Any] = []

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        tx = current_transaction()
        add_one()
        start_response("200 OK", [])
        events.append(count_of(db))
        try:
            yield b"one"
            events.append(count_of(db))
            with pytest.raises(TransactionClosedError):
                tx.get(Counter, "c")
            with pytest.raises(NoTransactionError):
                current_transaction()
            yield b"two"
        finally:
            events.append("closed")

    with open_counter() as db:
        Ask(events=events).to(TransactionMiddleware(app, db))
    assert events == [0, ("200 OK", {}), b"one", 1, b"two", "closed"]


def test_an_error_after_the_first_bytes_reaches_the_server() -> None:
    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        add_one()
        write = start_response("200 OK", [])
        yield b"one"
        write(b"two")
        try:
            raise ValueError("broken")
        except ValueError:
            start_response("500 Broken", [], sys.exc_info())

    with open_counter() as db:
        ask = Ask()
        with pytest.raises(ValueError, match="broken"):
            ask.to(TransactionMiddleware(app, db))
        assert (ask.sent, count_of(db)) == (b"onetwo", 1)


def test_the_stream_is_closed_when_the_client_disconnects() -> None:
    closed: list[str] = []

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        add_one()
        start_response("200 OK", [])
        try:
            yield b"one"
            yield b"two"
        finally:
            closed.append("closed")

    with open_counter() as db:
        environ = {"REQUEST_METHOD": "GET", "wsgi.input": io.BytesIO()}
        response: Any = TransactionMiddleware(app, db)(environ, lambda *given: print)
        assert next(iter(response)) == b"one"
        response.close()
        assert (closed, count_of(db)) == (["closed"], 1)


# --- which requests are run again -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_safe_method_is_run_again(method: str) -> None:
    with open_counter() as db:
        app = Contended(db)
        ask = Ask(method).to(TransactionMiddleware(app, db))
        assert (ask.status, ask.sent, app.runs, count_of(db)) == (200, b"101", 2, 101)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_any_other_method_is_not_run_again_but_answered_with_a_conflict(method: str) -> None:
    with open_counter() as db:
        app = Contended(db)
        ask = Ask(method).to(TransactionMiddleware(app, db))
        assert (ask.status, app.runs, count_of(db)) == (409, 1, 100)
        assert ask.headers["retry-after"] == "1"
        assert ask.headers["content-length"] == str(len(ask.sent))


def test_the_answer_to_head_has_no_body() -> None:
    with open_counter() as db:
        ask = Ask("HEAD").to(TransactionMiddleware(Contended(db), db, retries=0))
        assert (ask.status, ask.sent) == (409, b"")


def test_a_handler_that_asks_for_it_is_run_again_and_can_read_its_body_again() -> None:
    with open_counter() as db:
        app = Asking(db, times=2)
        ask = Ask(body=b"all\nof it").to(TransactionMiddleware(app, db))
        assert (ask.status, app.runs, count_of(db)) == (200, 3, 201)
        assert app.bodies == [b"all\nof it"] * 3


@pytest.mark.parametrize(("size", "status", "runs"), [(10, 200, 2), (11, 409, 1)])
def test_a_request_whose_body_exceeds_the_limit_is_not_run_again(size: int, status: int, runs: int) -> None:
    with open_counter() as db:
        app = Asking(db)
        ask = Ask(body=b"x" * size).to(TransactionMiddleware(app, db, max_body=10))
        assert (ask.status, app.runs, app.bodies) == (status, runs, [b"x" * size] * runs)


def test_the_body_can_be_read_after_the_response_has_begun() -> None:
    bodies: list[bytes] = []

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        add_one()
        if not bodies:
            bodies.append(environ["wsgi.input"].read(3))
            bump(db)
        start_response("200 OK", [])
        yield b"you said: "
        yield environ["wsgi.input"].read()

    with open_counter() as db:
        ask = Ask("GET", body=b"one two").to(TransactionMiddleware(app, db))
        assert (ask.sent, bodies) == (b"you said: one two", [b"one"])


@pytest.mark.parametrize(("path", "status"), [("/again", 200), ("/once", 409)])
def test_a_retry_function_decides_by_the_environ(path: str, status: int) -> None:
    with open_counter() as db:
        app = Contended(db)
        middleware = TransactionMiddleware(app, db, retry=lambda environ: environ["PATH_INFO"] == "/again")
        ask = Ask(environ={"PATH_INFO": path}).to(middleware)
        assert (ask.status, app.runs) == (status, 2 if status == 200 else 1)


def test_retries_end_and_failure_handlers_run_once() -> None:
    failures: list[Any] = []

    class Failing(Contended):
        def handle(self, environ: Any) -> None:
            current_transaction().after_failure(failures.append)

    with open_counter() as db:
        app = Failing(db, times=9)
        ask = Ask("GET").to(TransactionMiddleware(app, db, retries=2))
        assert (ask.status, app.runs) == (409, 3)
    (error,) = failures
    assert isinstance(error, TransactionFailedError)
    assert error.attempts == 3


def test_the_response_of_an_abandoned_run_is_closed_before_the_next_run_begins() -> None:
    events: list[str] = []

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        events.append("begun")
        add_one()
        if len(events) == 1:
            bump(db)
        start_response("200 OK", [])
        try:
            yield b"one"
            yield b"two"
        finally:
            events.append("closed")

    with open_counter() as db:
        assert Ask("GET").to(TransactionMiddleware(app, db)).sent == b"onetwo"
    assert events == ["begun", "closed", "begun", "closed"]


def test_the_response_that_the_middleware_replaces_is_closed_once() -> None:
    class Response(list[bytes]):
        def close(self) -> None:
            closed.append(1)

    closed: list[int] = []

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        add_one()
        bump(db)
        start_response("200 OK", [])
        return Response([b"done"])

    with open_counter() as db:
        assert Ask().to(TransactionMiddleware(app, db)).status == 409
    assert closed == [1]


def test_changes_to_the_environ_are_visible_to_outer_middleware_but_not_to_the_next_run() -> None:
    found: list[Any] = []

    class EnvironChanging(Contended):
        def handle(self, environ: Any) -> None:
            found.append(environ.get("route"))
            environ["route"] = f"route {self.runs}"

    with open_counter() as db:
        ask = Ask("GET").to(TransactionMiddleware(EnvironChanging(db), db))
    assert found == [None, None]
    assert ask.environ["route"] == "route 2"
    assert isinstance(ask.environ["wsgi.input"], io.BytesIO)
    assert not any(name.startswith("holdall") for name in ask.environ)


# --- failed commits ---------------------------------------------------------------------------------------


def test_an_error_of_an_after_commit_handler_is_raised_after_the_response_was_sent() -> None:
    runs: list[int] = []

    def fail() -> None:
        raise OSError("the disk is full")

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        runs.append(1)
        add_one()
        current_transaction().after_commit(fail)
        start_response("200 OK", [])
        return [b"do", b"ne"]

    with open_counter() as db:
        ask = Ask("GET")
        with pytest.raises(AfterCommitError):
            ask.to(TransactionMiddleware(app, db))
        assert (ask.status, ask.sent, count_of(db), runs) == (200, b"done", 1, [1])


def test_a_commit_with_an_unknown_outcome_raises_an_error_and_is_never_run_again() -> None:
    runs: list[int] = []
    store = FaultyBackend(EmbeddedBackend(None))

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        runs.append(1)
        add_one()
        store.inject(Fault.LOST_AFTER)
        start_response("200 OK", [])
        return [b"done"]

    with open_counter(store) as db:
        ask = Ask("GET")
        with pytest.raises(OutcomeUnknown):
            ask.to(TransactionMiddleware(app, db))
        assert (ask.events, runs, count_of(db)) == ([], [1], 1)


def test_a_refused_condition_is_answered_with_a_conflict() -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        current_transaction().create(Counter, name="c")
        start_response("201 Created", [])
        return []

    with open_counter() as db:
        ask = Ask().to(TransactionMiddleware(app, db))
        assert ask.status == 409
        assert "retry-after" not in ask.headers


class Refusing(Model):
    name: Key[str]

    def before_commit(self, tx: Any) -> None:
        raise LookupError("not like this")


def test_any_other_error_of_the_commit_is_raised() -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        current_transaction().create(Refusing, name="x")
        start_response("201 Created", [])
        return []

    with open_counter() as db:
        ask = Ask()
        with pytest.raises(LookupError, match="not like this"):
            ask.to(TransactionMiddleware(app, db))
        assert ask.events == []


@pytest.mark.parametrize(
    "error", [AfterCommitError("of another"), ModelAlreadyExistsError("own")], ids=lambda error: error.code
)
def test_an_error_that_the_application_raises_itself_is_not_taken_for_one_of_the_request(
    error: Exception,
) -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        add_one()
        start_response("200 OK", [])
        raise error

    with open_counter() as db:
        ask = Ask("GET")
        with pytest.raises(type(error)) as caught:
            ask.to(TransactionMiddleware(app, db))
        assert caught.value is error
        assert (ask.events, count_of(db)) == ([], 0)


# --- concurrent requests ----------------------------------------------------------------------------------


def test_each_of_many_threads_has_its_own_transaction() -> None:
    together = threading.Barrier(12, timeout=30)

    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        tx = current_transaction()
        for _ in range(3):
            together.wait()
            assert current_transaction() is tx
        name = str(threading.get_ident())
        tx.create(Counter, name=name)
        start_response("200 OK", [])
        return [name.encode()]

    def work(_: int) -> str:
        name = Ask().to(middleware).sent.decode()
        with pytest.raises(NoTransactionError):
            current_transaction()
        return name

    with open_counter() as db, ThreadPoolExecutor(12) as pool:
        middleware = TransactionMiddleware(app, db)
        names = set(pool.map(work, range(12)))
        assert len(names) == 12
        assert None not in db.get_all([Counter.key(name) for name in names])


# --- nesting and options ------------------------------------------------------------------------------------


def test_a_middleware_inside_another_joins_its_transaction() -> None:
    with open_counter() as db, open_counter() as another:
        app = Contended(db)
        inner = TransactionMiddleware(app, db, retries=0)
        ask = Ask("GET").to(TransactionMiddleware(inner, db))
        assert (ask.status, app.runs, count_of(db)) == (200, 2, 101)
        with pytest.raises(ConfigurationError, match="two TransactionMiddlewares"):
            Ask("GET").to(TransactionMiddleware(inner, another))


def test_invalid_options_are_rejected_at_once() -> None:
    with open_counter() as db:
        with pytest.raises(InvalidOptionsError):
            TransactionMiddleware(plain, db, retries=-1)
        with pytest.raises(ConfigurationError):
            TransactionMiddleware(plain, "memory:")  # type: ignore[arg-type]
