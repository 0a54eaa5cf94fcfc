"""Numbers: one canonical text for each value, exact sums, DynamoDB's range."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction

import pytest
from core_strategies import decimals, floats, integers
from hypothesis import assume, given
from hypothesis import strategies as st

from holdall.core.numbers import add, canonical_number, number_text, parse_number
from holdall.errors import InvalidValueError

LARGEST = "9." + "9" * 37 + "E125"
SMALLEST = "1E-130"


def _oracle(text: str) -> str | None:
    """The canonical text computed with `decimal`, or None if DynamoDB cannot store the number."""
    with localcontext(Context(prec=1000, Emax=99999, Emin=-99999, traps=[Inexact])):
        number = Decimal(text).normalize()
        if number == 0:
            return "0"
        if len(number.as_tuple().digits) > 38 or not -130 <= number.adjusted() <= 125:
            return None
        return format(number, "f")


@st.composite
def _texts(draw: st.DrawFn) -> str:
    """Texts of numbers in every notation, in and out of range."""
    whole = draw(st.text("0123456789", max_size=45))
    fraction = draw(st.text("0123456789", min_size=0 if whole else 1, max_size=45))
    point = "." if fraction or draw(st.booleans()) else ""
    exponent = draw(st.just("") | st.integers(-180, 180).map(lambda e: f"e{e}") | st.just("E+05"))
    return draw(st.sampled_from(["", "-", "+"])) + whole + point + fraction + exponent


@given(_texts())
def test_the_canonical_text_agrees_with_decimal_arithmetic(text: str) -> None:
    expected = _oracle(text)
    if expected is None:
        with pytest.raises(InvalidValueError):
            canonical_number(text)
    else:
        assert canonical_number(text) == expected
        assert canonical_number(expected) == expected


@given(integers())
def test_the_text_of_an_integer_is_that_of_str(number: int) -> None:
    assert number_text(number) == str(number)
    assert parse_number(number_text(number)) == number
    assert isinstance(parse_number(number_text(number)), int)


@given(decimals())
def test_a_decimal_comes_back_equal(number: Decimal) -> None:
    back = parse_number(number_text(number))
    assert back == number
    assert isinstance(back, int) == (number == number.to_integral_value())


@given(floats())
def test_a_float_is_stored_as_its_shortest_text_and_comes_back_equal(number: float) -> None:
    text = number_text(number)
    assert float(parse_number(text)) == number
    assert canonical_number(text) == text
    assert Decimal(number_text(number)) == Decimal(repr(number))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("000", "0"),
        ("007", "7"),
        ("+7", "7"),
        ("7.", "7"),
        (".5", "0.5"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        ("1200E-2", "12"),
        ("1E-3", "0.001"),
        ("-12.340", "-12.34"),
        ("1" + "0" * 40, "1" + "0" * 40),
        ("9" * 38, "9" * 38),
        ("-" + "9" * 38, "-" + "9" * 38),
        (SMALLEST, "0." + "0" * 129 + "1"),
        (LARGEST, "9" * 38 + "0" * 88),
    ],
)
def test_every_spelling_of_a_number_has_one_text(text: str, canonical: str) -> None:
    assert canonical_number(text) == canonical


def test_a_whole_float_is_an_integer_and_minus_zero_is_zero() -> None:
    assert number_text(5.0) == "5"
    assert number_text(-0.0) == "0"
    assert number_text(1e23) == "1" + "0" * 23
    assert number_text(0.1) == "0.1"


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("sNaN")]
)
def test_nan_and_infinity_are_refused(number: float | Decimal) -> None:
    with pytest.raises(InvalidValueError, match="not a number"):
        number_text(number)


@pytest.mark.parametrize(
    "text",
    ["", "-", ".", "e5", "1e", "1 ", " 1", "1\n", "0x1", "1_000", "--1", "١٢", "NaN", "Infinity", "1,5"],
)
def test_a_text_that_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="not a number"):
        canonical_number(text)


@pytest.mark.parametrize("text", ["1" * 39, "1" + "0" * 37 + "1", "0." + "1" * 39, "-" + "1" * 39])
def test_a_number_with_39_digits_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="39 significant digits"):
        canonical_number(text)


@pytest.mark.parametrize(
    "text", ["1E126", "-1E126", "9.9E-131", "-1E-131", "1" + "0" * 126, "1E99999", "1E-99999"]
)
def test_numbers_beyond_the_range_are_refused_at_both_ends(text: str) -> None:
    with pytest.raises(InvalidValueError, match="outside DynamoDB's range"):
        canonical_number(text)


@pytest.mark.parametrize("text", ["1e9999999999999999999999", "1e-9999999999999999999999"])
def test_an_exponent_that_decimal_cannot_hold_is_refused_too(text: str) -> None:
    with pytest.raises(InvalidValueError):
        canonical_number(text)


def test_a_huge_integer_is_refused_without_converting_it_to_text() -> None:
    assert number_text(10**125) == "1" + "0" * 125
    for number in (10**126, -(10**126), 1 << 100_000):
        with pytest.raises(InvalidValueError, match="outside DynamoDB's range"):
            number_text(number)


@given(decimals(), decimals(), st.sampled_from([1, -1]))
def test_a_sum_is_exact_or_refused(left: Decimal, right: Decimal, sign: int) -> None:
    expected = Fraction(left) + sign * Fraction(right)
    try:
        total = add(number_text(left), number_text(right), sign=sign)
    except InvalidValueError:
        with localcontext(Context(prec=1000)):
            exact = left + right if sign > 0 else left - right
        assert _oracle(str(exact)) is None
    else:
        assert Fraction(total) == expected
        assert canonical_number(total) == total


@given(integers(), integers(), st.sampled_from([1, -1]))
def test_sums_of_integers_equal_pythons(left: int, right: int, sign: int) -> None:
    assume(abs(left + sign * right) < 10**38)
    assert add(str(left), str(right), sign=sign) == str(left + sign * right)


@pytest.mark.parametrize(
    ("left", "right", "sign", "total"),
    [
        ("1", "2", 1, "3"),
        ("1", "2", -1, "-1"),
        ("0.1", "0.2", 1, "0.3"),
        ("1.0", "-1", 1, "0"),
        ("9" * 37 + "8", "1", 1, "9" * 38),
        ("9" * 38, "1", 1, "1" + "0" * 38),
        ("1E-130", "1E-130", 1, "0." + "0" * 129 + "2"),
        ("0", "12345678901234567890123456789012345678", -1, "-12345678901234567890123456789012345678"),
    ],
)
def test_examples_of_sums(left: str, right: str, sign: int, total: str) -> None:
    assert add(left, right, sign=sign) == total


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [("1E125", "1E-130", 1), ("9E125", "9E125", 1), ("1.1E-130", "1E-130", -1), ("9" * 38, "0.1", 1)],
)
def test_a_sum_with_too_many_digits_is_refused_and_not_rounded(left: str, right: str, sign: int) -> None:
    with pytest.raises(InvalidValueError):
        add(left, right, sign=sign)


def test_sums_do_not_depend_on_the_callers_decimal_context() -> None:
    with localcontext(Context(prec=3)):
        assert add("123456", "1", sign=1) == "123457"
        assert add("1", "123456", sign=-1) == "-123455"
        assert canonical_number("123456789.5") == "123456789.5"
