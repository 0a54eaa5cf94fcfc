"""Guards: the items that keep the values of unique fields unique.

Pure. Each value of a unique field has its own guard item, which names the item that holds the value. It is written in
the same transaction as that item, so the value is taken if and only if the item exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.core.expressions import Compare, Condition, NotExists, Path, Value
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import DeleteItem, PutItem
from holdall.core.values import Attribute, Item
from holdall.errors import UniqueViolationError
from holdall.models.fields.field import Field
from holdall.models.keys.key import ModelKey
from holdall.models.keys.part import NO_SORT_KEY, segment
from holdall.models.keys.stored import decode_key
from holdall.models.schema import TYPE, ModelSchema
from holdall.transactions.binding import Binding

GUARD = "holdall.Unique"
"""The type of a guard."""

_OWNER = ("owner_pk", "owner_sk")


@dataclass(frozen=True, slots=True)
class Claim:
    """One value of one unique field: the item that releases it, and the item that takes it."""

    binding: Binding
    field: Field[Any]
    value: Any
    released_by: ModelKey[Any] | None = None
    taken_by: ModelKey[Any] | None = None

    def action(self) -> PutItem | DeleteItem:
        """The write that releases the value, takes it, or passes it on."""
        key = guard_key(self.binding, self.field, self.value)
        holder = self.released_by or self.taken_by
        assert holder is not None
        free = NotExists(Path((self.binding.partition.name,))) | _require_owner(holder)
        if self.taken_by is None:
            return DeleteItem(self.binding.table, key, free, item_on_failure=True)
        owner = dict(zip(_OWNER, _texts(self.taken_by), strict=True))
        item = {**key, TYPE: {"S": GUARD}, **owner}
        return PutItem(self.binding.table, item, free, item_on_failure=True)

    def refuse(self, guard: Item | None) -> UniqueViolationError:
        """The error to raise if another item holds the value."""
        owner = "" if guard is None else "".join(f" {guard.get(name, {}).get('S', '')}" for name in _OWNER)
        return UniqueViolationError(
            f"{self.field!r}: another item already has {_show(self.field, self.value)}",
            field=self.field.name,
            hint=f"the value belongs to the item{owner}" if owner.strip() else None,
        )


class Claims:
    """The claims of one transaction; a value that one item releases and another takes is passed on in one write."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str, str], Claim] = {}

    def release(self, binding: Binding, field: Field[Any], value: Any, owner: ModelKey[Any]) -> None:
        """Note that the owner releases the value."""
        place, known = self._find(binding, field, value)
        self._claims[place] = replace(known, released_by=owner)

    def take(self, binding: Binding, field: Field[Any], value: Any, owner: ModelKey[Any]) -> None:
        """Note that the owner takes the value."""
        place, known = self._find(binding, field, value)
        if known.taken_by is not None:
            raise UniqueViolationError(
                f"{field!r}: {known.taken_by!r} and {owner!r} both have {_show(field, value)}",
                field=field.name,
            )
        self._claims[place] = replace(known, taken_by=owner)

    def take_all(self, binding: Binding, values: Mapping[str, Any], owner: ModelKey[Any]) -> None:
        """Note that the owner, a new item with these values, takes all values of its unique fields."""
        for field in binding.schema.plain:
            if field.unique and (value := values.get(field.name)) is not None:
                self.take(binding, field, value, owner)

    def all(self) -> list[Claim]:
        """All claims, in the order in which they were made."""
        return list(self._claims.values())

    def _find(self, binding: Binding, field: Field[Any], value: Any) -> tuple[tuple[str, str, str], Claim]:
        place = (binding.schema.root, field.stored, segment(field, value))
        return place, self._claims.get(place) or Claim(binding, field, value)


def _show(field: Field[Any], value: Any) -> str:
    return "this value" if field.hidden else f"{value!r:.80}"


def guard_key(binding: Binding, field: Field[Any], value: Any) -> dict[str, Attribute]:
    """The key of the guard of a value."""
    h = f"holdall#Unique#{binding.schema.root}#{field.stored}#{segment(field, value)}"
    assert binding.sort is not None
    return {binding.partition.name: {"S": h}, binding.sort.name: {"S": NO_SORT_KEY}}


def parse_owner(schema: ModelSchema, guard: Item) -> ModelKey[Any] | None:
    """The key of the item that a guard names; None if it is not a key of the model."""
    partition, sort = (guard.get(name, {}).get("S", "") for name in _OWNER)
    return decode_key(schema, partition, sort)


def _texts(key: ModelKey[Any]) -> list[Attribute]:
    return [{"S": str(part)} for part in key.encoded]


def _require_owner(key: ModelKey[Any]) -> Condition:
    partition, sort = (
        Compare("=", Path((name,)), Value(text)) for name, text in zip(_OWNER, _texts(key), strict=True)
    )
    return partition & sort
