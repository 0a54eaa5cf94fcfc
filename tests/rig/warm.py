"""Programs that start quickly: forks of a process that has imported Holdall, which takes most of a short run.

The first `WarmProgram` of a test process starts the *warm process*, which ends with the test process. For each program,
the warm process forks twice: the outer child waits for the inner one and reports its exit code; the inner one runs the
script with its own arguments, environment, working directory and standard streams, as a new interpreter would. A test
that watches how an interpreter starts (its imports and system calls) starts one with `subprocess` instead.

A shell finds a program that is started this way in the directory of `warm_programs`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["USERS_PATH", "WarmProgram", "run_warm", "warm_programs"]

HERE = Path(__file__)
USERS_PATH = [each for each in sys.path if not Path(each).is_relative_to(HERE.parents[1])]
"""The import path of a user's program, without the tests."""


class WarmProgram:
    """A running program, with the part of `subprocess.Popen` that tests need; the caller's descriptors stay open."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        streams: tuple[int, int, int],
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        path: Sequence[str] | None = None,
        new_session: bool = False,
        strict: bool = False,
    ) -> None:
        """``path`` follows the script's directory on ``sys.path``; with ``strict``, warnings are errors."""
        self.returncode: int | None = None
        request = {
            "command": list(command),
            "environment": dict(os.environ if environment is None else environment),
            "folder": str(folder or Path.cwd()),
            "path": list(sys.path if path is None else path),
            "new session": new_session,
            "strict": strict,
        }
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.connect(_address())
        socket.send_fds(self._connection, [json.dumps(request).encode()], streams)
        self.pid = int(self._connection.recv(100))

    def poll(self) -> int | None:
        """The exit code, or None while the program runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code; negative for a signal."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("the program", timeout or 0)
            self.returncode = int(self._connection.recv(100))
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM, unless the program has ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless the program has ended."""
        self.send_signal(signal.SIGKILL)


def run_warm(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    path: Sequence[str],
    strict: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without input."""
    with (
        Path(os.devnull).open() as nothing,
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
    ):
        streams = nothing.fileno(), output.fileno(), errors.fileno()
        program = WarmProgram(
            command, streams=streams, environment=environment, folder=folder, path=path, strict=strict
        )
        code = program.wait(300)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, code, output.read(), errors.read())


@cache
def _address() -> str:
    """The address at which this process's warm process listens."""
    folder = Path(tempfile.mkdtemp(prefix="holdall-warm-"))
    address = folder / "socket"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, str(HERE), str(address)],
        stdin=subprocess.PIPE,  # closes when this process ends, and so ends the warm one
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    _processes.append(process)
    while not address.exists():
        assert process.poll() is None, "the warm process ended"
        time.sleep(0.01)
    return str(address)


_processes: list[subprocess.Popen[bytes]] = []
"""The warm process of this process, referenced to keep it."""

_STUB = """#!{python} -IS
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect({address!r})
request = {{"command": [{script!r}, *sys.argv[1:]], "environment": dict(os.environ)}}
request |= {{"folder": os.getcwd(), "path": {path!r}}}
socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
connection.recv(100)
code = int(connection.recv(100))
sys.exit(code if code >= 0 else 128 - code)
"""


def warm_programs(folder: Path, *scripts: Path, path: Sequence[str]) -> Path:
    """Make a directory for a shell's ``PATH`` whose programs start these scripts from the warm process."""
    programs = folder / "warm-programs"
    programs.mkdir()
    for script in scripts:
        stub = programs / script.name
        text = _STUB.format(python=sys.executable, address=_address(), script=str(script), path=list(path))
        stub.write_text(text, encoding="utf-8")
        stub.chmod(0o755)
    return programs


# --- in the warm process ---


def _warm_up() -> None:
    """Import the modules that programs of tests import."""
    for name in ("backends.embedded", "cli.program", "testing", "worker"):
        import_module(f"holdall.{name}")
    for name in ("clock", "recorder", "servers", "torture"):
        import_module(f"rig.{name}")
    from holdall import AsyncDatabase, Database, Key, Model, SortKey, job  # noqa: F401
    from holdall.features import FEATURES, load

    for feature in FEATURES:
        for place in (*feature.shells, *feature.commands):
            load(place)


def _serve(address: Path) -> Path:
    """Fork for each request; only the inner children return, with the script to run."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(address) + ".new")
    listener.listen(100)
    Path(str(address) + ".new").rename(address)  # from here on, it accepts connections
    children = 0
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if listener not in ready:
            address.unlink()
            address.parent.rmdir()
            os._exit(0)
        connection, _ = listener.accept()
        while children and os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):
            children -= 1
        if os.fork():
            children += 1
            connection.close()
            continue
        listener.close()
        text, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        program = os.fork()
        if program:
            _report(connection, program, [0, *descriptors])
        connection.close()
        return _become(json.loads(text), descriptors)


def _report(connection: socket.socket, program: int, descriptors: Sequence[int]) -> NoReturn:
    """Send a child's process id, then its exit code."""
    for each in descriptors:
        os.close(each)
    try:
        connection.send(str(program).encode())
        _, status = os.waitpid(program, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    finally:
        os._exit(0)


def _become(request: dict[str, Any], descriptors: Sequence[int]) -> Path:
    """Take over streams, environment, working directory, arguments and import path."""
    for standard, given in enumerate(descriptors):
        os.dup2(given, standard)
        os.close(given)
    if request.get("new session"):
        os.setsid()
    if request.get("strict"):
        warnings.simplefilter("error")
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    script = Path(request["command"][0])
    sys.argv[:] = request["command"]
    sys.path[:] = [str(script.parent), *request["path"]]
    return script


if __name__ == "__main__":
    import atexit
    import gc
    import threading
    from types import ModuleType

    _warm_up()
    gc.freeze()
    script = _serve(Path(sys.argv[1]))
    warm, main = sys.modules["__main__"], ModuleType("__main__")
    main.__file__ = str(script)
    sys.modules["__main__"] = main
    code = 0
    try:
        exec(compile(script.read_bytes(), str(script), "exec", dont_inherit=True), main.__dict__)
    except SystemExit as ending:
        if not isinstance(ending.code, int | None):
            raise
        code = ending.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # skips the teardown of modules, which takes longer than many programs
