"""Traces: a transfer that needs two attempts, as OpenTelemetry reports it.

A real program sends its spans to a collector; this one keeps them in memory and prints them as a tree.

Run it: python examples/traced_transfer.py
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdall import Database, Key, Model, Transaction

SHOWN = (
    "code.function.name",
    "holdall.transaction.attempts",
    "holdall.transaction.outcome",
    "holdall.consumed_capacity",
    "error.type",
)


class Account(Model):
    owner: Key[str]
    cents: int = 0


def open_accounts(tx: Transaction) -> None:
    for owner in ("ada", "grace"):
        tx.create(Account, owner=owner, cents=1_000)


def pay_interest(tx: Transaction) -> None:
    tx.get_one(Account, "ada").cents += 10


def main() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    with Database("memory:") as db:
        db.run(open_accounts)
        exporter.clear()

        faster = [pay_interest]  # another transaction

        @db.transactional(initial_backoff=0.001)
        def transfer(tx: Transaction, source: str, target: str, cents: int) -> None:
            payer, payee = tx.get_one(Account, source), tx.get_one(Account, target)
            while faster:  # only in the first attempt
                db.run(faster.pop())
            payer.cents -= cents
            payee.cents += cents

        transfer("ada", "grace", 250)
    show(list(exporter.get_finished_spans()), None, "")


def show(spans: list[ReadableSpan], parent: int | None, indent: str) -> None:
    """Print the children of a span in the order in which they began, each with its own children."""
    for span in sorted(spans, key=lambda each: each.start_time or 0):
        if (None if span.parent is None else span.parent.span_id) != parent or span.context is None:
            continue
        shown = {name: value for name, value in (span.attributes or {}).items() if name in SHOWN}
        print(f"{indent}{span.name}: {', '.join(str(value) for value in shown.values())}")
        show(spans, span.context.span_id, f"{indent}    ")


if __name__ == "__main__":
    main()
