"""Helpers of the tests of tables: scripted stores, ports that do not wait, and descriptions of tables."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from rig.servers import ENVIRONMENT, GIVEN, NAMES, sign_in, start_server
from rig.wrapper import Wrapper

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.port.blocking import BlockingPort
from holdall.backends.port.once import BlockingOnce, Memo
from holdall.core import (
    Backend,
    DescribeTable,
    IndexSchema,
    KeyAttribute,
    Projection,
    Request,
    TableDescription,
    TableSchema,
)
from holdall.core.context import Context, State
from holdall.core.port import Send
from holdall.core.settings import Settings, resolve
from holdall.features import find_hook
from holdall.tables import Table

STORES = ["memory", "file", *NAMES]

INDEX = IndexSchema("active_storage_index", KeyAttribute("as_index_pk"), KeyAttribute("as_index_sk"))


def settings(**given: object) -> Settings:
    """Settings of a store in memory, whose table is not managed by default."""
    return resolve({"url": "memory:", "table_name": "app", "manage_table": False, **given}, {}, {})


def description(
    partition: str = "pk:S",
    sort: str | None = "sk:S",
    *indexes: IndexSchema,
    status: str = "ACTIVE",
    index_status: str = "ACTIVE",
) -> TableDescription:
    """A table's description."""
    schema = TableSchema("app", key(partition), None if sort is None else key(sort), indexes)
    return TableDescription(schema, status, {index.name: index_status for index in indexes}, 0, 0)


def key(text: str) -> KeyAttribute:
    """``name:T`` as a key attribute."""
    name, _, kind = text.partition(":")
    return KeyAttribute(name, kind)  # type: ignore[arg-type]


def table_from(definition: dict[str, Any]) -> TableSchema:
    """The table that CreateTable would create from a definition."""
    types = {part["AttributeName"]: part["AttributeType"] for part in definition["AttributeDefinitions"]}
    assert definition["BillingMode"] == "PAY_PER_REQUEST"
    indexes = tuple(_index(index, types) for index in definition.get("GlobalSecondaryIndexes", ()))
    return TableSchema(definition["TableName"], *_keys(definition, types), indexes=indexes)


def index_from(definition: dict[str, Any]) -> tuple[str, IndexSchema]:
    """The table and index that UpdateTable would create from a definition."""
    types = {part["AttributeName"]: part["AttributeType"] for part in definition["AttributeDefinitions"]}
    (change,) = definition["GlobalSecondaryIndexUpdates"]
    return definition["TableName"], _index(change["Create"], types)


def _index(definition: dict[str, Any], types: dict[str, Any]) -> IndexSchema:
    projection = definition["Projection"]
    names = tuple(projection.get("NonKeyAttributes", ()))
    return IndexSchema(
        definition["IndexName"],
        *_keys(definition, types),
        projection=Projection(projection["ProjectionType"], names),
    )


def _keys(definition: dict[str, Any], types: dict[str, Any]) -> tuple[KeyAttribute, KeyAttribute | None]:
    names = {part["KeyType"]: part["AttributeName"] for part in definition["KeySchema"]}
    parts = {kind: KeyAttribute(name, types[name]) for kind, name in names.items()}
    return parts["HASH"], parts.get("RANGE")


class ScriptedStore(Wrapper):
    """A store in memory that counts all requests and records the writes; a test can script its next replies."""

    def __init__(self, inner: Backend | None = None) -> None:
        super().__init__(inner or EmbeddedBackend(None))
        self.sent: Counter[str] = Counter()
        self.changes: list[Request[Any]] = []
        self._scripted: dict[str, deque[Any]] = {}

    def script(self, kind: type[Request[Any]], *outcomes: Any) -> None:
        """Set the outcome of the next requests of a kind: raise an error, call a function, or send it (None)."""
        self._scripted.setdefault(kind.__name__, deque()).extend(outcomes)

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        name = type(request).__name__
        self.sent[name] += 1
        if request.writes:
            self.changes.append(request)
        queue = self._scripted.get(name)
        outcome = queue.popleft() if queue else None
        if isinstance(outcome, Exception):
            raise outcome
        return await send(self.inner, request) if outcome is None else outcome(request)

    def in_state(self, status: str = "ACTIVE", index_status: str | None = None) -> Any:
        """A function for ``script`` that describes the table in another state."""

        def describe(request: DescribeTable) -> TableDescription:
            true = self.inner.send_blocking(request)
            states = {name: index_status or state for name, state in true.index_status.items()}
            return replace(true, status=status, index_status=states)

        return describe


class PatientPort(BlockingPort):
    """A port that records the waits that it is asked for, and does not wait."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def table_on(backend: Backend, **given: object) -> tuple[Table, PatientPort]:
    """A table whose port does not wait, and that port."""
    port = PatientPort(backend)
    return Table(Context(port, settings(**given), BlockingOnce(Memo()), State(), find_hook)), port


@contextmanager
def open_databases(store: str, count: int = 1) -> Iterator[list[Database]]:
    """Open databases on one empty store; none of them creates tables by itself."""
    with ExitStack() as stack:
        if store == "memory":
            shared = EmbeddedBackend(None)
            yield [stack.enter_context(Database(backend=shared, manage_table=False)) for _ in range(count)]
        elif store == "file":
            folder = stack.enter_context(TemporaryDirectory())
            url = f"embedded:{Path(folder, 'store.db')}?durability=normal"
            yield [stack.enter_context(Database(url, manage_table=False)) for _ in range(count)]
        else:
            yield [stack.enter_context(database) for database in _on_server(store, count)]


def _on_server(server: str, count: int) -> list[Database]:
    unique = uuid4().hex
    given = server == GIVEN
    return [
        Database(
            f"dynamodb://tables-{unique}",
            endpoint=start_server(server),
            region=None if given else ENVIRONMENT["AWS_REGION"],
            credentials=None if given else sign_in,
            table_prefix=f"tables-{unique}-",
        )
        for _ in range(count)
    ]
