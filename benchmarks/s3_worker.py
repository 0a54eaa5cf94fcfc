"""A process that runs slices of one client's operations on command, and reports the time of each.

``python -m benchmarks.s3_worker CLIENT ENDPOINT DIRECTORY``, with the interpreter of the client's environment. It
prints ``ready``; then it answers each line ``OPERATION COUNT`` of its standard input with the seconds of CPU and of
wall time.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.s3_client import LARGE, SMALL, S3Client, S3Operation, content, source

_BODY = content(SMALL)


class _Work:
    """The arguments of each operation, and a check of its result."""

    def __init__(self, directory: Path) -> None:
        self._up = source(directory)
        self._down = directory / f"down-{id(self)}-{sys.argv[1].replace(':', '-')}"

    def arguments(self, operation: S3Operation) -> tuple[Any, ...]:
        return {"put": (_BODY,), "get": (), "up": (self._up,), "down": (self._down,)}[operation]

    def check(self, operation: S3Operation, result: Any) -> None:
        """Check that a client got what was sent; otherwise it did different work from the others."""
        if operation == "get" and result != _BODY:
            raise AssertionError("get returned other bytes")
        if operation == "down":
            if self._down.read_bytes() != content(LARGE):
                raise AssertionError("down wrote other bytes")
            self._down.unlink()


def _commands() -> Iterator[tuple[S3Operation, int]]:
    gc.collect()
    gc.freeze()  # so that no measurement includes the garbage collection of the imports
    print("ready", flush=True)
    for line in sys.stdin:
        operation, count = line.split()
        yield operation, int(count)  # type: ignore[misc]


def _run_blocking(client: S3Client, work: _Work) -> None:
    for operation, act in client.operations.items():
        work.check(operation, act(*work.arguments(operation)))
    for operation, count in _commands():
        act, arguments = client.operations[operation], work.arguments(operation)
        cpu, wall = process_time(), perf_counter()
        for _ in range(count):
            act(*arguments)
        print(process_time() - cpu, perf_counter() - wall, flush=True)
    if client.close is not None:
        client.close()


async def _run_awaiting(opened: Any, work: _Work) -> None:
    client: S3Client = await opened
    for operation, act in client.operations.items():
        work.check(operation, await act(*work.arguments(operation)))
    for operation, count in _commands():
        act, arguments = client.operations[operation], work.arguments(operation)
        cpu, wall = process_time(), perf_counter()
        for _ in range(count):
            await act(*arguments)
        print(process_time() - cpu, perf_counter() - wall, flush=True)
    if client.close is not None:
        client.close()


def main() -> None:
    """Open the client, then execute commands."""
    name, endpoint, directory = sys.argv[1:]
    module, _, function = name.partition(":")
    opener = getattr(import_module(f"benchmarks.{module}"), function)
    work = _Work(Path(directory))
    if iscoroutinefunction(opener):
        asyncio.run(_run_awaiting(opener(endpoint), work))
    else:
        _run_blocking(opener(endpoint), work)


if __name__ == "__main__":
    main()
