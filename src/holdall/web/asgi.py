"""The middleware that gives each request of an ASGI application a transaction.

The transaction is committed when the application is about to send the first byte of a response with a status below
400, and rolled back otherwise, so a client sees success only after the commit. After contention, a request is run again
only if its method is safe, or if the application has allowed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdall.errors import AfterCommitError
from holdall.scope import ScopedTransaction
from holdall.web.asgi_attempt import ASGIApp, Attempt, ClientWatch, Scope, Send
from holdall.web.inbox import Inbox, Receive
from holdall.web.problem import Problem
from holdall.web.request import RunningRequest, running
from holdall.web.rules import MARK, Rules, is_inside

if TYPE_CHECKING:
    from holdall import AsyncDatabase, Database


class TransactionMiddleware:
    """Gives each HTTP request of an ASGI application a transaction, `holdall.current_transaction`.

    The transaction commits before the first byte of the response is sent; an exception, or a response with a status of
    400 or more, rolls it back. After contention, a GET, HEAD or OPTIONS request is run again, as `db.run` does, up to
    ``retries`` times; other requests only if their handler calls `retry_on_contention`, or if ``retry(scope)`` returns
    True. A request with a body of more than ``max_body`` bytes is not run again, because its body is not kept.

    If the commit fails, the client gets the problem that `find_problem` returns for the error. ``answer(error)``
    replaces that: it returns an ASGI application such as a Starlette response, a `Problem`, or None to raise the error.
    """

    def __init__(
        self,
        app: ASGIApp,
        db: Database | AsyncDatabase,
        *,
        retries: int | None = None,
        max_body: int = 1_000_000,
        retry: Callable[[Scope], bool] | None = None,
        answer: Callable[[Exception], ASGIApp | Problem | None] | None = None,
    ) -> None:
        self.app = app
        self.rules = Rules(db, retries=retries, max_body=max_body, retry=retry, answer=answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; anything but HTTP, such as a websocket, goes straight to the application."""
        if scope["type"] != "http" or is_inside(scope, self.rules):
            await self.app(scope, receive, send)
        else:
            await _Exchange(self, scope, receive, send).serve()


class _Exchange:
    """One request, and the attempts to answer it."""

    def __init__(self, middleware: TransactionMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
        rules = middleware.rules
        self._middleware = middleware
        self._scope = scope
        self._send = send
        expects = any(name == b"expect" for name, _ in scope["headers"])
        self._inbox = Inbox(receive, rules.max_body, expects=expects)
        self._repeatable = rules.repeatable(scope["method"], scope)
        self._attempt: Attempt | None = None
        self._request: RunningRequest | None = None

    async def serve(self) -> None:
        """Run the request in a transaction, and answer it."""
        try:
            failure = await self._failure()
            await self._answer(failure)
        finally:
            try:
                if self._attempt is not None:
                    await self._attempt.give_up()
            finally:
                self._inbox.close()

    async def _failure(self) -> Exception | None:
        try:
            await self._middleware.rules.scope.run(self._run, self._may_repeat)
        except Exception as error:  # noqa: BLE001 - _answer answers or raises it
            return error
        return None

    async def _run(self, tx: ScopedTransaction) -> None:
        """The transaction's body: the application, up to its response."""
        if self._attempt is not None:
            await self._attempt.give_up()
        self._request = RunningRequest(tx)
        before = running.get()
        running.set(self._request)  # for the task that the attempt starts
        try:
            scope = self._copy_scope()
            self._attempt = Attempt(self._middleware.app, scope, self._inbox, self._send)
        finally:
            running.set(before)
        await self._attempt.reach_response(self._request)
        if tx.is_used:
            tx.join(ClientWatch(self._attempt))

    _run.__qualname__ = "TransactionMiddleware"  # logs and traces name a transaction after its body

    def _copy_scope(self) -> dict[str, Any]:
        own = {**self._scope, MARK: self._middleware.rules.scope}
        if isinstance(own.get("state"), dict):
            own["state"] = dict(own["state"])
        return own

    def _hand_back(self, own: dict[str, Any]) -> None:
        """Copy what a run has noted in its scope, such as the route, to where outer middlewares look for it."""
        noted = {name: value for name, value in own.items() if name != MARK}
        state = self._scope.get("state")
        if isinstance(state, dict) and isinstance(own.get("state"), dict):
            state.update(own["state"])
            noted["state"] = state
        self._scope.update(noted)

    def _may_repeat(self) -> bool:
        if self._attempt is None or self._request is None:
            return False
        if self._inbox.is_gone or not self._inbox.record.whole:
            return False
        return self._repeatable or self._request.repeatable

    async def _answer(self, failure: Exception | None) -> None:
        attempt = self._attempt
        if attempt is None:
            assert failure is not None
            raise failure
        self._hand_back(attempt.scope)
        # an AfterCommitError that the application raised itself is about another transaction
        late = isinstance(failure, AfterCommitError) and failure is not attempt.error
        if failure is None or late or attempt.is_error_response:
            await self._release(attempt, failure if late else None)
            return
        await attempt.give_up()
        if failure is attempt.refusal:
            return  # the client is gone, or the server reports that there is no response
        answer = None if failure is attempt.error else self._middleware.rules.find_answer(failure)
        if answer is None:
            raise failure if attempt.error is None else attempt.error
        if isinstance(answer, Problem):
            await self._send_problem(answer)
        else:
            await answer(self._scope, self._inbox.next, self._send)

    async def _release(self, attempt: Attempt, late: Exception | None) -> None:
        """Send the response. A failure after the commit is raised after it, so that the client does not try again."""
        try:
            await attempt.release()
        except Exception as error:
            if late is not None:
                error.add_note(f"this failed, too: {late!r}")
            raise
        if late is not None:
            raise late

    async def _send_problem(self, problem: Problem) -> None:
        body = problem.encode(self._scope["path"])
        headers = problem.headers | {"content-length": str(len(body))}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": problem.status, "headers": encoded})
        await self._send({"type": "http.response.body", "body": body})
