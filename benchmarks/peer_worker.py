"""A process that runs slices of one client's operations on command, and reports the CPU time of each.

``python -m benchmarks.peer_worker CLIENT ENDPOINT``, with the interpreter of the client's environment. It prints
``ready``; then it answers each line ``OPERATION COUNT`` of its standard input with the seconds.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import iscoroutinefunction
from time import process_time
from typing import Any

from benchmarks.model_items import rows
from benchmarks.wire_client import Client, Operation
from benchmarks.wire_items import document, documents, many_values, values

_EXPECTED: dict[Operation, tuple[Any, ...]] = {
    "get": (values(0), document(0), rows()[0]),
    "query": (many_values(), documents(), rows()),
}


def _check(client: Client, operation: Operation, read: Any) -> None:
    """Check that a client read what was sent; otherwise it did different work from the others."""
    expected = _EXPECTED.get(operation)
    if expected is not None and client.plain(read) not in expected:
        raise AssertionError(f"{operation} gave {client.plain(read)}")


def _commands() -> Iterator[tuple[Operation, int]]:
    gc.collect()
    gc.freeze()  # so that no measurement includes the garbage collection of the imports
    print("ready", flush=True)
    for line in sys.stdin:
        operation, count = line.split()
        yield operation, int(count)  # type: ignore[misc]


def _run_blocking(client: Client) -> None:
    for operation, act in client.operations.items():
        _check(client, operation, act(0))
    for operation, count in _commands():
        act = client.operations[operation]
        start = process_time()
        for number in range(count):
            act(number)
        print(process_time() - start, flush=True)
    if client.close is not None:
        client.close()


async def _run_awaiting(opened: Any) -> None:
    client: Client = await opened
    for operation, act in client.operations.items():
        _check(client, operation, await act(0))
    for operation, count in _commands():
        act = client.operations[operation]
        start = process_time()
        for number in range(count):
            await act(number)
        print(process_time() - start, flush=True)
    if client.close is not None:
        await client.close()


def main() -> None:
    """Open the client, then execute commands."""
    name, endpoint = sys.argv[1:]
    module, _, function = name.partition(":")
    opener = getattr(import_module(f"benchmarks.{module}"), function)
    if iscoroutinefunction(opener):
        asyncio.run(_run_awaiting(opener(endpoint)))
    else:
        _run_blocking(opener(endpoint))


if __name__ == "__main__":
    main()
