"""All requests that can be sent to a table, and their replies.

Pure, frozen values; do not change a mapping after passing it to one. `Request[R]` carries the type of its
reply, so type checkers know that ``port.send(GetItem(...))`` returns a `GetReply`. The order of reads and actions is
kept: item *i* answers read *i*, cancellation reason *i* explains action *i*.

**Write classes.** The code that plans a write decides how it can be repeated if its reply is lost:

- *Token*: a `TransactWrite`, even with a single action. Its client token makes a repetition harmless for ten
  minutes; backends resend exactly the same bytes, and give up before that time ends.
- *Stamp*: a `PutItem` or `UpdateItem` made by `stamped`. It sets the attribute ``_w`` to a new id under a
  condition that is no longer true once the write has happened, and requests the stored item on failure. If that item
  carries the id, an earlier attempt had succeeded, and so has the write.
- *Plain*: any other single write. If it was sent and no reply arrived, the result is `OutcomeUnknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from holdall.core.expressions import Condition, KeyCondition, Path, Update
from holdall.core.frozen import dataclass
from holdall.core.schema import IndexSchema, TableSchema
from holdall.core.values import Attribute, Item

R = TypeVar("R")

Returns: TypeAlias = Literal["none", "old", "new"]
"""What a successful single write returns: nothing, the item before it, or (updates only) the item after it."""


Repetition: TypeAlias = Literal["repeat", "token", "once"]
"""How a request can be sent again after a lost reply: freely, with its token, or not at all unless it is stamped."""


Destination: TypeAlias = Literal["store", "service", "process", "media"]
"""Where a request is sent: to the table store, a file service, a child process, or a child process that reads media."""


class Request(Generic[R]):
    """The base class of all requests; ``R`` is the type of the reply."""

    __slots__ = ()
    operation: ClassVar[str]  # DynamoDB's name for the request, if it is not the name of the class
    writes: ClassVar[bool] = False
    repetition: ClassVar[
        Repetition
    ]  # "repeat" for reads and "once" for writes, unless the class overrides it
    destination: ClassVar[Destination] = "store"
    of_tables: ClassVar[bool] = False  # concerns a table itself, not its items

    def __init_subclass__(cls) -> None:
        if "operation" not in vars(cls):
            cls.operation = cls.__name__
        if "repetition" not in vars(cls):
            cls.repetition = "once" if cls.writes else "repeat"

    @property
    def parts(self) -> tuple[Any, ...]:
        """The reads or actions in this request; the request itself, if it is a single one."""
        return (self,)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that this request concerns."""
        return tuple(dict.fromkeys([part.table for part in self.parts]))

    @property
    def checked_tables(self) -> tuple[str, ...]:
        """The tables against whose schemas this request is checked."""
        return () if self.of_tables else self.tables

    @property
    def may_be_old(self) -> bool:
        """Whether a slightly old answer, such as one from a cache, is acceptable."""
        return False


# --- replies --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """The request succeeded; ``capacity`` is what DynamoDB bills for it, in capacity units."""

    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class GetReply:
    """The item, or None if it does not exist."""

    item: Item | None
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchGetReply:
    """The items in the order of the reads; None for each missing item."""

    items: tuple[Item | None, ...]
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class WriteReply:
    """A single write succeeded; ``item`` is the item that the request's ``returns`` asked for."""

    item: Item | None = None
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a query or scan.

    Of ``scanned`` items, ``count`` passed the filter; ``items`` is empty if the request was ``count_only``.
    ``last_key`` is where the next page starts: pass it as ``start_after``. It is None on the last page.
    """

    items: tuple[Item, ...]
    count: int
    scanned: int
    last_key: Item | None
    capacity: float = 0.0


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table's schema, its status and the status of each index (``ACTIVE``, ``CREATING``, …).

    The counts are estimates if the service keeps only estimates. ``id`` is DynamoDB's id of the table.
    """

    schema: TableSchema
    status: str
    index_status: Mapping[str, str]
    item_count: int
    size_bytes: int
    id: str | None = None


@dataclass(frozen=True, slots=True)
class TtlDescription:
    """The attribute by which items expire, or None if they do not."""

    attribute: str | None


# --- reads ----------------------------------------------------------------------------------------------


