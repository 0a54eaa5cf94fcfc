"""Shortens tracebacks to what the caller needs: their own line and the method that they called.

Pure. When a shell runs a flow, `holdall.core.port` removes Holdall's frames from every `HoldallError` with
`shorten_traceback`, unless the setting ``tracebacks`` is ``full``. A worker does the same with the error of a job, and
`ShortTracebacks` with those of a method that runs no flow.
"""

from __future__ import annotations

import types
from types import CodeType, TracebackType
from typing import TYPE_CHECKING

from holdall.errors import HoldallError

if TYPE_CHECKING:
    from holdall.core.context import Context

_OURS = __file__.removesuffix("core/traceback.py").removesuffix("core\\traceback.py")
_LIBRARY = types.__file__.removesuffix("types.py")


def shorten_traceback(error: BaseException, context: Context, *, here: bool = False) -> None:
    """Remove Holdall's frames from the tracebacks of an error as the settings demand; see `remove_frames`."""
    if context.settings.tracebacks != "full":
        remove_frames(error, here=here)


class ShortTracebacks:
    """Shortens the errors of a method that runs no flow: ``with ShortTracebacks(self._context): ...``."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, HoldallError):
            shorten_traceback(error, self._context, here=True)


def remove_frames(error: BaseException, *, here: bool = False) -> None:
    """Remove Holdall's frames from the tracebacks of an error and of its causes; a group's errors were never raised.

    Only errors that Holdall raised are shortened. An error that the caller's code raised, in a transaction, a handler
    or a validator, keeps all its frames. ``here``: the frame that caught the error is the method that the caller
    called.
    """
    waiting: list[BaseException | None] = [error]
    seen = set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, HoldallError):
            each.__traceback__ = _cut(each.__traceback__, here and each is error)
        waiting += (each.__cause__, each.__context__)


def _cut(trace: TracebackType | None, called: bool) -> TracebackType | None:
    """Keep the frames of the caller's code, each with the Holdall method that it called; ``called``: the first frame
    is such a method."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    inside = [_is_inside(frame.tb_frame.f_code) for frame in frames]
    if not all(inside[-1:]):
        return frames[0]
    kept = None
    for position, frame in reversed(list(enumerate(frames))):
        if not inside[position] or (not inside[position - 1] if position else called):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _is_inside(code: CodeType) -> bool:
    """Whether code belongs to Holdall, or to the standard library, which runs Holdall's threads and tasks."""
    file = code.co_filename
    if file.startswith(_OURS):
        return True
    return file.startswith(_LIBRARY) and "-packages" not in file
