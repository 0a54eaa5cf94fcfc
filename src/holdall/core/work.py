"""Work for a child process: it may crash, hang or exhaust memory, because its input cannot be trusted. Pure."""

from __future__ import annotations

from typing import Any, ClassVar

from holdall.core.frozen import dataclass
from holdall.core.requests import Destination, Request


@dataclass(frozen=True, slots=True)
class CallFunction(Request[Any]):
    """Call a function in a child process, and kill the process if it takes longer than ``seconds``.

    ``function`` is ``module:name``, which the child imports; arguments and result are pickled. An error that the
    function raises is raised here. `ProcessDiedError` and `ProcessTimeoutError` concern only this call.
    """

    destination: ClassVar[Destination] = "process"
    function: str
    arguments: tuple[Any, ...]
    seconds: float | None
