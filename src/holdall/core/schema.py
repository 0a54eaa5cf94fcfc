"""What a table is: its key attributes and its indexes; and how DynamoDB's requests define them.

Pure values. Only what the data layer needs to know; capacity, tags and the like belong to the table's owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from holdall.core.frozen import dataclass
from holdall.errors import IndexNotFoundError

TTL = "_ttl"
"""The attribute that lets items of our table expire."""

KeyType: TypeAlias = Literal["S", "N", "B"]
"""The types a key attribute may have: string, number, binary."""


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """A key attribute's name and type."""

    name: str
    type: KeyType = "S"


@dataclass(frozen=True, slots=True)
class Projection:
    """What an index keeps of an item: everything, its keys alone, or its keys and some attributes."""

    kind: Literal["ALL", "KEYS_ONLY", "INCLUDE"] = "ALL"
    names: tuple[str, ...] = ()

    def covers(self, other: Projection) -> bool:
        """Whether it keeps all that the other keeps."""
        if self.kind == "ALL" or other.kind == "KEYS_ONLY":
            return True
        return other.kind == "INCLUDE" and {*other.names} <= {*self.names}

    def joined(self, other: Projection) -> Projection:
        """The least that covers both."""
        if self.covers(other):
            return self
        if other.covers(self):
            return other
        return Projection("INCLUDE", tuple(dict.fromkeys((*self.names, *other.names))))


@dataclass(frozen=True, slots=True)
class IndexSchema:
    """A global secondary index. Items that lack one of its key attributes are not in it."""

    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    projection: Projection = Projection()

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """Its key attributes, the partition's first."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: its name, key attributes and indexes."""

    name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[IndexSchema, ...] = ()

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """Its key attributes, the partition's first."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    def index(self, name: str) -> IndexSchema:
        """The index of that name, or `IndexNotFoundError`."""
        for index in self.indexes:
            if index.name == name:
                return index
        known = ", ".join(index.name for index in self.indexes) or "none"
        raise IndexNotFoundError(
            f"table {self.name} has no index {name}",
            hint=f"it has: {known}; add the index, or name one of these",
        )

    def projected(self, index: IndexSchema) -> frozenset[str] | None:
        """The attribute names an index holds; None when it holds them all."""
        if index.projection.kind == "ALL":
            return None
        return frozenset(key.name for key in (*self.keys, *index.keys)) | frozenset(index.projection.names)


@dataclass(frozen=True, slots=True)
class TableNeeds:
    """What one model needs of its table.

    ``table`` is the model's own, without any prefix; None for one that lives in the database's, whose key is not the
    model's to choose: then there is no ``partition`` and no ``sort`` either. ``ttl`` is the attribute that its items
    expire by, None when they stay.
    """

    table: str | None
    partition: KeyAttribute | None
    sort: KeyAttribute | None
    indexes: tuple[IndexSchema, ...]
    ttl: str | None
    model: str


class NeedsTable(Protocol):
    """What can say what it needs of a table: a model class."""

    def __table_needs__(self) -> TableNeeds:
        """The needs."""


def define_table(schema: TableSchema) -> dict[str, Any]:
    """What CreateTable takes."""
    keys = [*schema.keys, *(key for index in schema.indexes for key in index.keys)]
    definition: dict[str, Any] = {
        "TableName": schema.name,
        "AttributeDefinitions": define_attributes(keys),
        "KeySchema": define_keys(schema.keys),
        "BillingMode": "PAY_PER_REQUEST",
    }
    if schema.indexes:
        definition["GlobalSecondaryIndexes"] = [define_index(index) for index in schema.indexes]
    return definition


def define_addition(table: str, index: IndexSchema) -> dict[str, Any]:
    """What UpdateTable takes to add an index."""
    return {
        "TableName": table,
        "AttributeDefinitions": define_attributes(index.keys),
        "GlobalSecondaryIndexUpdates": [{"Create": define_index(index)}],
    }


def define_attributes(keys: Sequence[KeyAttribute]) -> list[dict[str, str]]:
    """The types of key attributes, each once."""
    return [{"AttributeName": key.name, "AttributeType": key.type} for key in dict.fromkeys(keys)]


def define_keys(keys: Sequence[KeyAttribute]) -> list[dict[str, str]]:
    """Which attribute is the partition key and which the sort key."""
    kinds = zip(keys, ("HASH", "RANGE"), strict=False)
    return [{"AttributeName": key.name, "KeyType": kind} for key, kind in kinds]


def define_index(index: IndexSchema) -> dict[str, Any]:
    """A global secondary index."""
    projection: dict[str, Any] = {"ProjectionType": index.projection.kind}
    if index.projection.names:
        projection["NonKeyAttributes"] = list(index.projection.names)
    return {"IndexName": index.name, "KeySchema": define_keys(index.keys), "Projection": projection}
