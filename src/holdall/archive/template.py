"""Where an archived item's object is: keys made of a template and the item's own key, and of nothing else.

Pure. The documented key comes first. Making values fit for a key can give two items the same one; so an object says
whose it is, and the second item goes to a key of its own, which ends in a digest of its owner.
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
    """The template without its extension; `InvalidOptionsError` if it could give two items one key, or change."""
    text = template.removesuffix(SUFFIX)
    names = _VARIABLE.findall(text)
    for name in names:
        if name not in _KNOWN:
            raise InvalidOptionsError(
                f"the template {template!r:.80} has {{{name}}}",
                hint="only keys never change: a key with a timestamp or another field could not be found again from "
                "the item's own key, and archiving twice would leave two objects; use {tableName}, {partitionKey} "
                "and {sortKey}",
            )
    if set(_VARIABLE.sub("", text)) & {"{", "}"}:
        raise InvalidOptionsError(
            f"the template {template!r:.80} has a brace without its partner",
            hint="braces are for variables: {tableName}, {partitionKey} and {sortKey}",
        )
    if "partitionKey" not in names:
        raise InvalidOptionsError(
            f"the template {template!r:.80} has no {{partitionKey}}",
            hint="all items of the model would have the same key",
        )
    if has_sort_key and "sortKey" not in names:
        raise InvalidOptionsError(
            f"the template {template!r:.80} has no {{sortKey}}, and the model has a sort key",
            hint="all items of a partition would have the same key",
        )
    if "}{" in text:
        raise InvalidOptionsError(
            f"the template {template!r:.80} has two variables side by side",
            hint="put something between them: ab and c would look like a and bc",
        )
    odd = next((each for each in text if each == "~" or ord(each) < 32 or ord(each) == 127), None)
    if odd is not None:
        raise InvalidOptionsError(
            f"the template {template!r:.80} has {odd!r}",
            hint="~ marks keys that do not follow the template, and control characters do not survive in listings",
        )
    if len(text.encode()) > _MAX_TEMPLATE:
        raise InvalidOptionsError(
            f"the template {template!r:.80} is longer than {_MAX_TEMPLATE} bytes",
            hint=f"a key has {MAX_KEY:,} bytes in all",
        )
    if not text or text.startswith("/") or any(not part.strip(".") for part in text.split("/")):
        raise InvalidOptionsError(
            f"the template {template!r:.80} has an empty part, or one of dots alone",
            hint="as in orders/{partitionKey}/{sortKey}",
        )
    return text


def stamp_owner(table: str, key: Mapping[str, Mapping[str, str]]) -> str:
    """Who an object belongs to: a digest of the table's name and the item's stored key."""
    digest = sha256()
    parts = [table, *(f"{kind}{text}" for each in key.values() for kind, text in each.items())]
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def mark_owner(owner: str) -> str:
    """As much of an owner's stamp as a pointer keeps, which is paid for by the byte."""
    return owner[:16]


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """The keys at which an item's object may be, in the order in which they are tried.

    ``base`` is the rendered template; ``room`` the bytes that a key may have.
    """

    base: str
    owner: str
    room: int = MAX_KEY

    @property
    def candidates(self) -> tuple[str, ...]:
        """The documented key, unless it is too long; then the owner's own."""
        first = self.base + SUFFIX
        own = self._end(f"~{self.owner[:32]}{SUFFIX}")
        return (first, own) if len(first.encode()) <= self.room else (own,)

    @property
    def mark(self) -> str:
        """The owner, as pointers have it."""
        return mark_owner(self.owner)

    def other(self, digest: str) -> str:
        """The key for content with this digest, where the owner has an object with other content already."""
        return self._end(f"~{self.owner[:32]}-{digest[:16]}{SUFFIX}")

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the keys begin with that belong to the owner alone; two if they are too long to begin alike."""
        own, other = self._end(f"~{self.owner[:32]}{SUFFIX}"), self.other("0" * 16)
        return tuple(dict.fromkeys(key.rpartition("~")[0] + f"~{self.owner[:32]}" for key in (own, other)))

    def includes(self, key: str) -> bool:
        """Whether an object may be at this key."""
        return key in self.candidates or any(key.startswith(prefix + "-") for prefix in self.prefixes)

    def _end(self, end: str) -> str:
        room = self.room - len(end.encode())
        return self.base.encode()[:room].decode(errors="ignore") + end


def render_key(template: str, style: KeyStyle, table: str, partition: str, sort: str | None) -> str:
    """A template with its variables filled in, in one pass; without a sort key, its variable goes with its slash."""
    if sort is None:
        for part in ("/{sortKey}", "{sortKey}/", "{sortKey}"):
            template = template.replace(part, "")
    values = {"tableName": table, "partitionKey": partition, "sortKey": sort or ""}

    def fill(found: re.Match[str]) -> str:
        name = found.group(1)
        return format_segment(values[name], "documented" if name == "tableName" else style)

    return _VARIABLE.sub(fill, template)


def format_segment(value: str, style: KeyStyle) -> str:
    """A value as part of a key. A slash never comes out of it."""
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
