"""An item on its way from one table to another: its key attributes are renamed, and a digest identifies its content.

Pure. The two tables of two databases may name their key attributes differently; everything else stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from json import JSONEncoder, loads

from holdall.core.frozen import dataclass
from holdall.core.measure import seal_item
from holdall.core.schema import TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import ConfigurationError, InvalidValueError

_encode = JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False).encode
_DIGEST_SIZE = 16
_FIVE_YEARS = 157_680_000


@dataclass(frozen=True, slots=True)
class Transfer:
    """An item as it is written to the target; ``key`` is its key there as text, ``size`` is in bytes."""

    key: str
    item: Item
    digest: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Route:
    """From a table to its counterpart. ``names`` maps the key attributes that have another name in the target.

    ``convert`` changes items besides that; it gets and returns an item as it is in the source. ``ttl`` is the attribute
    by which the source's items expire.
    """

    source: TableSchema
    target: TableSchema
    names: Mapping[str, str]
    convert: Callable[[Item], Item] | None = None
    ttl: str | None = None

    def has_expired(self, item: Item, now: datetime) -> bool:
        """Whether the source may delete the item at any moment; a time more than five years ago is ignored."""
        stored = None if self.ttl is None else item.get(self.ttl)
        if stored is None or "N" not in stored:
            return False
        seconds = int(now.timestamp())
        return seconds - _FIVE_YEARS < Decimal(stored["N"]) <= seconds

    def carry(self, item: Item) -> Transfer:
        """The item as the target stores it; `InvalidValueError` if it cannot be stored there."""
        if self.convert is not None:
            item = self.convert(item)
        if self.names:
            item = self._rename(item)
        return self.measure(item)

    def measure(self, item: Item) -> Transfer:
        """An item that is already in the form of the target."""
        kept = seal_item(item)
        parts = [pair for part in self.target.keys for pair in kept[part.name].items()]
        key = ",".join([f'{{"{kind}":{_encode(content)}}}' for kind, content in parts])
        digest = blake2b(_encode(kept).encode(errors="surrogatepass"), digest_size=_DIGEST_SIZE).digest()
        return Transfer(f"[{key}]", kept, digest, kept.size)

    def key_of(self, item: Item) -> dict[str, Attribute]:
        """The key of an item that is in the form of the target."""
        return {part.name: item[part.name] for part in self.target.keys}

    def _rename(self, item: Item) -> Item:
        for name in self.names.values():
            if name in item and name not in self.names:
                raise InvalidValueError(
                    f"the item has an attribute {name}, which is a key attribute of the table {self.target.name}",
                    hint="give the target's table the key attributes of the source's table",
                )
        return {self.names.get(name, name): attribute for name, attribute in item.items()}


def plan_route(
    source: TableSchema,
    target: TableSchema,
    convert: Callable[[Item], Item] | None = None,
    ttl: str | None = None,
) -> Route:
    """The route between two tables; `ConfigurationError` if their keys are of different types."""
    if [part.type for part in source.keys] != [part.type for part in target.keys]:
        raise ConfigurationError(
            f"the keys of table {source.name} ({_show_keys(source)}) and table {target.name} ({_show_keys(target)}) "
            "are of different types",
            hint="copy to another table: the key of a table cannot be changed",
        )
    pairs = zip(source.keys, target.keys, strict=True)
    names = {ours.name: own.name for ours, own in pairs if ours.name != own.name}
    return Route(source, target, names, convert, ttl)


def show_key(key: str) -> str:
    """A key of the manifest, in messages."""
    return " / ".join(str(*part.values()) for part in loads(key))


def _show_keys(schema: TableSchema) -> str:
    return ", ".join(f"{part.name}: {part.type}" for part in schema.keys)
