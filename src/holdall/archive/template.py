"""The keys of archived objects, made from a template and the item's own key, and from nothing else.

Pure. The documented key is tried first. Two items can get the same one, because values are altered to fit into a key.
So an object records the item that it belongs to, and the second item gets a different key, which ends in a digest of
its owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal, TypeAlias

from holdall.core.frozen import dataclass
from holdall.errors import InvalidOptionsError

KeyStyle: TypeAlias = Literal["documented", "encoded", "hashed"]

DEFAULT = "{tableName}/{partitionKey}/{sortKey}"
SUFFIX = ".json.gz"
MAX_KEY = 1024
_MAX_TEMPLATE = 512

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_KNOWN = ("tableName", "partitionKey", "sortKey")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_UNSAFE = {ord(each): "_" for each in '<>:"|?*\\'}
_ENCODED = frozenset("/%{}~")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def check_template(template: str, *, has_sort_key: bool) -> str:
    """Return the template without its extension.

    `InvalidOptionsError` if it could give two items the same key, or one item different keys over time.
    """
    text = template.removesuffix(SUFFIX)
    names = _VARIABLE.findall(text)
    for name in names:
        if name not in _KNOWN:
            raise InvalidOptionsError(
                f"the key template {template!r:.80} uses {{{name}}}, which is not one of its variables",
                hint="use only {tableName}, {partitionKey} and {sortKey}: any other field could change, and then the "
                "object could no longer be found from the item's key",
            )
    if set(_VARIABLE.sub("", text)) & {"{", "}"}:
        raise InvalidOptionsError(
            f"the key template {template!r:.80} has an unmatched brace",
            hint="use braces only for the variables {tableName}, {partitionKey} and {sortKey}",
        )
    if "partitionKey" not in names:
        raise InvalidOptionsError(
            f"the key template {template!r:.80} lacks {{partitionKey}}",
            hint="add it; without it, items of different partitions would get the same key",
        )
    if has_sort_key and "sortKey" not in names:
        raise InvalidOptionsError(
            f"the key template {template!r:.80} lacks {{sortKey}}, and the model has a sort key",
            hint="add it; without it, all items of a partition would get the same key",
        )
    if "}{" in text:
        raise InvalidOptionsError(
            f"the key template {template!r:.80} has two variables with nothing between them",
            hint="separate them, for example with a slash; otherwise ab and c give the same key as a and bc",
        )
    odd = next((each for each in text if each == "~" or ord(each) < 32 or ord(each) == 127), None)
    if odd is not None:
        raise InvalidOptionsError(
            f"the key template {template!r:.80} contains {odd!r}",
            hint="remove it: Holdall uses ~ to mark keys that do not follow the template, and control characters do "
            "not survive in listings",
        )
    if len(text.encode()) > _MAX_TEMPLATE:
        raise InvalidOptionsError(
            f"the key template {template!r:.80} is longer than {_MAX_TEMPLATE} bytes",
            hint=f"shorten it: a whole key may have at most {MAX_KEY:,} bytes",
        )
    if not text or text.startswith("/") or any(not part.strip(".") for part in text.split("/")):
        raise InvalidOptionsError(
            f"the key template {template!r:.80} has a segment that is empty or only dots",
            hint="write it like orders/{partitionKey}/{sortKey}",
        )
    return text


def stamp_owner(table: str, key: Mapping[str, Mapping[str, str]]) -> str:
    """The owner of an object, as a stamp: a digest of the table's name and the item's stored key."""
    digest = sha256()
    parts = [table, *(f"{kind}{text}" for each in key.values() for kind, text in each.items())]
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def mark_owner(owner: str) -> str:
    """The shortened stamp that a pointer keeps, because every byte in the table costs money."""
    return owner[:16]


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """The keys at which an item's object may be stored, in the order in which they are tried.

    ``base`` is the rendered template; ``room`` is the maximum length of a key in bytes.
    """

    base: str
    owner: str
    room: int = MAX_KEY

    @property
    def candidates(self) -> tuple[str, ...]:
        """The documented key, unless it is too long, then the key that is unique to the owner."""
        first = self.base + SUFFIX
        own = self._end(f"~{self.owner[:32]}{SUFFIX}")
        return (first, own) if len(first.encode()) <= self.room else (own,)

    @property
    def mark(self) -> str:
        """The owner, as pointers store it."""
        return mark_owner(self.owner)

    def other(self, digest: str) -> str:
        """The key for content with this digest, if the owner already has an object with other content."""
        return self._end(f"~{self.owner[:32]}-{digest[:16]}{SUFFIX}")

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes of the keys that only this owner uses; there are two if truncation makes them differ."""
        own, other = self._end(f"~{self.owner[:32]}{SUFFIX}"), self.other("0" * 16)
        return tuple(dict.fromkeys(key.rpartition("~")[0] + f"~{self.owner[:32]}" for key in (own, other)))

    def includes(self, key: str) -> bool:
        """Whether an object of this item may be stored at this key."""
        return key in self.candidates or any(key.startswith(prefix + "-") for prefix in self.prefixes)

    def _end(self, end: str) -> str:
        room = self.room - len(end.encode())
        return self.base.encode()[:room].decode(errors="ignore") + end


def render_key(template: str, style: KeyStyle, table: str, partition: str, sort: str | None) -> str:
    """Fill in the variables of a template, in one pass; without a sort key, its variable and slash are dropped."""
    if sort is None:
        for part in ("/{sortKey}", "{sortKey}/", "{sortKey}"):
            template = template.replace(part, "")
    values = {"tableName": table, "partitionKey": partition, "sortKey": sort or ""}

    def fill(found: re.Match[str]) -> str:
        name = found.group(1)
        return format_segment(values[name], "documented" if name == "tableName" else style)

    return _VARIABLE.sub(fill, template)


def format_segment(value: str, style: KeyStyle) -> str:
    """Write a value as part of a key. The result never contains a slash."""
    if style == "hashed":
        return sha256(value.encode()).hexdigest()[:32]
    if style == "encoded":
        text = "".join(each if each in _PLAIN else _percent(each) for each in value)
        return text if text.strip(".") else _dots(text)
    if _MOMENT.fullmatch(value):
        return value
    text = "".join(
        _percent(each) if each in _ENCODED or ord(each) < 32 or ord(each) == 127 else each for each in value
    )
    text = re.sub("_+", "_", text.translate(_UNSAFE))
    return text if text.strip(".") else _dots(text)


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _dots(text: str) -> str:
    return text.replace(".", "%2E")
