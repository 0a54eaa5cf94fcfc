"""File names as users supply them, made safe for headers, paths and screens."""

from __future__ import annotations

from functools import total_ordering

_UNSAFE = {ord(each): "-" for each in '\u202e\0%$|:;/<>?*"\t\r\n\\'}


@total_ordering
class Filename:
    """A file's name; characters that mislead readers, headers or file systems are replaced with ``-``.

    ``str()`` returns the name. Names that differ only in upper and lower case are equal.
    """

    __slots__ = ("_text",)

    def __init__(self, given: str | bytes | Filename) -> None:
        text = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
        self._text = text.encode(errors="replace").decode().strip().translate(_UNSAFE)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Filename({self._text!r})"

    @property
    def base(self) -> str:
        """The name without its extension."""
        return self._split()[0]

    @property
    def extension(self) -> str:
        """The part after the last dot; empty if there is no dot, or only a leading one."""
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        base, dot, extension = self._text.rpartition(".")
        return (base, extension) if dot and base.strip(".") else (self._text, "")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Filename | str):
            return self._text.lower() == str(other).lower()
        return NotImplemented

    def __lt__(self, other: object) -> bool:
        if isinstance(other, Filename | str):
            return self._text.lower() < str(other).lower()
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._text.lower())
