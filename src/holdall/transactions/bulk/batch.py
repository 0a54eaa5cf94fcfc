"""Batches: unconditional puts and deletes of items, collected and sent 25 at a time.

An item is encoded when it is added, so an invalid item is refused before anything about it is sent, and later changes
to the instance have no effect. At most ``25 * concurrency`` writes wait in memory. Of two writes under one key, the
later wins: writes that wait together have different keys, and the next ones are sent only after all of these.

A batch has no conditions, so nothing is locked. It can be repeated safely, and is, if the store is overloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holdall.core.context import Context
from holdall.core.option import check_count, check_progress
from holdall.core.requests import BatchWrite, DeleteItem, PutItem
from holdall.core.stamp import STAMP
from holdall.core.values import Attribute
from holdall.errors import InvalidRequestError
from holdall.models.codec.everyday import ItemEncoder, compile_encoder
from holdall.models.keys.key import ModelKey, check_unchanged, item_key
from holdall.models.model import Model
from holdall.models.schema import ModelSchema
from holdall.tables.commit.retry import RETRIES, RunOptions, backoff, is_retryable
from holdall.transactions.binding import Binding, Bindings, bind
from holdall.transactions.entry.field_change import build_item, list_stored_fields
from holdall.transactions.entry.write_time import find_times, name_times
from holdall.transactions.table_run.pace import Pace, check_rate

_MOST_AT_ONCE = 64
_OPTIONS = RunOptions(initial_backoff=0.1, max_backoff=5.0)


class BulkReport(NamedTuple):
    """What a bulk has written so far: the items that it put, and the keys that it deleted."""

    put: int
    deleted: int


class Batches:
    """The writes of one bulk that wait to be sent, and the flows that send them."""

    def __init__(
        self,
        context: Context,
        schema: ModelSchema,
        *,
        concurrency: int = 1,
        rate: float | None = None,
        progress: Callable[[BulkReport], Any] | None = None,
    ) -> None:
        check_count(concurrency, "concurrency", _MOST_AT_ONCE)
        check_progress(progress)
        check_rate(rate)
        for each in schema.family():
            check_batchable(each)
        self._context = context
        self._schema = schema
        self._concurrency = concurrency
        self._progress = progress
        self._homes: dict[ModelSchema, tuple[Binding, ItemEncoder]] = {}
        self._puts: dict[tuple[object, ...], tuple[Binding, dict[str, Attribute]]] = {}
        self._deletes: dict[tuple[object, ...], DeleteItem] = {}
        self._most = BatchWrite.most * concurrency
        self._pace = Pace(rate)
        self._problem: Exception | None = None
        self.report = BulkReport(0, 0)

    async def begin(self) -> None:
        """Find the table; nothing can be added before."""
        for each in self._schema.family():
            if each.abstract:
                continue
            binding = await bind(self._context, each)
            encoders = self._context.state.of(Bindings).encoders
            if each not in encoders:
                encoders[each] = compile_encoder(list_stored_fields(each))
            self._homes[each] = binding, encoders[each]

    def put(self, item: Model) -> bool:
        """Add a new item. Returns whether `flush` must be called now."""
        if self._problem is not None:
            self._check_usable()
        try:
            binding, encode = self._homes[item._schema]
        except (AttributeError, KeyError):
            raise self._refuse(item) from None
        if item._marks is not None or item._stored is not None:
            raise InvalidRequestError(
                f"{item.key!r} is not a new item",
                hint="make a new one with the same values: Model(**values)",
            )
        key, values = item_key(item), item.__dict__
        if key.schema.mutable_keys:
            check_unchanged(key, values)
        if item._schema.timed:
            values.update(name_times(find_times(item._schema, self._context.port.now(), new=values)))
        stored = build_item(binding, binding.key(key), values, encode)
        identity = key.identity
        if self._deletes:
            self._deletes.pop(identity, None)
        self._puts[identity] = (binding, stored)
        return len(self._puts) + len(self._deletes) >= self._most

    def delete(self, target: Model | ModelKey[Any]) -> bool:
        """Add the deletion of the item under a key. Returns whether `flush` must be called now."""
        self._check_usable()
        key = target.key if isinstance(target, Model) else target
        try:
            binding, _ = self._homes[key.schema]
        except (AttributeError, KeyError):
            raise self._refuse(target) from None
        identity = key.identity
        self._puts.pop(identity, None)
        self._deletes[identity] = DeleteItem(binding.table, binding.key(key))
        return len(self._puts) + len(self._deletes) >= self._most

    async def flush(self) -> None:
        """Send everything that waits. If a batch fails, the others of this round are still sent; then raise."""
        self._check_usable()
        puts, deletes = self._puts, self._deletes
        if not puts and not deletes:
            return
        self._puts, self._deletes = {}, {}
        batches = self._plan(list(puts.values()), list(deletes.values()))
        await self._pace.wait(self._context.port, len(puts) + len(deletes))
        try:
            if len(batches) == 1:
                await self._send(batches[0])
                self._note(batches[0])
            else:
                port = self._context.port
                outcomes = await port.gather(map(self._send, batches), limit=self._concurrency)
                for batch, outcome in zip(batches, outcomes, strict=True):
                    if outcome.error is None:
                        self._note(batch)
                for outcome in outcomes:
                    outcome.result()
        except Exception as error:
            self._problem = error
            raise
        if self._progress is not None:
            await self._context.port.call(self._progress, self.report)

    async def finish(self, error: BaseException | None) -> None:
        """End the block: send the rest, or drop it if the block raised an error."""
        if error is not None:
            self._puts, self._deletes = {}, {}
            return
        if self._problem is not None:
            raise self._problem  # the caller caught it, and would take the block for a success
        await self.flush()

    def _plan(
        self, puts: Sequence[tuple[Binding, dict[str, Attribute]]], deletes: Sequence[DeleteItem]
    ) -> list[BatchWrite]:
        """The batches. In Holdall's own layout, each put leaves a stamp, as the put of a transaction does.

        A transaction whose reply was lost recognizes by the stamp that its item was written again meanwhile.
        """
        writes: list[PutItem | DeleteItem] = []
        for position, (binding, item) in enumerate(puts):
            if not binding.own:
                if position % BatchWrite.most == 0:
                    stamp = {"S": self._context.port.new_id()}
                item[STAMP] = stamp
            writes.append(PutItem(binding.table, item))
        writes += deletes
        most = BatchWrite.most
        return [BatchWrite(tuple(writes[at : at + most])) for at in range(0, len(writes), most)]

    async def _send(self, batch: BatchWrite) -> None:
        """Send a batch. The backend repeats what the store leaves unprocessed; if that takes too long, try again."""
        port = self._context.port
        for attempt in range(RETRIES + 1):
            try:
                await port.send(batch)
                return
            except Exception as error:
                if attempt == RETRIES or not is_retryable(error):
                    raise
                pause = port.random() * backoff(_OPTIONS, attempt)
            await port.sleep(pause)

    def _note(self, batch: BatchWrite) -> None:
        puts = sum(isinstance(action, PutItem) for action in batch.actions)
        put, deleted = self.report
        self.report = BulkReport(put + puts, deleted + len(batch.actions) - puts)

    def _refuse(self, given: object) -> InvalidRequestError:
        name = self._schema.name
        return InvalidRequestError(
            f"{given!r:.80} does not belong in a bulk of {name}",
            hint=f"pass new items of {name} to put, and items or keys of {name} to delete",
        )

    def _check_usable(self) -> None:
        if self._problem is not None:
            raise InvalidRequestError(
                f"an earlier batch of this bulk failed: {self._problem}",
                hint="let the error leave the with block, and begin another bulk",
            ) from self._problem


def check_batchable(schema: ModelSchema) -> None:
    """Refuse a model whose items batches would leave inconsistent."""
    if unique := [field.name for field in schema.plain if field.unique]:
        problem = f"its field {unique[0]!r} is unique, and a batch cannot check or release a value"
    elif schema.hydrator is not None:
        problem = "it has an archive, and a batch cannot tell whether it replaces an archived item"
    elif schema.joiners:
        problem = "it has attachments, and a batch cannot write an item together with its files"
    elif schema.version is not None:
        problem = f"its field {schema.version.name!r} counts writes, and a batch cannot check or count"
    elif schema.hooked:
        problem = f"it has a {schema.hooked[0]} hook, which a batch would skip"
    else:
        return
    raise InvalidRequestError(
        f"{schema.name} cannot be written in batches: {problem}",
        hint="write its items in transactions: db.run, db.update_all or db.delete_all",
    )
