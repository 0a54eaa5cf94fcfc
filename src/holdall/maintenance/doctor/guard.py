"""The check of unique fields, in both directions: each value has its guard, and each guard an item with the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdall.core.batch import make_batches
from holdall.core.requests import BatchGet, GetItem, TransactGet
from holdall.core.values import Item
from holdall.errors import HoldallError
from holdall.maintenance.doctor.item import ModelFinder
from holdall.maintenance.doctor.work import Work, show_key
from holdall.models.fields.field import Field
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.layout import Address
from holdall.tables.record import Record
from holdall.tables.record_column import raw, text
from holdall.transactions.binding import Binding
from holdall.transactions.entry.claim import GUARD, guard_key
from holdall.transactions.entry.field_change import unique_fields
from holdall.transactions.read.hydration import is_pointer

_HEAD = "holdall#Unique#"


class Guard(Record, type=GUARD):
    """The guard of a value, as `holdall.transactions.entry.claim` writes it."""

    owner_pk = text("owner_pk", "")
    owner_sk = text("owner_sk", "")

    @property
    def owner(self) -> tuple[str, str]:
        """The key of the item that holds the value."""
        return self.owner_pk, self.owner_sk


class GuardCheck:
    """Compares items with the guards of their values."""

    def __init__(self, work: Work, finder: ModelFinder, table: str) -> None:
        self._work = work
        self._finder = finder
        self._table = table

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the items of a page, then at its guards."""
        values = [
            (binding, item, each, guard)
            for binding, item in await self._finder.list_items(self._table, rows)
            for each in unique_fields(binding)
            if (guard := _locate_guard(binding, each, item)) is not None
        ]
        for some in make_batches(values, BatchGet.most):
            # two items of a page may have the same value, and a batch reads each key once
            places = {guard.identity: guard for *_, guard in some}
            reads = tuple(GetItem(place.table, place.key, True) for place in places.values())
            items = (await self._work.context.port.send(BatchGet(reads))).items
            found = dict(zip(places, items, strict=True))
            for binding, item, each, guard in some:
                if Guard(guard, found[guard.identity]).owner != _owner(binding, item):
                    await self._check_value(binding, item, each, guard)
        for item in rows:
            if Guard.is_type_of(item):
                await self._check_guard(item)

    # --- from the item to its guard -------------------------------------------------------------------------

    async def _check_value(self, binding: Binding, seen: Item, field: Field[Any], guard: Address) -> None:
        place = _address(binding, seen)
        item, found = await self._read(Record(place), Guard(guard))
        if item.item is None or item.stored.get(field.stored) != seen.get(field.stored):
            return  # changed meanwhile
        if found.owner == _owner(binding, seen):
            return
        subject = f"{binding.schema.name} {show_key(place.key)}"
        value = f"its {field.name}"
        if not found.is_stored:
            mend = self._claim(item, field, Guard(guard))
            message = f"{value} is not reserved, so another item could take it"
            await self._work.find("unique", "error", subject, message, "reserve the value", mend)
            return
        other = await self._find_owner(binding, found)
        if other is not None and self._guards(binding, other, field, guard):
            message = f"{value} is the same as that of {' / '.join(found.owner)}"
            await self._work.find("unique", "error", subject, message)
            return
        mend = self._claim(item, field, found, other)
        message = f"{value} is reserved for {' / '.join(found.owner)}, which does not have it"
        await self._work.find("unique", "error", subject, message, "reserve the value for this item", mend)

    def _claim(self, item: Record, field: Field[Any], guard: Guard, other: Record | None = None) -> Any:
        async def mend() -> bool:
            change = Change(self._work.context)
            pk, sk = (part["S"] for part in item.address.key.values())
            new = Guard.new(guard.address, Guard.owner_pk.set(pk), Guard.owner_sk.set(sk))
            change.put(new, expect=[guard.same(Guard.owner_pk, Guard.owner_sk)])
            change.require(item, item.same(raw(field.stored)))
            if other is not None:
                change.require(other, other.same(raw(field.stored)))
            return await commit_once(change) is None

        return mend

    # --- from the guard to its item -------------------------------------------------------------------------

    async def _check_guard(self, seen: Item) -> None:
        binding, field = self._parse(seen)
        if binding is None or field is None:
            return
        place = _address(binding, seen)
        guard = Guard(place, seen)
        owner = await self._find_owner(binding, guard)
        if owner is None or self._guards(binding, owner, field, place):
            return
        again, owner = await self._read(guard, owner)
        if again.item is None or again.owner != guard.owner or self._guards(binding, owner, field, place):
            return
        what = "which does not exist" if owner.item is None else "which does not have it"
        message = f"the value is reserved for {' / '.join(guard.owner)}, {what}"

        async def mend() -> bool:
            change = Change(self._work.context)
            change.delete(again, expect=[again.same(Guard.owner_pk, Guard.owner_sk)])
            change.require(owner, owner.same(raw(field.stored)))
            return await commit_once(change) is None

        subject = f"a value of {binding.schema.root}.{field.name}"
        await self._work.find("unique", "error", subject, message, "release the value", mend)

    def _parse(self, guard: Item) -> tuple[Binding | None, Field[Any] | None]:
        """The model and the field of a guard; None if it is of no model that was given."""
        for binding in self._finder.list_bindings(self._table):
            head = f"{_HEAD}{binding.schema.root}#"
            partition = str(guard[binding.partition.name].get("S", ""))
            if partition.startswith(head):
                stored = partition[len(head) :].split("#")[0]
                fields = [each for some in binding.schema.family() for each in some.plain if each.unique]
                return binding, next((each for each in fields if each.stored == stored), None)
        return None, None

    def _guards(self, binding: Binding, owner: Record, field: Field[Any], guard: Address) -> bool:
        """Whether an item has the value of this guard; an archived one, which cannot be seen, may have it."""
        if owner.item is None:
            return False
        if is_pointer(binding, owner.item) and field.stored not in owner.item:
            return True
        own = _locate_guard(binding, field, owner.item)
        return own is not None and own.key == guard.key

    # --- reading --------------------------------------------------------------------------------------------

    async def _find_owner(self, binding: Binding, guard: Guard) -> Record | None:
        """The item that a guard names, as it is stored now; None if the guard does not name a key."""
        pk, sk = guard.owner
        if not pk or not sk or binding.sort is None:
            return None
        key = {binding.partition.name: {"S": pk}, binding.sort.name: {"S": sk}}
        place = Address(binding.table, key, key)
        return Record(place, (await self._work.context.port.send(GetItem(place.table, key, True))).item)

    async def _read(self, first: Any, second: Any) -> tuple[Any, Any]:
        """Two items as of the same moment."""
        reads = tuple(GetItem(each.address.table, each.address.key, True) for each in (first, second))
        one, other = (await self._work.context.port.send(TransactGet(reads))).items
        return type(first)(first.address, one), type(second)(second.address, other)


def _address(binding: Binding, item: Item) -> Address:
    key = binding.key_of(item)
    return Address(binding.table, key, key)


def _owner(binding: Binding, item: Item) -> tuple[str, ...]:
    return tuple(str(*part.values()) for part in binding.key_of(item).values())


def _locate_guard(binding: Binding, field: Field[Any], item: Item) -> Address | None:
    """Where the guard of an item's value is; None if the item has no value, or one that cannot be read."""
    attribute = item.get(field.stored)
    if attribute is None or "NULL" in attribute:
        return None
    try:
        key = guard_key(binding, field, field.decode(attribute))
    except HoldallError:
        return None
    return Address(binding.table, key, key)
