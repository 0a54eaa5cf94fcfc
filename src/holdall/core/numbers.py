"""DynamoDB's numbers: exact, within DynamoDB's range, with one canonical text for each value.

Pure. The canonical text is plain decimal notation without an exponent or superfluous zeros; ``0`` has no sign.
DynamoDB returns numbers in this form, so equal numbers have equal texts.
Raises `InvalidValueError` for a number that DynamoDB cannot store.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache

from holdall.errors import InvalidValueError

Number = int | float | Decimal
"""The Python types that DynamoDB can store as a number."""

MAX_DIGITS = 38
MAX_EXPONENT = 125
MIN_EXPONENT = -130

_CANONICAL = re.compile(r"-?(?:0|[1-9]\d{0,18})\.\d{0,17}[1-9]", re.ASCII)  # short decimals, left as they are
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

# Precise enough for the sum of the largest and the smallest number, so sums are exact.
_EXACT = Context(prec=MAX_EXPONENT - MIN_EXPONENT + 2 * MAX_DIGITS, traps=[Inexact])


def number_text(value: Number) -> str:
    """Return the canonical text of a Python number: an int exactly, a float in its shortest form."""
    if isinstance(value, int):
        if value.bit_length() > 420:  # over 10**126; also avoids Python's limit on converting ints to text
            raise _refuse_range(f"an integer of {value.bit_length()} bits")
        text = int.__repr__(value)
        return text if value.bit_length() <= 126 else canonical_number(text)  # 38 digits are canonical
    if isinstance(value, float):
        text = float.__repr__(value)
        if 1e-4 <= value < 1e15 or -1e15 < value <= -1e-4:  # in this range, without an exponent
            return text.removesuffix(".0")
        return canonical_number(text)
    return canonical_number(str(value))


def exact_number(value: Number) -> Decimal:
    """Return a number as a decimal: a float by its shortest text, without digits that it has only in binary."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def canonical_number(text: str) -> str:
    """Return the canonical form of a number's text, or raise `InvalidValueError`."""
    digits = text.removeprefix("-")
    if digits.isdigit() and digits.isascii() and digits[0] != "0" and len(digits) <= MAX_DIGITS:
        return text  # an ordinary integer is already canonical
    if text == "0" or _CANONICAL.fullmatch(text):
        return text
    if not _NUMBER.fullmatch(text):
        raise InvalidValueError(
            f"{text[:60]!r} is not a number that DynamoDB can store",
            hint="store a finite decimal number; DynamoDB has no NaN or infinity",
        )
    try:
        sign, all_digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:  # an exponent of about nineteen digits
        raise _refuse_range(text[:60]) from None
    assert isinstance(exponent, int)  # the pattern excludes NaN and infinity
    significant = "".join(map(str, all_digits)).lstrip("0")
    stripped = significant.rstrip("0")
    if not stripped:
        return "0"
    exponent += len(significant) - len(stripped)
    if len(stripped) > MAX_DIGITS:
        raise InvalidValueError(
            f"the number has {len(stripped)} significant digits; DynamoDB stores at most {MAX_DIGITS}",
            hint="round it first, or store it as a string",
        )
    if not MIN_EXPONENT <= exponent + len(stripped) - 1 <= MAX_EXPONENT:
        raise _refuse_range(text[:60])
    return ("-" if sign else "") + _plain(stripped, exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent >= 0:
        return digits + "0" * exponent
    point = len(digits) + exponent
    if point > 0:
        return f"{digits[:point]}.{digits[point:]}"
    return f"0.{'0' * -point}{digits}"


def _refuse_range(what: str) -> InvalidValueError:
    return InvalidValueError(
        f"{what} is outside DynamoDB's range of numbers (1E-130 to 9.99…E+125, and their negatives)",
        hint="store it as a string",
    )


def parse_number(text: str) -> int | Decimal:
    """Return the exact value of a number's text: an int if it is whole, otherwise a Decimal."""
    if "." in text or "e" in text or "E" in text:
        return Decimal(text)
    return int(text)


def add(left: str, right: str, *, sign: int = 1) -> str:
    """Return the exact sum (with ``sign=-1``, the difference) of two numbers; all are canonical texts."""
    combine = _EXACT.add if sign > 0 else _EXACT.subtract  # plain operators use the caller's decimal context
    return canonical_number(str(combine(Decimal(left), Decimal(right))))


def measure_number(text: str) -> tuple[str, int]:
    """Return the canonical form of a number's text, and its `number_size`."""
    if text.isdigit() and text.isascii() and text[0] != "0" and len(text) <= MAX_DIGITS:
        return text, (len(text.rstrip("0")) + (len(text) & 1) + 1) // 2 + 1  # an ordinary whole number
    return _measure_unusual(text)


@lru_cache(maxsize=4096)
def _measure_unusual(text: str) -> tuple[str, int]:
    """The same for a fraction or a negative number; many items have the same few."""
    canonical = canonical_number(text)
    return canonical, number_size(canonical)


def number_size(text: str) -> int:
    """Return how many bytes DynamoDB bills for a number, given its canonical text.

    DynamoDB packs two digits into a byte, aligned at the decimal point, without leading and trailing zeros. It adds
    one byte for the exponent and one for a minus sign; the total is at most 21.
    """
    negative = text[0] == "-"
    whole, _, fraction = (text[1:] if negative else text).partition(".")
    if fraction:
        whole = whole.lstrip("0")
        digits = whole + fraction
        leading = len(digits) - len(digits.lstrip("0"))
        position = len(whole) - leading
        count = len(digits) - leading
    else:
        position = len(whole)
        count = len(whole.rstrip("0"))
        if not count:
            return 1
    return min(21, (count + (position & 1) + 1) // 2 + 1 + negative)
