"""Work that misbehaves in each way that a parser might."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from holdall.backends.media.delivery import deliver_blocking
from holdall.backends.process import children
from holdall.core.media import ProbeMedia, TransformImage


def probe_inside(path: str) -> Any:
    """What a job does that runs in a process of its own."""
    found = deliver_blocking(ProbeMedia(path, "image/png"))
    children.close()
    return dict(found)


def load_libraries(request: TransformImage) -> None:
    """It needs none."""


def _begin(request: TransformImage) -> None:
    """Leave something behind."""
    Path(request.target).write_bytes(b"half of a picture")


def succeed(request: TransformImage) -> Any:
    _begin(request)
    return 1, 1, "image/png"


def hog_processor(request: TransformImage) -> Any:
    _begin(request)
    while True:
        pass


def hog_clock(request: TransformImage) -> Any:
    _begin(request)
    time.sleep(600)


def hog_memory(request: TransformImage) -> Any:
    _begin(request)
    return [bytearray(1 << 20) for _ in range(4096)]


def hog_disk(request: TransformImage) -> Any:
    with Path(request.target).open("wb") as file:
        file.writelines(bytes(1 << 20) for _ in range(4096))


def crash(request: TransformImage) -> Any:
    _begin(request)
    ctypes.string_at(0)


def abort(request: TransformImage) -> Any:
    _begin(request)
    os.abort()


def exit_in_silence(request: TransformImage) -> Any:
    _begin(request)
    os._exit(0)


def close_pipe_and_stay(request: TransformImage) -> Any:
    _begin(request)
    os.close(3)
    time.sleep(600)


def answer_nonsense(request: TransformImage) -> Any:
    _begin(request)
    os.write(3, b'{"result": ' + b"[" * 100_000)
    os._exit(0)


def answer_without_end(request: TransformImage) -> Any:
    _begin(request)
    while True:
        os.write(3, bytes(1 << 16))


def answer_another_type(request: TransformImage) -> Any:
    _begin(request)
    return ["../../etc", -1, {"a": 1}]


def raise_anything(request: TransformImage) -> Any:
    _begin(request)
    raise KeyError("a parser's own mistake")


def list_descriptors(request: TransformImage) -> Any:
    """The descriptors that it has, as a width: it is read by the test as bits."""
    return sum(1 << int(each.name) for each in Path("/proc/self/fd").iterdir()), 1, "image/png"


def list_limits(request: TransformImage) -> Any:
    """How many files it may open, and how large a core file it may leave, plus one; an error if it can gain rights."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    assert "NoNewPrivs:\t1\n" in status
    files, core = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE))
    return files, core + 1, "image/png"


def start_program(request: TransformImage) -> Any:
    """What an intruder would do first; it inherits the limits."""
    code = "import json, resource; print(json.dumps(resource.getrlimit(resource.RLIMIT_CPU)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    return (*json.loads(said), "image/png")


def tell_and_wait(request: TransformImage) -> Any:
    """Write its number into the target, then wait to be killed."""
    Path(request.target).write_text(str(os.getpid()), encoding="utf-8")
    signal.pause()
