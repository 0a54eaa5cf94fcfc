"""The shipped contract, run on the embedded engine in memory and in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdall.backends.embedded import EmbeddedBackend
from holdall.testing import contract


@contextmanager
def open_in_memory() -> Iterator[EmbeddedBackend]:
    backend = EmbeddedBackend(None)
    try:
        yield backend
    finally:
        backend.close()


@contextmanager
def open_in_a_file() -> Iterator[EmbeddedBackend]:
    with tempfile.TemporaryDirectory() as directory:
        backend = EmbeddedBackend(Path(directory, "store.db"), durability="normal")
        try:
            yield backend
        finally:
            backend.close()


test_memory = contract(open_in_memory)
test_file = contract(open_in_a_file)
