"""WSGI: the middleware that gives each request of an application (Flask, for example) a transaction; ASGI adapters.

The transaction is committed when the application has produced the first bytes of a response with a status below 400,
before they are sent, and rolled back otherwise, so a client sees success only after the commit. After contention, a
request is run again only if its method is safe, or if the application has allowed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from holdall import Transaction
from holdall.errors import AfterCommitError, InvalidRequestError, RequestAbandoned
from holdall.web.problem import Problem
from holdall.web.replay import InputRecord, ReplayedInput
from holdall.web.request import RunningRequest, running
from holdall.web.rules import MARK, Rules, is_inside
from holdall.web.wsgi_adapter import adapt_asgi, decode, find_phrase

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from holdall import AsyncDatabase, Database

__all__ = ["TransactionMiddleware", "adapt_asgi"]

_INPUT = "wsgi.input"


class TransactionMiddleware:
    """Gives each request of a WSGI application a transaction, `holdall.current_transaction`.

    The transaction commits before the first byte of the response is sent; an exception, or a response with a status of
    400 or more, rolls it back. After contention, a GET, HEAD or OPTIONS request is run again, as `db.run` does, up to
    ``retries`` times; other requests only if their handler calls `holdall.web.retry_on_contention`, or if
    ``retry(environ)`` returns True. A request with a body of more than ``max_body`` bytes is not run again, because its
    body is not kept.

    If the commit fails, the client gets the problem that `holdall.web.find_problem` returns for the error.
    ``answer(error)`` replaces that: it returns a WSGI application such as a Flask response, a `holdall.web.Problem`, or
    None to raise the error.
    """

    def __init__(
        self,
        app: WSGIApplication,
        db: Database | AsyncDatabase,
        *,
        retries: int | None = None,
        max_body: int = 1_000_000,
        retry: Callable[[WSGIEnvironment], bool] | None = None,
        answer: Callable[[Exception], WSGIApplication | Problem | None] | None = None,
    ) -> None:
        self.app = app
        self.rules = Rules(db, retries=retries, max_body=max_body, retry=retry, answer=answer)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        if is_inside(environ, self.rules):
            return self.app(environ, start_response)
        return _Exchange(self, environ).respond(start_response)


class _Exchange:
    """One request, and the attempts to answer it."""

    def __init__(self, middleware: TransactionMiddleware, environ: WSGIEnvironment) -> None:
        self._app = middleware.app
        self._rules = middleware.rules
        self._environ = environ
        self._body = InputRecord(environ[_INPUT], self._rules.max_body)
        self._repeatable = self._rules.repeatable(environ["REQUEST_METHOD"], environ)
        self._attempt: _Attempt | None = None
        self._request: RunningRequest | None = None

    def respond(self, start_response: StartResponse) -> Iterable[bytes]:
        """Run the request in a transaction, and answer it."""
        try:
            return self._answer(self._failure(), start_response)
        except BaseException:
            if self._attempt is not None:
                self._attempt.close()
            raise

    def _failure(self) -> Exception | None:
        try:
            self._rules.scope.run_blocking(self._run, self._may_repeat)
        except Exception as error:  # noqa: BLE001 - _answer answers or raises it
            return error
        return None

    def _run(self, tx: Transaction) -> None:
        """The transaction's body: the application, up to its response."""
        if self._attempt is not None:
            self._attempt.close()
        self._request = RunningRequest(tx)
        own = {**self._environ, MARK: self._rules.scope, _INPUT: ReplayedInput(self._body)}
        self._attempt = _Attempt(own)
        before = running.get()
        running.set(self._request)
        try:
            self._attempt.reach_response(self._app, self._request)
        finally:
            running.set(before)

    _run.__qualname__ = "TransactionMiddleware"  # logs and traces name a transaction after its body

    def _may_repeat(self) -> bool:
        if self._request is None or not self._body.whole:
            return False
        return self._repeatable or self._request.repeatable

    def _answer(self, failure: Exception | None, start_response: StartResponse) -> Iterable[bytes]:
        attempt = self._attempt
        if attempt is None:
            assert failure is not None
            raise failure
        self._environ.update({n: v for n, v in attempt.environ.items() if n not in (MARK, _INPUT)})
        # an AfterCommitError that the application raised itself is about another transaction
        late = isinstance(failure, AfterCommitError) and failure is not attempt.error
        if failure is None or late or attempt.refusal is not None:
            self._body.whole = False
            return attempt.release(start_response, failure if late else None)
        answer = None if failure is attempt.error else self._rules.find_answer(failure)
        attempt.close()
        if answer is None:
            raise failure if attempt.error is None else attempt.error
        return (
            self._send_problem(answer, start_response)
            if isinstance(answer, Problem)
            else answer(self._environ, start_response)
        )

    def _send_problem(self, problem: Problem, start_response: StartResponse) -> Iterable[bytes]:
        environ = self._environ
        body = problem.encode(decode(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")))
        headers = problem.headers | {"content-length": str(len(body))}
        start_response(f"{problem.status} {find_phrase(problem.status)}", list(headers.items()))
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]


class _Attempt:
    """One run of the application. ``error`` is what it raised, ``refusal`` why it must not be committed."""

    def __init__(self, environ: WSGIEnvironment) -> None:
        self.environ = environ
        self.error: Exception | None = None
        self.refusal: RequestAbandoned | None = None
        self._start: tuple[str, list[tuple[str, str]]] | None = None
        self._held: list[bytes] = []
        self._whole: Iterable[bytes] = ()
        self._rest: Iterator[bytes] = iter(())
        self._released: StartResponse | None = None
        self._write: Callable[[bytes], object] = self._held.append

    def reach_response(self, app: WSGIApplication, request: RunningRequest) -> None:
        """Run the application until it has produced bytes to send, and raise if it must not be committed."""
        try:
            self._whole = app(self.environ, self._start_response)
            self._rest = iter(self._whole)
            for chunk in self._rest:
                self._held.append(chunk)
                if chunk:
                    break
        except Exception as error:
            self.error = error
            raise
        if self._start is None:
            raise InvalidRequestError(
                "the WSGI application sent no status",
                hint="it must call start_response before it yields its first bytes",
            )
        line = self._start[0]
        if not line[:3].isdecimal():
            raise InvalidRequestError(
                f"the WSGI application's status must begin with three digits, as in '200 OK', not be {line!r:.80}"
            )
        status = int(line[:3])
        if status >= 400:
            self.refusal = RequestAbandoned(f"the application answered with {status}", status=status)
            raise request.error or self.refusal

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None, /
    ) -> Callable[[bytes], object]:
        if self._released is not None:
            return self._released(status, headers, exc_info)
        if self._start is not None and exc_info is None:
            raise InvalidRequestError(
                "the WSGI application called start_response twice",
                hint="the second call must pass exc_info, to replace the response after an error",
            )
        self._start = (status, headers)
        return lambda data: self._write(data)

    def release(self, start_response: StartResponse, late: Exception | None) -> Iterable[bytes]:
        """The response; a failure after the commit is raised after it, so that the client does not try again."""
        assert self._start is not None
        self._write = start_response(*self._start)
        self._released = start_response
        return _Response(self._chunks(), self.close, late)

    def _chunks(self) -> Iterator[bytes]:
        yield from self._held
        self._held.clear()
        yield from self._rest

    def close(self) -> None:
        """Close the application's response; calling it again is harmless."""
        whole, self._whole = self._whole, ()
        close = getattr(whole, "close", None)
        if close is not None:
            close()


class _Response:
    """The response that the server gets. The server closes it when it has sent all, or when the client is gone."""

    def __init__(self, chunks: Iterator[bytes], close: Callable[[], None], late: Exception | None) -> None:
        self._chunks = chunks
        self._close = close
        self._late = late

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """Close the application's response, then raise what failed after the commit."""
        try:
            self._close()
        except Exception as error:
            if self._late is not None:
                error.add_note(f"this failed, too: {self._late!r}")
            raise
        if self._late is not None:
            raise self._late
