"""A worker who does not use models: raw requests, values written in other ways than ours, attributes unknown to us.

Each of its transactions appends to one list: it reads the item and writes it on the condition that the list is as it
was, exactly as it came.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from histories import Append, Operation, Read
from serial_workload import KEYS, Attempts, Register, Worker

from holdall import AsyncDatabase, Database
from holdall.core import Compare, Condition, GetItem, NotExists, PutItem, Set, Update, UpdateItem, Value, path
from holdall.core.port import run
from holdall.core.values import Attribute, Item
from holdall.errors import ConditionFailedError, TransactionFailedError

__all__ = ["ForeignWriter"]

Send = Callable[[Any], Awaitable[Any]]


@dataclass
class ForeignWriter(Worker):
    """Appends with raw requests to the items of the given table."""

    table: str = "holdall"

    def work(self, db: Database, times: int) -> None:
        async def send(request: Any) -> Any:
            return db.send(request)

        for _ in range(times):
            with self.record() as attempts:
                run(self._append(send, attempts))

    async def work_async(self, db: AsyncDatabase, times: int) -> None:
        for _ in range(times):
            with self.record() as attempts:
                await self._append(db.send, attempts)

    async def _append(self, send: Send, attempts: Attempts) -> None:
        name, seen = self.random.choice(KEYS), attempts.begin()
        partition, sort = Register.key(name).encoded
        key: Item = {"pk": {"S": str(partition)}, "sk": {"S": str(sort)}}
        item = (await send(GetItem(self.table, key, consistent=True))).item
        write = self._write(name, key, item, seen)
        try:
            await send(write)
        except ConditionFailedError as error:
            raise TransactionFailedError("another process was faster", attempts=1) from error

    def _write(self, name: str, key: Item, item: Item | None, seen: list[Operation]) -> PutItem | UpdateItem:
        stored = None if item is None else item["values"]
        numbers = [] if stored is None else [_number(attribute) for attribute in stored["L"]]
        value = next(self.fresh)
        seen += [Read(name, tuple(numbers) or None), Append(name, value)]
        grown: Attribute = {"L": [self._form(number) for number in (*numbers, value)]}
        if item is None:
            whole = {**key, "_type": {"S": "Register"}, "name": {"S": name}, "values": grown}
            return PutItem(self.table, {**whole, **self._others()}, NotExists(path("pk")))
        assert stored is not None
        unchanged: Condition = Compare("=", path("values"), Value(stored))
        if self.random.random() < 0.5:
            return PutItem(self.table, {**item, **self._others(), "values": grown}, unchanged)
        return UpdateItem(self.table, key, Update((Set(path("values"), Value(grown)),)), unchanged)

    def _form(self, number: int) -> Attribute:
        """One of the ways to write a number that are read as that number."""
        tenth = f"{number // 10}.{number % 10}E+1"
        text = self.random.choice([str(number), f"{number}.0", f"{number}.00", tenth, f"{number}E0"])
        return {"N": text} if self.random.random() < 0.8 else {"S": str(number)}

    def _others(self) -> Item:
        """The other fields in forms of others', and one that no model has."""
        moment = self.random.choice(
            ["2026-01-31T10:30:00+01:00", "2026-01-31 09:30:00Z", "2026-01-31T09:30:00.5Z"]
        )
        marks: Attribute = (
            {"L": [{"N": "3"}, {"N": "1"}]} if self.random.random() < 0.5 else {"NS": ["2", "1.0"]}
        )
        return {"at": {"S": moment}, "marks": marks, "seen_by": {"SS": ["others", str(self.number)]}}


def _number(attribute: Attribute) -> int:
    return int(attribute["S"]) if "S" in attribute else int(Decimal(attribute["N"]))
