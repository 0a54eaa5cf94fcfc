"""Hydrators, joiners and loaders: how a feature connects to the items of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from holdall.core.context import Carry, Context
    from holdall.core.expressions import Condition
    from holdall.core.requests import GetItem
    from holdall.core.values import Item
    from holdall.models.keys.key import ModelKey
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema

T = TypeVar("T")
Role: TypeAlias = Literal["created", "read", "updated", "put", "deleted"]
"""What a transaction does with an item."""


class Hydrator(Protocol):
    """Turns *pointers*, items whose content a feature stores elsewhere, into complete items of the model.

    A query works in a fixed order. The store filters rows by ``where=``, and lets pointers pass. Rows of other models
    are dropped. Pointers are hydrated concurrently, in batches of up to 256 as the caller reaches them, no more of them
    than a limit or a page still needs. Then ``where=`` is applied to the hydrated items too. An item that cannot be
    hydrated is an error only for the caller that reads it.

    A pointer keeps the keys of the table and of its indexes, and the attributes that an index with a partial projection
    holds: rows of such an index are never hydrated.

    A stored pointer is never updated in place: a transaction that writes it replaces it by the whole hydrated item.
    """

    def adopt(self, schema: ModelSchema) -> None:
        """Called when a model with this hydrator is defined; raises an error if it cannot work with the model."""

    @property
    def pointer(self) -> Condition:
        """The condition that is true for pointers only."""

    def is_pointer(self, item: Item) -> bool:
        """Whether an item is a pointer."""

    async def hydrate(self, context: Context, read: GetItem, item: Item) -> Item | None:
        """Return the complete item; None if the item no longer exists.

        ``read`` is a strongly consistent read of the stored item, in case its content is not where the pointer says.
        """

    def guard(self, stored: Item | None) -> Condition | None:
        """Return a condition for every write: for the item as it was read, or (None) for one that was not read.

        If it fails for a blind write, the commit hydrates the item, plans the write again, and sends it.
        """

    def follow(self, context: Context, read: GetItem, pointer: Item, *, deleted: bool) -> object | None:
        """Return a `Participant` for a transaction that replaces or deletes a pointer; None if none is needed.

        ``read`` is a read of the stored item, as in `hydrate`; it names the item's table and key.
        """


class Joining:
    """What a class attribute can use of a transaction: its participants, and ``carry``, which all attempts share."""

    def __init__(self, participants: list[Any], carry: Carry) -> None:
        self._participants = participants
        self.carry = carry

    def find(self, kind: type[T]) -> T | None:
        """Return the participant of this class that has already joined, None if there is none."""
        return next((each for each in self._participants if isinstance(each, kind)), None)


@runtime_checkable
class Joiner(Protocol):
    """A class attribute of a model that can take part in the transactions of its items."""

    def participate(self, key: ModelKey[Any], item: Model | None, role: Role, run: Joining) -> object | None:
        """Return a `Participant` for an item of a transaction that is about to commit; None if none is needed.

        ``item`` is None for a blind write or a deletion by key, because the item was not read.
        """


@runtime_checkable
class Loader(Protocol):
    """A class attribute of a model that can load data for many items at once, for ``include=`` and ``load``.

    Attributes of the same ``kind`` are loaded together.
    """

    @property
    def kind(self) -> str:
        """The kind of data that it loads."""

    async def load_for(self, context: Context, items: Sequence[Any], names: Sequence[str]) -> None:
        """Load the data of all attributes of this kind with these names, and keep it with each item."""
