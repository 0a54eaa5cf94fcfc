"""Ids that sort by time: UUIDs of version 7, with the microsecond in them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def order_id(moment: datetime, random: str) -> str:
    """Make the id for a moment from a random UUID."""
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    millis, rest = divmod(micros, 1000)
    tail = UUID(random).int & (2**62 - 1)
    return str(UUID(int=millis << 80 | 7 << 76 | (rest * 4096 // 1000) << 64 | 2 << 62 | tail))
