"""Answers requests with calls to DynamoDB: checked locally first, then delivered, in several calls if necessary.

Each table's schema is requested once, or taken from a description that another caller requested. It is requested again
if a check fails, because the table may have changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from holdall.backends.aws.courier import Manner, Pace
from holdall.backends.aws.limit import Limit
from holdall.backends.dynamodb.call import PAYLOADS, Call, render_call, set_ttl
from holdall.backends.dynamodb.delivery import Trace
from holdall.backends.dynamodb.reply import (
    MALFORMED,
    REPLIES,
    capacity,
    decode_batch_get,
    decode_reply,
    explain_malformed,
)
from holdall.core.frozen import replace
from holdall.core.requests import (
    AddIndex,
    BatchGet,
    BatchGetReply,
    BatchWrite,
    CreateTable,
    DeleteItem,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    Done,
    PutItem,
    RemoveIndex,
    Request,
    SetTtl,
    TableDescription,
    TransactWrite,
    TtlDescription,
    UpdateItem,
    WriteReply,
)
from holdall.core.rules.schema import check_table_name
from holdall.core.rules.validation import check
from holdall.core.schema import TableSchema
from holdall.core.settings import SingleWrites
from holdall.core.stamp import has_stamped
from holdall.errors import (
    ConditionFailedError,
    HoldallError,
    InvalidRequestError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TableNotFoundError,
    ThrottledError,
    TransactionCanceledError,
)

WAIT_SECONDS = 600.0
BATCH_SECONDS = 60.0


class Courier(Protocol):
    """Delivers a call to the service and returns its answer; raises one of our errors if there is none."""

    async def deliver(self, pace: Pace, call: Call) -> Mapping[str, Any]:
        """The answer to a call that may be repeated."""

    async def write(
        self, pace: Pace, call: Call, manner: Manner, trace: Trace | None = None
    ) -> Mapping[str, Any]:
        """The answer to a write: ``settle`` with a client token, otherwise ``once``; ``trace`` if it is stamped."""


class DynamoFlow:
    """Requests of one endpoint."""

    def __init__(
        self, courier: Courier, single_writes: SingleWrites = "auto", patience: float = 60.0
    ) -> None:
        """``patience`` is how long a request waits while another one describes a table."""
        self._deliver = courier.deliver
        self._write = courier.write
        self._patience = patience
        self._schemas: dict[str, TableSchema] = {}
        self._single_writes = single_writes

    async def answer(self, pace: Pace, request: Request[Any]) -> Any:
        """The reply to a request."""
        kind = type(request)
        render = PAYLOADS.get(kind)
        if render is None:
            raise InvalidRequestError(
                f"a database cannot answer {kind.__name__}", hint="send it to a file service"
            )
        try:
            check(request, self._schemas.__getitem__)
        except (KeyError, HoldallError):  # a table is not known yet, or has changed
            await self._check_anew(pace, request)
        special = SPECIAL.get(kind)
        if special is not None:
            return await special(self, pace, request)
        try:
            payload = await self._deliver(pace, Call(request.operation, render(request)))
        except TableNotFoundError:
            self._schemas.pop(getattr(request, "table", ""), None)
            raise
        try:
            return REPLIES[kind](request, payload)
        except MALFORMED as error:
            raise explain_malformed(kind.__name__, error) from error

    async def _check_anew(self, pace: Pace, request: Request[Any]) -> None:
        """Check the request against the known schemas; if that fails, against the current ones."""
        known = {table: await self._find_schema(pace, table) for table in request.checked_tables}
        try:
            check(request, known.__getitem__)
        except HoldallError:
            now = {table: await self._find_schema(pace, table, stale) for table, stale in known.items()}
            if now == known:
                raise
            check(request, now.__getitem__)

    async def _find_schema(self, pace: Pace, table: str, stale: TableSchema | None = None) -> TableSchema:
        """The known schema of a table; described again if there is none, or if it is ``stale``."""
        known = self._schemas.get(table)
        if known is not None and known is not stale:
            return known
        check_table_name(table)

        async def discover() -> TableSchema:
            known = self._schemas.get(table)  # another caller may just have described it
            if known is None or known is stale:
                known = self._schemas[table] = (await self._describe(pace, table)).schema
            return known

        return await pace.alone(discover, self._patience)

    async def _describe(self, pace: Pace, table: str) -> TableDescription:
        request = DescribeTable(table)
        description: TableDescription = decode_reply(request, await self._deliver(pace, render_call(request)))
        return description

    async def _describe_table(self, pace: Pace, request: DescribeTable) -> TableDescription:
        try:
            description = await self._describe(pace, request.table)
        except TableNotFoundError:
            self._schemas.pop(request.table, None)
            raise
        self._schemas[request.table] = description.schema
        return description

    async def _transact(self, pace: Pace, request: TransactWrite) -> Done:
        done: Done = _understand(request, await self._write(pace, render_call(request), "settle"))
        return done

    async def _write_one(self, pace: Pace, request: PutItem | UpdateItem | DeleteItem) -> WriteReply:
        if self._single_writes == "auto" or request.returns != "none":
            trace = None if isinstance(request, DeleteItem) else await self._make_trace(pace, request)
            payload = await self._write(pace, render_call(request), "once", trace)
            reply: WriteReply = _understand(request, payload)
            return reply
        from uuid import uuid4  # takes a while to load

        alone = replace(request, stamp=None) if not isinstance(request, DeleteItem) else request
        try:
            done = await self.answer(pace, TransactWrite((alone,), str(uuid4())))
        except TransactionCanceledError as error:
            refusal = _explain_single(error)
            if isinstance(refusal, ConditionFailedError) and has_stamped(request, refusal.item):
                return WriteReply()
            raise refusal from error
        return WriteReply(None, done.capacity)

    async def _make_trace(self, pace: Pace, request: PutItem | UpdateItem) -> Trace | None:
        """The trace that a stamped write leaves; None for other writes."""
        if request.stamp is None:
            return None
        if isinstance(request, UpdateItem):
            return Trace(request, request.key)
        names = [part.name for part in (await self._find_schema(pace, request.table)).keys]
        return Trace(request, {name: request.item[name] for name in names})

    async def _batch_get(self, pace: Pace, request: BatchGet) -> BatchGetReply:
        return decode_batch_get(request, await self._process_all(pace, request, "UnprocessedKeys"))

    async def _batch_write(self, pace: Pace, request: BatchWrite) -> Done:
        return Done(sum(map(capacity, await self._process_all(pace, request, "UnprocessedItems"))))

    async def _process_all(
        self, pace: Pace, request: BatchGet | BatchWrite, left: str
    ) -> list[Mapping[str, Any]]:
        """All answers to a batch: what the service leaves unprocessed is sent again, with growing pauses."""
        payloads: list[Mapping[str, Any]] = []
        call = render_call(request)
        deadline = pace.now() + BATCH_SECONDS
        limit = _begin_limit(pace, BATCH_SECONDS)
        pause = 0.0
        while True:
            payload = await self._deliver(pace, call)
            payloads.append(payload)
            rest = payload.get(left)
            if not rest:
                return payloads
            if not isinstance(rest, Mapping) or not rest.keys() <= call.payload["RequestItems"].keys():
                raise explain_malformed(call.operation, TypeError(f"{left} was not sent"))
            progress = rest != call.payload["RequestItems"]
            pause = 0.05 if progress or not pause else min(pause * 2, 5.0)
            if pace.now() + pause > deadline or limit.left <= 0:
                raise ThrottledError(
                    f"{call.operation}: a part of the batch was still unprocessed after {BATCH_SECONDS:g} seconds",
                    hint="send smaller batches, or give the table more capacity",
                )
            await pace.sleep(pace.random() * pause)
            call = Call(call.operation, {**call.payload, "RequestItems": rest})

    async def _create(self, pace: Pace, request: CreateTable) -> TableDescription:
        await self._write(pace, render_call(request), "once")
        return await self._await_active(pace, request.schema.name)

    async def _delete(self, pace: Pace, request: DeleteTable) -> Done:
        await self._write(pace, render_call(request), "once")
        self._schemas.pop(request.table, None)
        deadline = pace.now() + WAIT_SECONDS
        limit = _begin_limit(pace, WAIT_SECONDS)
        pause = 0.02
        while True:
            try:
                await self._describe(pace, request.table)
            except TableNotFoundError:
                return Done()
            pause = await self._wait(pace, deadline, limit, pause, f"table {request.table} to be deleted")

    async def _add_index(self, pace: Pace, request: AddIndex) -> TableDescription:
        await self._write(pace, render_call(request), "once")
        return await self._await_active(pace, request.table)

    async def _remove_index(self, pace: Pace, request: RemoveIndex) -> TableDescription:
        await self._write(pace, render_call(request), "once")
        return await self._await_active(pace, request.table, without=request.index)

    async def _set_ttl(self, pace: Pace, request: SetTtl) -> TtlDescription:
        current = decode_reply(
            DescribeTtl(request.table), await self._deliver(pace, render_call(DescribeTtl(request.table)))
        )
        if current.attribute == request.attribute:
            return TtlDescription(request.attribute)
        if current.attribute is not None and request.attribute is not None:
            raise InvalidRequestError(
                f"table {request.table} already expires items by {current.attribute}",
                hint="turn that off first: SetTtl(table, None)",
            )
        await self._write(pace, Call(request.operation, set_ttl(request, current.attribute)), "once")
        return TtlDescription(request.attribute)

    async def _await_active(self, pace: Pace, table: str, without: str | None = None) -> TableDescription:
        """The table once it and all its indexes can be used, and one of them is gone."""
        deadline = pace.now() + WAIT_SECONDS
        limit = _begin_limit(pace, WAIT_SECONDS)
        pause = 0.02
        while True:
            try:
                description = await self._describe(pace, table)
            except TableNotFoundError:  # it was just created, and is not known everywhere yet
                pass
            else:
                states = description.index_status
                if (
                    description.status == "ACTIVE"
                    and {*states.values()} <= {"ACTIVE"}
                    and without not in states
                ):
                    self._schemas[table] = description.schema
                    return description
            pause = await self._wait(pace, deadline, limit, pause, f"table {table} to become active")

    async def _wait(self, pace: Pace, deadline: float, limit: Limit, pause: float, what: str) -> float:
        if pace.now() + pause > deadline or limit.left <= 0:
            raise ServiceUnavailableError(
                f"waited {WAIT_SECONDS:g} seconds for {what}",
                hint="check the table's status, and try again later",
            )
        await pace.sleep(pause)
        return min(pause * 1.5, 5.0)


SPECIAL: dict[type[Any], Any] = {
    DescribeTable: DynamoFlow._describe_table,
    TransactWrite: DynamoFlow._transact,
    PutItem: DynamoFlow._write_one,
    UpdateItem: DynamoFlow._write_one,
    DeleteItem: DynamoFlow._write_one,
    BatchGet: DynamoFlow._batch_get,
    BatchWrite: DynamoFlow._batch_write,
    CreateTable: DynamoFlow._create,
    DeleteTable: DynamoFlow._delete,
    AddIndex: DynamoFlow._add_index,
    RemoveIndex: DynamoFlow._remove_index,
    SetTtl: DynamoFlow._set_ttl,
}


def _begin_limit(pace: Pace, seconds: float) -> Limit:
    """A limit for several calls in a row after the first was sent: it moves nearer when the caller is cancelled."""
    limit = pace.limit(seconds)
    limit.has_left = True
    return limit


def _understand(request: Request[Any], payload: Mapping[str, Any]) -> Any:
    """The reply to a write; a malformed one does not show whether the write happened."""
    try:
        return REPLIES[type(request)](request, payload)
    except MALFORMED as error:
        problem = explain_malformed(type(request).__name__, error)
        raise OutcomeUnknown(
            f"it is not known whether the write happened: {problem.message}", hint=problem.hint
        ) from error


def _explain_single(error: TransactionCanceledError) -> HoldallError:
    """A cancelled transaction of one, as the single write would have failed."""
    if len(error.reasons) != 1:
        return error
    (reason,) = error.reasons
    refusal: HoldallError = error
    if reason.code == "ConditionalCheckFailed":
        refusal = ConditionFailedError(error.message, item=reason.item)
    elif reason.code == "ValidationError":
        refusal = InvalidRequestError(reason.message or error.message)
    refusal.service_code, refusal.request_id = error.service_code, error.request_id
    return refusal
