"""Everything one can ask of a table, and what comes back.

Pure, frozen values; do not change a mapping after handing it over. `Request[R]` carries the type of its
reply, so ``port.send(GetItem(...))`` is known to give a `GetReply`. The order of reads and actions is
kept: item *i* answers read *i*, cancellation reason *i* explains action *i*.

**Write classes.** How a write may be repeated after its reply was lost is decided by who plans it:

- *Token*: a `TransactWrite` (also of one action). Its client token makes a repetition harmless for ten
  minutes; backends resend it byte-identical and give up before that.
- *Stamp*: a `PutItem` or `UpdateItem` made by `stamped`. It sets the attribute ``_w`` to a fresh id under a
  condition that the write itself falsifies, and asks for the stored item on failure: if that carries our
  id, an earlier send had succeeded, and so has the write.
- *Plain*: any other single write. Once it has left and no reply came, its fate is `OutcomeUnknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from holdall.core.expressions import Compare, Condition, KeyCondition, NotExists, Path, Set, Update, Value
from holdall.core.frozen import dataclass, replace
from holdall.core.schema import IndexSchema, TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidRequestError

R = TypeVar("R")
W = TypeVar("W", bound="PutItem | UpdateItem")

STAMP = "_w"
"""The attribute in which a stamped write leaves its id."""

NO_STAMP: Attribute = {"NULL": True}
"""The stamp of an item that had none when it was read."""

Returns: TypeAlias = Literal["none", "old", "new"]
"""What a successful single write gives back: nothing, the item before it, or (updates) after it."""


Repetition: TypeAlias = Literal["repeat", "token", "once"]
"""How a request may be sent again after a lost reply: freely, by its token, or not at all unless it is stamped."""


Destination: TypeAlias = Literal["store", "service", "process", "media"]
"""Who answers a request: the store of tables, a service that keeps bytes, a child process, or one that reads media."""


class Request(Generic[R]):
    """The base of all requests; ``R`` is the type of the reply.

    What is so of every request of a class is said once, by the class.
    """

    __slots__ = ()
    operation: ClassVar[str]  # what DynamoDB calls it, where that is not the name of the class
    writes: ClassVar[bool] = False
    repetition: ClassVar[
        Repetition
    ]  # "repeat" for reads and "once" for writes, unless the class says otherwise
    destination: ClassVar[Destination] = "store"
    of_tables: ClassVar[bool] = False  # about a table itself, not about its items

    def __init_subclass__(cls) -> None:
        if "operation" not in vars(cls):
            cls.operation = cls.__name__
        if "repetition" not in vars(cls):
            cls.repetition = "once" if cls.writes else "repeat"

    @property
    def parts(self) -> tuple[Any, ...]:
        """The reads or actions that it is made of; just itself, when it is one."""
        return (self,)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it is about."""
        return tuple(dict.fromkeys([part.table for part in self.parts]))

    @property
    def checked_tables(self) -> tuple[str, ...]:
        """The tables whose schema it is checked against."""
        return () if self.of_tables else self.tables

    @property
    def may_be_old(self) -> bool:
        """Whether an answer from a moment ago, such as a cache's, is good enough."""
        return False


# --- replies --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """It is done; ``capacity`` is what DynamoDB bills for it, in capacity units."""

    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class GetReply:
    """The item, or None when there is none."""

    item: Item | None
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchGetReply:
    """The items in the order of the reads, None for each that is missing."""

    items: tuple[Item | None, ...]
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class WriteReply:
    """A single write went through; ``item`` is what the request's ``returns`` asked for."""

    item: Item | None = None
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a query or scan.

    ``count`` items passed the filter out of ``scanned``; ``items`` is empty when only a count was asked for.
    ``last_key`` is where the next page starts (hand it over as ``start_after``), None when this was the last.
    """

    items: tuple[Item, ...]
    count: int
    scanned: int
    last_key: Item | None
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as it is: its schema, its state and each index's state (``ACTIVE``, ``CREATING``, …).

    The counts are estimates where the service keeps estimates.
    """

    schema: TableSchema
    status: str
    index_status: Mapping[str, str]
    item_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TtlDescription:
    """The attribute that expires items, or None when nothing expires."""

    attribute: str | None


