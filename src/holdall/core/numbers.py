"""DynamoDB numbers: one canonical text per value, exact, with DynamoDB's range.

Pure. A number travels as text: plain decimal notation, no exponent, no superfluous zeros, ``0`` without
a sign. That is the form DynamoDB itself gives back, so two equal numbers have equal texts.
Raises `InvalidValueError` for anything that is not a number DynamoDB can hold.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact, InvalidOperation

from holdall.errors import InvalidValueError

Number = int | float | Decimal
"""What Python calls a number and DynamoDB can store."""

MAX_DIGITS = 38
MAX_EXPONENT = 125
MIN_EXPONENT = -130

_CANONICAL = re.compile(r"-?(?:0|[1-9]\d{0,18})\.\d{0,17}[1-9]", re.ASCII)  # short decimals, left as they are
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

# Wide enough for the largest and the smallest number side by side, so that sums are exact.
_EXACT = Context(prec=MAX_EXPONENT - MIN_EXPONENT + 2 * MAX_DIGITS, traps=[Inexact])


def number_text(value: Number) -> str:
    """The canonical text of a Python number: an int exactly, a float in its shortest form."""
    if isinstance(value, int):
        if value.bit_length() > 420:  # over 10**126; also spares Python's int-to-text limit
            raise _refuse_range(f"an integer of {value.bit_length()} bits")
        text = int.__repr__(value)
        return text if value.bit_length() <= 126 else canonical_number(text)  # 38 digits are canonical
    if isinstance(value, float):
        return canonical_number(float.__repr__(value))
    return canonical_number(str(value))


def canonical_number(text: str) -> str:
    """The canonical form of a number's text, or `InvalidValueError`."""
    digits = text.removeprefix("-")
    if digits.isdigit() and digits.isascii() and digits[0] != "0" and len(digits) <= MAX_DIGITS:
        return text  # the everyday integer is its own canonical form
    if text == "0" or _CANONICAL.fullmatch(text):
        return text
    if not _NUMBER.fullmatch(text):
        raise InvalidValueError(
            f"{text[:60]!r} is not a number DynamoDB can store",
            hint="store a finite decimal number; NaN and infinity have no form",
        )
    try:
        sign, all_digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:  # an exponent of some nineteen digits
        raise _refuse_range(text[:60]) from None
    assert isinstance(exponent, int)  # the pattern lets no NaN or infinity through
    significant = "".join(map(str, all_digits)).lstrip("0")
    stripped = significant.rstrip("0")
    if not stripped:
        return "0"
    exponent += len(significant) - len(stripped)
    if len(stripped) > MAX_DIGITS:
        raise InvalidValueError(
            f"a number of {len(stripped)} significant digits; DynamoDB keeps {MAX_DIGITS}",
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
    """The Python value of a canonical text: an int when it is whole, else a Decimal; always exact."""
    if "." in text or "e" in text or "E" in text:
        return Decimal(text)
    return int(text)


def add(left: str, right: str, *, sign: int = 1) -> str:
    """The exact sum (or, with ``sign=-1``, difference) of two number texts, as canonical text."""
    combine = _EXACT.add if sign > 0 else _EXACT.subtract  # a bare minus would round to the caller's context
    return canonical_number(str(combine(Decimal(left), Decimal(right))))


def number_size(text: str) -> int:
    """The bytes DynamoDB bills for a number, given its canonical text.

    Digits are packed two to a byte, aligned at the decimal point, without leading and trailing zeros;
    one byte more for the exponent and one for a minus sign, 21 at the most.
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
