"""``python -m benchmarks.archive_memory FILE`` archives the orders of an embedded file and prints its peak memory.

It prints the peak number of blocks that Python had allocated after a page, without SQLite's cache. The service stores
nothing.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

from benchmarks.archive_ours import Order
from holdall import Database
from holdall.core.objects import DescribeService, ObjectInfo, PutObject, ServiceTraits

__all__ = ["DiscardingService"]


class DiscardingService:
    """A service that accepts every object and stores none."""

    def send_blocking(self, request: Any) -> Any:
        """Return an etag for a put."""
        if isinstance(request, DescribeService):
            return ServiceTraits()
        assert isinstance(request, PutObject)
        return ObjectInfo(request.key, len(request.body), str(request.if_absent), datetime.now(UTC))

    async def send_awaiting(self, request: Any) -> Any:
        """Return the same."""
        return self.send_blocking(request)

    def close(self) -> None:
        """Do nothing."""


def _main() -> None:
    most = 0

    def measure(_: object) -> None:
        nonlocal most
        most = max(most, sys.getallocatedblocks())

    with Database(f"embedded:{sys.argv[1]}", files=DiscardingService(), durability="normal") as db:
        report = db.archive.run(Order, progress=measure)
    print(report.archived, most)


if __name__ == "__main__":
    _main()
