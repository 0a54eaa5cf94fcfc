"""Where the local servers deviate from DynamoDB, with reasons.

Each entry names a check of the contract by its sentence. The check is skipped on that server for the stated reason. A
test runs it nevertheless, and fails once the server passes it, so that the entry is removed.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DEVIATIONS"]

_ONE_ATTRIBUTE = (
    "version 2.6.1 does not support keys of several attributes, which DynamoDB introduced in 2025"
)
_INDEXES_OTHER_TYPES = (
    "adds items to a new index although their attribute has another type than the index key"
)
_ENDS_PAGE_EARLY = "ends a page before the item that exceeds a megabyte instead of after it"

DEVIATIONS: Mapping[str, Mapping[str, str]] = {
    "ministack": {
        "tables: an index added later holds the items that fit it": _INDEXES_OTHER_TYPES,
        "items: equal numbers are the same key": "treats 10 and 1.0E1 as different keys",
        "items: a reply reports what it cost": "reports the cost of one item of at most 4 KB for every read",
        "conditions: a missing operand is only unequal": "evaluates <> between two missing attributes to false",
        "conditions: functions know strings binaries sets and lists": "never finds one binary in another",
        "updates: set copies adds and subtracts exactly": "adds with 28 digits instead of 38",
        "updates: list places mean the list as it was": (
            "appends elements that are set beyond the end of a list in the order of the expression instead of by index"
        ),
        "updates: an update the item does not fit changes nothing": (
            "accepts sums with a string, a string appended to a list, a list index in a map, the removal of an "
            "attribute of a missing map, and sums of more than 38 digits"
        ),
        "queries: a page ends after a megabyte before filters": _ENDS_PAGE_EARLY,
        "queries: a page that ends with the data is the last one": _ENDS_PAGE_EARLY,
        "queries: a query costs the sum of what it read": (
            "reports the cost of one item of at most 4 KB for every page"
        ),
    },
    "DynamoDB Local": {
        "tables: an index added later holds the items that fit it": _INDEXES_OTHER_TYPES,
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
