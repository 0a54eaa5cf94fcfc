"""``archive=Archive(...)`` of a model: which of its items may leave the table, when, and where to.

An archived item is read like any other: its pointer is followed. A write brings it back whole, on the condition that
the pointer is the one that was read; then the object goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from holdall.archive.ancestor import NAMES, read_body, read_key
from holdall.archive.follower import Follower
from holdall.archive.pointer import POINTER, Pointer, merge, read_pointer
from holdall.archive.template import DEFAULT, KeyStyle, check_template
from holdall.core.expressions import Compare, Condition, Exists, NotExists, Path, Value
from holdall.core.objects import GetObject
from holdall.errors import (
    ConfigurationError,
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
    """Which items of a model may be archived, when, and where to: ``archive=Archive(timestamp="placed_at")``.

    Items whose ``timestamp`` field is more than ``after_days`` old are archived by ``db.archive.run``; ``unit`` says
    whether a number there is seconds or milliseconds. ``key`` is the template of the objects' keys, of
    ``{tableName}``, ``{partitionKey}`` and ``{sortKey}``; ``key_style`` says how values are written in it. Fields in
    ``keep`` stay in the table, besides keys and whatever indexes need. Items below ``min_item_bytes`` stay.
    ``on_write="error"`` refuses writes to archived items; otherwise a write brings the item back. ``service`` is the
    service for the objects.

    ``pack=True`` is for small items: many of them share an object, a *pack*, at ``packs/`` and a digest, after what the
    template begins with. One request stores them all, and each is read alone. The bytes of items that were changed or
    deleted since go when `compact` rewrites the pack.

    ``ancestor=True`` reads what tempest's hybrid storage has archived, too, from the same service, or from another by
    its name. A write to such an item brings it back, and ``db.archive.rekey`` converts its pointer; the old object
    stays.
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
                    f"{option} is {given!r:.60}", hint=f"it is one of {', '.join(map(repr, known))}"
                )
        if not isinstance(ancestor, bool | str):
            raise InvalidOptionsError(
                f"ancestor is {ancestor!r:.60}", hint="it is True, or the name of a service"
            )
        if isinstance(after_days, bool) or not isinstance(after_days, int | float) or after_days < 0:
            raise InvalidOptionsError(
                f"after_days is {after_days!r:.60}", hint="give a number of days from 0 up"
            )
        if isinstance(min_item_bytes, bool) or not isinstance(min_item_bytes, int) or min_item_bytes < 0:
            raise InvalidOptionsError(
                f"min_item_bytes is {min_item_bytes!r:.60}", hint="give a number of bytes"
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
        """True of pointers alone."""

    def adopt(self, schema: ModelSchema) -> None:
        """Refuse a model that cannot be archived so."""
        if schema.abstract:
            return
        check_template(self.template, has_sort_key=bool(schema.sort_keys))
        for option, names in (("timestamp", [self.timestamp] if self.timestamp else []), ("keep", self.keep)):
            for name in names:
                if name not in schema.fields:
                    raise InvalidOptionsError(
                        f"{option} names {name!r:.60}, which {schema.name} does not have"
                    )
        for field in schema.fields.values():
            if field.stored in self.names:
                raise InvalidOptionsError(
                    f"{schema.name}.{field.name} is stored as {field.stored!r}, which makes an item a pointer",
                    hint=f'store it under another name: field(name="{field.stored}_")',
                )

    # --- as a hydrator --------------------------------------------------------------------------------------

    def is_pointer(self, item: Item) -> bool:
        """Whether an item is a pointer."""
        return any(name in item for name in self.names)

    async def hydrate(self, context: Context, read: GetItem, item: Item) -> Item | None:
        """The whole item; None if it is gone.

        An object that is not there, or not as it was, may mean that the item was brought back, or archived again, since
        it was read. So it is read once more, before that is an error.
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

    async def fetch_ancestor(self, context: Context, item: Item, key: Item) -> tuple[Item, ObjectInfo]:
        """The whole item of a pointer that tempest left, and its object."""
        service = self.ancestor if isinstance(self.ancestor, str) else self.service
        service = service or context.settings.default_service
        if service is None:
            raise ConfigurationError("there is no service to read from", hint="give the database files=...")
        where = read_key(item)
        try:
            found = await context.port.send(GetObject(service, where))
        except ObjectNotFoundError:
            raise DanglingPointerError(
                f"the archived object {service}:{where} is gone",
                hint="if another service has it, name that: Archive(ancestor=...)",
            ) from None
        hot = {name: attribute for name, attribute in item.items() if name not in self.names}
        return {**read_body(found.body, key, f"{service}:{where}"), **hot}, found.info

    def guard(self, stored: Item | None) -> Condition | None:
        """A write demands that the item is not archived, or archived as it was read."""
        if stored is not None and POINTER in stored:
            return read_pointer(stored).unchanged
        item = stored or {}
        return all_of(
            Compare("=", Path((name,)), Value(item[name])) if name in item else NotExists(Path((name,)))
            for name in self.names
        )

    def follow(self, context: Context, read: GetItem, pointer: Item, *, deleted: bool) -> Follower | None:
        """Have the object deleted after a write that brings the item back, or deletes it."""
        if self.on_write == "error":
            raise ItemArchivedError(
                f"the item is archived, and its model refuses to {'delete' if deleted else 'change'} archived items",
                hint="bring it back first: db.archive.restore(key)",
            )
        return Follower(read_pointer(pointer), read) if POINTER in pointer else None

    # --- ages -----------------------------------------------------------------------------------------------

    def read_timestamp(self, value: Any) -> datetime | None:
        """The moment that a timestamp field says; None if it says none."""
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
    """The archive that a model declares; None if it declares none."""
    found = model._schema.hydrator
    return found if isinstance(found, Archive) else None


async def fetch_body(context: Context, item: Item) -> Mapping[str, Any]:
    """The archived attributes of a pointer's item."""
    from holdall.archive.envelope import read_envelope

    pointer = read_pointer(item)
    return read_envelope(await _fetch(context, pointer), pointer.digest, pointer.where)


async def fetch_contents(context: Context, pointer: Pointer) -> Contents:
    """What is in the object of a pointer, with the table and the key that it was archived from."""
    from holdall.archive.envelope import open_envelope

    contents = open_envelope(await _fetch(context, pointer), pointer.where)
    if contents.envelope.digest != pointer.digest:
        raise CorruptArchiveError(f"the archived object {pointer.where} has other content than was archived")
    return contents


async def _fetch(context: Context, pointer: Pointer) -> bytes:
    start, size = (0, None) if pointer.offset is None else (pointer.offset, pointer.size)
    request = GetObject(pointer.service, pointer.key, start, size)
    try:
        found = await context.port.send(request)
    except ObjectNotFoundError:
        raise DanglingPointerError(
            f"the archived object {pointer.where} is gone",
            hint="if another copy of the bucket has it, put it back; holdall archive rebuild looks for others",
        ) from None
    # Its etag may be another by now: an archiver that came too late has put the same content there. The digest decides.
    return found.body
