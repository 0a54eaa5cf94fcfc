"""A process for one request, in the child that has it: forked, limited, and gone afterwards.

A child of `backends.process` has a single thread, so it may fork; it has the libraries loaded, so a fork is all that a
request costs; and it never reads content itself, so nothing of one file can reach the next. The forked process

- keeps no descriptor but one pipe, for its answer: not even the one on which the child talks to its parent;
- has limits on memory, time of the processor, size and number of files, and leaves no core file;
- is killed when its time by the clock is up, and when the child dies.

What it writes to the request's ``target`` is removed unless it succeeded.
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
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from holdall.core.media import DrawPreview, MediaLimits, ProbeMedia, TransformImage
from holdall.errors import HoldallError

ANSWER_BYTES = 1 << 20
"""No honest answer is longer."""
CLOCK = 4.0
"""How many times its processor time a request may take by the clock: a busy machine is not the file's fault."""

_OPEN_FILES = 64
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Ending(NamedTuple):
    """How a forked process ended: with an answer, by a signal, or not begun as a package is missing."""

    answer: bytes = b""
    signal: int | None = None
    missing: str | None = None


def run(function: str, request: ProbeMedia | TransformImage | DrawPreview) -> Ending:
    """Call ``module:name`` with the request, in a process of its own.

    The module has ``load_libraries(request)``, called here once more for each request: it imports what the work needs.
    """
    Path(request.path).stat()  # a file that is not there is the caller's mistake, not the content's
    module, _, name = function.partition(":")
    work = import_module(module)
    try:
        work.load_libraries(request)
    except ImportError as error:
        return Ending(missing=error.name or str(error))
    ending = _fork(getattr(work, name), request, request.limits)
    target = getattr(request, "target", None)
    if target is not None and not ending.answer.startswith(b'{"result"'):
        Path(target).unlink(missing_ok=True)
    return ending


def _fork(work: Callable[[Any], Any], request: Any, limits: MediaLimits) -> Ending:
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
        with suppress(ProcessLookupError):
            os.kill(
                process, signal.SIGKILL
            )  # it has exited, or it is time; a process that is exiting does not mind
        _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return Ending(signal=os.WTERMSIG(status))
    return Ending(answer)


def _listen(pipe: int, seconds: float) -> bytes:
    """All that comes before the pipe is closed; what is too late or too long is no answer."""
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
    """Do the work and exit; never return into what the child was doing."""
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
        code = "MediaLimitError" if error.errno == errno.EFBIG else "OSError"
        answer = {"refusal": code, "text": str(error), "errno": error.errno}
    except Exception as error:  # noqa: BLE001 - parsers raise whatever broken content makes them stumble over
        answer = {"refusal": type(error).__name__, "text": str(error)}
    return json.dumps(answer).encode()


def _close_files(pipe: int) -> None:
    """Keep the pipe, as 3; libraries that print, print nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    if pipe != 3:
        os.dup2(pipe, 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _prepare_limits(limits: MediaLimits) -> Callable[[], None]:
    """What the forked process has to call; as much of it as possible is done before the fork.

    Each page of memory that the forked process touches first costs it some microseconds.
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
        gc.disable()  # a collection would touch all memory that is shared with the child
        for number in (signal.SIGXFSZ, signal.SIGPIPE):  # Python ignores both
            signal.signal(number, signal.SIG_DFL)
        for kind, pair in wanted.items():
            resource.setrlimit(kind, pair)
        if control is not None:
            control(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            control(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:  # it died before it could matter
            os._exit(1)

    return limit


@cache
def _load_prctl() -> Callable[..., int] | None:
    return ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def _count_mapped_bytes() -> int:
    """What the interpreter and its libraries occupy already; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _write(pipe: int, answer: bytes) -> None:
    while answer:
        answer = answer[os.write(pipe, answer) :]
