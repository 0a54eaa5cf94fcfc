"""What a worker runs: one client's operations against the canned server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["OPERATIONS", "REGION", "Client", "Operation"]

Operation: TypeAlias = Literal[
    "get", "put", "update", "transact", "query", "change", "attach", "attach_many", "archive"
]

OPERATIONS: tuple[Operation, ...] = (
    *("get", "put", "update", "transact", "query", "change"),
    *("attach", "attach_many", "archive"),
)
"""What every client that has an operation does for it:

- ``get``: one item by its key;
- ``put``: a whole item, on the condition that the stored version is as expected;
- ``update``: set two attributes, on the same condition;
- ``transact``: the same update, and a put on the condition that the item does not exist;
- ``query``: a page of one partition;
- ``change``: read two items, and write one attribute of each, on the condition that it has not changed since;
- ``attach``: an owner with a file of 10 KB, its rows in DynamoDB and its bytes in S3; ``attach_many``: with 25 files;
- ``archive``: a page of items, each compressed, put into S3, and swapped for a pointer if it has not changed since.
"""

REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Client:
    """One client. The function of an operation takes a number, for its key and values, and returns what it read.

    The functions of an async client are ``async``, and so is its ``close``. ``plain`` converts what they read so that
    it can be compared with other clients' results; this is not timed.
    """

    operations: Mapping[Operation, Callable[[int], Any]]
    plain: Callable[[Any], Any] = lambda read: read
    close: Callable[[], Any] | None = None
