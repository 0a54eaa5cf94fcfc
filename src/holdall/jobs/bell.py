"""The bell: a worker in the same program hears at once of a job that was enqueued, and need not wait for its next look.

Pure. It rings only for those on the same database object, or its twin; all others find the job when they look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeAlias

from holdall.core.context import Context, Kept

Ring: TypeAlias = Callable[[str, str], None]
"""Called with a queue and a shard, in any thread."""


class _Rings(Kept, list[Ring]):
    """Who is called."""

    follows_tables: ClassVar[bool] = False


@contextmanager
def listen(context: Context, listener: Ring) -> Iterator[None]:
    """Have the listener called for each job that is due at once, while the block lasts."""
    rings = context.state.of(_Rings)
    rings.append(listener)
    try:
        yield
    finally:
        rings.remove(listener)


def ring(context: Context, queue: str, shard: str) -> None:
    """A job was put into a shard."""
    for listener in tuple(context.state.of(_Rings)):
        listener(queue, shard)
