"""What the class of a request declares: the name of DynamoDB's operation, the tables, and whether to repeat it."""

from __future__ import annotations

from typing import Any

import pytest

from holdall.backends.dynamodb.call import render_call
from holdall.core import objects, requests
from holdall.core.expressions import KeyCondition, Set, Update, path, value
from holdall.core.requests import Request
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema

KEY = {"id": {"S": "x"}}
GET = requests.GetItem("things", KEY)
PUT = requests.PutItem("things", KEY)
OF_TABLES: list[Request[Any]] = [
    GET,
    requests.BatchGet((GET,)),
    requests.TransactGet((GET,)),
    requests.Query("things", KeyCondition("id", KEY["id"])),
    requests.Scan("things"),
    PUT,
    requests.UpdateItem("things", KEY, Update((Set(path("n"), value(1)),))),
    requests.DeleteItem("things", KEY),
    requests.TransactWrite((PUT,), "token"),
    requests.BatchWrite((PUT,)),
    requests.DescribeTable("things"),
    requests.CreateTable(TableSchema("others", KeyAttribute("id"))),
    requests.DeleteTable("others"),
    requests.AddIndex("things", IndexSchema("by_name", KeyAttribute("name"))),
    requests.RemoveIndex("things", "by_name"),
    requests.DescribeTtl("things"),
    requests.SetTtl("things", "ttl"),
]


@pytest.mark.parametrize("request_", OF_TABLES, ids=lambda each: type(each).__name__)
def test_a_request_has_the_name_of_dynamodbs_operation(request_: Request[Any]) -> None:
    assert render_call(request_).operation == request_.operation


def test_a_request_declares_its_tables_and_those_that_it_is_checked_against() -> None:
    assert {each.tables for each in OF_TABLES} == {("things",), ("others",)}
    unchecked = {type(each).__name__ for each in OF_TABLES if not each.checked_tables}
    assert unchecked == {"DescribeTable", "CreateTable", "DeleteTable", "DescribeTtl", "SetTtl"}


def test_reads_may_be_repeated_and_writes_only_with_a_token_or_if_they_are_idempotent() -> None:
    named = vars(requests) | vars(objects)
    kinds = {
        name: kind for name, kind in named.items() if isinstance(kind, type) and issubclass(kind, Request)
    }
    found = {name: kind for name, kind in kinds.items() if kind not in (Request, objects.ObjectRequest)}
    otherwise = {
        name: kind.repetition for name, kind in found.items() if kind.writes and kind.repetition != "once"
    }
    assert otherwise == {"TransactWrite": "token", "BatchWrite": "repeat"}
    assert {kind.repetition for kind in found.values() if not kind.writes} == {"repeat"}
