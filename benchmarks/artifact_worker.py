"""A process that puts and publishes an artifact on command, and reports the CPU time.

``python -m benchmarks.artifact_worker MODULE:FUNCTION ENDPOINT``, with the interpreter of that module's environment. It
prints ``ready``; then it executes each line of its standard input and prints the seconds that it took: ``put`` stores
new content as LATEST, ``publish`` turns it into the next version, ``check`` checks that the version has that content.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from time import process_time

__all__ = ["BUCKET", "NAME", "SIZE", "ArtifactSide"]

SIZE = 1_000_000
NAME = "my-app"
BUCKET = "benchmark-artifacts"


@dataclass(frozen=True, slots=True)
class ArtifactSide:
    """One library's functions: ``publish`` returns the version's number, ``read`` the bytes of a version."""

    put: Callable[[bytes], object]
    publish: Callable[[], int]
    read: Callable[[int], bytes]


def _content(number: int) -> bytes:
    return number.to_bytes(8, "big") * (SIZE // 8)


def main() -> None:
    """Open a side, then execute commands."""
    name, endpoint = sys.argv[1:]
    module, _, function = name.partition(":")
    side: ArtifactSide = getattr(import_module(f"benchmarks.{module}"), function)(endpoint)
    gc.collect()
    gc.freeze()  # so that no measurement includes the garbage collection of the imports
    print("ready", flush=True)
    put = published = 0
    for line in sys.stdin:
        content = _content(put + 1)
        start = process_time()
        match line.strip():
            case "put":
                side.put(content)
                put += 1
            case "publish":
                published = side.publish()
            case "check":
                if published != put or side.read(published) != _content(put):
                    raise AssertionError(
                        f"version {published} of {name} does not have the content that was put"
                    )
            case other:
                raise ValueError(other)
        print(process_time() - start, flush=True)


if __name__ == "__main__":
    main()
