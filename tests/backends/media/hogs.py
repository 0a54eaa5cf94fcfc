"""Functions that misbehave in every way that a parser of media might."""

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
    """Probe a file inside a child process, as a job might."""
    found = deliver_blocking(ProbeMedia(path, "image/png"))
    children.close()
    return dict(found)


def load_libraries(request: TransformImage) -> None:
    """Load nothing: these functions need no library."""


def _begin(request: TransformImage) -> None:
    """Write part of a target file, which must not be left."""
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


def exit_silently(request: TransformImage) -> Any:
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
    raise KeyError("an error inside a parser")


def list_descriptors(request: TransformImage) -> Any:
    """Return the open descriptors as the bits of a width."""
    return sum(1 << int(each.name) for each in Path("/proc/self/fd").iterdir()), 1, "image/png"


def list_limits(request: TransformImage) -> Any:
    """Return the limits of open files and of the core file, the latter plus one; fail if it can gain privileges."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    assert "NoNewPrivs:\t1\n" in status
    files, core = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE))
    return files, core + 1, "image/png"


def start_program(request: TransformImage) -> Any:
    """Start a program, as an attacker would, and return its limits, which it inherits."""
    code = "import json, resource; print(json.dumps(resource.getrlimit(resource.RLIMIT_CPU)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    return (*json.loads(output), "image/png")


def write_id_and_wait(request: TransformImage) -> Any:
    """Write its process id into the target, then wait to be killed."""
    Path(request.target).write_text(str(os.getpid()), encoding="utf-8")
    signal.pause()
