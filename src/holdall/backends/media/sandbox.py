"""A process for one request: forked by the child that has the request, limited, and gone afterwards.

A child of `backends.process` has a single thread, so it may fork; it has the libraries loaded, so a request costs only
a fork; and it never parses content itself, so nothing of one file can affect the next. The forked process

- closes every descriptor but the pipe for its answer, even the pipe between the child and its parent;
- has limits on memory, processor time, and the size and number of files, and leaves no core file;
- is killed when its wall-clock time is up, and when the child dies.

What it writes to the request's ``target`` is removed unless it succeeds.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from holdall.core.media import PICTURE_FORMATS, DrawPreview, MediaLimits, Picture, ProbeMedia, TransformImage
from holdall.errors import HoldallError

ANSWER_BYTES = 1 << 20
"""The longest plausible answer."""
CLOCK = 4.0
"""How many times its processor time a request may take in wall-clock time: the machine may be busy."""

MediaRequest: TypeAlias = ProbeMedia | TransformImage | DrawPreview

TAGS, TAG_LENGTH = 64, 500
"""How many tags of an audio file are kept, and how many characters of each."""
_OPEN_FILES = 64
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Ending(NamedTuple):
    """How a forked process ended: one of these is not None."""

    result: Any = None
    refusal: Mapping[str, Any] | None = None
    signal: int | None = None
    missing: str | None = None
    """The missing package."""


def run(function: str, request: MediaRequest) -> Ending:
    """Call ``module:name`` with the request, in a forked process.

    The module also has ``load_libraries(request)``, which is called here and imports what the work needs.
    """
    Path(request.path).stat()  # a missing file is the caller's mistake, not the content's
    module, _, name = function.partition(":")
    work = import_module(module)
    try:
        work.load_libraries(request)
    except ImportError as error:
        return Ending(missing=error.name or str(error))
    number, answer = _fork(getattr(work, name), request, request.limits)
    ending = Ending(signal=number) if number is not None else read_answer(request, answer)
    target = getattr(request, "target", None)
    if target is not None and ending.result is None:
        Path(target).unlink(missing_ok=True)
    return ending


def read_answer(request: MediaRequest, answer: bytes) -> Ending:
    """The answer of a process that its content may control: only a well-formed one is accepted."""
    try:
        facts = json.loads(answer)
        if "refusal" in facts:
            text = (
                str(facts["text"])[:500].encode(errors="replace").decode().replace(request.path, "the file")
            )
            number = facts.get("errno")
            refusal = {"kind": str(facts["refusal"]), "text": text}
            return Ending(refusal=refusal | {"errno": number if type(number) is int else 0})
        return Ending(_check(request, facts["result"]))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return Ending(refusal={"kind": "MalformedMediaError", "text": "made its reader return nonsense"})


def _check(request: MediaRequest, result: Any) -> Mapping[str, Any] | Picture:
    if isinstance(request, ProbeMedia):
        if all(_METADATA[name](value) for name, value in result.items()):
            return dict(result)
        raise ValueError("not metadata")
    width, height, kind = result
    if _is_whole(width) and _is_whole(height) and width > 0 < height and kind in PICTURE_FORMATS.values():
        return Picture(width, height, kind)
    raise ValueError("not a picture")


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < 1 << 63


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1 << 63


def _is_ratio(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(map(_is_whole, value))


def _is_tags(value: Any) -> bool:
    return type(value) is dict and len(value) <= TAGS and all(map(_is_tag, [*value, *value.values()]))


def _is_tag(value: Any) -> bool:
    return type(value) is str and len(value.encode()) <= 4 * TAG_LENGTH  # a text that cannot be stored raises


_METADATA: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("width", "height", "angle", "bit_rate", "sample_rate", "pages"), _is_whole),
    "duration": _is_duration,
    "display_aspect_ratio": _is_ratio,
    **dict.fromkeys(("audio", "video"), lambda value: type(value) is bool),
    "tags": _is_tags,
}


def _fork(work: Callable[[Any], Any], request: Any, limits: MediaLimits) -> tuple[int | None, bytes]:
    """The signal that ended the process, or None, and its answer."""
    near, far = os.pipe()
    limit = _prepare_limits(limits)
    process = os.fork()
    if process == 0:
        _become_worker(work, request, limit, far)
    os.close(far)
    try:
        answer = _listen(near, limits.seconds * CLOCK)
    finally:
        os.close(near)
        with suppress(ProcessLookupError):  # it has exited, or its time is up
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else None), answer


def _listen(pipe: int, seconds: float) -> bytes:
    """Everything sent before the pipe is closed; empty if it is too late or too long."""
    answer, until = bytearray(), time.monotonic() + seconds
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while (left := until - time.monotonic()) > 0 and len(answer) <= ANSWER_BYTES:
        if poll.poll(left * 1000):
            piece = os.read(pipe, 1 << 16)
            if not piece:
                return bytes(answer)
            answer += piece
    return b""


def _become_worker(
    work: Callable[[Any], Any], request: Any, limit: Callable[[], None], pipe: int
) -> NoReturn:
    """Do the work and exit; never return into the child's code."""
    status = 1
    try:
        _close_files(pipe)
        limit()
        _write(3, _answer(work, request))
        status = 0
    finally:
        os._exit(status)


def _answer(work: Callable[[Any], Any], request: Any) -> bytes:
    try:
        answer: dict[str, Any] = {"result": work(request)}
    except MemoryError:
        answer = {"refusal": "MemoryError", "text": ""}
    except HoldallError as error:
        answer = {"refusal": type(error).__name__, "text": str(error)}
    except OSError as error:
        kind = "OSError" if error.errno else type(error).__name__  # Pillow's errors have no number
        kind = "MediaLimitError" if error.errno == errno.EFBIG else kind
        answer = {"refusal": kind, "text": str(error), "errno": error.errno}
    except Exception as error:  # noqa: BLE001 - broken content can make a parser raise anything
        answer = {"refusal": type(error).__name__, "text": str(error)}
    return json.dumps(answer).encode()


def _close_files(pipe: int) -> None:
    """Close all descriptors but the pipe, which becomes 3; output of libraries is discarded."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    if pipe != 3:
        os.dup2(pipe, 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _prepare_limits(limits: MediaLimits) -> Callable[[], None]:
    """A function that sets the limits in the forked process; as much as possible is prepared before the fork.

    The first access to each page of memory costs the forked process some microseconds.
    """
    seconds = ceil(limits.seconds)
    wanted = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (limits.output, limits.output),
        resource.RLIMIT_NOFILE: (_OPEN_FILES, _OPEN_FILES),
        resource.RLIMIT_AS: (_count_mapped_bytes() + limits.memory,) * 2,
        resource.RLIMIT_CPU: (seconds, seconds + 1),
    }
    for kind, (soft, hard) in wanted.items():
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            wanted[kind] = (min(soft, most), min(hard, most))
    parent, control = os.getpid(), _load_prctl()

    def limit() -> None:
        gc.disable()  # a collection would touch all memory shared with the child
        for number in (signal.SIGXFSZ, signal.SIGPIPE):  # Python ignores both
            signal.signal(number, signal.SIG_DFL)
        for kind, pair in wanted.items():
            resource.setrlimit(kind, pair)
        if control is not None:
            control(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            control(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:  # the child died before prctl was called
            os._exit(1)

    return limit


@cache
def _load_prctl() -> Callable[..., int] | None:
    return ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def _count_mapped_bytes() -> int:
    """The memory that the interpreter and its libraries already occupy; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _write(pipe: int, answer: bytes) -> None:
    while answer:
        answer = answer[os.write(pipe, answer) :]
