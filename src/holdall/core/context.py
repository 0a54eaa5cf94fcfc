"""What every flow is given: its port, the settings, and what has been found out already."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Protocol, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.port import Port
from holdall.core.settings import Settings

T = TypeVar("T")
K = TypeVar("K", bound="Kept")


class Once(Protocol):
    """One finding that many ask for and one of them fetches. The ones that are used live in `holdall.backends`."""

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The finding; when there is none yet, the flow's result, which becomes it.

        Those who ask while a flow is under way get its result, or its error. An error is not kept.
        """

    def forget(self) -> None:
        """Let the next to ask find out anew; a flow under way is not kept either."""


class Kept:
    """The base of what a room keeps for a database in this process.

    ``follows_tables``: it was found out from the tables, and is forgotten when they may have changed.
    """

    follows_tables: ClassVar[bool] = True


class State:
    """What the rooms keep for one database, each in a class of its own. Its twins share it."""

    def __init__(self) -> None:
        self._kept: dict[type[Kept], Kept] = {}

    def of(self, kind: type[K]) -> K:
        """The database's one object of that class, made when it is first asked for."""
        found: Any = self._kept.get(kind)
        if found is None:
            found = self._kept.setdefault(kind, kind())
        return found  # type: ignore[no-any-return]

    def forget_tables(self) -> None:
        """Drop what was found out from the tables."""
        for kind in [kind for kind in self._kept if kind.follows_tables]:
            del self._kept[kind]


@dataclass(frozen=True, slots=True)
class Context:
    """The one argument that all flows share.

    ``discovery`` holds the table's layout; ``state`` what the rooms have found out besides.
    ``hook`` finds a function of a feature by name, for rooms below it: ``plan_job`` turns a call of ``tx.enqueue`` into
    a handle and the participant that adds the job; ``plan_copies`` is the flow that has an object copied to mirrors.
    """

    port: Port
    settings: Settings
    discovery: Once
    state: State
    hook: Callable[[str], Callable[..., Any]]

    def forget_tables(self) -> None:
        """Find out anew what the tables look like, when it is next needed."""
        self.discovery.forget()
        self.state.forget_tables()
