"""The size of a transaction, exactly and as an upper bound."""

from __future__ import annotations

import pytest
from core_strategies import conditions, updates
from hypothesis import assume, given

from holdall.core.expressions import And, Compare, Condition, Exists, In, Not, Set, Update, path, value
from holdall.core.measure import item_size
from holdall.core.requests import ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem
from holdall.core.rules.payload import MAX_SUBSTITUTIONS, payload_size
from holdall.core.rules.validation import check
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.values import encode_item
from holdall.errors import InvalidRequestError, TransactionTooLarge

TABLE = TableSchema("things", KeyAttribute("pk"))
KEY = encode_item({"pk": "a"})


def test_items_keys_texts_names_and_values_count_and_a_name_counts_at_each_use() -> None:
    condition = And((Exists(path("nämë")), Compare("=", path("n"), value(12))))
    text = "attribute_exists(#0) AND #1 = :0"
    inside = len(text) + len("nämë".encode()) + len("n") + 2
    assert payload_size(DeleteItem("things", KEY, condition)) == len("pka") + inside
    assert payload_size(ConditionCheck("things", KEY, condition)) == len("pka") + inside
    item = encode_item({"pk": "a", "text": "xyz"})
    assert payload_size(PutItem("things", item, condition)) == item_size(item) + inside
    update = Update((Set(path("n"), value("new")),))
    assert payload_size(UpdateItem("things", KEY, update, condition)) == (
        len("pka") + inside + len("SET #1 = :1") + len("n") + len("new")
    )
    assert payload_size(DeleteItem("things", KEY)) == len("pka")


@given(conditions(), updates())
def test_the_bound_is_never_below_the_exact_size(condition: Condition, update: Update) -> None:
    write = UpdateItem("things", KEY, update, condition)
    try:
        (found,) = check(write, {"things": TABLE}.__getitem__)
    except InvalidRequestError:
        assume(False)
    assert found.bound >= payload_size(write)


def test_the_size_of_a_transaction_near_the_limit_is_exact() -> None:
    def request(extra: int) -> TransactWrite:
        large = value("x" * 400_000)
        checks = [
            ConditionCheck("things", encode_item({"pk": str(number)}), Compare("=", path("text"), large))
            for number in range(10)
        ]
        room = 4 * 1024 * 1024 - sum(map(payload_size, checks)) - item_size(encode_item({"pk": "a", "x": ""}))
        return TransactWrite(
            (*checks, PutItem("things", encode_item({"pk": "a", "x": "y" * (room + extra)}))), "t"
        )

    check(request(0), {"things": TABLE}.__getitem__)
    with pytest.raises(TransactionTooLarge, match="4,194,305 bytes"):
        check(request(1), {"things": TABLE}.__getitem__)


def test_the_names_and_values_of_one_write_have_at_most_two_megabytes() -> None:
    def write(size: int) -> PutItem:
        texts = [chr(97 + number) * (size // 6) for number in range(6)]
        texts[-1] += "z" * (size - 6 * (size // 6))
        return PutItem("things", KEY, Not(In(path("text"), tuple(map(value, texts)))))

    most = MAX_SUBSTITUTIONS - len("#0text") - 6 * len(":0")
    check(write(most), {"things": TABLE}.__getitem__)
    with pytest.raises(TransactionTooLarge, match="2,097,153 bytes"):
        check(write(most + 1), {"things": TABLE}.__getitem__)
