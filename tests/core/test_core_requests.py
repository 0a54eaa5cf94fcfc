"""Requests: they are frozen values; which of them write; stamped writes."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from holdall.core import requests
from holdall.core.expressions import Compare, NotExists, Set, Update, path, value
from holdall.core.expressions.application import apply_update
from holdall.core.expressions.evaluation import holds
from holdall.core.requests import DeleteItem, GetItem, PutItem, Request, UpdateItem
from holdall.core.stamp import STAMP, stamped
from holdall.errors import InvalidRequestError

REQUESTS = [
    kind
    for name, kind in inspect.getmembers(requests, inspect.isclass)
    if issubclass(kind, Request) and kind is not Request and not name.startswith("_")
]
WRITES = {
    "AddIndex",
    "BatchWrite",
    "CreateTable",
    "DeleteItem",
    "DeleteTable",
    "PutItem",
    "RemoveIndex",
    "SetTtl",
    "TransactWrite",
    "UpdateItem",
}
READS = {"BatchGet", "DescribeTable", "DescribeTtl", "GetItem", "Query", "Scan", "TransactGet"}

ABSENT = NotExists(path("id"))
PUT = PutItem("t", {"id": {"S": "x"}, "n": {"N": "1"}}, ABSENT)
UPDATE = UpdateItem(
    "t", {"id": {"S": "x"}}, Update((Set(path("n"), value(2)),)), Compare("=", path("n"), value(1))
)


def test_every_request_is_a_read_or_a_write() -> None:
    assert {kind.__name__ for kind in REQUESTS} == READS | WRITES
    assert {kind.__name__ for kind in REQUESTS if kind.writes} == WRITES


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_a_request_is_a_frozen_value_with_a_docstring(kind: type[Any]) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert kind.__doc__


def test_requests_compare_by_value_and_cannot_change() -> None:
    read = GetItem("t", {"id": {"S": "x"}})
    assert read == GetItem("t", {"id": {"S": "x"}})
    assert read != GetItem("t", {"id": {"S": "x"}}, consistent=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.table = "other"  # type: ignore[misc]


def test_a_stamped_put_stores_its_id_in_the_item() -> None:
    write = stamped(PUT, "id-1")
    assert write.item == {**PUT.item, "_w": {"S": "id-1"}}
    assert write.stamp == "id-1"
    assert write.item_on_failure
    assert write.condition == ABSENT
    assert STAMP == "_w"


def test_a_stamped_update_also_sets_its_id() -> None:
    write = stamped(UPDATE, "id-1")
    assert write.update.actions == (*UPDATE.update.actions, Set(path("_w"), value("id-1")))
    assert write.stamp == "id-1"
    assert write.item_on_failure
    assert write.condition == UPDATE.condition
    assert write.key == UPDATE.key


def test_stamping_does_not_change_the_original_write() -> None:
    before = (dict(PUT.item), PUT.stamp, PUT.item_on_failure, UPDATE.update, UPDATE.stamp)
    stamped(PUT, "id-1")
    stamped(UPDATE, "id-1")
    assert (dict(PUT.item), PUT.stamp, PUT.item_on_failure, UPDATE.update, UPDATE.stamp) == before


def test_a_second_stamp_of_a_put_replaces_the_first() -> None:
    write = stamped(stamped(PUT, "id-1"), "id-2")
    assert write.item["_w"] == {"S": "id-2"}
    assert write.stamp == "id-2"


def test_a_stamped_update_makes_its_condition_false_and_stores_its_stamp() -> None:
    write = stamped(UPDATE, "id-1")
    old = {"id": {"S": "x"}, "n": {"N": "1"}}
    assert write.condition is not None
    assert holds(write.condition, old)
    new = apply_update(write.update, old)
    assert not holds(write.condition, new)
    assert new["_w"] == {"S": "id-1"}


def test_a_stamp_without_a_condition_is_refused() -> None:
    for write in (PutItem("t", PUT.item), UpdateItem("t", UPDATE.key, UPDATE.update)):
        with pytest.raises(InvalidRequestError, match="needs a condition"):
            stamped(write, "id-1")


def test_single_writes_return_no_item_by_default() -> None:
    for write in (PUT, UPDATE, DeleteItem("t", {"id": {"S": "x"}})):
        assert write.returns == "none"
        assert not write.item_on_failure
