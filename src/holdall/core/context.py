"""What every flow is given: its port, the settings, and what has been found out already."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.port import Port
from holdall.core.settings import Settings

__all__ = ["Context", "Once"]

T = TypeVar("T")


class Once(Protocol):
    """One finding that many ask for and one of them fetches. The ones that are used live in `holdall.backends`."""

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The finding; when there is none yet, the flow's result, which becomes it.

        Those who ask while a flow is under way get its result, or its error. An error is not kept.
        """

    def forget(self) -> None:
        """Let the next to ask find out anew; a flow under way is not kept either."""


@dataclass(frozen=True, slots=True)
class Context:
    """The one argument that all flows share.

    ``discovery`` holds the table's layout; ``bindings`` where each model lives, filled as models are used.
    ``hook`` finds a function of a feature by name, for rooms below it: ``plan_job`` turns a call of ``tx.enqueue`` into
    a handle and the participant that adds the job; ``plan_copies`` is the flow that has an object copied to mirrors.
    """

    port: Port
    settings: Settings
    discovery: Once
    bindings: dict[Any, Any]
    hook: Callable[[str], Callable[..., Any]]
