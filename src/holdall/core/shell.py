"""Binds flows to the sync and the async shell, so that the signatures of the two cannot drift apart.

Pure. A shell is a class with a ``_context``; the sync and the async shell have the same flows::

    class Artifacts(Namespace):               class AsyncArtifacts(Namespace):
        publish = blocking(publish_flow)          publish = awaiting(publish_flow)

Here ``publish_flow(context, name, *, force=False)`` is a flow, an ``async def`` that awaits only its port. Each becomes
an ordinary method with the flow's parameters, defaults and docstring.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from holdall.core.context import Context
from holdall.core.cursor import AwaitingPages, BlockingPages, Cursor
from holdall.core.internal import internal
from holdall.core.port import run
from holdall.core.traceback import shorten_traceback
from holdall.errors import HoldallError

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
P = ParamSpec("P")
T = TypeVar("T")


class Shell(Protocol[C_co]):
    """What a class must have for flows to be bound to it."""

    @property
    def _context(self) -> C_co: ...


class Namespace:
    """A shell over the flows of one feature of a database, such as ``db.jobs``."""

    @internal
    def __init__(self, context: Context) -> None:
        self._context = context


class blocking(Generic[C, P, T]):  # noqa: N801 - reads as a decorator would
    """Turns a flow, an ``async def`` that awaits only its port, into a sync method of a class."""

    def __init__(self, flow: Callable[Concatenate[C, P], Coroutine[Any, Any, T]]) -> None:
        self._flow = flow

    def __set_name__(self, owner: type, name: str) -> None:
        flow = self._flow

        def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            return run(flow(self._context, *args, **kwargs), self._context)

        _install(owner, name, method, flow)

    @overload
    def __get__(self, shell: None, owner: type) -> blocking[C, P, T]: ...
    @overload
    def __get__(self, shell: Shell[C], owner: type) -> Callable[P, T]: ...
    def __get__(self, shell: Any, owner: type) -> Any:
        raise TypeError("blocking() must be assigned to a class attribute")


class awaiting(Generic[C, P, T]):  # noqa: N801
    """Turns a flow, an ``async def`` that awaits only its port, into an async method of a class."""

    def __init__(self, flow: Callable[Concatenate[C, P], Coroutine[Any, Any, T]]) -> None:
        self._flow = flow

    def __set_name__(self, owner: type, name: str) -> None:
        flow = self._flow

        async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            try:
                return await flow(self._context, *args, **kwargs)
            except HoldallError as error:
                shorten_traceback(error, self._context, here=True)
                raise

        _install(owner, name, method, flow)

    @overload
    def __get__(self, shell: None, owner: type) -> awaiting[C, P, T]: ...
    @overload
    def __get__(self, shell: Shell[C], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, shell: Any, owner: type) -> Any:
        raise TypeError("awaiting() must be assigned to a class attribute")


def _install(owner: type, name: str, method: Any, flow: Callable[..., Any]) -> None:
    """Replace the descriptor by the method, with the name and signature of the flow without its context."""
    import inspect  # slow to load, so only when a shell is defined

    signature = inspect.signature(flow)
    context, *rest = signature.parameters.values()
    itself = context.replace(name="self", annotation=inspect.Parameter.empty)
    method.__signature__ = signature.replace(parameters=[itself, *rest])
    method.__name__ = name
    method.__code__ = method.__code__.replace(co_name=name)  # for tracebacks
    method.__qualname__ = f"{owner.__qualname__}.{name}"
    method.__module__ = owner.__module__
    method.__doc__ = flow.__doc__
    setattr(owner, name, method)


def iterate(cursor: Cursor[Iterable[T]], context: Context) -> Iterator[T]:
    """Iterate over the members of all pages in sync code."""
    for page in BlockingPages(cursor, context):
        yield from page


async def iterate_awaiting(cursor: Cursor[Iterable[T]], context: Context) -> AsyncIterator[T]:
    """Iterate over the members of all pages in async code."""
    async for page in AwaitingPages(cursor, context):
        for each in page:
            yield each
