"""The rig of the torture tests: how many rounds, which seed, and processes that can be killed at any moment.

A usual run has one round, `make torture` has many. ``HOLDALL_TORTURE_ROUNDS`` sets another number of them,
``HOLDALL_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from rig.warm import WarmProgram

TORTURE = bool(os.environ.get("HOLDALL_TORTURE"))
ROUNDS = int(os.environ.get("HOLDALL_TORTURE_ROUNDS", "1"))
SEED = int(os.environ.get("HOLDALL_SEED", "20261115"))
SEEDED = f"(HOLDALL_SEED={SEED} HOLDALL_TORTURE_ROUNDS={ROUNDS})"
PATIENCE = 120.0
"""Seconds without a line after which a process that should go on to its end is said to hang."""

TESTS = Path(__file__).parents[1]


class Child:
    """A program of some room, by its file's name, in a process of its own; it ends with the block in any case."""

    def __init__(
        self,
        script: str | Path,
        *arguments: object,
        prefix: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``script`` can be the path of any other program, too.

        ``prefix`` stands before the command; ``settings`` are added to the environment.
        """
        self.command = [*prefix, sys.executable, str(_find_script(script)), *map(str, arguments)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the block
        given, ours = os.pipe()
        heard, said = os.pipe()
        self._input, self._output = open(ours, "w"), open(heard)  # noqa: SIM115, PTH123 - closed with the block
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(settings or {})}
        self._process: subprocess.Popen[bytes] | WarmProgram
        try:
            if prefix:
                self._process = subprocess.Popen(
                    self.command, stdin=given, stdout=said, stderr=self._errors, env=environment
                )
            else:
                streams = given, said, self._errors.fileno()
                self._process = WarmProgram(self.command[1:], streams=streams, environment=environment)
        finally:
            os.close(given)
            os.close(said)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._input.close()
        self._output.close()
        self._errors.close()

    def tell(self, line: str) -> None:
        """Give it a line to read."""
        self._input.write(line + "\n")
        self._input.flush()

    def line(self) -> str:
        """The next line it says; one that ended instead is an error."""
        said = self._output.readline()
        if not said:
            self._process.wait(PATIENCE)
            raise AssertionError(self.account())
        return said.rstrip("\n")

    def kill(self) -> list[str]:
        """Kill it with SIGKILL; returns its unread output. Any other end is an error."""
        self._process.kill()
        said = self._output.read()
        self._process.wait()
        assert self._process.returncode == -9, self.account()
        # a line without its end was cut off by the kill
        return [line[:-1] for line in said.splitlines(keepends=True) if line.endswith("\n")]

    def kill_if_alive(self) -> None:
        """SIGKILL, unless it was quicker and ended well."""
        self._process.kill()
        self._output.read()
        assert self._process.wait() in (0, -9), self.account()

    def finish(self) -> list[str]:
        """Its last lines, once it has ended well."""
        said = self.end()
        assert self._process.returncode == 0, self.account()
        return said

    def end(self) -> list[str]:
        """Its last lines, however it ended; one that hangs is ended here, and its return code says so."""
        self._input.close()
        said: list[str] = []
        ended = threading.Event()

        def watch() -> None:
            lines = 0
            while not ended.wait(PATIENCE):
                if len(said) == lines:
                    self._process.kill()
                lines = len(said)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for line in self._output:
                said.append(line.rstrip("\n"))  # noqa: PERF401 - the watcher counts them
            self._process.wait()
        finally:
            ended.set()
            watcher.join()
        return said

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """How it ended."""
        return self._process.returncode

    def account(self) -> str:
        """What to say about it when a test fails."""
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace")
        return f"{' '.join(self.command)} ended with {self._process.returncode} {SEEDED}\n{errors}"


@cache
def _find_script(script: str | Path) -> Path:
    if isinstance(script, Path):
        return script
    (found,) = TESTS.rglob(script)
    return found


def run_script(
    script: str | Path,
    *arguments: object,
    prefix: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """The lines of a script that runs to its end."""
    with Child(script, *arguments, prefix=prefix, settings=settings) as child:
        return child.finish()


@contextmanager
def start_source(source: str, *arguments: object) -> Iterator[Child]:
    """A program that stands in a test, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(source, encoding="utf-8")
        with Child(script, *arguments) as child:
            yield child


def strace_missing() -> str | None:
    """Why system calls cannot be watched here, or None when they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "tracing processes (ptrace) is not permitted here"


def trace_command(trace: Path, *options: str) -> list[str]:
    """The words before a command that record its system calls, with the paths behind its descriptors."""
    return [
        "strace",
        "-f",
        "-y",
        "-qq",
        *(part for option in options for part in ("-e", option)),
        "-o",
        str(trace),
    ]
