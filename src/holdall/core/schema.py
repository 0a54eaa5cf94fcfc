"""Schemas of tables: their key attributes and indexes, and the definitions of these in DynamoDB's requests.

Pure values. Only what the data layer needs; capacity, tags and the like are up to the table's owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from holdall.core.frozen import dataclass
from holdall.errors import IndexNotFoundError

TTL = "_ttl"
"""The attribute by which items of the database's table expire."""

KeyType: TypeAlias = Literal["S", "N", "B"]
"""The type of a key attribute: string, number or binary."""


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """A key attribute's name and type."""

    name: str
    type: KeyType = "S"

    def describe(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"name": self.name, "type": self.type}


@dataclass(frozen=True, slots=True)
class Projection:
    """The attributes that an index holds: all, only the keys, or the keys and some others."""

    kind: Literal["ALL", "KEYS_ONLY", "INCLUDE"] = "ALL"
    names: tuple[str, ...] = ()

    def covers(self, other: Projection) -> bool:
        """Whether this projection includes everything that the other does."""
        if self.kind == "ALL" or other.kind == "KEYS_ONLY":
            return True
        return other.kind == "INCLUDE" and {*other.names} <= {*self.names}

    def joined(self, other: Projection) -> Projection:
        """Return the smallest projection that covers both."""
        if self.covers(other):
            return self
        if other.covers(self):
            return other
        return Projection("INCLUDE", tuple(dict.fromkeys((*self.names, *other.names))))


@dataclass(frozen=True, slots=True)
class IndexSchema:
    """A secondary index. It does not hold items that lack one of its key attributes.

    A ``local`` index has the table's partition key and another sort key. It can be read with strong consistency, and
    can only be created together with its table. The keys of a global index can have several attributes each:
    ``more_partition`` and ``more_sort`` follow ``partition`` and ``sort``.
    """

    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    projection: Projection = Projection()
    local: bool = False
    more_partition: tuple[KeyAttribute, ...] = ()
    more_sort: tuple[KeyAttribute, ...] = ()

    @property
    def partitions(self) -> tuple[KeyAttribute, ...]:
        """The attributes of the partition key."""
        return (self.partition, *self.more_partition)

    @property
    def sorts(self) -> tuple[KeyAttribute, ...]:
        """The attributes of the sort key."""
        return () if self.sort is None else (self.sort, *self.more_sort)

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """The key attributes: partition key first, then the sort key."""
        return self.partitions + self.sorts

    def has_keys_of(self, other: IndexSchema) -> bool:
        """Whether both have the same keys. Only the sort keys of local indexes differ; the other is the table's."""
        alike = self.sorts == other.sorts
        return alike and (self.partitions == other.partitions or (self.local and other.local))

    def describe(self) -> dict[str, Any]:
        """Return it as JSON values; ``keys`` are all key attributes, each with its role."""
        return {
            "name": self.name,
            "partition_key": self.partition.describe(),
            "sort_key": None if self.sort is None else self.sort.describe(),
            "keys": [
                {**key.describe(), "role": role}
                for role, keys in (("partition", self.partitions), ("sort", self.sorts))
                for key in keys
            ],
            "projection": self.projection.kind,
            "projected": list(self.projection.names),
            "local": self.local,
        }


def make_index(
    name: str,
    partitions: Sequence[KeyAttribute],
    sorts: Sequence[KeyAttribute],
    projection: Projection,
    local: bool = False,
) -> IndexSchema:
    """Return an index with keys of one or several attributes."""
    partition, *more_partition = partitions
    sort, *more_sort = sorts or (None,)
    return IndexSchema(
        name,
        partition,
        sort,
        projection,
        local,
        tuple(more_partition),
        tuple(key for key in more_sort if key is not None),
    )


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: its name, key attributes and indexes."""

    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[IndexSchema, ...] = ()

    @property
    def partitions(self) -> tuple[KeyAttribute, ...]:
        """The attributes of the partition key: one."""
        return (self.partition,)

    @property
    def sorts(self) -> tuple[KeyAttribute, ...]:
        """The attributes of the sort key: one or none."""
        return () if self.sort is None else (self.sort,)

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """The key attributes: partition key first, then the sort key."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    def index(self, name: str) -> IndexSchema:
        """Return the index with this name, or raise `IndexNotFoundError`."""
        for index in self.indexes:
            if index.name == name:
                return index
        known = ", ".join(index.name for index in self.indexes)
        raise IndexNotFoundError(
            f"table {self.name} has no index {name}",
            hint=f"add the index, or use one of: {known}" if known else "add the index: the table has none",
        )

    def projected(self, index: IndexSchema) -> frozenset[str] | None:
        """Return the names of the attributes that an index holds; None if it holds all."""
        if index.projection.kind == "ALL":
            return None
        return frozenset(key.name for key in (*self.keys, *index.keys)) | frozenset(index.projection.names)


