"""Media requests in the calling process: a warm child of `backends.process` carries them out."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping
from typing import Any, TypeVar

from holdall import errors
from holdall.backends.media.sandbox import Ending
from holdall.backends.process import children
from holdall.core.requests import Request
from holdall.core.work import CallFunction
from holdall.errors import MalformedMediaError, MediaError, MediaLimitError, MediaPackageMissingError

R = TypeVar("R")

_REFUSALS = ("InvalidOptionsError", "MalformedMediaError", "MediaLimitError", "UnsupportedMediaError")
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.ENOENT)


def deliver_blocking(request: Request[R]) -> R:
    """Do the work; the calling thread waits."""
    answer: R = _read(request, children.call_blocking(_call(request)))
    return answer


async def deliver_awaiting(request: Request[R]) -> R:
    """Do the work without blocking the event loop. Cancelling it ends the work."""
    answer: R = _read(request, await children.call_awaiting(_call(request)))
    return answer


def _call(request: Request[Any]) -> CallFunction:
    return CallFunction(
        "holdall.backends.media.sandbox:run", ("holdall.backends.media.work:do", request), None
    )


def _read(request: Any, ending: Ending) -> Any:
    """The result of a request's process, or the error that its end means."""
    what = f"a file of type {request.content_type}"
    if ending.missing is not None:
        raise MediaPackageMissingError(
            f"{what} needs the package {ending.missing}, which is not installed",
            hint='install it with: pip install "holdall[media]"',
        )
    if ending.signal is not None:
        raise _explain_signal(ending.signal, what, request)
    if ending.refusal is not None:
        raise _explain_refusal(ending.refusal, what, request)
    return ending.result


def _explain_signal(number: int, what: str, request: Any) -> MediaError:
    if number == signal.SIGXFSZ:
        return MediaLimitError(f"{what} would produce a file of more than {request.limits.output:,} bytes")
    if number in (signal.SIGXCPU, signal.SIGKILL):  # it took too long, or the system is short of memory
        return MediaLimitError(
            f"{what} takes more than {request.limits.seconds:g} seconds, or too much memory, to process"
        )
    return MalformedMediaError(f"{what} crashed its reader (signal {number})")


def _explain_refusal(refusal: Mapping[str, Any], what: str, request: Any) -> Exception:
    kind, text, number = refusal["kind"], refusal["text"], refusal.get("errno")
    if kind == "MemoryError":
        return MediaLimitError(f"{what} takes more than {request.limits.memory:,} bytes of memory to process")
    if kind == "DecompressionBombError":
        return MediaLimitError(f"{what} has more than {request.limits.pixels:,} pixels")
    if kind == "UnidentifiedImageError":
        return MalformedMediaError(f"{what} does not have content of that type")
    if kind == "OSError" and number in _DISK:
        return OSError(number, os.strerror(number), getattr(request, "target", request.path))
    if kind in _REFUSALS:
        error: Exception = getattr(errors, kind)(f"{what} {text}")
        return error
    return MalformedMediaError(f"{what} cannot be read: {text}")
