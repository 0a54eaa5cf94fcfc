"""Where the servers of the suites do not do what DynamoDB does: the one list, with reasons.

Each entry names a check of the contract by its sentence. The check is skipped on that server with the reason given,
and a test sees to it that the server still deviates, so that nothing stays here longer than it is true.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DEVIATIONS"]

_ONE_ATTRIBUTE = "version 2.6.1 does not know keys of several attributes, which DynamoDB has had since 2025"

DEVIATIONS: Mapping[str, Mapping[str, str]] = {
    "ministack": {
        "tables: an index added later holds the items that fit it": (
            "puts items into a new index although their attribute has another type than the index's key"
        ),
        "items: equal numbers are the same key": "takes 10 and 1.0E1 for different keys",
        "items: a reply reports what it cost": "counts every read as one item of at most 4 KB",
        "conditions: a missing operand is only unequal": "says of two missing attributes that they are not unequal",
        "conditions: functions know strings binaries sets and lists": "never finds a binary inside a binary",
        "updates: set copies adds and subtracts exactly": "adds with 28 digits where numbers have 38",
        "updates: list places mean the list as it was": (
            "appends elements set past a list's end in the order of the expression, not of their places"
        ),
        "updates: an update the item does not fit changes nothing": (
            "lets sums with a string, appending a string to a list, a place in a map, removals below nothing and "
            "sums beyond 38 digits pass in silence"
        ),
        "queries: a page ends after a megabyte before filters": (
            "ends a page before the item that goes over a megabyte, not after it"
        ),
        "queries: a page that ends with the data is the last one": (
            "ends a page before the item that goes over a megabyte, not after it"
        ),
        "queries: a query costs the sum of what it read": "counts every page as one item of at most 4 KB",
    },
    "DynamoDB Local": {
        "tables: an index added later holds the items that fit it": (
            "puts items into a new index although their attribute has another type than the index's key"
        ),
        "queries: a page ends after a megabyte before filters": (
            "counts only the items that pass the filter towards the megabyte"
        ),
        "indexes: a table is described with keys of several attributes": _ONE_ATTRIBUTE,
        "indexes: attributes of a sort key order one after the other": _ONE_ATTRIBUTE,
        "indexes: the first attributes of a sort key are fixed and the next one has a range": _ONE_ATTRIBUTE,
        "indexes: pages of an index with keys of several attributes fit together": _ONE_ATTRIBUTE,
        "indexes: a key condition has all attributes of a partition and no gap": _ONE_ATTRIBUTE,
    },
}
