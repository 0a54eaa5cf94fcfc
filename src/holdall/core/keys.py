"""Order-preserving texts: sort keys that sort like the values that they represent.

Pure. `sort_text` turns the parts of a sort key into one string, `sort_parts` turns it back. DynamoDB compares
strings by their UTF-8 bytes, and these texts are built so that this is also the order of the
numbers, times or tuples that they represent. The forms must never change, because stored items contain them
(``docs/decisions/0001-order-preserving-keys.md`` lists test vectors).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.numbers import Number, canonical_number, number_text
from holdall.errors import InvalidKeyError, InvalidValueError

if TYPE_CHECKING:
    from uuid import UUID

SortPart: TypeAlias = "str | int | float | Decimal | datetime | UUID | bytes | bool"
"""The types that can be part of a sort key."""

_NINES = str.maketrans("0123456789", "9876543210")
_SEPARATOR = "\x00"


def order_number(value: Number | str) -> str:
    """Return the sortable text of a number (or of its canonical text): ``42`` → ``p50242``.

    ``|x| = 0.digits × 10^e`` becomes a sign, a biased exponent and the digits. For a negative number, exponent and
    digits are complemented, and a ``~`` follows: it sorts after every digit, so a longer number sorts before its
    prefix.
    """
    text = canonical_number(value) if isinstance(value, str) else number_text(value)
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    whole = "".join(map(str, digits))
    mantissa = whole.rstrip("0")
    if not mantissa:
        return "o"
    power = len(whole) + exponent
    if sign:
        return f"n{499 - power:03d}{mantissa.translate(_NINES)}~"
    return f"p{power + 500:03d}{mantissa}"


def number_order(text: str) -> Decimal:
    """Return the number that a sortable text represents, or raise `InvalidKeyError`."""
    if text == "o":
        return Decimal(0)
    sign, power, digits = text[:1], text[1:4], text[4:]
    if sign == "n" and digits.endswith("~"):
        power, digits = power.translate(_NINES), digits[:-1].translate(_NINES)
    elif sign != "p":
        raise _refuse_text("number", text)
    if len(power) != 3 or not (power + digits).isdigit() or not (power + digits).isascii():
        raise _refuse_text("number", text)
    if not digits or digits[0] == "0" or digits[-1] == "0":
        raise _refuse_text("number", text)
    number = Decimal((int(sign == "n"), tuple(map(int, digits)), int(power) - 500 - len(digits)))
    try:
        order_number(number)
    except InvalidValueError:  # well-formed, but outside DynamoDB's digits or range
        raise _refuse_text("number", text) from None
    return number


def sort_text(*parts: SortPart) -> str:
    """Make a sort key from its parts. A single string is used as it is; several parts are joined by U+0000."""
    if len(parts) == 1:
        return _check(_part_text(parts[0]))
    return _SEPARATOR.join(_escape(part) if isinstance(part, str) else _part_text(part) for part in parts)


def sort_parts(text: str, *kinds: type[Any]) -> tuple[Any, ...]:
    """Split a sort key into its parts, given their types in order; the inverse of `sort_text`."""
    pieces: Sequence[str] = [text] if len(kinds) == 1 else text.split(_SEPARATOR)
    if len(pieces) != len(kinds):
        raise InvalidKeyError(f"the sort key has {len(pieces)} parts, but the model expects {len(kinds)}")
    unescape = len(kinds) > 1
    return tuple(
        (_unescape(piece) if unescape else piece) if issubclass(kind, str) else _read(piece, kind)
        for piece, kind in zip(pieces, kinds, strict=True)
    )


def _part_text(part: SortPart) -> str:
    for kind, write in _writers():
        if isinstance(part, kind):
            return write(part)
    raise InvalidKeyError(
        f"a value of type {type(part).__name__} cannot be part of a sort key",
        hint="use str, int, float, Decimal, datetime, UUID, bytes or bool",
    )


def format_moment(moment: datetime) -> str:
    """Return a time as 27 characters, in UTC, which sort in the order of time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def _time_text(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise InvalidKeyError(
            "a datetime without a time zone cannot be part of a sort key",
            hint="add a time zone, for example datetime.now(timezone.utc)",
        )
    try:
        return format_moment(moment)
    except OverflowError:
        raise InvalidKeyError(f"{moment} is outside the years 1 to 9999 in UTC") from None


def _read_time(text: str) -> datetime:
    if len(text) != 27 or text[-1] != "Z" or text[10] != "T":
        raise ValueError
    return datetime.fromisoformat(text[:-1]).replace(tzinfo=UTC)


def _read_int(text: str) -> int:
    number = number_order(text)
    if number != number.to_integral_value():
        raise ValueError
    return int(number)


@cache
def _writers() -> list[tuple[Any, Callable[[Any], str]]]:
    from uuid import UUID  # slow to load, so only when a key is written or read

    return [
        (str, str.__str__),  # str() of an enum is not its value
        (bool, lambda flag: "1" if flag else "0"),
        ((int, float, Decimal), order_number),
        (datetime, _time_text),
        (UUID, lambda uuid: uuid.hex),
        (bytes, bytes.hex),
    ]


@cache
def _readers() -> list[tuple[type[Any], Callable[[str], Any]]]:
    from uuid import UUID

    return [
        (bool, {"0": False, "1": True}.__getitem__),
        (int, _read_int),
        (float, lambda text: float(number_order(text))),
        (Decimal, number_order),
        (datetime, _read_time),
        (UUID, lambda text: UUID(hex=text)),
        (bytes, bytes.fromhex),
    ]


def _read(text: str, kind: type[Any]) -> Any:
    for known, read in _readers():
        if issubclass(kind, known):
            try:
                value = read(text)
                if not isinstance(value, int | float | Decimal) and _part_text(value) != text:
                    raise ValueError  # these readers accept more spellings than the one that is written
                return value
            except (ValueError, KeyError):
                raise _refuse_text(kind.__name__, text) from None
    raise InvalidKeyError(f"a value of type {kind.__name__} cannot be part of a sort key")


def _escape(part: str) -> str:
    if "\x00" in part or "\x01" in part:
        part = part.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return _check(part)


def _unescape(piece: str) -> str:
    if "\x01" not in piece:
        return piece
    head, *rest = piece.split("\x01")
    whole = [head]
    parts = iter(rest)
    for part in parts:
        if part.startswith("\x02"):
            whole.append("\x01" + part[1:])
            continue
        following = next(parts, None)  # U+0001 U+0001: split() left an empty text between the two
        if part or following is None:
            raise _refuse_text("string", piece)
        whole.append("\x00" + following)
    return "".join(whole)


def _check(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidKeyError("a string with a lone surrogate cannot be part of a key") from None
    return text


def _refuse_text(kind: str, text: str) -> InvalidKeyError:
    return InvalidKeyError(f"{text[:60]!r} is not a valid {kind} in a sort key")