# --- reads ----------------------------------------------------------------------------------------------


class _Read(Request[R]):
    """A read that a cache may answer, unless it is ``consistent``, or has to be ``fresh``: no cache answers it, though
    it may miss the writes of the last moment, as a read of an index does."""

    __slots__ = ()
    consistent: bool
    fresh: bool

    @property
    def may_be_old(self) -> bool:
        """Whether a cache may answer."""
        return not (self.consistent or self.fresh)


@dataclass(frozen=True, slots=True)
class GetItem(_Read[GetReply]):
    """Read one item by its key."""

    table: str
    key: Item
    consistent: bool = False
    projection: tuple[Path, ...] = ()
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class BatchGet(Request[BatchGetReply]):
    """Read up to 100 items, each for itself; reads of one table agree on consistency and projection."""

    operation: ClassVar[str] = "BatchGetItem"
    most: ClassVar[int] = 100
    reads: tuple[GetItem, ...]

    @property
    def parts(self) -> tuple[GetItem, ...]:
        """Its reads."""
        return self.reads

    @property
    def may_be_old(self) -> bool:
        """Whether a cache may answer."""
        return all(read.may_be_old for read in self.reads)


@dataclass(frozen=True, slots=True)
class TransactGet(Request[BatchGetReply]):
    """Read up to 100 items as of one instant."""

    operation: ClassVar[str] = "TransactGetItems"
    most: ClassVar[int] = 100
    reads: tuple[GetItem, ...]

    @property
    def parts(self) -> tuple[GetItem, ...]:
        """Its reads."""
        return self.reads


@dataclass(frozen=True, slots=True)
class Query(_Read[Page]):
    """Read a page of one partition, of the table or an index, in the order of the sort key."""

    table: str
    key: KeyCondition
    index: str | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] = ()
    limit: int | None = None
    start_after: Item | None = None
    reverse: bool = False
    consistent: bool = False
    count_only: bool = False
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Scan(_Read[Page]):
    """Read a page of a whole table or index, or of one of its ``segments`` disjoint parts."""

    table: str
    index: str | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] = ()
    limit: int | None = None
    start_after: Item | None = None
    segment: int = 0
    segments: int = 1
    consistent: bool = False
    count_only: bool = False
    fresh: bool = False


# --- writes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PutItem(Request[WriteReply]):
    """Write a whole item in place of whatever is there.

    ``item_on_failure`` puts the stored item on the error when the condition fails.
    """

    writes: ClassVar[bool] = True
    table: str
    item: Item
    condition: Condition | None = None
    returns: Returns = "none"
    item_on_failure: bool = False
    stamp: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateItem(Request[WriteReply]):
    """Change an item in place; one that is missing is created from its key.

    ``last_stamp`` is the ``_w`` that the item was read with (`NO_STAMP`: none), for a stamped update: see `resent`.
    """

    writes: ClassVar[bool] = True
    table: str
    key: Item
    update: Update
    condition: Condition | None = None
    returns: Returns = "none"
    item_on_failure: bool = False
    stamp: str | None = None
    last_stamp: Attribute | None = None


@dataclass(frozen=True, slots=True)
class DeleteItem(Request[WriteReply]):
    """Delete an item; one that is missing is no error."""

    writes: ClassVar[bool] = True
    table: str
    key: Item
    condition: Condition | None = None
    returns: Returns = "none"
    item_on_failure: bool = False


@dataclass(frozen=True, slots=True)
class ConditionCheck:
    """Only inside a transaction: demand something of an item that the transaction does not write."""

    table: str
    key: Item
    condition: Condition
    item_on_failure: bool = False


TransactAction: TypeAlias = PutItem | UpdateItem | DeleteItem | ConditionCheck
"""What a transaction is made of."""


@dataclass(frozen=True, slots=True)
class TransactWrite(Request[Done]):
    """Up to 100 actions on different items, all or none of them.

    ``token`` (1 to 36 characters, fresh for each new transaction: ``port.new_id()``) makes sending the very
    same request again harmless for ten minutes.
    """

    operation: ClassVar[str] = "TransactWriteItems"
    writes: ClassVar[bool] = True
    repetition: ClassVar[Repetition] = "token"
    most: ClassVar[int] = 100
    actions: tuple[TransactAction, ...]
    token: str

    @property
    def parts(self) -> tuple[TransactAction, ...]:
        """Its actions."""
        return self.actions


