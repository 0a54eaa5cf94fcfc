"""Which field types can tell the age of an item."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from holdall import Archive

NOON = datetime(2024, 1, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("unit", "value", "moment"),
    [
        (None, NOON, NOON),
        (None, NOON.replace(tzinfo=None), NOON),
        (None, NOON.astimezone(timezone(timedelta(hours=5))), NOON),
        (None, date(2024, 1, 15), NOON.replace(hour=0)),
        (None, "2024-01-15T13:00:00+01:00", NOON),
        (None, "2024-01-15T12:00:00Z", NOON),
        (None, "2024-01-15", NOON.replace(hour=0)),
        ("s", 1705320000, NOON),
        ("ms", 1705320000000, NOON),
        ("s", 1705320000.0, NOON),
        ("s", Decimal(1705320000), NOON),
        (None, 1705320000, None),
        ("s", True, None),
        ("s", 10**400, None),
        ("s", Decimal("NaN"), None),
        (None, "last week", None),
        (None, None, None),
    ],
)
def test_a_timestamp_is_read_from_a_field_or_is_none(unit: Any, value: Any, moment: datetime | None) -> None:
    assert Archive(timestamp="at", unit=unit).read_timestamp(value) == moment
