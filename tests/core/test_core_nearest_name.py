"""The hint for a name that does not exist."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdall.core.nearest_name import find_nearest, suggest_name

NAMES = ("customer", "number", "placed_at")


def test_the_nearest_name_is_suggested_ignoring_case() -> None:
    assert find_nearest("custmer", NAMES) == "customer"
    assert find_nearest("NUMBER", NAMES) == "number"
    assert find_nearest("placed", ["PlacedAt", "other"]) == "PlacedAt"
    assert suggest_name("placedat", NAMES, "fields") == "did you mean 'placed_at'?"


def test_without_a_similar_name_all_are_listed() -> None:
    assert suggest_name("zzz", NAMES, "fields") == "the fields are: customer, number, placed_at"
    assert suggest_name("zzz", (), "indexes") == "it declares no indexes"
    assert suggest_name(7, ["a"], "fields") == "the fields are: a"


@given(st.lists(st.text(), unique=True), st.text())
def test_only_known_names_are_suggested(known: list[str], name: str) -> None:
    near = find_nearest(name, known)
    assert near is None or near in known
    assert near is not None or name not in known
