"""From the raw rows of a query or scan to instances.

In a transaction, a row takes part once one of its fields is read, or, if every row is to be locked, when it is returned
to the caller. Outside a transaction, or if only a part of each row was fetched, rows are frozen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from holdall.core.expressions.evaluation import holds
from holdall.core.requests import GetItem
from holdall.errors import HoldallError, InvalidOptionsError
from holdall.models.marks import OPENED, Partial
from holdall.models.model import build_instance
from holdall.tables.commit.lock import Lock
from holdall.tables.record import read_items
from holdall.transactions.binding import Binding
from holdall.transactions.entry.loaded import whole_locks
from holdall.transactions.read.hydration import hydrate_all, is_pointer
from holdall.transactions.read.instance import make_instance
from holdall.transactions.read.part import remove_others
from holdall.transactions.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdall.core.context import Context
    from holdall.core.expressions import Condition
    from holdall.core.values import Item
    from holdall.models.indexes import BoundIndex
    from holdall.models.keys.key import ModelKey
    from holdall.models.schema import ModelSchema

_UNNAMED: Item = {}
_BATCH = 256
"""Rows that may be pointers are hydrated this many at a time: a page can hold thousands, of 400 KB each."""

RowLock: TypeAlias = Literal["rows"] | bool
"""Which rows of a query take part in the transaction: all ("rows"), those whose fields are read (True) or none."""


class FoundItem(NamedTuple):
    """A row of a list that shows every item: its key, and the item or, if the item cannot be read, the error.

    ``archived``: whether the item is in the archive; None if only a part of the row was read, which does not show it.
    """

    key: ModelKey[Any]
    item: Any | None
    error: HoldallError | None
    archived: bool | None


async def read_again(
    context: Context,
    binding: Binding,
    rows: Sequence[Item],
    index: BoundIndex | None,
    filter: Condition | None,
) -> list[Item]:
    """The items of rows as they are stored now, without those that no longer match, or moved in the index."""
    reads = [GetItem(binding.table, binding.key_of(row), True) for row in rows]
    names = () if index is None else [attribute.name for attribute in index.schema.keys]
    return [
        item
        for item, row in zip(await read_items(context.port, reads), rows, strict=True)
        if item is not None
        and all(item.get(name) == row.get(name) for name in names)
        and (filter is None or holds(filter, item))
    ]


class RowMaker:
    """Makes instances from the rows of one query or scan.

    ``where`` is the caller's condition, checked here for items whose content the store cannot see. ``fetched`` are the
    fields that rows have, None for all. ``projected``: the store sent only a part of each row, so rows cannot be
    hydrated. ``index`` is the index that rows were read from. ``held`` are the attributes that must not change even in
    rows whose fields the caller does not read; None if such rows take no part.
    """

    def __init__(
        self,
        context: Context,
        unit: Unit | None,
        binding: Binding,
        fetched: frozenset[str] | None,
        *,
        projected: bool,
        index: BoundIndex | None = None,
        held: frozenset[str] | None = None,
        where: Condition | None = None,
    ) -> None:
        self._context = context
        self._unit = unit
        self._binding = binding
        self._fetched = fetched
        self._projected = projected
        self._index = index
        self._held = held
        self._where = where
        self._as_stored = projected or not read_whole(binding.schema)
        self.schema = schema = binding.schema
        self.gives_at_once = self._as_stored and (held is None or unit is None)
        hydrates = not self._as_stored and any(each.hydrator is not None for each in schema.family())
        self.batch = _BATCH if hydrates else None

    def give(self, rows: Iterable[tuple[Any, Item]]) -> Iterable[Any]:
        """The items of rows; if every row takes part, each one does when the caller takes it."""
        if self.gives_at_once:
            return [item for item, _ in rows]
        return self._give_each(rows)

    def _give_each(self, rows: Iterable[tuple[Any, Item]]) -> Iterator[Any]:
        unit, held = self._unit, self._held
        for item, raw in rows:
            if isinstance(item, Exception):
                raise item
            if unit is not None and held is not None:
                unit.hold(item, raw, self._locks(item._schema, raw, held))
            yield item

    def describe(self, rows: Iterable[tuple[Any, Item]]) -> Iterator[FoundItem]:
        """The rows, including those that cannot be read."""
        binding = self._binding
        for item, raw in rows:
            archived = None if self._projected else is_pointer(binding, raw)
            if not isinstance(item, Exception):
                yield FoundItem(item.key, item, None, archived)
            elif isinstance(item, HoldallError):
                model = binding.model_of(raw) or binding.schema
                key = make_instance(binding, model, raw, OPENED, None).key
                yield FoundItem(key, None, item, archived)
            else:
                raise item

    def _locks(self, schema: ModelSchema, raw: Item, names: frozenset[str]) -> Sequence[Lock]:
        if self._fetched is not None and not self._projected:
            return whole_locks(self._binding, schema, raw)  # the visible part may depend on all of it
        keys, labels = self._binding.key_of(raw), {field.stored: field.name for field in schema.plain}
        return [Lock(labels.get(name, name), name, raw.get(name)) for name in names if name not in keys]

    async def make_instances(
        self, rows: Iterable[Item], at_most: int | None = None
    ) -> list[tuple[Any, Item]]:
        """Instances, each with its row, without rows of other models or of items that this transaction deleted.

        For an item that could not be hydrated, the error is returned in its place.
        """
        binding, model_of = self._binding, self._binding.model_of
        if not self._as_stored:
            return await self._hydrate_rows(list(rows), at_most)
        schema, form = binding.schema, binding.schema.form
        # nearly every row is of this type, and is then recognized without a call
        kind, named = form.type_attribute or "", {} if form.constants else {"S": schema.name}
        parsed = {field.stored for field in self.schema.key_fields.values()} if form.is_parsed else None
        simple = self._fetched is None and not form.in_key_alone
        plain, unit = simple and self._unit is None, self._unit if simple else None
        found: list[tuple[Any, Item]] = []
        for raw in rows:
            if len(found) == at_most:
                break
            model = schema if raw.get(kind) == named else model_of(raw)
            if model is None:
                continue
            if parsed and not parsed <= raw.keys():
                item = self._instance(model, raw, raw)
            elif plain and not model.prepares:
                found.append((build_instance(model.model, raw, OPENED, None), raw))
                continue
            else:
                item = (
                    self._instance(model, raw, raw) if unit is None else unit.receive_row(binding, raw, model)
                )
            if item is not None:
                found.append((item, raw))
        return found

    async def _hydrate_rows(self, rows: list[Item], at_most: int | None) -> list[tuple[Any, Item]]:
        """`make_instances` for rows that may need hydration; no more rows are hydrated than may be needed."""
        binding = self._binding
        models = [binding.model_of(raw) for raw in rows]
        known = [(model, raw) for model, raw in zip(models, rows, strict=True) if model is not None]
        found: list[tuple[Any, Item]] = []
        while known and (at_most is None or len(found) < at_most):
            part = known if at_most is None else known[: at_most - len(found)]
            known = known[len(part) :]
            outcomes = await hydrate_all(self._context, [(binding, raw) for _, raw in part])
            for (model, raw), outcome in zip(part, outcomes, strict=True):
                if outcome.error is not None:
                    found.append((outcome.error, raw))
                    continue
                stored = outcome.value
                if stored is None or (
                    self._where is not None and is_pointer(binding, raw) and not holds(self._where, stored)
                ):
                    continue
                if (item := self._instance(model, raw, stored)) is not None:
                    found.append((item, raw))
        return found

    def _instance(self, found: ModelSchema, raw: Item, stored: Item) -> Any:
        if self._fetched is not None:
            fetched = raw if self._projected else remove_others(stored, found, self._fetched)
            return self._partial(found, raw, fetched)
        if self._unit is None:
            item = make_instance(self._binding, found, stored, OPENED, None)
            if found.prepares:
                item.after_load()
            return item
        return self._unit.receive(self._binding, raw, stored, None, found if stored is raw else None)

    def _partial(self, found: ModelSchema, raw: Item, stored: Item) -> Any:
        assert self._fetched is not None
        item = make_instance(self._binding, found, stored, Partial(self._fetched), None)
        if self._index is not None:
            item.__dict__.update(self._index.recover(raw))
        return item


class MixedMaker:
    """Makes instances from the rows of a query of several models, each with the maker of its model."""

    def __init__(self, makers: Sequence[RowMaker]) -> None:
        self._attribute = makers[0].schema.form.type_attribute or ""
        self._makers = {each.name: maker for maker in reversed(makers) for each in maker.schema.family()}
        self._at_once = all(maker.gives_at_once for maker in makers)
        self.batch = next((maker.batch for maker in makers if maker.batch is not None), None)

    def give(self, rows: Iterable[tuple[Any, Item]]) -> Iterable[Any]:
        """The items of rows, as `RowMaker.give` returns them."""
        return [item for item, _ in rows] if self._at_once else self._give_each(rows)

    def _give_each(self, rows: Iterable[tuple[Any, Item]]) -> Iterator[Any]:
        for item, raw in rows:
            yield from self._makers[self._name_of(raw)].give([(item, raw)])

    def describe(self, rows: Iterable[tuple[Any, Item]]) -> Iterator[FoundItem]:
        """The rows, including those that cannot be read."""
        for item, raw in rows:
            yield from self._makers[self._name_of(raw)].describe([(item, raw)])

    async def make_instances(
        self, rows: Iterable[Item], at_most: int | None = None
    ) -> list[tuple[Any, Item]]:
        """Instances, each with its row, as `RowMaker.make_instances` returns them, in the order of the rows."""
        found: list[tuple[Any, Item]] = []
        attribute, label = self._attribute, None
        runs: list[list[Item]] = []  # rows of one model, as they follow each other
        for raw in rows:
            if not runs or raw.get(attribute) != label:
                label = raw.get(attribute)
                runs.append([])
            runs[-1].append(raw)
        for run in runs:
            maker = self._makers.get(self._name_of(run[0]))
            if maker is not None:
                found += await maker.make_instances(run, None if at_most is None else at_most - len(found))
        return found

    def _name_of(self, raw: Item) -> Any:
        return raw.get(self._attribute, _UNNAMED).get("S")


def holds_rows(unit: Unit | None, lock: RowLock) -> bool:
    """Whether every row that the caller gets takes part: with ``lock="rows"``, and in a read-only transaction."""
    if unit is None and lock == "rows":
        raise InvalidOptionsError(
            'lock="rows" was given outside a transaction, where nothing is locked',
            hint="query in a transaction: tx.query(...)",
        )
    return unit is not None and (lock == "rows" or unit.read_only)


def read_whole(schema: ModelSchema) -> bool:
    """Whether rows must be read whole, even for a few fields, because a hydrator or a migration transforms them."""
    return not all(each.used_as_stored for each in schema.family())
