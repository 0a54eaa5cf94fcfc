"""Keys inside transactions and batches are checked like those of single requests."""

from __future__ import annotations

from typing import Any

import pytest

from holdall.core.expressions import Update
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    DeleteItem,
    GetItem,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.validation import check
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.errors import InvalidRequestError

SCHEMA = TableSchema("things", KeyAttribute("pk"))

WRONG: list[Any] = [
    {},
    {"pk": {"S": ""}},
    {"pk": {"S": "x" * 2049}},
    {"pk": {"S": 5}},
    {"pk": {"S": ["x"]}},
    {"pk": {"S": "x", "N": "1"}},
    {"pk": {"S": "\ud800"}},
    {"pk": {"N": "1"}},
    {"pk": {"S": "x"}, "more": {"S": "y"}},
    {"pk": "x"},
]


@pytest.mark.parametrize("key", WRONG, ids=repr)
@pytest.mark.parametrize(
    "group",
    [
        lambda key: TransactGet((GetItem("things", key),)),
        lambda key: BatchGet((GetItem("things", key),)),
        lambda key: TransactWrite((UpdateItem("things", key, Update(())),), "token"),
        lambda key: BatchWrite((DeleteItem("things", key),)),
    ],
    ids=["TransactGet", "BatchGet", "TransactWrite", "BatchWrite"],
)
def test_a_wrong_key_in_a_group_is_refused(group: Any, key: Any) -> None:
    with pytest.raises(InvalidRequestError):
        check(group(key), lambda name: SCHEMA)


def test_a_valid_key_in_a_group_passes() -> None:
    key = {"pk": {"S": "x"}}
    check(TransactGet((GetItem("things", key),)), lambda name: SCHEMA)
    check(BatchWrite((DeleteItem("things", key),)), lambda name: SCHEMA)
