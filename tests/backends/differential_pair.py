"""Send the same requests to the embedded engine and to a server with the same table, and compare the outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from uuid import uuid4

from differential_outcome import Normalize, Outcome, PageContent, Send, get_outcome
from hypothesis import settings
from rig.servers import ENVIRONMENT, GIVEN, start_server

from holdall.backends.aws.blocking import BlockingPace
from holdall.backends.aws.connection import Target, tls_context
from holdall.backends.aws.courier import Manner
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import Endpoint, resolve_endpoint
from holdall.backends.aws.transport import Transport
from holdall.backends.dynamodb.backend import LIMITS, DynamoBackend
from holdall.backends.dynamodb.call import render_call
from holdall.backends.dynamodb.delivery import Delivery
from holdall.backends.dynamodb.reply import decode_batch_get, decode_reply
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.port import run
from holdall.core.requests import (
    BatchGet,
    BatchGetReply,
    BatchWrite,
    CreateTable,
    DeleteTable,
    Done,
    PutItem,
    Query,
    Request,
    Scan,
    TransactGet,
    TransactWrite,
)
from holdall.core.rules.validation import check
from holdall.core.schema import TableSchema
from holdall.core.settings import SingleWrites
from holdall.core.values import Item
from holdall.errors import HoldallError, TableNotFoundError

__all__ = [
    "Adapt",
    "Disagreement",
    "Pair",
    "is_acceptable",
    "open_checked_wire",
    "examples",
    "open_pair",
    "open_unchecked_wire",
    "keep",
]

Adapt: TypeAlias = Callable[[TableSchema, Any], Any]
"""A function that returns a request or item in the form that a server supports; both sides receive that form."""


def keep(schema: TableSchema, part: Any) -> Any:
    """Return the request or item unchanged."""
    return part


def examples(count: int) -> settings:
    """Run ``count`` examples in an everyday run, thirty times as many under torture."""
    return settings(max_examples=count * 30 if os.environ.get("HOLDALL_TORTURE") else count)


# --- requests over the wire -------------------------------------------------------------------------------


def _endpoint(server: str) -> tuple[Endpoint, Mapping[str, str]]:
    environment = os.environ if server == GIVEN else ENVIRONMENT
    return resolve_endpoint("dynamodb", endpoint=start_server(server), environment=environment), environment


@contextmanager
def open_checked_wire(server: str, single_writes: SingleWrites = "auto") -> Iterator[Send]:
    """Send requests to a server as an application does."""
    endpoint, environment = _endpoint(server)
    backend = DynamoBackend(endpoint, find_credentials(environment=environment), single_writes=single_writes)
    try:
        yield backend.send_blocking
    finally:
        backend.close()


@contextmanager
def open_unchecked_wire(server: str) -> Iterator[Send]:
    """Send requests to a server without our checks: they are only rendered and delivered."""
    endpoint, environment = _endpoint(server)
    tls = tls_context() if endpoint.scheme == "https" else None
    transport = Transport(Target(endpoint.host, endpoint.port, tls))
    pace = BlockingPace()
    delivery = Delivery(endpoint, find_credentials(environment=environment), transport, LIMITS)

    def send(request: Request[Any]) -> Any:
        manner: Manner = "settle" if isinstance(request, TransactWrite) else "once"
        return _reply(request, run(delivery.write(pace, render_call(request), manner)))

    try:
        yield send
    finally:
        transport.close()


def _reply(request: Request[Any], payload: Mapping[str, Any]) -> Any:
    match request:
        case BatchGet(reads):
            assert not payload.get("UnprocessedKeys")
            into_keys = (
                path.parts[0] in read.key for read in reads for path in read.projection if path.parts[1:]
            )
            # the server accepts a request that we would refuse: such an item cannot be matched to its read
            return BatchGetReply(()) if any(into_keys) else decode_batch_get(request, [payload])
        case BatchWrite():
            assert not payload.get("UnprocessedItems")
            return Done()
        case CreateTable() | DeleteTable():
            return Done()
    return decode_reply(request, payload)


# --- comparing --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A request with different outcomes on the two sides, and the items that the table held before it."""

    schema: TableSchema
    stored: tuple[Item, ...]
    request: Any
    embedded: Outcome
    server: Outcome
    difference: str

    def __str__(self) -> str:
        return (
            f"{self.difference}\n  table:    {self.schema}\n  held:     {self.stored}\n  request:  {self.request}\n"
            f"  embedded: {self.embedded}\n  server:   {self.server}"
        )


