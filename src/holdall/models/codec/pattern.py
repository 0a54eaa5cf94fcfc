"""Patterns: the usual form of a type's stored attributes, as generated code that reads it.

Pure. `Codec.quick` reads one attribute by its type's pattern; `compile_decoder` combines all patterns of a model in one
function, which decodes a whole item several times faster than field by field. On an attribute of another form, both
raise any exception, and the caller decodes thoroughly, field by field.

The generated code contains only names of attributes and fields, as string literals, and names chosen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from holdall.core.values import Attribute, Item
    from holdall.models.fields.field import Field


class Pattern(NamedTuple):
    """Reads the content under ``kind``, directly or through ``read``; or a ``container`` (list or dict) of these."""

    kind: str
    read: Callable[[Any], Any] | None
    container: type | None = None

    def expression(self, attribute: str, read: str) -> str:
        """Return the code that reads an attribute; both arguments are code too."""
        holder = attribute if self.container is None else "member"
        content = f"{holder}[{self.kind!r}]"
        value = content if self.read is None else f"{read}({content})"
        if self.container is None:
            return value
        if self.container is list:
            return f"[{value} for member in {attribute}['L']]"
        return f"{{name: {value} for name, member in {attribute}['M'].items()}}"

    def compile(self) -> Callable[[Attribute], Any]:
        """Return a function that reads one attribute."""
        if self.read is None and self.container is None:
            return itemgetter(self.kind)
        found: Callable[[Attribute], Any] = eval(
            f"lambda attribute: {self.expression('attribute', 'read')}", {"read": self.read}
        )
        return found


def compile_decoder(fields: Iterable[Field[Any]]) -> Callable[[Item], dict[str, Any]]:
    """Compile a function from a stored item to the values of these fields, by name."""
    names: dict[str, Any] = {}
    lines = []
    for number, field in enumerate(fields):
        pattern, read, place = field.codec.pattern, f"read_{number}", f"item[{field.stored!r}]"
        names[read] = field.codec.decode if pattern is None else pattern.read
        absent = _absent(field, f"absent_{number}", names)
        attribute = place if absent is None else "attribute"
        value = f"{read}({attribute})" if pattern is None else pattern.expression(attribute, read)
        if absent is not None:
            value = f"{absent} if (attribute := item.get({field.stored!r})) is None else {value}"
        lines.append(f"  {field.name!r}: {value},")
    code = "\n".join(["def decode(item):", " return {", *lines, " }"])
    exec(code, names)
    decode: Callable[[Item], dict[str, Any]] = names["decode"]
    return decode


def _absent(field: Field[Any], name: str, names: dict[str, Any]) -> str | None:
    """Return the code for the value of a missing attribute; None if it has none, or a user's function makes it."""
    if field.codec.nullable:
        return "None"
    if not field.has_default or field.options.default_factory not in (None, list, dict, set):
        return None
    names[name] = field.absent_value
    return f"{name}()"
