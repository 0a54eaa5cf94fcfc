"""One child process and the pipe to it. It makes one call at a time, and stays for the next.

Children are spawned, not forked: a fork would take locks of other threads with it, in whatever state they are.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from holdall.core.work import CallFunction
from holdall.errors import ProcessDiedError, ProcessTimeoutError


class Child:
    """A process of this one's, killed with it."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, far = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(far,), name="holdall-child", daemon=True)
        self._process.start()
        far.close()

    def call(self, request: CallFunction) -> Any:
        """Make a call, and wait for its result. After any error but the function's own, the child is dead."""
        try:
            self._pipe.send_bytes(pickle.dumps((request.function, request.arguments)))
            if not self._pipe.poll(request.seconds):
                self.kill()
                raise ProcessTimeoutError(
                    f"{request.function} took longer than {request.seconds:g} seconds, and was killed"
                )
            kind, answer = pickle.loads(self._pipe.recv_bytes())
        except (EOFError, OSError) as error:
            if isinstance(error, ProcessTimeoutError):
                raise
            self.kill()
            raise ProcessDiedError(
                f"the process that called {request.function} died (exit code {self._process.exitcode})",
                hint="it may have used too much memory, or crashed in native code",
            ) from None
        if kind == "error":
            raise answer
        return answer

    def is_alive(self) -> bool:
        """Whether it can make a call."""
        return self._process.is_alive()

    def kill(self) -> None:
        """End it now; safe to call twice, and from another thread."""
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    """What a child does: call after call, until its parent is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):  # both often go to all processes of a service or terminal
        signal.signal(number, signal.SIG_IGN)  # the parent decides
    while True:
        try:
            message = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send_bytes(_answer(message))


def _answer(message: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(message)
        module, _, name = function.partition(":")
        return pickle.dumps(("result", getattr(import_module(module), name)(*arguments)))
    except Exception as error:  # noqa: BLE001 - it is raised by the parent
        error.add_note("in a child process:\n" + "".join(traceback.format_exception(error)))
        try:
            packed = pickle.dumps(("error", error))
            pickle.loads(packed)
        except Exception:  # noqa: BLE001 - an error that cannot travel goes as text
            packed = pickle.dumps(("error", ProcessDiedError("".join(traceback.format_exception(error)))))
        return packed
