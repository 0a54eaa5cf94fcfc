"""A span and measurements for each request, if OpenTelemetry is installed and the program has configured it.

Whether requests are observed at all is decided when a database is opened (`holdall.backends.configuration.observe`).
Names follow OpenTelemetry's conventions for databases and DynamoDB where these exist. The reports contain the
operation, table, index, consistency, counts and cost; never keys, values, items or expressions.
"""

from __future__ import annotations

from collections.abc import Coroutine
from time import perf_counter
from types import TracebackType
from typing import Any, Self, TypeVar

from holdall.backends.layer.split import SplitBackend
from holdall.core.port import Backend, Layer, Send
from holdall.core.requests import Page, Query, Request, Scan
from holdall.core.settings import Settings
from holdall.core.telemetry import Instruments, Span, error_type, instruments, start_span
from holdall.errors import HoldallError

R = TypeVar("R")


def trace_backend(backend: Backend, settings: Settings) -> Backend:
    """The backend, with its requests reported."""
    system = "aws.dynamodb" if settings.scheme == "dynamodb" else "holdall"
    if isinstance(backend, SplitBackend):
        return SplitBackend(
            TracedBackend(backend.main, system), TracedBackend(backend.reads, system, reads=True)
        )
    return TracedBackend(backend, system)


class TracedBackend(Layer):
    """A backend whose requests are reported to OpenTelemetry."""

    def __init__(self, backend: Backend, system: str, *, reads: bool = False) -> None:
        self._backend = backend
        self._common: dict[str, Any] = {"db.system.name": system}
        if reads:
            self._common["holdall.reads"] = True
        self._client = system == "aws.dynamodb"
        self.sees_through = getattr(backend, "sees_through", False)

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""
        if instruments() is None:  # the usual case costs no flow
            return self._backend.send_blocking(request)
        return super().send_blocking(request)

    def send_awaiting(self, request: Request[R]) -> Coroutine[Any, Any, R]:
        """Answer the request without blocking the event loop."""
        if instruments() is None:
            return self._backend.send_awaiting(request)
        return super().send_awaiting(request)

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        """The reply to a request, reported with how long it took and what it cost."""
        tools = instruments()
        if tools is None:
            return await send(self._backend, request)
        with _Exchange(tools, request, self._common, self._client) as exchange:
            reply = await send(self._backend, request)
            exchange.end(reply)
        return reply

    def close(self) -> None:
        """Close the backend inside."""
        self._backend.close()


class _Exchange:
    """One request, from its sending to its reply."""

    __slots__ = ("_began", "_common", "_measured", "_single", "_span", "_tools")

    def __init__(
        self, tools: Instruments, request: Request[Any], common: dict[str, Any], client: bool
    ) -> None:
        operation, tables = request.operation, request.tables
        self._single = tables[0] if len(tables) == 1 else None
        self._measured: dict[str, Any] = {**common, "db.operation.name": operation}
        if self._single is not None:
            self._measured["db.collection.name"] = self._single
        self._tools = tools
        self._began = perf_counter()
        name = operation if self._single is None else f"{operation} {self._single}"
        facts = self._measured if tools.tracer is None else self._measured | _describe_request(request)
        self._span: Span = start_span(tools, name, facts, client=client)

    def __enter__(self) -> Self:
        self._span.__enter__()
        return self

    def end(self, reply: Any) -> None:
        """Report the reply: its cost, and for a page how many items it has."""
        capacity = getattr(reply, "capacity", None)
        if isinstance(reply, Page):
            self._span.set("aws.dynamodb.count", reply.count)
            self._span.set("aws.dynamodb.scanned_count", reply.scanned)
        if capacity is None:
            return
        self._span.set("holdall.consumed_capacity", float(capacity))
        if self._single is not None:
            text = f'{{"TableName":"{self._single}","CapacityUnits":{float(capacity)}}}'
            self._span.set("aws.dynamodb.consumed_capacity", (text,))
        if self._tools.capacity is not None:
            self._tools.capacity.add(capacity, self._measured)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, HoldallError) and error.service_code is not None:
            self._span.set("db.response.status_code", error.service_code)
        if self._tools.duration is not None:
            ended = {} if error is None else {"error.type": error_type(error)}
            self._tools.duration.record(perf_counter() - self._began, {**self._measured, **ended})
        self._span.__exit__(kind, error, trace)


def _describe_request(request: Request[Any]) -> dict[str, Any]:
    """The attributes of a request, known before it is sent."""
    facts: dict[str, Any] = {"aws.dynamodb.table_names": request.tables}
    if request.parts != (request,):
        facts["db.operation.batch.size"] = len(request.parts)
    consistent = getattr(request, "consistent", None)
    if consistent is not None:
        facts["aws.dynamodb.consistent_read"] = consistent
    if isinstance(request, Query | Scan):
        if request.index is not None:
            facts["aws.dynamodb.index_name"] = request.index
        if request.limit is not None:
            facts["aws.dynamodb.limit"] = request.limit
    if isinstance(request, Query):
        facts["aws.dynamodb.scan_forward"] = not request.reverse
    if isinstance(request, Scan) and request.segments > 1:
        facts["aws.dynamodb.segment"] = request.segment
        facts["aws.dynamodb.total_segments"] = request.segments
    return facts