class Pair:
    """One table on both sides."""

    def __init__(self, schema: TableSchema, embedded: Send, wire: Send, normalize: Normalize) -> None:
        self.schema = schema
        self.embedded = embedded
        self.wire = wire
        self._normalize = normalize

    def compare(self, request: Request[Any]) -> Disagreement | None:
        """Send the request to both sides; return their disagreement, or None if they agree."""
        stored = self.embedded(Scan(self.schema.name)).items
        ours, theirs = self.send_to_both(request)
        difference = self._compare_outcomes(move_to_table(request, self.schema.name), ours, theirs)
        if difference is None and request.writes:
            difference = self._compare_contents()
        if difference is None:
            return None
        return Disagreement(self.schema, stored, request, ours, theirs, difference)

    def send_to_both(self, request: Request[Any]) -> tuple[Outcome, Outcome]:
        """Return the outcome on the embedded engine, and the one on the server."""
        here = move_to_table(request, self.schema.name)
        return get_outcome(self.embedded, here, self._normalize), get_outcome(
            self.wire, here, self._normalize
        )

    def _compare_outcomes(self, request: Request[Any], ours: Outcome, theirs: Outcome) -> str | None:
        if ours.refused and not theirs.ok:
            return None  # if there are several reasons to refuse, which one is reported is not defined
        if isinstance(request, Query | Scan) and ours.ok and theirs.ok:
            exact = isinstance(request, Query) and self._is_ordered(request)
            same = are_same_pages(ours.content, theirs.content, exact=exact)
        else:
            same = ours == theirs
        return None if same else "the outcomes differ"

    def _is_ordered(self, request: Query) -> bool:
        """Whether the sort keys are unique; a server may return rows with equal sort keys in any order."""
        if request.index is None:
            return True
        index = self.schema.index(request.index)
        if index.sort is None:
            return False
        rows: Sequence[Item] = self.embedded(Query(request.table, request.key, request.index)).items
        places = [repr(row[index.sort.name]) for row in rows]
        return len(set(places)) == len(places)

    def _compare_contents(self) -> str | None:
        for index in (None, *(index.name for index in self.schema.indexes)):
            scan = Scan(self.schema.name, index=index)
            ours, theirs = self._rows(self.embedded, scan), self._rows(self.wire, scan)
            if ours != theirs:
                what = index or "the table"
                return f"afterwards {what} holds different items:\n  embedded: {ours}\n  server:   {theirs}"
        return None

    def _rows(self, send: Send, scan: Scan) -> list[str]:
        return _sort_items(map(self._normalize, send(scan).items))


def are_same_pages(ours: list[PageContent], theirs: list[PageContent], *, exact: bool) -> bool:
    """Whether two series of pages agree; unless ``exact``, the order of their rows may differ."""
    if exact:
        return ours == theirs
    shapes = ([(page.scanned, page.last_key is None) for page in pages] for pages in (ours, theirs))
    rows = (_sort_items(item for page in pages for item in page.items) for pages in (ours, theirs))
    counts = (sum(page.count for page in pages) for pages in (ours, theirs))
    return all(len(set(map(repr, both))) == 1 for both in (shapes, rows, counts))


def _sort_items(items: Iterable[Item]) -> list[str]:
    return sorted(map(repr, items))


# --- one table on both sides ------------------------------------------------------------------------------


@contextmanager
def open_pair(
    schema: TableSchema, wire: Send, normalize: Normalize, initial: Sequence[Item] = ()
) -> Iterator[Pair]:
    """Create a table with the initial items on both sides; delete it afterwards."""
    schema = replace(schema, name=f"{uuid4().hex[:24]}-holdall-differential")
    embedded = EmbeddedBackend(None)
    try:
        for send in (embedded.send_blocking, wire):
            send(CreateTable(schema))
            for item in initial:
                send(PutItem(schema.name, item))
        yield Pair(schema, embedded.send_blocking, wire, normalize)
    finally:
        embedded.close()
        with suppress(TableNotFoundError):
            wire(DeleteTable(schema.name))


def is_acceptable(request: Any, schema: TableSchema) -> bool:
    """Whether the request passes the checks that both sides share."""
    try:
        check(move_to_table(request, schema.name), lambda name: schema)
    except HoldallError:
        return False
    return True


def move_to_table(request: Any, table: str) -> Any:
    """Address the request to another table, and make its client token unique to that table."""
    match request:
        case BatchGet(reads) | TransactGet(reads):
            return replace(request, reads=tuple(move_to_table(read, table) for read in reads))
        case BatchWrite(actions):
            return replace(request, actions=tuple(move_to_table(action, table) for action in actions))
        case TransactWrite(actions, token):
            moved = tuple(move_to_table(action, table) for action in actions)
            return TransactWrite(moved, token if len(token) > 36 else f"{token}-{table}"[:36])
    return replace(request, table=table)
