"""The pytest plugin: loaded by pytest in every project that has Holdall installed, so it imports almost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdall.database import Database

__all__ = ["holdall_memory"]

pytest.register_assert_rewrite("holdall.testing.file_contract", "holdall.testing.table_contract")


@pytest.fixture
def holdall_memory() -> Iterator[Database]:
    """A fresh database in memory, closed after the test."""
    from holdall.database import Database

    with Database("memory:") as database:
        yield database
