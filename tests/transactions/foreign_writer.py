"""A worker that uses raw requests, no models: it stores values in other forms, and attributes that no model declares.

Each of its transactions appends to one list: it reads the item, and writes it on the condition that the stored list has
not changed.
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
    """A worker that appends with raw requests to the items of a table."""

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
        numbers = [] if stored is None else [_decode_number(attribute) for attribute in stored["L"]]
        value = next(self.fresh)
        seen += [Read(name, tuple(numbers) or None), Append(name, value)]
        longer: Attribute = {"L": [self._encode_number(number) for number in (*numbers, value)]}
        if item is None:
            whole = {**key, "_type": {"S": "Register"}, "name": {"S": name}, "values": longer}
            return PutItem(self.table, {**whole, **self._encode_other_fields()}, NotExists(path("pk")))
        assert stored is not None
        unchanged: Condition = Compare("=", path("values"), Value(stored))
        if self.random.random() < 0.5:
            return PutItem(self.table, {**item, **self._encode_other_fields(), "values": longer}, unchanged)
        return UpdateItem(self.table, key, Update((Set(path("values"), Value(longer)),)), unchanged)

    def _encode_number(self, number: int) -> Attribute:
        """Encode a number in one of several forms that all decode to it."""
        tenth = f"{number // 10}.{number % 10}E+1"
        text = self.random.choice([str(number), f"{number}.0", f"{number}.00", tenth, f"{number}E0"])
        return {"N": text} if self.random.random() < 0.8 else {"S": str(number)}

    def _encode_other_fields(self) -> Item:
        """Encode the other fields in forms that Holdall does not write, and a field that no model has."""
        moment = self.random.choice(
            ["2026-01-31T10:30:00+01:00", "2026-01-31 09:30:00Z", "2026-01-31T09:30:00.5Z"]
        )
        marks: Attribute = (
            {"L": [{"N": "3"}, {"N": "1"}]} if self.random.random() < 0.5 else {"NS": ["2", "1.0"]}
        )
        return {"at": {"S": moment}, "marks": marks, "seen_by": {"SS": ["foreign", str(self.number)]}}


def _decode_number(attribute: Attribute) -> int:
    return int(attribute["S"]) if "S" in attribute else int(Decimal(attribute["N"]))
