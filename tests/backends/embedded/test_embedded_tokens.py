"""Client tokens of the embedded engine: which transactions count as the same, across versions of Holdall too."""

from __future__ import annotations

import pytest

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.embedded.token import digest_actions
from holdall.core.expressions import (
    Add,
    Between,
    Condition,
    NotExists,
    Plus,
    Set,
    TypeIs,
    Update,
    path,
    value,
)
from holdall.core.requests import (
    ConditionCheck,
    CreateTable,
    DeleteItem,
    GetItem,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.validation import check
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.values import encode_item
from holdall.errors import TokenReusedError

SCHEMA = TableSchema("things", KeyAttribute("id"))
KEY = encode_item({"id": "a"})
ONE_MORE = UpdateItem("things", KEY, Update((Add(path("n"), value(1)),)))


def digest(*actions: TransactAction) -> str:
    request = TransactWrite(actions, "token")
    return digest_actions(request, check(request, lambda name: SCHEMA)).hex()


def test_the_digest_of_a_transaction_never_changes() -> None:
    free: Condition = ~NotExists(path("id")) & Between(path("n", 0), value(1), value(2)) | TypeIs(
        path("n"), "N"
    )
    update = Update((Set(path("n"), Plus(path("m"), value(1))), Add(path("s"), value({"x", "y"}))))
    actions = (
        PutItem("things", encode_item({"id": "b", "data": b"\x00", "list": [1, None, {"k": True}]}), free),
        UpdateItem("things", KEY, update),
        DeleteItem("things", encode_item({"id": "ü"}), free, item_on_failure=True),
        ConditionCheck("things", encode_item({"id": "c"}), free),
    )
    assert digest(*actions) == "01068c839691159d8aeee06ca02ee275b2"


def test_the_digest_ignores_the_order_of_attributes_and_set_members() -> None:
    one = PutItem("things", {"id": {"S": "a"}, "s": {"SS": ["x", "y"]}, "n": {"N": "1.0"}})
    other = PutItem("things", {"n": {"N": "1"}, "s": {"SS": ["y", "x"]}, "id": {"S": "a"}})
    assert digest(one) == digest(other)
    assert digest(one, DeleteItem("things", encode_item({"id": "b"}))) != digest(other)


@pytest.mark.parametrize(
    "other",
    [
        UpdateItem("things", KEY, Update((Add(path("n"), value(2)),))),
        UpdateItem("things", KEY, Update((Add(path("m"), value(1)),))),
        UpdateItem("things", encode_item({"id": "b"}), ONE_MORE.update),
        UpdateItem("things", KEY, ONE_MORE.update, NotExists(path("n"))),
        DeleteItem("things", KEY),
    ],
)
def test_a_token_with_another_transaction_is_refused(other: TransactAction) -> None:
    backend = EmbeddedBackend(None)
    backend.send_blocking(CreateTable(SCHEMA))
    backend.send_blocking(TransactWrite((ONE_MORE,), "token"))
    with pytest.raises(TokenReusedError):
        backend.send_blocking(TransactWrite((other,), "token"))
    backend.send_blocking(TransactWrite((ONE_MORE,), "token"))
    assert backend.send_blocking(GetItem("things", KEY)).item == {**KEY, "n": {"N": "1"}}
    backend.close()
