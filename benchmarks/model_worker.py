"""A process that reads a customer's orders whenever it is told to, and says what CPU time it took.

``python -m benchmarks.model_worker MODULE:FUNCTION ENDPOINT``, by the interpreter of that module's environment. It says
when it is ready; then each line of its standard input, a count, is answered with the seconds of so many rounds.
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
    """One library's way to every field of the orders; ``plain`` makes comparable what it read, out of the timing."""

    read: Callable[[], Rows]
    plain: Callable[[Rows], Rows] = lambda read: read


def main() -> None:
    """Open a side, check what it reads, and obey."""
    name, endpoint = sys.argv[1:]
    module, _, function = name.partition(":")
    side: Side = getattr(import_module(f"benchmarks.{module}"), function)(endpoint)
    found = side.plain(side.read())
    if found != rows():
        raise AssertionError(f"{name} read {found[0]} and so on, which is not what was stored")
    gc.collect()
    gc.freeze()  # so that no measurement includes collecting what the imports left behind
    print("ready", flush=True)
    for line in sys.stdin:
        start = process_time()
        for _ in range(int(line)):
            side.read()
        print(process_time() - start, flush=True)


if __name__ == "__main__":
    main()
