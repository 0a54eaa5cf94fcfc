"""A process that puts and publishes an artifact when told to, and says what CPU time it took.

``python -m benchmarks.artifact_worker MODULE:FUNCTION ENDPOINT``, by the interpreter of that module's environment. It
says when it is ready; then each line of its standard input is done and answered with the seconds it took: ``put`` makes
new content LATEST, ``publish`` makes it the next version, ``check`` sees that the version has that content.
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
    """One library's way: ``publish`` gives the version's number, ``read`` the bytes of one."""

    put: Callable[[bytes], object]
    publish: Callable[[], int]
    read: Callable[[int], bytes]


def _content(number: int) -> bytes:
    return number.to_bytes(8, "big") * (SIZE // 8)


def main() -> None:
    """Open a side and obey."""
    name, endpoint = sys.argv[1:]
    module, _, function = name.partition(":")
    side: ArtifactSide = getattr(import_module(f"benchmarks.{module}"), function)(endpoint)
    gc.collect()
    gc.freeze()  # the collector should not walk what the imports left behind, on anybody's account
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
                    raise AssertionError(f"{name} has another version {published} than was put")
            case other:
                raise ValueError(other)
        print(process_time() - start, flush=True)


if __name__ == "__main__":
    main()
