"""Requests about media, in the process that makes them: they are done by a child, and what comes back is not trusted.

The child is a warm one of `backends.process`. The answer was written by a process that has parsed the content, and
may be under its control by then. So it is JSON, and nothing of it is used before it was checked.
"""

from __future__ import annotations

import errno
import json
import os
import signal
from typing import Any, TypeVar

from holdall import errors
from holdall.backends.media.sandbox import Ending
from holdall.backends.process import children
from holdall.core.media import DrawPreview, Picture, ProbeMedia, TransformImage
from holdall.core.requests import Request
from holdall.core.work import CallFunction
from holdall.errors import MalformedMediaError, MediaError, MediaLimitError, MediaPackageMissingError

R = TypeVar("R")

_METADATA: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("width", "height", "angle", "bit_rate", "sample_rate", "pages"), (int,)),
    "duration": (int, float),
    "display_aspect_ratio": (list,),
    "audio": (bool,),
    "video": (bool,),
    "tags": (dict,),
}
_REFUSALS = ("InvalidOptionsError", "MalformedMediaError", "MediaLimitError", "UnsupportedMediaError")
_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)


def deliver_blocking(request: Request[R]) -> R:
    """Do the work; the calling thread waits."""
    answer: R = _read(request, children.call_blocking(_call(request)))
    return answer


async def deliver_awaiting(request: Request[R]) -> R:
    """Do the work; the event loop goes on. To be cancelled is to end the work."""
    answer: R = _read(request, await children.call_awaiting(_call(request)))
    return answer


def _call(request: Request[Any]) -> CallFunction:
    return CallFunction(
        "holdall.backends.media.sandbox:run", ("holdall.backends.media.work:do", request), None
    )


def _read(request: Any, ending: Ending) -> Any:
    """What a request's process said before it ended, or the error that its end means."""
    what = f"a file of type {request.content_type}"
    if ending.missing is not None:
        raise MediaPackageMissingError(
            f"{what} needs the package {ending.missing}, which is not installed",
            hint='install it: pip install "holdall[media]"',
        )
    if ending.signal is not None:
        raise _explain_signal(ending.signal, what, request)
    try:
        answer = json.loads(ending.answer)
        if "refusal" in answer:
            error = _explain_refusal(answer, what, request)
        else:
            return _check(request, answer["result"])
    except (ValueError, TypeError, LookupError, RecursionError):
        error = MalformedMediaError(f"{what} made its reader answer nonsense")
    raise error


def _explain_signal(number: int, what: str, request: Any) -> MediaError:
    if number == signal.SIGXFSZ:
        return MediaLimitError(f"{what} becomes a file of more than {request.limits.output} bytes")
    if number in (
        signal.SIGXCPU,
        signal.SIGKILL,
    ):  # killed for the time it took, or by a system without memory
        return MediaLimitError(f"{what} takes longer than {request.limits.seconds:g} seconds, or more memory")
    return MalformedMediaError(f"{what} crashed its reader (signal {number})")


def _explain_refusal(answer: dict[str, Any], what: str, request: Any) -> Exception:
    kind, text = answer["refusal"], str(answer["text"])[:500]
    if kind == "MemoryError":
        return MediaLimitError(f"{what} takes more than {request.limits.memory} bytes of memory")
    if kind == "OSError" and answer["errno"] in _SPACE:
        return OSError(
            answer["errno"], os.strerror(answer["errno"]), getattr(request, "target", request.path)
        )
    if kind in _REFUSALS:
        refusal: Exception = getattr(errors, kind)(f"{what} {text}")
        return refusal
    return MalformedMediaError(f"{what} cannot be read: {text}")


def _check(request: ProbeMedia | TransformImage | DrawPreview, result: Any) -> Any:
    if isinstance(request, ProbeMedia):
        if all(type(value) in _METADATA[name] for name, value in result.items()):
            return result
        raise ValueError("another type")
    width, height, content_type = result
    if type(width) is type(height) is int and type(content_type) is str and width > 0 < height:
        return Picture(width, height, content_type)
    raise ValueError("not a picture")
