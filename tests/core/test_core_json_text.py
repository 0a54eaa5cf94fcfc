"""Compact JSON text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdall.core.json_text import encode_json

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=100)
@given(_VALUES)
def test_the_text_equals_that_of_json_dumps(value: Any) -> None:
    assert encode_json(value) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_the_encoder_works_after_it_has_refused_a_value() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for refused, error in ((object(), TypeError), (endless, RecursionError)):
        with pytest.raises(error):
            encode_json([refused])
        assert encode_json(["é", (1, None)]) == '["é",[1,null]]'
