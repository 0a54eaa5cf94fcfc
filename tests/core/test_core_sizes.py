"""Sizes as DynamoDB bills them: examples, and an oracle for nested values."""

from __future__ import annotations

from base64 import b64decode
from decimal import Decimal
from typing import Any

import pytest
from core_strategies import attributes, decimals
from hypothesis import given

from holdall.core.measure import attribute_size, item_size
from holdall.core.numbers import number_size, number_text
from holdall.core.values import encode_item


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 1),
        ("1", 2),  # 01 | and the exponent
        ("9", 2),
        ("12", 2),  # 12
        ("123", 3),  # 01 23
        ("1234", 3),  # 12 34
        ("100", 2),  # 01, then only zeros
        ("1000", 2),  # 10
        ("1010", 3),  # 10 10
        ("1001", 3),
        ("10001", 4),  # 01 00 01
        ("-1", 3),
        ("-12", 3),
        ("-123", 4),
        ("0.1", 2),  # 10
        ("0.01", 2),  # 01
        ("0.001", 2),  # 10, after a pair of zeros
        ("0.12", 2),
        ("0.123", 3),  # 12 30
        ("1.5", 3),  # 01 . 50
        ("10.5", 3),  # 10 . 50
        ("100.5", 4),  # 01 00 . 50
        ("1.23", 3),  # 01 . 23
        ("1.234", 4),  # 01 . 23 40
        ("-1.5", 4),
        ("9" * 38, 20),  # 19 pairs
        ("-" + "9" * 38, 21),
        ("9" * 37 + "0", 20),
        ("9" * 38 + "0", 21),  # shifted by a digit: 20 pairs
        ("-" + "9" * 38 + "0", 21),  # 22 by the rule, but at most 21
        ("1" + "0" * 125, 2),
        ("0." + "0" * 129 + "1", 2),
    ],
)
def test_the_size_of_a_number_is_that_of_its_pairs_of_digits(text: str, size: int) -> None:
    assert number_size(text) == size
    assert attribute_size({"N": text}) == size


def _pairs(number: Decimal) -> int:
    """Compute the size by grouping the digits in pairs from the decimal point."""
    if not number:
        return 1
    whole, _, fraction = format(number.copy_abs(), "f").partition(".")
    whole = whole.zfill(len(whole) + len(whole) % 2)
    fraction = fraction.ljust(len(fraction) + len(fraction) % 2, "0")
    digits = whole + fraction
    pairs = [digits[place : place + 2] for place in range(0, len(digits), 2)]
    while pairs[0] == "00":
        pairs.pop(0)
    while pairs[-1] == "00":
        pairs.pop()
    return min(21, len(pairs) + 1 + (number < 0))


@given(decimals())
def test_the_size_of_any_number_agrees_with_its_pairs_of_digits(number: Decimal) -> None:
    text = number_text(number)
    assert number_size(text) == attribute_size({"N": text}) == _pairs(number)


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ({}, 0),
        ({"a": ""}, 1),
        ({"a": "xyz"}, 4),
        ({"é": "é"}, 4),  # both are two bytes
        ({"name": "😀"}, 8),
        ({"a": b"\x00\x01\x02"}, 4),  # the bytes, not their base64
        ({"a": True}, 2),
        ({"a": False}, 2),
        ({"a": None}, 2),
        ({"a": 0}, 2),
        ({"a": -1}, 4),
        ({"a": []}, 4),
        ({"a": {}}, 4),
        ({"a": [1]}, 1 + 3 + 1 + 2),
        ({"a": ["x", "yz"]}, 1 + 3 + (1 + 1) + (1 + 2)),
        ({"a": {"b": "x"}}, 1 + 3 + 1 + 1 + 1),
        ({"a": [[]]}, 1 + 3 + 1 + 3),
        ({"a": {"key": [None, {"é": 12}]}}, 1 + 3 + (1 + 3 + (3 + (1 + 1) + (1 + (3 + 1 + 2 + 2))))),
        ({"a": {"x", "yz"}}, 1 + 1 + 2),
        ({"a": {1, 123}}, 1 + 2 + 3),
        ({"a": {b"", b"xy"}}, 1 + 0 + 2),
        ({"id": "1", "n": 42, "ok": True}, (2 + 1) + (1 + 2) + (2 + 1)),
    ],
)
def test_the_size_of_an_item_is_that_of_its_names_and_values(values: dict[str, Any], size: int) -> None:
    assert item_size(encode_item(values)) == size


def _scalar(kind: str, content: Any) -> int:
    if kind == "S":
        return len(content.encode("utf-8"))
    if kind == "N":
        return _pairs(Decimal(content))
    return len(b64decode(content)) if kind == "B" else 1


def _oracle(attribute: dict[str, Any]) -> int:
    ((kind, content),) = attribute.items()
    if kind == "L":
        return 3 + sum(1 + _oracle(member) for member in content)
    if kind == "M":
        return 3 + sum(1 + len(name.encode("utf-8")) + _oracle(member) for name, member in content.items())
    if kind in ("SS", "NS", "BS"):
        return sum(_scalar(kind[0], member) for member in content)
    return _scalar(kind, content)


@given(attributes())
def test_the_size_of_a_nested_value_agrees_with_the_oracle(attribute: dict[str, Any]) -> None:
    assert attribute_size(attribute) == _oracle(attribute)
