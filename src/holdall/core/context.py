"""The context that every flow gets: its port, the settings, and what is already known about the tables."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.port import Port
from holdall.core.settings import Settings

F = TypeVar("F")
T = TypeVar("T")
K = TypeVar("K", bound="Kept")


class Once(Protocol):
    """A value that many callers need and one of them fetches. The implementations are in `holdall.backends`."""

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the value; if there is none yet, run the flow and keep its result.

        Callers that ask while a flow is running get its result or its error. An error is not kept.
        """

    def forget(self) -> None:
        """Make the next caller fetch the value again; the result of a running flow is not kept either."""


class Kept:
    """The base class of what a room remembers about a database in this process.

    ``follows_tables``: it was derived from the tables, and is dropped when they may have changed.
    """

    follows_tables: ClassVar[bool] = True


class State:
    """What the rooms remember about one database, one object for each class. Its sync and async side share it."""

    def __init__(self) -> None:
        self._kept: dict[type[Kept], Kept] = {}

    def of(self, kind: type[K]) -> K:
        """Return the database's object of this class; it is made at the first call."""
        found: Any = self._kept.get(kind)
        if found is None:
            found = self._kept.setdefault(kind, kind())
        return found  # type: ignore[no-any-return]

    def forget_tables(self) -> None:
        """Drop everything that was derived from the tables."""
        for kind in [kind for kind in self._kept if kind.follows_tables]:
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