class _Read(Request[R]):
    """A read that a cache may answer unless it is ``consistent`` or ``fresh``. A ``fresh`` read bypasses caches, but
    can still miss the most recent writes, as a read of an index can."""

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
    """Read up to 100 items independently. Reads of one table must agree on consistency and projection."""

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
    """Read up to 100 items as of the same moment."""

    operation: ClassVar[str] = "TransactGetItems"
    most: ClassVar[int] = 100
    reads: tuple[GetItem, ...]

    @property
    def parts(self) -> tuple[GetItem, ...]:
        """Its reads."""
        return self.reads


@dataclass(frozen=True, slots=True)
class Query(_Read[Page]):
    """Read a page of one partition of the table or an index, in the order of the sort key."""

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
    """Read a page of a whole table or index, or of one of ``segments`` disjoint parts of it.

    ``limit`` is how many items are read. With ``enough``, a store that can do so ends the page as soon as that many of
    them match the filter.
    """

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
    enough: int | None = None


# --- writes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PutItem(Request[WriteReply]):
    """Write a whole item, replacing any item with the same key.

    With ``item_on_failure``, the error of a failed condition carries the stored item.
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
    """Change an item in place; a missing item is created from its key.

    ``last_stamp``, for a stamped update, is the item's ``_w`` when it was read (`NO_STAMP`: none). If the update is
    sent again after a lost reply, it requires ``_w`` to be unchanged.
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
    """Delete an item. Deleting a missing item is not an error."""

    writes: ClassVar[bool] = True
    table: str
    key: Item
    condition: Condition | None = None
    returns: Returns = "none"
    item_on_failure: bool = False


@dataclass(frozen=True, slots=True)
class ConditionCheck:
    """A condition on an item that a transaction does not write. Only for use in a `TransactWrite`."""

    table: str
    key: Item
    condition: Condition
    item_on_failure: bool = False


TransactAction: TypeAlias = PutItem | UpdateItem | DeleteItem | ConditionCheck
"""One action of a transaction."""


@dataclass(frozen=True, slots=True)
class TransactWrite(Request[Done]):
    """Carry out up to 100 actions on different items: all of them or none.

    ``token`` makes it harmless to send the same request again within ten minutes. It has 1 to 36 characters, and each
    transaction needs a new one: ``port.new_id()``.
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
    """Carry out up to 25 unconditional puts and deletes, each independently."""

    operation: ClassVar[str] = "BatchWriteItem"
    writes: ClassVar[bool] = True
    repetition: ClassVar[Repetition] = "repeat"
    most: ClassVar[int] = 25
    actions: tuple[PutItem | DeleteItem, ...]

    @property
    def parts(self) -> tuple[PutItem | DeleteItem, ...]:
        """Its actions."""
        return self.actions


# --- tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DescribeTable(Request[TableDescription]):
    """Describe a table: its schema and status, and with ``counts`` its items and bytes.

    The embedded engine reads the whole table to count; without ``counts``, it reports -1 items and -1 bytes instead.
    """

    of_tables: ClassVar[bool] = True
    table: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class CreateTable(Request[TableDescription]):
    """Create a table; raises `TableExistsError` if the name is taken."""

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
    """Add an index to a table. Existing items are added to the index."""

    operation: ClassVar[str] = "UpdateTable"
    writes: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True
    table: str
    index: IndexSchema

    @property
    def checked_tables(self) -> tuple[str, ...]:
        """The table that gets the index."""
        return (self.table,)


@dataclass(frozen=True, slots=True)
class RemoveIndex(Request[TableDescription]):
    """Remove a global index from a table. The items stay as they are; a local index cannot be removed.

    With ``unverified``, the request is sent even if the table does not have the index; then the server refuses it.
    """

    operation: ClassVar[str] = "UpdateTable"
    writes: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True
    table: str
    index: str
    unverified: bool = False

    @property
    def checked_tables(self) -> tuple[str, ...]:
        """The table that has the index."""
        return (self.table,)


@dataclass(frozen=True, slots=True)
class DescribeTtl(Request[TtlDescription]):
    """Find out by which attribute the table's items expire."""

    operation: ClassVar[str] = "DescribeTimeToLive"
    of_tables: ClassVar[bool] = True
    table: str


@dataclass(frozen=True, slots=True)
class SetTtl(Request[TtlDescription]):
    """Make items expire at the time in an attribute (a number: seconds since 1970). None turns expiry off."""

    operation: ClassVar[str] = "UpdateTimeToLive"
    writes: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True
    table: str
    attribute: str | None
