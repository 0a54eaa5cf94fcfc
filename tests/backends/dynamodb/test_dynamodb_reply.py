"""Replies that are JSON but contain invalid items always raise `MalformedReplyError`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdall.backends.dynamodb.reply import UNVOUCHED, decode_batch_get, decode_reply
from holdall.core.expressions import KeyCondition
from holdall.core.requests import BatchGet, GetItem, Query, Request, TransactGet
from holdall.core.values import decode_item
from holdall.errors import InvalidValueError, MalformedReplyError

KEY = {"pk": {"S": "a"}}
GET = GetItem("things", KEY)
READS: list[Request[Any]] = [GET, Query("things", KeyCondition("pk", {"S": "a"})), TransactGet((GET,))]

KINDS = st.sampled_from(["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M", "Q"])
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just("1"))
ANYTHING = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.text("ab", max_size=1), inner, max_size=2),
        st.dictionaries(KINDS, inner, max_size=2),
    ),
    max_leaves=8,
)
ITEMS = st.one_of(ANYTHING, st.fixed_dictionaries({"pk": st.one_of(ANYTHING, st.just({"S": "a"}))}))


def decode_reply_with(request: Request[Any], item: Any) -> Any:
    """Decode a reply that contains the item, and return the decoded item."""
    if isinstance(request, GetItem):
        return decode_reply(request, {"Item": item}).item
    if isinstance(request, Query):
        page = {"Items": [KEY, item], "Count": 2, "ScannedCount": 2, UNVOUCHED: True}
        return decode_reply(request, page).items[1]
    return decode_reply(request, {"Responses": [{"Item": item}]}).items[0]


@given(st.sampled_from(READS), ITEMS)
@example(GET, {"pk": {"S": 1}})
@example(GET, {"pk": {"L": [{"M": {"a": {"SS": "abc"}}}]}})
@example(GET, {"pk": "S"})
@example(GET, {"pk": ["S"]})
def test_any_item_in_a_reply_is_valid_or_refused(request_: Request[Any], item: Any) -> None:
    try:
        found = decode_reply_with(request_, item)
    except MalformedReplyError:
        return
    if found is None:
        assert item is None
        return
    with suppress(InvalidValueError):  # an invalid number or binary in an item of the right shape
        decode_item(found)


@given(ITEMS)
def test_the_first_item_of_a_page_with_a_checksum_is_valid_or_refused(item: Any) -> None:
    with suppress(MalformedReplyError, InvalidValueError):
        decode_item(decode_reply(READS[1], {"Items": [item], "Count": 1, "ScannedCount": 1}).items[0])


@given(ANYTHING)
def test_any_reply_to_a_batch_is_decoded_or_refused(responses: Any) -> None:
    for payload in ({"Responses": responses}, {"Responses": {"things": responses}}):
        try:
            reply = decode_batch_get(BatchGet((GET,)), [payload])
        except MalformedReplyError:
            continue
        assert len(reply.items) == 1


@pytest.mark.parametrize("name", ["Count", "ScannedCount", "LastEvaluatedKey", "Items"])
@given(junk=ANYTHING)
def test_any_page_is_decoded_or_refused(name: str, junk: Any) -> None:
    payload = {"Items": [], "Count": 0, "ScannedCount": 0, name: junk}
    try:
        page = decode_reply(READS[1], payload)
    except MalformedReplyError:
        return
    assert isinstance(page.count, int)
    assert isinstance(page.items, tuple)
