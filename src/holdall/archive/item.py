"""Archiving one item: its object is stored first, then the swap replaces the archived attributes with a pointer.

Why nothing is lost, wherever the process dies and whatever other clients write meanwhile: before the swap, the item is
whole in the table, and the object is only a copy, which the next run uses or the sweep deletes. The swap demands that
every attribute, including those that stay, still has the archived value, and that the item is not yet a pointer. An
attribute that was added meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from holdall.archive.declaration import Archive, find_archive
from holdall.archive.envelope import Contents, Envelope
from holdall.archive.exchange import send_exchange
from holdall.archive.follower import delete_object
from holdall.archive.pointer import POINTER, Pointer
from holdall.archive.storage import store
from holdall.archive.template import KeyPlan, check_template, format_segment, render_key, stamp_owner
from holdall.core.context import Context
from holdall.core.expressions import Compare, Condition, Path, Remove, Set, Update, Value
from holdall.core.frozen import dataclass
from holdall.core.objects import DescribeService
from holdall.core.requests import DescribeTable, UpdateItem
from holdall.core.rules.expression import check_condition, check_update
from holdall.core.schema import TTL
from holdall.core.stamp import STAMP
from holdall.core.values import Attribute, Item, encode
from holdall.errors import ConfigurationError, InvalidExpressionError
from holdall.models.fields.options import ABSENT
from holdall.models.migrations import VERSION
from holdall.models.model import Model
from holdall.models.schema import TYPE, ModelSchema
from holdall.tables.commit.lock import all_of
from holdall.transactions.binding import Binding, bind

_SURELY_FITS = 50
"""An item with at most this many attributes is never too wide."""


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """Where a model's items are archived: its declaration, its table, and the attributes that stay in the table.

    ``whole_indexes`` are the keys of the indexes that hold whole items; ``room`` is the maximum length of an object's
    key in bytes.
    """

    archive: Archive
    schema: ModelSchema
    binding: Binding
    service: str
    kept: frozenset[str]
    whole_indexes: tuple[frozenset[str], ...]
    template: str
    room: int

    def split(self, item: Item) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
        """The attributes that stay in the table, and those that are archived."""
        kept = {name: value for name, value in item.items() if name in self.kept}
        return kept, {name: value for name, value in item.items() if name not in self.kept}

    def count_copies(self, item: Item) -> int:
        """How many indexes also hold the whole item."""
        return sum(item.keys() >= keys for keys in self.whole_indexes)

    def plan_keys(self, item: Item) -> KeyPlan:
        """The keys at which an item's object may be stored."""
        partition, sort = key_texts(self.schema, self.binding, item)
        base = render_key(self.template, self.archive.key_style, table_name(self.schema), partition, sort)
        return KeyPlan(base, stamp_owner(self.binding.table, self.binding.key_of(item)), self.room)

    def owns(self, contents: Contents) -> bool:
        """Whether an object was archived from this table, from an item whose key fits the table."""
        return contents.table == self.binding.table and contents.key.keys() == self.key_names

    @property
    def key_names(self) -> set[str]:
        """The names of the table's key attributes."""
        return {part.name for part in (self.binding.partition, self.binding.sort) if part is not None}

    def covers(self, key: Item, item: Item) -> bool:
        """Whether an item belongs to the model, or to one derived from it."""
        return self.binding.model_of({**item, **key}) is not None


async def find_place(context: Context, model: type[Model]) -> ArchivePlace:
    """Find out where a model's items are archived; `ConfigurationError` if the model has no archive."""
    schema, archive = model._schema, find_archive(model)
    if archive is None:
        raise ConfigurationError(
            f"{schema.name} does not declare an archive",
            hint=f"declare one: class {schema.name}(Model, archive=Archive(...))",
        )
    failure = f"items of {schema.name} cannot be archived"
    service = context.settings.choose_service(archive.service, failure)
    binding = await bind(context, schema)
    table = (await context.port.send(DescribeTable(binding.table, counts=False))).schema
    traits = await context.port.send(DescribeService(service))
    kept = {part.name for part in table.keys} | {TYPE, STAMP, VERSION, TTL}
    for index in table.indexes:
        kept |= {part.name for part in index.keys} | set(index.projection.names)
    for bound in schema.indexes.values():  # including those that the table does not have yet
        kept |= {part.name for part in bound.schema.keys} | set(bound.schema.projection.names)
    names = [*archive.keep, *([archive.timestamp] if archive.timestamp else [])]
    kept |= {schema.fields[name].stored for name in names}
    kept |= {field.stored for field in schema.key_fields.values()}
    if schema.ttl is not None:
        kept.add(schema.ttl.stored)
    whole = tuple(
        frozenset(part.name for part in index.keys)
        for index in table.indexes
        if index.projection.kind == "ALL"
    )
    template = check_template(archive.template, has_sort_key=bool(schema.sort_keys))
    return ArchivePlace(archive, schema, binding, service, frozenset(kept), whole, template, traits.max_key)


