"""One way to write tests once and run them in both colours, sync ("blocking") and async ("awaiting").

A test is ``async def test(rig)``. In the awaiting colour it runs on an event loop. In the blocking one, nothing that it
awaits ever suspends, so it is finished in one step: `Awaited` and `AsyncView` wrap blocking objects for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from inspect import Parameter, Signature, isawaitable, iscoroutine, signature
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar
from zlib import crc32

import pytest

from holdall.core.port import run
from rig.servers import GIVEN
from rig.torture import TORTURE

__all__ = [
    "COLOURS",
    "AsyncView",
    "Awaited",
    "Colour",
    "Test",
    "Way",
    "finish",
    "elsewhere",
    "here_and_elsewhere",
    "finish_body",
    "in_turn",
    "run_in",
    "take_turns",
]

T = TypeVar("T")
Colour = Literal["blocking", "awaiting"]
COLOURS: list[Colour] = ["blocking", "awaiting"]
IN_PROCESS = ("file", "disk", "mirror")
Test: TypeAlias = "Callable[..., Coroutine[Any, Any, None]]"


class Way(NamedTuple):
    """A store, and the colour to use it in."""

    store: str
    colour: Colour

    def __str__(self) -> str:
        return f"{self.store}, {self.colour}"


def finish(colour: Colour, flow: Coroutine[Any, Any, T]) -> T:
    """Run a flow in a colour, and return its result."""
    return run(flow) if colour == "blocking" else asyncio.run(flow)


def take_turns(*names: str) -> int:
    """0 or 1, fixed for these names: decides a test's colour on a store, so that each room covers both colours."""
    return _turn(2, names)


def in_turn(*names: str) -> tuple[Colour, ...]:
    """One colour, in turn from name to name; both under torture."""
    return tuple(COLOURS) if TORTURE else (COLOURS[_turn(2, names)],)


def elsewhere(stores: Sequence[str], *names: str) -> list[tuple[str, Colour]]:
    """Where a test runs besides memory: on one of the stores in one colour; under torture on each in both.

    The names decide which, so that together a room's tests cover every store in both colours. Stores in this process
    cost a fraction, so they are chosen more often than servers. That is enough for a normal run, because the contract
    tests compare the stores sentence by sentence. The server in ``HOLDALL_TEST_DYNAMODB`` is always among them.
    """
    ways = [(store, colour) for store in stores for colour in COLOURS]
    if TORTURE or not ways:
        return ways
    often = [way for way in ways for _ in range(3 if way[0] in IN_PROCESS else 1)]
    chosen = often[_turn(len(often), names)]
    given = [(GIVEN, chosen[1])] if GIVEN in stores and chosen[0] != GIVEN else []
    return [chosen, *given]


def here_and_elsewhere(stores: Sequence[str], *names: str) -> list[tuple[str, Colour]]:
    """Where a test of behaviour runs: in memory in one colour, `elsewhere` in the other; under torture in all ways."""
    others = elsewhere(stores, *names)
    if not others:
        return [("memory", colour) for colour in in_turn(*names)]
    colours = {colour for _, colour in others}
    return [*(("memory", colour) for colour in COLOURS if TORTURE or colour not in colours), *others]


def _turn(count: int, names: tuple[str, ...]) -> int:
    return crc32(" ".join(names).encode()) % count


class _Way(Protocol):
    @property
    def colour(self) -> Colour: ...


W = TypeVar("W", bound=_Way)


def run_in(
    ways: Callable[[str], Sequence[W]],
    opening: Callable[[W], AbstractContextManager[Any]],
    finish: Callable[[Colour, Coroutine[Any, Any, None]], None] = finish,
) -> Callable[[Test], Callable[..., None]]:
    """Decorate a test to run in each way that its name gives; its first argument is what ``opening`` opens."""

    def decorate(test: Test) -> Callable[..., None]:
        @wraps(test)
        def run_it(way: W, **arguments: Any) -> None:
            with opening(way) as rig:
                finish(way.colour, test(rig, **arguments))

        _, *others = signature(test).parameters.values()
        first = Parameter("way", Parameter.POSITIONAL_OR_KEYWORD)
        del run_it.__wrapped__  # pytest would take its arguments for fixtures
        run_it.__signature__ = Signature([first, *others])  # type: ignore[attr-defined]
        marked: Callable[..., None] = pytest.mark.parametrize("way", ways(test.__name__), ids=str)(run_it)
        return marked

    return decorate


class Awaited:
    """An object whose methods can all be awaited, whether or not they are async."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            return await result if isawaitable(result) else result

        return call


class AsyncView:
    """A blocking database, transaction, query or file handle that is used like its async twin."""

    AWAITED = frozenset(
        ["get", "get_one", "get_all", "get_by", "send", "migrate", "move", "read", "close"]
    ) | frozenset(["page", "first", "one", "all", "count", "exists", "update_all", "delete_all"])
    """The methods that do I/O."""
    VIEWED = frozenset(["query", "scan", "transaction"])

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in self.AWAITED:
            return getattr(Awaited(self._inner), name)
        if name in self.VIEWED:
            return lambda *args, **options: AsyncView(found(*args, **options))
        if name == "table":
            return Awaited(found)
        if name == "bulk":
            return lambda *args, **options: BulkView(found(*args, **options))
        return found

    async def run(self, function: Any, *args: Any, **options: Any) -> Any:
        return self._inner.run(finish_body(function), *args, **options)

    async def __aenter__(self) -> AsyncView:
        self._inner.__enter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for row in self._inner:
            yield row


class BulkView(AsyncView):
    """A blocking bulk that is used like its async twin."""

    AWAITED = frozenset(["put", "delete", "put_all", "delete_all"])


def finish_body(function: Any) -> Any:
    """Turn an async body into one for a blocking ``run``; it may await only what its transaction's `AsyncView` has."""
    if not callable(function):
        return function

    @wraps(function)
    def body(tx: Any, *args: Any, **keywords: Any) -> Any:
        result = function(AsyncView(tx), *args, **keywords)
        return run(result) if iscoroutine(result) else result

    return body
