"""Hydrators, joiners and loaders: how a feature stands between stored items and their model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from holdall.core.context import Context
    from holdall.core.expressions import Condition
    from holdall.core.requests import GetItem
    from holdall.core.values import Item
    from holdall.models.keys import ModelKey
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema

T = TypeVar("T")
Role: TypeAlias = Literal["created", "read", "updated", "put", "deleted"]
"""What a transaction does with an item."""


class Hydrator(Protocol):
    """Turns *pointers*, items whose content a feature keeps elsewhere, into items as the model knows them.

    The order against everything else is fixed. The store filters rows by ``where=``, and lets pointers through; rows of
    other models go; pointers are hydrated side by side, no more of them than a limit still needs; then ``where=``
    decides about those, too. An item that cannot be hydrated is an error only for the caller that reaches it.

    A pointer keeps the keys of the table and of its indexes, and all that an index of some attributes holds: rows of
    such an index are never hydrated.

    A pointer is read-only in its stored form: a transaction that writes it puts the whole hydrated item in its place.
    """

    def adopt(self, schema: ModelSchema) -> None:
        """Refuse a model that it cannot serve, when its class is defined."""

    @property
    def pointer(self) -> Condition:
        """The condition that is true of pointers alone."""

    def is_pointer(self, item: Item) -> bool:
        """Whether the condition is true of an item."""

    async def hydrate(self, context: Context, read: GetItem, item: Item) -> Item | None:
        """The item as the model knows it; None if it turns out to be gone.

        ``read`` is a strongly consistent read of the stored item, for when its content is not where the pointer says.
        """

    def guard(self, stored: Item | None) -> Condition | None:
        """What every write demands besides: of the item as it was read, or (None) of one that was not read.

        If it fails for a blind write, the commit hydrates the item, plans the write anew, and sends it again.
        """

    def follow(self, context: Context, read: GetItem, pointer: Item, *, deleted: bool) -> object | None:
        """The `Participant` of a transaction that rewrites or deletes the item of a pointer; None if it needs none.

        ``read`` as for `hydrate`: it names the item's table and key.
        """


class Joining:
    """What a class attribute sees of a transaction that it can join: who has joined, and what the run carries on."""

    def __init__(self, participants: list[Any], carry: dict[Any, Any]) -> None:
        self._participants = participants
        self.carry = carry

    def find(self, kind: type[T]) -> T | None:
        """The participant of a kind that has joined already."""
        return next((each for each in self._participants if isinstance(each, kind)), None)


@runtime_checkable
class Joiner(Protocol):
    """A class attribute of a model that can take part in the transactions of its items."""

    def participate(self, key: ModelKey[Any], item: Model | None, role: Role, run: Joining) -> object | None:
        """The `Participant` for an item of a transaction that is about to commit; None if there is none to be added.

        ``item`` is None if it was not read: a blind write, or a deletion by key.
        """


@runtime_checkable
class Loader(Protocol):
    """A class attribute of a model that can load something for many items at once: ``include=``, ``load``.

    Attributes of one ``kind`` load together.
    """

    @property
    def kind(self) -> str:
        """What it loads."""

    async def load_for(self, context: Context, items: Sequence[Any], names: Sequence[str]) -> None:
        """Load what all attributes of its kind with these names stand for, and keep it with each item."""
