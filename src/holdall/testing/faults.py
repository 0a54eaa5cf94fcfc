"""Fault injection: a backend around another that throttles, fails, loses replies, delivers twice and serves old reads.

The faults are those of a real service. A throttled or failed request was not carried out. After a lost reply the caller
cannot know whether the write was carried out (`OutcomeUnknown`). A backend over a network hides most lost replies from
its caller, with stamps and tokens; the faults here are the remaining ones. The backend inside is a real one.
"""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from collections.abc import Mapping
from enum import Enum
from json import dumps
from typing import Any, Literal

from holdall.core.port import Backend, Layer, Send
from holdall.core.requests import (
    DeleteItem,
    DescribeTable,
    GetItem,
    GetReply,
    PutItem,
    Request,
    UpdateItem,
)
from holdall.core.values import Item
from holdall.errors import (
    ConflictError,
    HoldallError,
    OutcomeUnknown,
    ServiceUnavailableError,
    ThrottledError,
)


class Fault(Enum):
    """What can go wrong with one request."""

    THROTTLE = "throttle"
    """The request is throttled, and not carried out."""
    CONFLICT = "conflict"
    """A write is refused because another transaction holds the item, and is not carried out. Reads are not affected."""
    UNAVAILABLE = "unavailable"
    """The service is unavailable (a 5xx error); the request is not carried out."""
    LOST_BEFORE = "lost before"
    """The request is lost on its way: it is not carried out, but the caller of a write cannot know."""
    LOST_AFTER = "lost after"
    """The reply is lost: the request is carried out, but the caller of a write cannot know."""
    TWICE = "twice"
    """The network delivers the request twice, and the caller gets the second reply."""
    STALE = "stale"
    """An eventually consistent get returns the item as it was before its last write."""


class FaultyBackend(Layer):
    """A backend with faults, chosen at random with the given ``rates``, or queued for the next requests by `inject`.

    The same seed and the same requests lead to the same faults. ``injected`` counts them. Stale reads need an
    additional read before every write, so they happen only if ``rates`` names them (0.0 is enough for `inject`).
    """

    def __init__(
        self, backend: Backend, rates: Mapping[Fault, float] | None = None, *, seed: int = 0
    ) -> None:
        self.injected: Counter[Fault] = Counter()
        self._backend = backend
        self._rates = dict(rates or {})
        self._random = random.Random(seed)
        self._queues: dict[Literal["reads", "writes"] | None, deque[Fault | None]]
        self._queues = {None: deque(), "reads": deque(), "writes": deque()}
        self._lock = threading.Lock()
        self._earlier: dict[tuple[str, str], Item | None] = {}
        self._keys: dict[str, tuple[str, ...]] = {}

    def inject(self, *faults: Fault | None, into: Literal["reads", "writes"] | None = None) -> None:
        """Inject these faults into the next requests, in order; None lets one request through.

        ``into="writes"`` applies them to the next requests that write items, ``into="reads"`` to the next that read
        items; requests about the table itself are then not affected.
        """
        if Fault.STALE in faults and Fault.STALE not in self._rates:
            raise ValueError(
                "stale reads need rates={Fault.STALE: 0.0}, so that earlier items are remembered"
            )
        self._queues[into].extend(faults)

    def set_rates(self, rates: Mapping[Fault, float]) -> None:
        """Inject faults at these rates from now on, such as ``{Fault.THROTTLE: 0.2}``; ``{}`` for no faults."""
        self._rates = dict(rates)

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        """The reply to a request, or the effect of a fault."""
        fault = self._draw(request)
        if fault is Fault.THROTTLE:
            raise ThrottledError("the request was throttled on purpose")
        if fault is Fault.CONFLICT:
            raise ConflictError("the request was refused on purpose, as if another transaction held the item")
        if fault is Fault.UNAVAILABLE:
            raise ServiceUnavailableError("the request failed on purpose")
        if fault is Fault.LOST_BEFORE:
            raise _explain_loss(request)
        if Fault.STALE in self._rates:
            await self._remember(request, send)
        if fault is Fault.TWICE:
            await send(self._backend, request)
        reply = await send(self._backend, request)
        if fault is Fault.LOST_AFTER:
            raise _explain_loss(request)
        if fault is Fault.STALE and isinstance(request, GetItem):
            earlier = self._earlier.get(_identity(request), reply.item)
            return GetReply(earlier, reply.capacity)
        return reply

    def close(self) -> None:
        """Close the backend inside."""
        self._backend.close()

    def _draw(self, request: Request[Any]) -> Fault | None:
        with self._lock:
            kind: Literal["reads", "writes"] = "writes" if request.writes else "reads"
            queue = self._queues[kind] if not request.of_tables and self._queues[kind] else self._queues[None]
            if queue:
                fault = queue.popleft()
            else:
                chance = self._random.random()
                fault = None
                for candidate, rate in self._rates.items():
                    chance -= rate
                    if chance < 0:
                        fault = candidate
                        break
            if fault is Fault.STALE and not _may_be_stale(request):
                fault = None
            if fault is Fault.CONFLICT and (request.of_tables or not request.writes):
                fault = None
            if fault is not None:
                self.injected[fault] += 1
            return fault

    async def _remember(self, request: Request[Any], send: Send) -> None:
        """Remember the items that the request is about to overwrite, for a later stale read."""
        for action in request.parts:
            if not isinstance(action, PutItem | UpdateItem | DeleteItem):
                continue
            read = GetItem(action.table, await self._key(action, send), consistent=True)
            self._earlier[_identity(read)] = (await send(self._backend, read)).item

    async def _key(self, action: PutItem | UpdateItem | DeleteItem, send: Send) -> Item:
        if not isinstance(action, PutItem):
            return action.key
        names = self._keys.get(action.table)
        if names is None:
            schema = (await send(self._backend, DescribeTable(action.table, counts=False))).schema
            names = self._keys[action.table] = tuple(part.name for part in schema.keys)
        return {name: action.item[name] for name in names if name in action.item}


def _may_be_stale(request: Request[Any]) -> bool:
    return isinstance(request, GetItem) and not request.consistent and not request.projection


def _identity(read: GetItem) -> tuple[str, str]:
    return read.table, dumps(read.key, sort_keys=True)


def _explain_loss(request: Request[Any]) -> HoldallError:
    if request.repetition == "repeat":
        return ServiceUnavailableError(f"the reply to {type(request).__name__} was lost on purpose")
    return OutcomeUnknown(
        f"the reply to {type(request).__name__} was lost on purpose",
        hint="read the item, or send the same transaction with the same token",
    )
