"""From an owner's type and id to the owner: an item of a model, or an instance of an `Attachable` class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from holdall.attachments.home import Owner, unpack_segment
from holdall.attachments.owner.attachable import Attachable, find_instance, record_type_of
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.owner.declaration import Declaration, owner_of
from holdall.core.context import Context
from holdall.errors import ConfigurationError
from holdall.models.keys.key import ModelKey
from holdall.models.keys.part import NO_SORT_KEY
from holdall.models.keys.stored import decode_key
from holdall.models.model import Model
from holdall.models.schema import ModelSchema, list_derived
from holdall.transactions.binding import Bindings
from holdall.transactions.read.flow import fetch_all


async def owners(context: Context, attachments: Iterable[Attachment]) -> list[Any]:
    """Load the owners of attachments, in order, and set each attachment's ``owner``; None if one no longer exists.

    Items of models are read outside of a transaction, a hundred in each request; other owners with their ``find``.
    """
    given = list(attachments)
    found = await find_owners(context, list(dict.fromkeys(each.owner_key for each in given)))
    for each in given:
        owner = found[each.owner_key]
        declared = getattr(type(owner), each.name, None)
        each.belong(owner, declared.variants if isinstance(declared, Declaration) else {})
    return [each.owner for each in given]


async def find_owners(context: Context, wanted: Sequence[Owner]) -> dict[Owner, Any]:
    """Find the owners with these types and ids; None for those that no longer exist."""
    keys: dict[Owner, ModelKey[Any] | None] = {}
    others: dict[Owner, type[Attachable]] = {}
    for owner in wanted:
        kind = find_class(context, owner.record_type)
        if isinstance(kind, ModelSchema):
            keys[owner] = parse_key(kind, owner)
        else:
            others[owner] = kind
    known = {owner: key for owner, key in keys.items() if key is not None}
    items = await fetch_all(context, None, list(known.values()), consistent=False)
    flows = [find_instance(context, kind, owner.record_id) for owner, kind in others.items()]
    instances = [outcome.result() for outcome in await context.port.gather(flows, limit=32)] if flows else []
    found = dict.fromkeys(wanted)
    found.update(zip(known, items, strict=True))
    found.update(zip(others, instances, strict=True))
    return found


def find_class(context: Context, record_type: str) -> ModelSchema | type[Attachable]:
    """Find the model or class of a record type; of several, the one that this database uses, or the last defined."""
    bound = tuple(context.state.of(Bindings).of_models)
    for schema in (*bound, *list_derived(Model)):
        if schema.record_type == record_type and not schema.abstract:
            return _root_of(schema)
    for kind in _list_attachables(Attachable):
        if record_type_of(kind) == record_type:
            return kind
    raise ConfigurationError(
        f"an attachment's owner has the record type {record_type!r:.80}, and this program defines no such class",
        hint="import the module that defines it",
    )


def _root_of(schema: ModelSchema) -> ModelSchema:
    """The topmost model with the same keys; it can read the items of all models below it."""
    bases = [vars(base).get("_schema") for base in reversed(schema.model.__mro__)]
    known: list[ModelSchema] = [base for base in bases if base is not None]
    return next(base for base in known if not base.abstract and base.root == schema.root)


def _list_attachables(kind: type[Attachable]) -> Iterator[type[Attachable]]:
    for derived in reversed(kind.__subclasses__()):
        yield from _list_attachables(derived)
        yield derived


def parse_key(schema: ModelSchema, owner: Owner) -> ModelKey[Any] | None:
    """The key of an item, from the id that `owner_of` made; None if no item can have that id."""
    packed: str | None = None
    with suppress(ValueError):
        packed = unpack_segment(owner.record_id)
    if packed is not None and schema.table is None:
        partition, _, sort = packed.partition("\0")
        if (key := decode_key(schema, partition, sort or NO_SORT_KEY)) is not None:
            return key
    fields = list(schema.key_fields.values())
    if len(fields) > 1 and schema.table is not None:
        raise ConfigurationError(
            f"{schema.name} {owner.record_id} cannot be found by its id: its model has its own table and a key with "
            "several fields",
            hint="read the owner by its key",
        )
    kind = "N" if fields[0].codec.kind == "N" else "S"
    for text in (packed, owner.record_id) if len(fields) == 1 else ():
        with suppress(ValueError, KeyError):
            key = ModelKey(schema, {fields[0].name: fields[0].decode({kind: text or ""})})
            if owner_of(key) == owner:
                return key
    return None
