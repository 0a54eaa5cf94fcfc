"""``archive=Archive(...)`` on a model: which of its items may leave the table, when, and where they go.

An archived item leaves a pointer in the table. Reads follow the pointer, so the item is read like any other. A write
puts the whole item back, on the condition that the pointer is the one that was read; then the object is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from holdall.archive.ancestor import NAMES, read_body, read_key
from holdall.archive.follower import Follower
from holdall.archive.pointer import POINTER, Pointer, demand_same, merge, read_pointer, show_key
from holdall.archive.template import DEFAULT, KeyStyle, check_template
from holdall.core.expressions import Condition, Exists, Path
from holdall.core.internal import internal
from holdall.core.nearest_name import suggest_name
from holdall.core.objects import GetObject
from holdall.errors import (
    CorruptArchiveError,
    DanglingPointerError,
    InvalidOptionsError,
    ItemArchivedError,
    ObjectNotFoundError,
)
from holdall.tables.commit.lock import all_of, any_of

if TYPE_CHECKING:
    from holdall.archive.envelope import Contents
    from holdall.core.context import Context
    from holdall.core.objects import ObjectInfo
    from holdall.core.requests import GetItem
    from holdall.core.values import Item
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema

OnWrite: TypeAlias = Literal["rehydrate", "error"]
Unit: TypeAlias = Literal["s", "ms"]

_LOOKS = 3


class Archive:
    """Declare which items of a model may be archived, when, and where: ``archive=Archive(timestamp="placed_at")``.

    ``db.archive.run`` archives the items whose ``timestamp`` field is more than ``after_days`` days old. If that field
    is a number, ``unit`` says whether it counts seconds (``"s"``) or milliseconds (``"ms"``). ``key`` is the template
    for the keys of the objects and may use ``{tableName}``, ``{partitionKey}`` and ``{sortKey}``; ``key_style`` decides
    how values are written into it. The fields in ``keep`` stay in the table, as do keys and the attributes that indexes
    need. Items smaller than ``min_item_bytes`` are not archived. A write to an archived item brings it back;
    ``on_write="error"`` refuses the write instead. ``service`` names the file service that stores the objects; without
    it, the database's default service does.

    ``pack=True`` is for small items: many of them share one object, a *pack*. One request stores a whole pack, and each
    item can still be read alone. The key of a pack is the template's fixed beginning, ``packs/`` and a digest. When a
    packed item is changed or deleted, its bytes stay in the pack until `compact` rewrites it.

    ``ancestor=True`` also reads the items that tempest's hybrid storage has archived, from the same service;
    ``ancestor="name"`` reads them from the service of that name. A write to such an item brings it back, and
    ``db.archive.rekey`` converts its pointer. Neither deletes the old object.
    """

    def __init__(
        self,
        *,
        timestamp: str | None = None,
        after_days: float = 180,
        key: str = DEFAULT,
        unit: Unit | None = None,
        keep: Sequence[str] = (),
        min_item_bytes: int = 0,
        on_write: OnWrite = "rehydrate",
        key_style: KeyStyle = "documented",
        service: str | None = None,
        pack: bool = False,
        ancestor: bool | str = False,
    ) -> None:
        for option, given, known in (
            ("on_write", on_write, get_args(OnWrite)),
            ("key_style", key_style, get_args(KeyStyle)),
            ("unit", unit, (None, *get_args(Unit))),
            ("pack", pack, (False, True)),
        ):
            if given not in known:
                raise InvalidOptionsError(
                    f"{option} must be one of {', '.join(map(repr, known))}, not {given!r:.60}"
                )
        if not isinstance(ancestor, bool | str):
            raise InvalidOptionsError(
                f"ancestor must be True, False or the name of a file service, not {ancestor!r:.60}"
            )
        if isinstance(after_days, bool) or not isinstance(after_days, int | float) or after_days < 0:
            raise InvalidOptionsError(
                f"after_days must be a number of days, 0 or more, not {after_days!r:.60}"
            )
        if isinstance(min_item_bytes, bool) or not isinstance(min_item_bytes, int) or min_item_bytes < 0:
            raise InvalidOptionsError(
                f"min_item_bytes must be a whole number of bytes, 0 or more, not {min_item_bytes!r:.60}"
            )
        self.timestamp = timestamp
        self.after_days = after_days
        self.template = key
        self.unit = unit
        self.keep = tuple(keep)
        self.min_item_bytes = min_item_bytes
        self.on_write: OnWrite = on_write
        self.key_style: KeyStyle = key_style
        self.service = service
        self.pack = pack
        self.ancestor = ancestor
        self.names = (POINTER, *NAMES) if ancestor else (POINTER,)
        self.pointer: Condition = any_of(*(Exists(Path((name,))) for name in self.names))
        """A condition that is true only for pointers."""

    @internal
    def adopt(self, schema: ModelSchema) -> None:
        """Check this archive against its model; `InvalidOptionsError` if the two do not fit."""
        if schema.abstract:
            return
        check_template(self.template, has_sort_key=bool(schema.sort_keys))
        for option, names in (("timestamp", [self.timestamp] if self.timestamp else []), ("keep", self.keep)):
            for name in names:
                if name not in schema.fields:
                    raise InvalidOptionsError(
                        f"{option} names {name!r:.60}, which is not a field of {schema.name}",
                        hint=suggest_name(name, schema.fields, "fields"),
                    )
        for field in schema.fields.values():
            if field.stored in self.names:
                raise InvalidOptionsError(
                    f"{schema.name}.{field.name} is stored as {field.stored!r}, an attribute name that the archive "
                    "reserves for its pointers",
                    hint=f'store the field under another name: field(name="{field.stored}_")',
                )

    # --- as a hydrator --------------------------------------------------------------------------------------

    @internal
    def is_pointer(self, item: Item) -> bool:
        """Whether an item is a pointer."""
        return any(map(item.__contains__, self.names))

    @internal
    async def hydrate(self, context: Context, read: GetItem, item: Item) -> Item | None:
        """Return the whole item; None if it no longer exists.

        If the object is missing or has other content, the item may have been restored or archived again since it was
        read. So the item is read once more before this raises.
        """
        found: Item | None = item
        looks = 0
        while found is not None and self.is_pointer(found):
            try:
                if POINTER not in found:
                    return (await self.fetch_ancestor(context, found, read.key))[0]
                return merge(found, await fetch_body(context, found))
            except (DanglingPointerError, CorruptArchiveError):
                looks += 1
                again = (await context.port.send(read)).item
                if again is not None and self.is_pointer(again):
                    is_same = all(again.get(name) == found.get(name) for name in self.names)
                    if is_same or looks == _LOOKS:
                        raise
            found = again
        return found

    @internal
    async def fetch_ancestor(self, context: Context, item: Item, key: Item) -> tuple[Item, ObjectInfo]:
        """Fetch the whole item for a pointer that tempest left, and a description of its object."""
        named = self.ancestor if isinstance(self.ancestor, str) else self.service
        service = context.settings.choose_service(named, "an archived item cannot be read")
        where = read_key(item)
        try:
            found = await context.port.send(GetObject(service, where))
        except ObjectNotFoundError:
            raise DanglingPointerError(
                f"the archived object {service}:{where} is missing",
                hint='if another service holds it, name that service: Archive(ancestor="NAME")',
            ) from None
        hot = {name: attribute for name, attribute in item.items() if name not in self.names}
        return {**read_body(found.body, key, f"{service}:{where}"), **hot}, found.info

    @internal
    def guard(self, stored: Item | None) -> Condition | None:
        """The condition of a write: the item is not archived, or its pointer is the one that was read."""
        if stored is not None and POINTER in stored:
            return read_pointer(stored).unchanged
        return all_of(demand_same(stored or {}, self.names))

    @internal
    def follow(self, context: Context, read: GetItem, pointer: Item, *, deleted: bool) -> Follower | None:
        """Have the object deleted after a write that restores or deletes the item."""
        if self.on_write == "error":
            raise ItemArchivedError(
                f"the item {show_key(read.key)} is archived, and its model does not allow archived items to be "
                f"{'deleted' if deleted else 'changed'}",
                hint="restore it first: db.archive.restore(key)",
            )
        return Follower(read_pointer(pointer), read) if POINTER in pointer else None

    # --- ages -----------------------------------------------------------------------------------------------

    @internal
    def read_timestamp(self, value: Any) -> datetime | None:
        """Read the value of a timestamp field as a moment; None if it is not one."""
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return None
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if self.unit is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return None
        try:
            return datetime.fromtimestamp(float(value) / (1000 if self.unit == "ms" else 1), UTC)
        except (OverflowError, ValueError, OSError):
            return None


def find_archive(model: type[Model]) -> Archive | None:
    """Return the archive that a model declares; None if it declares none."""
    found = model._schema.hydrator
    return found if isinstance(found, Archive) else None


async def fetch_body(context: Context, item: Item) -> Mapping[str, Any]:
    """Fetch the archived attributes of an item from the object that its pointer names."""
    from holdall.archive.envelope import read_envelope

    pointer = read_pointer(item)
    return read_envelope(await _fetch(context, pointer), pointer.digest, pointer.where)


async def fetch_contents(context: Context, pointer: Pointer) -> Contents:
    """Fetch what a pointer's object contains, with the table and the key that it was archived from."""
    from holdall.archive.envelope import open_envelope

    contents = open_envelope(await _fetch(context, pointer), pointer.where)
    if contents.envelope.digest != pointer.digest:
        raise CorruptArchiveError(
            f"the content of the archived object {pointer.where} is not what was archived"
        )
    return contents


async def _fetch(context: Context, pointer: Pointer) -> bytes:
    start, size = (0, None) if pointer.offset is None else (pointer.offset, pointer.size)
    request = GetObject(pointer.service, pointer.key, start, size)
    try:
        found = await context.port.send(request)
    except ObjectNotFoundError:
        raise DanglingPointerError(
            f"the archived object {pointer.where} is missing",
            hint="restore it from a backup of the bucket, or run holdall archive rebuild, which looks for other "
            "copies of the item",
        ) from None
    # The etag may have changed: a slower archiver may have put the same content again. The digest decides.
    return found.body
