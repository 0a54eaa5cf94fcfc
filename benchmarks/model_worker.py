"""A process that reads a customer's orders on command, and reports the CPU time.

``python -m benchmarks.model_worker MODULE:FUNCTION ENDPOINT``, with the interpreter of that module's environment. It
prints ``ready``; then it answers each line of its standard input, a count, with the seconds of that many rounds.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from time import process_time
from typing import Any

from benchmarks.model_items import rows

__all__ = ["Side"]

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Side:
    """How one library reads every field of the orders; ``plain`` converts the result for comparison, untimed."""

    read: Callable[[], Rows]
    plain: Callable[[Rows], Rows] = lambda read: read


def main() -> None:
    """Open a side, check what it reads, then execute commands."""
    name, endpoint = sys.argv[1:]
    module, _, function = name.partition(":")
    side: Side = getattr(import_module(f"benchmarks.{module}"), function)(endpoint)
    found = side.plain(side.read())
    if found != rows():
        raise AssertionError(f"{name} read {found[0]} and so on instead of the stored orders")
    gc.collect()
    gc.freeze()  # so that no measurement includes the garbage collection of the imports
    print("ready", flush=True)
    for line in sys.stdin:
        start = process_time()
        for _ in range(int(line)):
            side.read()
        print(process_time() - start, flush=True)


if __name__ == "__main__":
    main()