@dataclass(frozen=True, slots=True)
class BatchWrite(Request[Done]):
    """Up to 25 unconditional puts and deletes, each for itself."""

    operation: ClassVar[str] = "BatchWriteItem"
    writes: ClassVar[bool] = True
    repetition: ClassVar[Repetition] = "repeat"
    most: ClassVar[int] = 25
    actions: tuple[PutItem | DeleteItem, ...]

    @property
    def parts(self) -> tuple[PutItem | DeleteItem, ...]:
        """Its actions."""
        return self.actions


def resent(write: UpdateItem) -> UpdateItem:
    """A stamped update as it is sent again after a lost reply: only to an item that nobody wrote since it was read.

    The first send may have been carried out and its effect undone by somebody else. Then the condition holds again,
    though the update has been done; the stamp of whoever wrote last tells. Sent once, it need not demand that: others
    may well have changed other fields.
    """
    path, last = Path((STAMP,)), write.last_stamp
    if last is None or write.condition is None:
        return write  # nobody knows what it was
    untouched = NotExists(path) if last == NO_STAMP else Compare("=", path, Value(last))
    return replace(write, condition=write.condition & untouched)


def leave_stamp(write: W, stamp: str) -> W:
    """The same write, leaving ``stamp`` in ``_w``."""
    return replace(write, **_set_stamp(write, stamp))


def _set_stamp(write: PutItem | UpdateItem, stamp: str) -> dict[str, Any]:
    if isinstance(write, PutItem):
        return {"item": {**write.item, STAMP: {"S": stamp}}}
    return {"update": Update((*write.update.actions, Set(Path((STAMP,)), Value({"S": stamp}))))}


def stamped(write: W, stamp: str) -> W:
    """The same write as a *Stamp* write: it leaves ``stamp`` in ``_w`` and must fail when repeated.

    The condition has to be one that the write itself makes false; only the planner can know that.
    """
    if write.condition is None:
        raise InvalidRequestError("a stamped write needs a condition that it makes false")
    return replace(write, **_set_stamp(write, stamp), stamp=stamp, item_on_failure=True)


def has_stamped(write: PutItem | UpdateItem | DeleteItem, item: Mapping[str, object] | None) -> bool:
    """Whether the stored item carries the write's stamp, so that the write has been carried out."""
    stamp = None if isinstance(write, DeleteItem) else write.stamp
    return stamp is not None and item is not None and item.get(STAMP) == {"S": stamp}


# --- tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DescribeTable(Request[TableDescription]):
    """Ask what a table looks like."""

    of_tables: ClassVar[bool] = True
    table: str


@dataclass(frozen=True, slots=True)
class CreateTable(Request[TableDescription]):
    """Create a table; `TableExistsError` when there is one of that name."""

    writes: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True
    schema: TableSchema

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.schema.name


@dataclass(frozen=True, slots=True)
class DeleteTable(Request[Done]):
    """Delete a table with all its items."""

    writes: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True
    table: str


@dataclass(frozen=True, slots=True)
class AddIndex(Request[TableDescription]):
    """Add an index to a table that may already hold items; they are put into it."""

    operation: ClassVar[str] = "UpdateTable"
    writes: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True
    table: str
    index: IndexSchema

    @property
    def checked_tables(self) -> tuple[str, ...]:
        """The table that it changes."""
        return (self.table,)


@dataclass(frozen=True, slots=True)
class DescribeTtl(Request[TtlDescription]):
    """Ask which attribute expires items."""

    operation: ClassVar[str] = "DescribeTimeToLive"
    of_tables: ClassVar[bool] = True
    table: str


@dataclass(frozen=True, slots=True)
class SetTtl(Request[TtlDescription]):
    """Let an attribute (a number, seconds since 1970) expire items, or with None let nothing expire."""

    operation: ClassVar[str] = "UpdateTimeToLive"
    writes: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True
    table: str
    attribute: str | None
