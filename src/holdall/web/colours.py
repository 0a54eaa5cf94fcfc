"""The transaction of an ASGI request: one unit of work, awaited on the event loop and used plainly in threads.

An application has ``async def`` and ``def`` handlers, and a framework runs the latter in threads. Both get the same
transaction in their own colour. It is committed on the event loop; what came from a thread, and model hooks of a
request that used one, run in a thread again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from holdall.core.context import Context
from holdall.core.generator import refuse_generator, refuse_generator_function
from holdall.core.port import Port
from holdall.transactions.api import AsyncTransaction, Transaction
from holdall.transactions.unit import Unit

__all__ = ["RequestPort", "RequestTransaction", "ThreadTransaction"]


class ThreadTransaction(Transaction):
    """A request's transaction for its threads. Its handlers are called in a thread, where they may block."""

    def after_commit(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function once the transaction is committed."""
        refuse_generator_function(function, "a handler")
        super().after_commit(_in_thread, function, *args)

    def after_failure(self, function: Callable[[Exception], Any]) -> None:
        """Call a function with the error once the transaction has failed for good."""
        refuse_generator_function(function, "a handler")

        async def told(error: Exception) -> Any:
            return await _in_thread(function, error)

        super().after_failure(told)


class RequestTransaction(AsyncTransaction):
    """A request's transaction on the event loop, which knows its twin for threads."""

    def __init__(self, context: Context, blocking: Context, unit: Unit) -> None:
        super().__init__(context, unit)
        self._loop = asyncio.get_running_loop()
        self._blocking = blocking
        self._twin: ThreadTransaction | None = None

    @property
    def is_used_in_threads(self) -> bool:
        """Whether somebody has the twin."""
        return self._twin is not None

    @property
    def is_used(self) -> bool:
        """Whether anything depends on how it ends."""
        unit = self._unit
        return bool(unit.entries or unit.participants or unit.on_commit)

    def in_thread(self) -> ThreadTransaction:
        """The twin."""
        if self._twin is None:
            self._twin = ThreadTransaction(self._blocking, self._unit)
        return self._twin

    def _here(self) -> Any:
        try:
            return self if asyncio.get_running_loop() is self._loop else self.in_thread()
        except RuntimeError:  # no loop runs in this thread
            return self.in_thread()


class RequestPort:
    """The awaiting port, except that plain hooks of a transaction that threads use run in a thread, with its twin."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the user's."""
        tx = args[0] if args else None
        if isinstance(tx, RequestTransaction) and tx.is_used_in_threads and not iscoroutinefunction(function):
            return await _in_thread(function, tx.in_thread())
        return await self._port.call(function, *args)


async def _in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a thread; if what it gives is to be awaited, that is done here."""
    result = await asyncio.to_thread(function, *args)
    if isawaitable(result):
        result = await result
    refuse_generator(result, function)
    return result
