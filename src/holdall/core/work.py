"""Work for a child process: what may crash, hang or eat memory, because its input cannot be trusted. Pure."""

from __future__ import annotations

from typing import Any, ClassVar

from holdall.core.frozen import dataclass
from holdall.core.requests import Destination, Request


@dataclass(frozen=True, slots=True)
class CallFunction(Request[Any]):
    """Call a function in a child process, and kill the process if it takes longer than ``seconds``.

    ``function`` is ``module:name``, which the child imports; arguments and result are pickled on their way. An error of
    the function is raised here. `ProcessDiedError`, `ProcessTimeoutError`: only this call is lost.
    """

    destination: ClassVar[Destination] = "process"
    function: str
    arguments: tuple[Any, ...]
    seconds: float | None
