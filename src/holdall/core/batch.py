"""Batches: the members of a sequence, no more at a time than one request or transaction can take. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def make_batches(members: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the members in batches of ``size``, in order; the last one may have fewer."""
    for start in range(0, len(members), size):
        yield members[start : start + size]
