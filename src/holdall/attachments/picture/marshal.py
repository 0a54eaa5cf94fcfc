"""The part of Ruby's Marshal format, version 4.8, in which Rails writes the transformations of an image.

Pure. The output depends on the order of a mapping's keys, and on whether a text is a symbol; so does the digest by
which Rails finds a variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Symbol(str):
    """A text that is a symbol in Ruby: ``:png`` rather than ``"png"``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Symbol({str(self)!r})"


def dump(value: Any) -> bytes:
    """Dump a value as Ruby does. Keys of mappings are symbols. `TypeError` if it cannot be in a transformation."""
    return b"\x04\x08" + _Dump().write(value)


class _Dump:
    """One dump: a symbol that was already written is written as its number."""

    def __init__(self) -> None:
        self._symbols: dict[str, int] = {}

    def write(self, value: Any) -> bytes:
        match value:
            case None:
                return b"0"
            case True:
                return b"T"
            case False:
                return b"F"
            case Symbol():
                return self._symbol(value)
            case str():
                data = value.encode()
                return b'I"' + _integer(len(data)) + data + b"\x06" + self._symbol("E") + b"T"
            case int():
                return _whole(value)
            case float():
                return _float(value)
            case list() | tuple():
                return b"[" + _integer(len(value)) + b"".join(map(self.write, value))
            case Mapping():
                pairs = (self._symbol(key) + self.write(each) for key, each in value.items())
                return b"{" + _integer(len(value)) + b"".join(pairs)
        raise TypeError(f"{value!r:.80} cannot be part of a transformation")

    def _symbol(self, text: str) -> bytes:
        number = self._symbols.get(text)
        if number is not None:
            return b";" + _integer(number)
        self._symbols[text] = len(self._symbols)
        data = text.encode()
        if data.isascii():
            return b":" + _integer(len(data)) + data
        return b"I:" + _integer(len(data)) + data + b"\x06" + self._symbol("E") + b"T"


def _whole(value: int) -> bytes:
    if -(2**30) <= value < 2**30:
        return b"i" + _integer(value)
    data = abs(value).to_bytes((abs(value).bit_length() + 15) // 16 * 2, "little")
    return b"l" + (b"+" if value > 0 else b"-") + _integer(len(data) // 2) + data


def _integer(value: int) -> bytes:
    """A whole number of at most 31 bits, packed."""
    if value == 0:
        return b"\0"
    if 0 < value < 123:
        return bytes([value + 5])
    if -124 < value < 0:
        return (value - 5).to_bytes(1, "little", signed=True)
    size = next(each for each in range(1, 5) if -(256**each) <= value < 256**each)
    count: int = size if value > 0 else -size
    return count.to_bytes(1, "little", signed=True) + (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _float(value: float) -> bytes:
    data = repr(value).removesuffix(".0").encode()
    return b"f" + _integer(len(data)) + data
