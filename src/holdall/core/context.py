"""The context that every flow gets: its port, the settings, and what is already known about the tables."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.port import Port
from holdall.core.settings import Settings

F = TypeVar("F")
T = TypeVar("T")


class Once(Protocol):
    """A value that many callers need and one of them fetches. The implementations are in `holdall.backends`."""

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the value; if there is none yet, run the flow and keep its result.

        Callers that ask while a flow is running get its result or its error. An error is not kept.
        """

    def forget(self) -> None:
        """Make the next caller fetch the value again; the result of a running flow is not kept either."""


class Carry:
    """One object for each class, such as those that the attempts of a run share: ``tx.carry.of(Uploads)``."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[type[Any], Any] = {}

    def of(self, kind: type[T]) -> T:
        """Return the object of this class; the first call makes it, without arguments."""
        found = self._kept.get(kind)
        if found is None:
            found = self._kept.setdefault(kind, kind())
        return found  # type: ignore[no-any-return]


class Kept:
    """The base class of what a room has derived from the tables; a database forgets it when they may have changed."""


class State(Carry):
    """What the rooms remember about one database. Its sync and async side share it."""

    __slots__ = ()

    def forget_tables(self) -> None:
        """Drop everything that was derived from the tables."""
        for kind in [kind for kind in self._kept if issubclass(kind, Kept)]:
            del self._kept[kind]


@dataclass(frozen=True, slots=True)
class Hook(Generic[F]):
    """A function that a room needs and a feature above it provides: its name in `holdall.features`, and its type."""

    name: str


class Hooks(Protocol):
    """Finds the function of a hook."""

    def __call__(self, hook: Hook[F], /) -> F:
        """Return the feature's function; the feature is loaded at the first call."""


@dataclass(frozen=True, slots=True)
class Context:
    """The first argument of all flows.

    ``discovery`` holds the table's layout, ``state`` everything else that the rooms remember.
    ``hook`` finds a function of a feature, for rooms that cannot import it.
    """

    port: Port
    settings: Settings
    discovery: Once
    state: State
    hook: Hooks

    def forget_tables(self) -> None:
        """Drop what is known about the tables; it is fetched again when it is next needed."""
        self.discovery.forget()
        self.state.forget_tables()