def prefix_of(place: ArchivePlace) -> str:
    """The prefix of all keys of the archive."""
    template = place.archive.template
    if not template.startswith("{tableName}"):
        return template.partition("{")[0]
    after = template.removeprefix("{tableName}").partition("{")[0]
    return format_segment(table_name(place.schema), "documented") + after


def table_name(schema: ModelSchema) -> str:
    """What ``{tableName}`` stands for."""
    return schema.table or schema.name


def key_texts(schema: ModelSchema, binding: Binding, item: Item) -> tuple[str, str | None]:
    """What ``{partitionKey}`` and ``{sortKey}`` stand for: the key's components as text."""
    if schema.form.in_key_alone:
        stored = encode_components(schema, binding.components(item))
    else:
        stored = {field.name: item[field.stored] for field in schema.key_fields.values()}
    partition = join_texts(stored[field.name] for field in schema.keys)
    sort = join_texts(stored[field.name] for field in schema.sort_keys)
    return partition, sort if schema.sort_keys else None


def encode_components(schema: ModelSchema, components: Mapping[str, Any]) -> dict[str, Attribute]:
    """The components of a key as attributes, by the names of their fields."""
    found = {}
    for name, field in schema.key_fields.items():
        attribute = field.encode(components[name])
        assert attribute is not None
        found[name] = attribute
    return found


def join_texts(parts: Iterable[Attribute]) -> str:
    """Join the components of a key into one text."""
    return "#".join(_text(part) for part in parts)


def _text(part: Attribute) -> str:
    ((kind, content),) = part.items()
    if kind == "B":
        return str(content).replace("+", "-").replace("/", "_").rstrip("=")
    if kind == "BOOL":
        return "1" if content else "0"
    if kind in ("S", "N"):
        return str(content)
    import json

    return json.dumps(content, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Archived:
    """The outcome of archiving an item: its pointer, and the units of the table's capacity that were used."""

    pointer: Pointer
    capacity: float


async def archive_item(context: Context, place: ArchivePlace, item: Item, now: datetime) -> Archived | None:
    """Archive an item as it was read; None if it has been changed since, or is already a pointer."""
    if place.archive.is_pointer(item):
        return None
    key = place.binding.key_of(item)
    envelope = Envelope.of(place.binding.table, key, item)
    pointer = await store(context, place.service, place.plan_keys(item), envelope, now)
    capacity = await send_swap(context, place, item, pointer)
    if capacity is not None:
        return Archived(pointer, capacity)
    await delete_object(context.port, pointer)  # safe: if another run put the same content, the etag differs
    return None


async def send_swap(context: Context, place: ArchivePlace, item: Item, pointer: Pointer) -> float | None:
    """Replace the archived attributes of an item with a pointer; return the units of capacity that this used.

    None if the item has been changed since it was read, or is already a pointer.
    """
    binding = place.binding
    condition, removals = _plan_swap(place, item)
    update = Update((Set(Path((POINTER,)), Value(pointer.stored)), *removals))
    swap = UpdateItem(binding.table, binding.key_of(item), update, condition, item_on_failure=True)
    return await send_exchange(context, swap, pointer)


def _plan_swap(place: ArchivePlace, item: Item) -> tuple[Condition, list[Remove]]:
    """The condition of the swap, and the attributes that it removes."""
    key, kept = place.binding.key_of(item), place.kept
    demands = [
        Compare("=", Path((name,)), Value(attribute))
        for name, attribute in item.items()
        if name not in key and name != STAMP
    ]
    condition = all_of([place.archive.guard(None), *demands])
    assert condition is not None
    return condition, [Remove(Path((name,))) for name in item if name not in kept]


def is_too_wide(place: ArchivePlace, item: Item) -> bool:
    """Whether an item has more attributes than one condition can name."""
    if len(item) <= _SURELY_FITS:
        return False
    condition, removals = _plan_swap(place, item)
    try:
        check_condition(condition)
        check_update(Update((Set(Path((POINTER,)), Value(encode(None))), *removals)))
    except InvalidExpressionError:
        return True
    return False


def lacks_contents(place: ArchivePlace, item: Item, archived: Item) -> bool:
    """Whether an item that is not a pointer must once have had one.

    True if only attributes that never leave the table are left, and a required field is only in the object.
    """
    if place.split(item)[1]:
        return False
    fields = place.schema.plain
    return any(
        field.stored in archived and field.stored not in item and field.absent_value() is ABSENT
        for field in fields
    )


def measure(place: ArchivePlace, item: Item) -> int:
    """The size in bytes that an item's object would have."""
    envelope = Envelope.of(place.binding.table, place.binding.key_of(item), item)
    return len(envelope.compress("x" * 36))


def age_of(place: ArchivePlace, item: Item, now: datetime) -> float | None:
    """The age of an item in days; None if its timestamp is missing or unparseable."""
    name = place.archive.timestamp
    if name is None:
        return None
    field: Any = place.schema.fields[name]
    stored = item.get(field.stored)
    if stored is None:
        return None
    try:
        moment = place.archive.read_timestamp(field.decode(stored))
    except ValueError:
        return None
    return None if moment is None else (now - moment).total_seconds() / 86400
