"""The check of items: whether they can be read, are stored under their own key, and are up to date with their model.

What an item lacks is decided by the migration of one item, which also repairs it: attributes of indexes and expiry,
renamed fields, conversions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdall.core.context import Context
from holdall.core.requests import GetItem, UpdateItem
from holdall.core.stamp import STAMP
from holdall.core.values import Item
from holdall.errors import HoldallError
from holdall.maintenance.doctor.work import Work, show_key
from holdall.models.keys.key import ModelKey
from holdall.models.marks import FROZEN
from holdall.models.schema import ModelSchema
from holdall.tables.commit.flow import send_plan
from holdall.tables.commit.plan import CommitPlan
from holdall.tables.record_column import real
from holdall.transactions.binding import Binding, bind
from holdall.transactions.entry.field_change import is_same, list_stored_fields
from holdall.transactions.migration.bulk import plan_refresh
from holdall.transactions.read.hydration import hydrate, is_pointer
from holdall.transactions.read.instance import make_instance

_LATEST = 100_000_000_000
"""Seconds since 1970, in the year 5138. A later time of expiry is probably in milliseconds."""


class ModelFinder:
    """Finds the model of a stored item, among the models that were given and those derived from them."""

    def __init__(self, context: Context, bindings: Sequence[Binding]) -> None:
        self._context = context
        self._bindings = bindings

    def find(self, table: str, item: Item) -> tuple[Binding, ModelSchema] | None:
        """The binding of the model that was given, and the model of the item; None if it is of no such model."""
        for binding in self._bindings:
            if binding.table == table:
                found = binding.model_of(item)
                if found is not None:
                    return binding, found
        return None

    def list_bindings(self, table: str) -> list[Binding]:
        """The bindings of the models that have their items in this table."""
        return [binding for binding in self._bindings if binding.table == table]

    async def list_items(self, table: str, rows: Sequence[Item]) -> list[tuple[Binding, Item]]:
        """The items of a page that are of a model, each with the binding of its own model."""
        found = []
        for item in rows:
            known = self.find(table, item)
            if known is not None:
                found.append((await bind(self._context, known[1]), item))
        return found


class ItemCheck:
    """Looks at each item of a model by itself."""

    def __init__(self, work: Work, finder: ModelFinder, table: str) -> None:
        self._work = work
        self._finder = finder
        self._table = table

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the items of a page."""
        for binding, item in await self._finder.list_items(self._table, rows):
            if not is_pointer(binding, item):
                await self._check(binding, item)

    async def _check(self, binding: Binding, raw: Item) -> None:
        work, subject = self._work, f"{binding.schema.name} {show_key(binding.key_of(raw))}"
        problem = await self._read(binding, raw)
        if problem is not None:
            await work.find("items", "error", subject, problem)
            return
        try:
            plan = await plan_refresh(work.context, binding, raw)
        except HoldallError as error:
            await work.find("items", "error", subject, f"it cannot be brought up to date: {error.message}")
            return
        if plan is not None:
            plan = await self._plan_again(binding, raw)
        if plan is not None:
            await self._report_outdated(subject, plan)
        expiry = None if binding.schema.ttl is None else real(binding.schema.ttl.stored).peek(raw)
        if binding.own and expiry is not None and expiry > _LATEST:
            message = f"it does not expire before the year 5138: {binding.ttl} must be in seconds since 1970"
            await work.find("items", "warning", subject, message)

    async def _read(self, binding: Binding, raw: Item) -> str | None:
        """Read every field; returns why that is impossible."""
        try:
            stored = await hydrate(self._work.context, binding, raw)
            assert stored is not None
            item = make_instance(binding, binding.schema, stored, FROZEN, None)
            for each in list_stored_fields(binding.schema):
                getattr(item, each.name)
            values = {name: getattr(item, name) for name in binding.schema.key_fields}
            key, own = binding.key_of(raw), binding.key(ModelKey(binding.schema, values))
        except HoldallError as error:
            return f"it cannot be read: {error.message}"
        if all(is_same(part, own.get(name)) for name, part in key.items()):
            return None
        return f"its fields belong under the key {show_key(own)}"

    async def _plan_again(self, binding: Binding, raw: Item) -> CommitPlan | None:
        """Read an item once more, because another program may have changed it since the page was read."""
        port = self._work.context.port
        item = (await port.send(GetItem(binding.table, binding.key_of(raw), True))).item
        if item is None or binding.model_of(item) is not binding.schema:
            return None
        return await plan_refresh(self._work.context, binding, item)

    async def _report_outdated(self, subject: str, plan: CommitPlan) -> None:
        work, action = self._work, plan.steps[0].action
        names = "some attributes"
        if isinstance(action, UpdateItem):
            paths = (str(each.path.parts[0]) for each in action.update.actions)
            names = ", ".join(path for path in paths if path != STAMP)
        mend = partial(send_plan, work.context.port, plan)
        message = f"it is not stored as its model defines it: {names}"
        await work.find("items", "error", subject, message, "bring it up to date", mend)
