"""Items on their way from one table to another: renamed keys, and digests that depend only on the content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.values import encode_item
from holdall.errors import ConfigurationError, InvalidValueError
from holdall.maintenance.copy.item import plan_route

OURS = TableSchema("ours", KeyAttribute("pk"), KeyAttribute("sk"))
THEIRS = TableSchema("theirs", KeyAttribute("h"), KeyAttribute("r"))
SWAPPED = TableSchema("swapped", KeyAttribute("sk"), KeyAttribute("pk"))
NUMBERS = st.integers(-(10**37), 10**37)
VALUES = st.one_of(st.text(max_size=5), NUMBERS, st.booleans(), st.sets(NUMBERS, min_size=1))
ITEMS = st.dictionaries(st.sampled_from("abc"), VALUES)


@given(values=ITEMS)
def test_an_item_carried_there_and_back_is_the_same(values: dict[str, Any]) -> None:
    item = encode_item({"pk": "p", "sk": "s", **values})
    for other in (THEIRS, SWAPPED, OURS):
        there = plan_route(OURS, other).carry(item)
        back = plan_route(other, OURS).carry(there.item)
        assert back.item == plan_route(OURS, OURS).carry(item).item
        assert back.digest == plan_route(OURS, OURS).carry(item).digest


def test_only_the_key_attributes_are_renamed() -> None:
    there = plan_route(OURS, THEIRS).carry(encode_item({"pk": "p", "sk": "s", "n": 1}))
    assert there.item == encode_item({"h": "p", "r": "s", "n": 1})
    assert there.key == '[{"S":"p"},{"S":"s"}]'


def test_equal_content_has_equal_digests_whatever_its_order_and_form() -> None:
    route = plan_route(OURS, OURS)
    one: dict[str, Any] = {
        "pk": {"S": "p"},
        "sk": {"S": "s"},
        "set": {"NS": ["2", "1.0"]},
        "n": {"N": "1.50"},
    }
    other: dict[str, Any] = {"n": {"N": "1.5"}, "set": {"NS": ["1", "2"]}, "sk": {"S": "s"}, "pk": {"S": "p"}}
    assert route.carry(one).digest == route.carry(other).digest
    assert route.carry({**one, "n": {"N": "1.51"}}).digest != route.carry(one).digest


def test_an_attribute_with_the_name_of_the_other_key_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="attribute h, which is a key attribute of the table theirs"):
        plan_route(OURS, THEIRS).carry(encode_item({"pk": "p", "sk": "s", "h": 1}))


def test_keys_of_other_types_are_refused() -> None:
    numbered = TableSchema("numbered", KeyAttribute("pk"), KeyAttribute("sk", "N"))
    with pytest.raises(ConfigurationError, match=r"sk: S.* and table numbered .*sk: N.* different types"):
        plan_route(OURS, numbered)