@dataclass(frozen=True, slots=True)
class TableNeeds:
    """What one model needs of its table.

    ``table`` is the name of the model's own table, without any prefix. It is None for a model in the database's table;
    so are ``partition`` and ``sort``, because the model cannot choose that table's keys. ``ttl`` is the attribute by
    which its items expire, None if they do not. ``fetched`` are the indexes that need not hold whole items, because
    these are then fetched by their keys. ``declared``: the model says how another program laid out the table.
    """

    table: str | None
    partition: KeyAttribute | None
    sort: KeyAttribute | None
    indexes: tuple[IndexSchema, ...]
    ttl: str | None
    model: str
    fetched: frozenset[str] = frozenset()
    declared: bool = False


class NeedsTable(Protocol):
    """A class that declares what it needs of its table: a model."""

    def __table_needs__(self) -> TableNeeds:
        """Return what the class needs of its table."""


def define_table(schema: TableSchema) -> dict[str, Any]:
    """Return the parameters of DynamoDB's CreateTable."""
    keys = [*schema.keys, *(key for index in schema.indexes for key in index.keys)]
    definition: dict[str, Any] = {
        "TableName": schema.name,
        "AttributeDefinitions": define_attributes(keys),
        "KeySchema": define_keys(schema),
        "BillingMode": "PAY_PER_REQUEST",
    }
    return definition | define_indexes(schema)


def define_addition(table: str, index: IndexSchema) -> dict[str, Any]:
    """Return the parameters of DynamoDB's UpdateTable that add an index."""
    return {
        "TableName": table,
        "AttributeDefinitions": define_attributes(index.keys),
        "GlobalSecondaryIndexUpdates": [{"Create": define_index(index)}],
    }


def define_removal(table: str, index: str) -> dict[str, Any]:
    """Return the parameters of DynamoDB's UpdateTable that remove an index."""
    return {"TableName": table, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": index}}]}


def define_attributes(keys: Sequence[KeyAttribute]) -> list[dict[str, str]]:
    """Return the definitions of key attributes, each once."""
    return [{"AttributeName": key.name, "AttributeType": key.type} for key in dict.fromkeys(keys)]


def define_keys(keyed: TableSchema | IndexSchema) -> list[dict[str, str]]:
    """Return a key schema: which attributes are the partition key and which the sort key."""
    kinds = {"HASH": keyed.partitions, "RANGE": keyed.sorts}
    return [{"AttributeName": key.name, "KeyType": kind} for kind, keys in kinds.items() for key in keys]


def define_indexes(schema: TableSchema) -> dict[str, Any]:
    """Return the definitions of a table's indexes, by kind; kinds that it does not have are left out."""
    kinds = {"GlobalSecondaryIndexes": False, "LocalSecondaryIndexes": True}
    found = {
        kind: [define_index(index) for index in schema.indexes if index.local is local]
        for kind, local in kinds.items()
    }
    return {kind: indexes for kind, indexes in found.items() if indexes}


def define_index(index: IndexSchema) -> dict[str, Any]:
    """Return the definition of an index."""
    projection: dict[str, Any] = {"ProjectionType": index.projection.kind}
    if index.projection.names:
        projection["NonKeyAttributes"] = list(index.projection.names)
    return {"IndexName": index.name, "KeySchema": define_keys(index), "Projection": projection}
