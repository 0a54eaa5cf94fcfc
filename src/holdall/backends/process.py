"""Child processes for calls that may crash, hang or keep the interpreter busy: started when they are needed.

A child makes one call at a time, and stays for the next. Children are new interpreters, not forks: a fork would inherit
locks that other threads hold. Children that run jobs also import the program's main module, where jobs may be declared;
others do not, because without ``if __name__ == "__main__"`` the import would start the program again.
"""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_executable
from typing import TYPE_CHECKING, Any

from holdall.backends.fork import call_after_fork
from holdall.backends.port.pool import Pool
from holdall.core.work import CallFunction
from holdall.errors import ProcessDiedError, ProcessTimeoutError

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess


class Children:
    """Up to ``limit`` children; a call waits until one is free. A forked process starts with none."""

    def __init__(self, limit: int, *, import_main: bool = False) -> None:
        self._limit = limit
        self._import_main = import_main
        self._idle: list[Child] = []
        self._forget()
        call_after_fork(self._forget)

    def call_blocking(self, request: CallFunction) -> Any:
        """Make a call; the calling thread waits."""
        return self._call(request, _Fate())

    async def call_awaiting(self, request: CallFunction) -> Any:
        """Make a call without blocking the event loop. Cancelling it kills the child that makes the call."""
        fate = _Fate()
        work = _threads.submit(self._call, request, fate)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            fate.end()
            raise

    def _call(self, request: CallFunction, fate: _Fate) -> Any:
        with self._room:
            child = self._take()
            try:
                if not fate.meet(child):
                    return None  # the caller was cancelled before a child was free
                return child.call(request)
            finally:
                fate.part()
                with self._lock:
                    self._idle.append(child)

    def _take(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive():
                    return child
        return Child(self._import_main)

    def close(self) -> None:
        """Kill the children that wait for work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def _forget(self) -> None:
        for child in self._idle:
            child.disown()
        self._idle = []
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(self._limit)


class _Fate:
    """Whether a call is still wanted; its caller may be cancelled before or after a child has the call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self.ended = False

    def meet(self, child: Child) -> bool:
        """Note that this child makes the call; False if the call is no longer wanted."""
        with self._lock:
            self._child = child
            return not self.ended

    def part(self) -> None:
        """Note that the child has answered, and may make another call, which must not be killed for this one."""
        with self._lock:
            self._child = None

    def end(self) -> None:
        """The caller was cancelled: kill the child, if it still makes the call."""
        with self._lock:
            self.ended = True
            if self._child is not None:
                self._child.kill()


class Child:
    """A child process, which ends with this one."""

    def __init__(self, import_main: bool) -> None:
        self._pipe, far = multiprocessing.Pipe()
        self._process: SpawnProcess | _Program
        if import_main:
            spawn = multiprocessing.get_context("spawn")
            self._process = spawn.Process(target=_serve, args=(far,), name="holdall-child", daemon=True)
            self._process.start()
        else:
            self._process = _Program(far.fileno())
        far.close()

    def call(self, request: CallFunction) -> Any:
        """Make a call, and wait for its result. After any error that the function did not raise, the child is dead."""
        message = pickle.dumps((request.function, request.arguments))
        try:
            self._pipe.send_bytes(message)
            if not self._pipe.poll(request.seconds):
                raise ProcessTimeoutError(
                    f"{request.function} took longer than {request.seconds:g} seconds, and its process was killed"
                )
            kind, answer = pickle.loads(self._pipe.recv_bytes())
        except BaseException as error:
            self.kill()  # also after an interrupt: a late answer would be taken for that of the next call
            if isinstance(error, ProcessTimeoutError) or not isinstance(error, EOFError | OSError):
                raise
            raise ProcessDiedError(
                f"the process that ran {request.function} died with exit code {self._process.exitcode}",
                hint="it may have used too much memory, or crashed in native code",
            ) from None
        if kind == "error":
            raise answer
        return answer

    def is_alive(self) -> bool:
        """Whether it can make a call."""
        return self._process.is_alive()

    def kill(self) -> None:
        """Kill it now; safe to call twice, and from another thread."""
        self._process.kill()
        self._process.join()

    def disown(self) -> None:
        """Leave it to the process from which this one was forked."""
        if isinstance(self._process, _Program):
            self._process.returncode = 0  # its parent waits for it, not this process


class _Program(subprocess.Popen[bytes]):
    """A new interpreter that serves calls, with the methods of a `SpawnProcess`.

    It inherits only the module search path of this program.
    """

    def __init__(self, pipe: int) -> None:
        path = [each for each in sys.path if isinstance(each, str)]
        code = f"import sys; sys.path[:] = {path!r}; from holdall.backends.process import serve_pipe"
        command = [get_executable() or sys.executable, "-c", f"{code}; serve_pipe({pipe})"]
        super().__init__(command, stdin=subprocess.DEVNULL, pass_fds=(pipe,))

    @property
    def exitcode(self) -> int | None:
        return self.returncode

    def is_alive(self) -> bool:
        return self.poll() is None

    def join(self) -> None:
        self.wait()


def serve_pipe(pipe: int) -> None:
    """The main function of a `_Program`; ``pipe`` is a descriptor that it inherited."""
    _serve(Connection(pipe))


def _serve(pipe: Connection) -> None:
    """The main loop of a child: make one call after another until the parent is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):  # often sent to all processes of a service or terminal
        signal.signal(number, signal.SIG_IGN)  # the parent decides
    with suppress(EOFError, ConnectionError):  # the parent is gone
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _answer(message: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(message)
        module, _, name = function.partition(":")
        return pickle.dumps(("result", getattr(import_module(module), name)(*arguments)))
    except Exception as error:  # noqa: BLE001 - the parent raises it
        error.add_note("in a child process:\n" + "".join(traceback.format_exception(error)))
        try:
            packed = pickle.dumps(("error", error))
            pickle.loads(packed)
        except Exception:  # noqa: BLE001 - an error that cannot be pickled is sent as text
            packed = pickle.dumps(("error", ProcessDiedError("".join(traceback.format_exception(error)))))
        return packed


_threads = Pool("holdall-child", threads=1024)  # each thread waits for a child

children = Children(os.cpu_count() or 1)
"""The children of this process, shared by all databases."""

atexit.register(children.close)
