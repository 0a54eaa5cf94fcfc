"""Helpers for tests of telemetry: an OpenTelemetry that records everything, and a store with injected faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdall import Database, Index, Key, Model, SortKey
from holdall.backends.embedded import EmbeddedBackend
from holdall.testing import FaultyBackend

__all__ = [
    "COLOURS",
    "QUICK",
    "Account",
    "Entry",
    "Recording",
    "open_faulty",
    "run_coloured",
    "set_up_telemetry",
]

COLOURS = ["blocking", "awaiting"]
QUICK: Any = {"initial_backoff": 0.0}


class Account(Model, indexes=[Index("by_branch", key=["branch"])]):
    owner: Key[str]
    cents: int = 0
    branch: str = "north"


class Entry(Model):
    owner: Key[str]
    number: SortKey[int]
    text: str = ""


class Recording:
    """The spans and measurements that OpenTelemetry received."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracing = TracerProvider(shutdown_on_exit=False)
        self.tracing.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.metering = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracer = self.tracing.get_tracer("the program")

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in the order of their ends."""
        return list(self.exporter.get_finished_spans())

    def find_spans(self, *names: str) -> list[ReadableSpan]:
        """The spans whose names begin with one of these."""
        return [span for span in self.spans if span.name.startswith(names)]

    def find_span(self, name: str) -> ReadableSpan:
        """The only span whose name begins with this."""
        (span,) = self.find_spans(name)
        return span

    def list_children(self, parent: ReadableSpan) -> list[str]:
        """The names of the direct children of a span, in the order of their ends."""
        assert parent.context is not None
        return [
            span.name
            for span in self.spans
            if span.parent is not None and span.parent.span_id == parent.context.span_id
        ]

    def list_points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """The points of a metric, with their attributes."""
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            (dict(point.attributes or {}), point)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def clear(self) -> None:
        """Forget the spans."""
        self.exporter.clear()


@contextmanager
def set_up_telemetry(*, traces: bool = True, measures: bool = True) -> Iterator[Recording]:
    """Set up OpenTelemetry as a program does; unlike a program, repeatedly in one process."""
    recording = Recording()
    with pytest.MonkeyPatch.context() as patch:
        if traces:
            patch.setattr(trace, "_TRACER_PROVIDER", recording.tracing)
        if measures:
            patch.setattr(metrics._internal, "_METER_PROVIDER", recording.metering)
        yield recording
    recording.tracing.shutdown()
    recording.metering.shutdown()


@contextmanager
def open_faulty() -> Iterator[tuple[Database, FaultyBackend]]:
    """Open a database with tables, and a backend whose next requests can be made to fail."""
    backend = FaultyBackend(EmbeddedBackend(None))
    with Database(backend=backend) as db:
        db.table.create(models=[Account, Entry])
        db.get(Account, "missing")
        db.query(Account, index="by_branch", branch="nowhere").all()
        yield db, backend


def run_coloured(colour: str, db: Database, body: Callable[[Any], Any], **options: Any) -> Any:
    """Call ``db.run`` or ``db.aio.run`` with a function that awaits nothing."""
    if colour == "blocking":
        return db.run(body, **QUICK, **options)

    async def await_body(tx: Any) -> Any:
        return body(tx)

    await_body.__qualname__ = body.__qualname__
    return asyncio.run(db.aio.run(await_body, **QUICK, **options))
