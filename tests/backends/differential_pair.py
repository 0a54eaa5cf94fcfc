"""Two backends with the same table, the embedded engine and one over the wire, asked the same and compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from uuid import uuid4

from differential_outcome import Look, Outcome, PageContent, Send, outcome
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
    "acceptable",
    "check_wire",
    "examples",
    "open_pair",
    "raw_wire",
    "keep",
]

Adapt: TypeAlias = Callable[[TableSchema, Any], Any]
"""A request or item in the form in which a server is asked; both sides are asked in that form."""


def keep(schema: TableSchema, asked: Any) -> Any:
    """As it is."""
    return asked


def examples(count: int) -> settings:
    """So many examples in an everyday run, thirty times as many when tortured."""
    return settings(max_examples=count * 30 if os.environ.get("HOLDALL_TORTURE") else count)


# --- the two ways over the wire ---------------------------------------------------------------------------


def _endpoint(server: str) -> tuple[Endpoint, Mapping[str, str]]:
    environment = os.environ if server == GIVEN else ENVIRONMENT
    return resolve_endpoint("dynamodb", endpoint=start_server(server), environment=environment), environment


@contextmanager
def check_wire(server: str, single_writes: SingleWrites = "auto") -> Iterator[Send]:
    """Requests to a server as an application sends them."""
    endpoint, environment = _endpoint(server)
    backend = DynamoBackend(endpoint, find_credentials(environment=environment), single_writes=single_writes)
    try:
        yield backend.send_blocking
    finally:
        backend.close()


@contextmanager
def raw_wire(server: str) -> Iterator[Send]:
    """Requests to a server as they are: rendered and delivered, but not checked by us."""
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
            # accepted though we would have refused: such an item cannot be matched to its read
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
    """A request that the two sides answered differently, with what the table held before it."""

    schema: TableSchema
    stored: tuple[Item, ...]
    request: Any
    embedded: Outcome
    server: Outcome
    told: str

    def __str__(self) -> str:
        return (
            f"{self.told}\n  table:    {self.schema}\n  held:     {self.stored}\n  request:  {self.request}\n"
            f"  embedded: {self.embedded}\n  server:   {self.server}"
        )


class Pair:
    """One table on both sides."""

    def __init__(self, schema: TableSchema, embedded: Send, wire: Send, look: Look) -> None:
        self.schema = schema
        self.embedded = embedded
        self.wire = wire
        self._look = look

    def ask(self, request: Request[Any]) -> Disagreement | None:
        """Send the request to both; what they differ in though they must not."""
        stored = self.embedded(Scan(self.schema.name)).items
        ours, theirs = self.answers(request)
        told = self._difference(on_table(request, self.schema.name), ours, theirs)
        if told is None and request.writes:
            told = self._contents_differ()
        return None if told is None else Disagreement(self.schema, stored, request, ours, theirs, told)

    def answers(self, request: Request[Any]) -> tuple[Outcome, Outcome]:
        """What the embedded engine makes of the request, and what the server does."""
        here = on_table(request, self.schema.name)
        return outcome(self.embedded, here, self._look), outcome(self.wire, here, self._look)

    def _difference(self, request: Request[Any], ours: Outcome, theirs: Outcome) -> str | None:
        if ours.refused and not theirs.ok:
            return None  # which of several reasons for a refusal comes first is not defined
        if isinstance(request, Query | Scan) and ours.ok and theirs.ok:
            exact = isinstance(request, Query) and self._without_ties(request)
            same = same_pages(ours.content, theirs.content, exact=exact)
        else:
            same = ours == theirs
        return None if same else "the answers differ"

    def _without_ties(self, request: Query) -> bool:
        """Whether the sort key gives the rows one order; among equals a server may take any."""
        if request.index is None:
            return True
        index = self.schema.index(request.index)
        if index.sort is None:
            return False
        rows: Sequence[Item] = self.embedded(Query(request.table, request.key, request.index)).items
        places = [repr(row[index.sort.name]) for row in rows]
        return len(set(places)) == len(places)

    def _contents_differ(self) -> str | None:
        for index in (None, *(index.name for index in self.schema.indexes)):
            scan = Scan(self.schema.name, index=index)
            ours, theirs = self._rows(self.embedded, scan), self._rows(self.wire, scan)
            if ours != theirs:
                what = index or "the table"
                return f"then {what} holds other items:\n  embedded: {ours}\n  server:   {theirs}"
        return None

    def _rows(self, send: Send, scan: Scan) -> list[str]:
        return _sort_items(map(self._look, send(scan).items))


def same_pages(ours: list[PageContent], theirs: list[PageContent], *, exact: bool) -> bool:
    """Whether two series of pages agree; unless ``exact``, their rows may come in another order."""
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
def open_pair(schema: TableSchema, wire: Send, look: Look, initial: Sequence[Item] = ()) -> Iterator[Pair]:
    """A fresh table on both sides with some items in it."""
    schema = replace(schema, name=f"{uuid4().hex[:24]}-holdall-differential")
    embedded = EmbeddedBackend(None)
    try:
        for send in (embedded.send_blocking, wire):
            send(CreateTable(schema))
            for item in initial:
                send(PutItem(schema.name, item))
        yield Pair(schema, embedded.send_blocking, wire, look)
    finally:
        embedded.close()
        with suppress(TableNotFoundError):
            wire(DeleteTable(schema.name))


def acceptable(request: Any, schema: TableSchema) -> bool:
    """Whether the checks that both sides share let the request through."""
    try:
        check(on_table(request, schema.name), lambda name: schema)
    except HoldallError:
        return False
    return True


def on_table(request: Any, table: str) -> Any:
    """The same request of another table; a client token becomes that table's too."""
    match request:
        case BatchGet(reads) | TransactGet(reads):
            return replace(request, reads=tuple(on_table(read, table) for read in reads))
        case BatchWrite(actions):
            return replace(request, actions=tuple(on_table(action, table) for action in actions))
        case TransactWrite(actions, token):
            moved = tuple(on_table(action, table) for action in actions)
            return TransactWrite(moved, token if len(token) > 36 else f"{token}-{table}"[:36])
    return replace(request, table=table)
