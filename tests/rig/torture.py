"""The rig of the torture tests: the number of rounds, the seed, and processes that can be killed at any moment.

A normal run has one round, `make torture` has many. ``HOLDALL_TORTURE_ROUNDS`` sets another number of rounds, and
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
"""A process that should run to its end counts as hanging after this many seconds without a line of output."""

TESTS = Path(__file__).parents[1]


class Child:
    """A room's program, found by its file name, in its own process, which ends with the block at the latest."""

    def __init__(
        self,
        script: str | Path,
        *arguments: object,
        prefix: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``script`` can also be the path of any other program.

        ``prefix`` comes before the command; ``settings`` are added to the environment.
        """
        self.command = [*prefix, sys.executable, str(_find_script(script)), *map(str, arguments)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the block
        stdin, ours = os.pipe()
        output, stdout = os.pipe()
        self._input, self._output = open(ours, "w"), open(output)  # noqa: SIM115, PTH123 - closed with the block
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(settings or {})}
        self._process: subprocess.Popen[bytes] | WarmProgram
        try:
            if prefix:
                self._process = subprocess.Popen(
                    self.command, stdin=stdin, stdout=stdout, stderr=self._errors, env=environment
                )
            else:
                streams = stdin, stdout, self._errors.fileno()
                self._process = WarmProgram(self.command[1:], streams=streams, environment=environment)
        finally:
            os.close(stdin)
            os.close(stdout)

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

    def write_line(self, line: str) -> None:
        """Write a line to the program's input."""
        self._input.write(line + "\n")
        self._input.flush()

    def line(self) -> str:
        """The next line of output; fails if the program ended instead."""
        line = self._output.readline()
        if not line:
            self._process.wait(PATIENCE)
            raise AssertionError(self.account())
        return line.rstrip("\n")

    def kill(self) -> list[str]:
        """Kill the program with SIGKILL, and return its unread output; fails if it ended in any other way."""
        self._process.kill()
        output = self._output.read()
        self._process.wait()
        assert self._process.returncode == -9, self.account()
        # a line without its end was cut off by the kill
        return [line[:-1] for line in output.splitlines(keepends=True) if line.endswith("\n")]

    def kill_if_alive(self) -> None:
        """Kill the program with SIGKILL, unless it has already ended without an error."""
        self._process.kill()
        self._output.read()
        assert self._process.wait() in (0, -9), self.account()

    def finish(self) -> list[str]:
        """Wait for the end of the program, and return its last lines; fails if it ended with an error."""
        lines = self.end()
        assert self._process.returncode == 0, self.account()
        return lines

    def end(self) -> list[str]:
        """Wait for the program's end, whatever its exit code, and return its last lines; kill it if it hangs."""
        self._input.close()
        lines: list[str] = []
        ended = threading.Event()

        def watch() -> None:
            seen = 0
            while not ended.wait(PATIENCE):
                if len(lines) == seen:
                    self._process.kill()
                seen = len(lines)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for line in self._output:
                lines.append(line.rstrip("\n"))  # noqa: PERF401 - the watcher counts them
            self._process.wait()
        finally:
            ended.set()
            watcher.join()
        return lines

    @property
    def alive(self) -> bool:
        """Whether the program is still running."""
        return self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """The exit code; negative for a signal, None while the program runs."""
        return self._process.returncode

    def account(self) -> str:
        """The command, the exit code and the errors, for the message of a failed test."""
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
    """Run a script to its end, and return its lines."""
    with Child(script, *arguments, prefix=prefix, settings=settings) as child:
        return child.finish()


@contextmanager
def start_source(source: str, *arguments: object) -> Iterator[Child]:
    """Run a program whose source stands in a test, in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(source, encoding="utf-8")
        with Child(script, *arguments) as child:
            yield child


def strace_missing() -> str | None:
    """The reason why system calls cannot be traced here, or None if they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "tracing processes (ptrace) is not permitted here"


def trace_command(trace: Path, *options: str) -> list[str]:
    """The start of a command that traces system calls, with the paths behind file descriptors."""
    return [
        "strace",
        "-f",
        "-y",
        "-qq",
        *(part for option in options for part in ("-e", option)),
        "-o",
        str(trace),
    ]
