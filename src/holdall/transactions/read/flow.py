"""Flows that read items into a unit or, without one, as frozen instances."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from holdall.core.context import Context
from holdall.core.expressions import Path
from holdall.core.frozen import replace
from holdall.core.nearest_name import suggest_name
from holdall.core.requests import GetItem, TransactGet
from holdall.core.values import Item
from holdall.errors import DuplicateItemError, InvalidOptionsError, RecordNotFound, TransactionTooLarge
from holdall.models.fields.field import Field
from holdall.models.hydrator import Loader
from holdall.models.item_values import unknown_field
from holdall.models.keys.key import ModelKey
from holdall.models.marks import FROZEN
from holdall.models.model import build_instance
from holdall.models.schema import ModelSchema
from holdall.tables.record import read_items
from holdall.transactions.binding import Binding, Bindings, bind
from holdall.transactions.current import is_retry
from holdall.transactions.entry.claim import guard_key, parse_owner
from holdall.transactions.query.arguments import find_field
from holdall.transactions.query.row import read_whole
from holdall.transactions.read.expiry import has_expired
from holdall.transactions.read.hydration import hydrate, hydrate_all, is_current
from holdall.transactions.read.instance import make_frozen
from holdall.transactions.read.part import list_attributes, make_part
from holdall.transactions.read.target import model_schema, parse_target, refuse_values
from holdall.transactions.unit import Unit


class GetArguments(TypedDict, total=False):
    """The options of a get outside a transaction."""

    consistent: bool
    include: Iterable[str]
    only: Iterable[Any] | None


_OPTIONS = frozenset(GetArguments.__annotations__)
_UNIT_OPTIONS = _OPTIONS | {"create_if_missing"}


def get(
    context: Context,
    unit: Unit | None,
    target: object,
    values: tuple[object, ...],
    keywords: Mapping[str, Any],
) -> Coroutine[Any, Any, Any]:
    """`fetch` with the arguments of the public ``get``."""
    key, options = parse_target(target, values, keywords, _OPTIONS if unit is None else _UNIT_OPTIONS)
    return _fetch_with(context, unit, key, **options) if options else fetch(context, unit, key)


async def get_one(
    context: Context,
    unit: Unit | None,
    target: object,
    values: tuple[object, ...],
    keywords: Mapping[str, Any],
) -> Any:
    """`fetch` with the arguments of the public ``get_one``; `RecordNotFound` if there is no item."""
    key, options = parse_target(target, values, keywords, _OPTIONS)
    item = await (_fetch_with(context, unit, key, **options) if options else fetch(context, unit, key))
    if item is None:
        raise RecordNotFound(f"there is no {key!r}")
    return item


async def get_by(
    context: Context, unit: Unit | None, model: object, nameless: Sequence[object], values: Mapping[str, Any]
) -> Any:
    """The item that has this value of a unique field, None if no item has; found through the value's guard.

    The guard is written with the item. If the item does not have the value, another writer was faster, or a program
    that knows no guards has changed or deleted the item; both are then read as of one moment, to tell which.
    """
    schema = model_schema(model)
    if nameless:
        raise refuse_values("get_by", schema, nameless, [field for field in schema.plain if field.unique][:1])
    field, value = _unique_value(schema, values)
    binding = await bind(context, schema)
    request = GetItem(binding.table, guard_key(binding, field, value), True)
    guard = (await context.port.send(request)).item
    while True:
        if unit is not None:
            unit.requests += 1
        key = None if guard is None else parse_owner(schema, guard)
        if key is None:
            return None
        item = await fetch(context, unit, key)
        if item is not None and getattr(item, field.name) == value:  # in a transaction, this locks the field
            return item
        home = await bind(context, key.schema)
        both = await context.port.send(TransactGet((request, GetItem(home.table, home.key(key), True))))
        guard, raw = both.items
        if guard is not None and parse_owner(schema, guard) == key:
            if unit is not None:
                return None  # this transaction itself changed or deleted it, or has locked what it read
            item = await _take(context, None, home, key, raw)
            return item if item is not None and getattr(item, field.name) == value else None


def _unique_value(schema: ModelSchema, values: Mapping[str, Any]) -> tuple[Field[Any], Any]:
    unique = [field for field in schema.plain if field.unique]
    names = ", ".join(field.name for field in unique) or "it has none"
    if len(values) != 1:
        raise InvalidOptionsError(
            f"get_by needs the value of one unique field of {schema.name}", hint=f"unique fields: {names}"
        )
    ((name, value),) = values.items()
    field = schema.fields.get(name)
    if field is None:
        raise unknown_field(schema, name)
    if not field.unique:
        raise field.refusal(
            "get_by needs a unique field, and this is not one", hint=f"unique fields: {names}"
        )
    if value is None:
        raise field.refusal("None is not unique: any number of items may have no value")
    return field, field.validate(value)


async def fetch(
    context: Context,
    unit: Unit | None,
    key: ModelKey[Any],
    consistent: bool = True,
    fields: Sequence[Field[Any]] | None = None,
) -> Any:
    """The item under a key, None if there is none; without a unit it is frozen. ``fields``: it has just these."""
    if unit is not None and (known := unit.find(key)) is not None:
        return unit.give(known, key.schema)
    binding = context.state.of(Bindings).of_models.get(key.schema) or await bind(context, key.schema)
    if consistent or (unit is not None and unit.insist):
        read = GetItem(binding.table, binding.key(key), True)
    else:
        read = GetItem(binding.table, binding.key(key), fresh=is_retry())
    if fields is not None:
        read = replace(read, projection=_project([(binding, fields)])[binding.table])
    reply = await context.port.send(read)
    if unit is not None:
        unit.requests += 1
    return await _take(context, unit, binding, key, reply.item, fields)


async def _fetch_with(
    context: Context,
    unit: Unit | None,
    key: ModelKey[Any],
    *,
    consistent: bool = True,
    create_if_missing: Any = False,
    include: Iterable[str] = (),
    only: Iterable[Any] | None = None,
) -> Any:
    """`fetch` with options."""
    fields = None if only is None else _find_fields([key.schema], only)
    if fields is not None and (create_if_missing is not False or include):
        other = "include" if create_if_missing is False else "create_if_missing"
        raise InvalidOptionsError(f"only= cannot be used together with {other}=")
    if isinstance(create_if_missing, Mapping):
        _check_values(key, create_if_missing)
    item = await fetch(context, unit, key, consistent, fields)
    if item is None and create_if_missing is not False:
        assert unit is not None
        item = unit.create_missing(key, {} if create_if_missing is True else create_if_missing)
    if include:
        _check_loaders(key, include)
        await load(context, [] if item is None else [item], tuple(include))
    return item


async def _take(
    context: Context,
    unit: Unit | None,
    binding: Binding,
    key: ModelKey[Any],
    raw: Item | None,
    fields: Sequence[Field[Any]] | None = None,
) -> Any:
    """The item that was read under a key; None if it is missing or has expired."""
    if raw is not None and binding.ttl in raw:
        raw = _present(context, binding, raw)
    if raw is None:
        return None if unit is None else unit.miss(key)
    model = binding.model_of(raw)
    if unit is None and fields is None and model is not None and model.is_direct:
        return build_instance(model.model, raw, FROZEN, key if key.schema is model else None)
    stored: Item | None = raw
    if not (model or binding.schema).used_as_stored:
        stored, model = await hydrate(context, binding, raw), None
    return _receive(unit, binding, key, raw, stored, fields, model)


async def fetch_all(
    context: Context,
    unit: Unit | None,
    keys: Sequence[ModelKey[Any]],
    *,
    consistent: bool = True,
    include: Iterable[str] = (),
    only: Iterable[Any] | None = None,
) -> list[Any]:
    """The items under the keys, in the order of the keys, None for each that is missing.

    ``consistent``: all as of one instant, in one request; otherwise in batches, each item independently.
    """
    _check_distinct(keys)
    if only is not None and include:
        raise InvalidOptionsError("only= cannot be used together with include=")
    schemas = dict.fromkeys(key.schema for key in keys)
    fields = None if only is None else _find_fields(schemas, only)
    parts = [] if fields is None else [(await bind(context, schema), fields) for schema in schemas]
    projections = _project(parts)
    found: dict[ModelKey[Any], Any] = {}
    wanted: list[tuple[ModelKey[Any], GetItem, Binding]] = []
    strong = consistent or (unit is not None and unit.insist)
    for key in keys:
        known = None if unit is None else unit.find(key)
        if unit is not None and known is not None:
            found[key] = unit.give(known, key.schema)
        else:
            binding = await bind(context, key.schema)
            projection, fresh = projections.get(binding.table, ()), not strong and is_retry()
            read = GetItem(binding.table, binding.key(key), strong, projection, fresh=fresh)
            wanted.append((key, read, binding))
    replies = await get_many(context, unit, [read for _, read, _ in wanted], strong)
    raws = [_present(context, binding, reply) for (_, _, binding), reply in zip(wanted, replies, strict=True)]
    other = [
        (position, binding, raw)
        for position, ((_, _, binding), raw) in enumerate(zip(wanted, raws, strict=True))
        if raw is not None and not is_current(binding, raw)
    ]
    outcomes = await hydrate_all(context, [(binding, raw) for _, binding, raw in other]) if other else ()
    made = {position: outcome.result() for (position, _, _), outcome in zip(other, outcomes, strict=True)}
    for position, ((key, _, binding), raw) in enumerate(zip(wanted, raws, strict=True)):
        found[key] = _receive(unit, binding, key, raw, made.get(position, raw), fields)
    items = [found[key] for key in keys]
    if include:
        include = tuple(include)
        for key in keys:
            _check_loaders(key, include)
        await load(context, [item for item in items if item is not None], include)
    return items


def _check_loaders(key: ModelKey[Any], names: Iterable[str]) -> None:
    """Refuse an unknown name, even if the item turns out to be missing."""
    for name in names:
        _loader(key.model, name)


def _check_values(key: ModelKey[Any], values: Mapping[str, Any]) -> None:
    """Refuse invalid values for a new item, even if the item turns out to exist."""
    for name, value in values.items():
        field = key.schema.fields.get(name)
        if field is None:
            raise unknown_field(key.schema, name)
        if field.validate(value) != key.components.get(name, value):
            raise field.refusal("create_if_missing has another value for it than the key")


def _check_distinct(keys: Sequence[ModelKey[Any]]) -> None:
    seen = set()
    for key in keys:
        if not isinstance(key, ModelKey):
            raise InvalidOptionsError(f"{key!r:.80} is not a key", hint="make one with Model.key(...)")
        if key in seen:
            raise DuplicateItemError(f"{key!r} is requested twice", hint="pass each key once")
        seen.add(key)


async def get_many(
    context: Context, unit: Unit | None, reads: list[GetItem], strong: bool
) -> Sequence[Item | None]:
    """The stored item under each key: as of one instant or, if not ``strong``, each independently."""
    if not reads:
        return []
    if strong:
        if len(reads) > TransactGet.most:
            raise TransactionTooLarge(
                f"{len(reads)} items cannot be read as of one instant; DynamoDB's limit is {TransactGet.most}",
                hint="read them with consistent=False, or in several calls",
            )
        if unit is not None:
            unit.requests += 1
        return (await context.port.send(TransactGet(tuple(reads)))).items
    if unit is not None:
        unit.requests += len(reads)
    return await read_items(context.port, reads)


def _present(context: Context, binding: Binding, raw: Item | None) -> Item | None:
    """The item, unless it has expired."""
    gone = raw is not None and binding.ttl in raw and has_expired(binding, raw, context.port.now())
    return None if gone else raw


def _find_fields(schemas: Iterable[ModelSchema], only: Iterable[Any]) -> list[Field[Any]]:
    """The fields that ``only`` names, of all models that have them."""
    models = tuple(schemas)
    names = [find_field(models, name).name for name in only]
    family = [each for schema in models for each in schema.family()]
    return [each.fields[name] for name in names for each in family if name in each.fields]


def _project(parts: Sequence[tuple[Binding, Sequence[Field[Any]]]]) -> dict[str, tuple[Path, ...]]:
    """The attributes to fetch from each table; none, which means all, if an item must be read whole."""
    names: dict[str, list[str]] = {}
    for binding, fields in parts:
        names.setdefault(binding.table, []).extend(list_attributes(binding, [binding.schema], fields))
    whole = {binding.table for binding, _ in parts if read_whole(binding.schema)}
    return {
        table: () if table in whole else tuple(Path((name,)) for name in dict.fromkeys(found))
        for table, found in names.items()
    }


def _receive(
    unit: Unit | None,
    binding: Binding,
    key: ModelKey[Any],
    raw: Item | None,
    stored: Item | None,
    fields: Sequence[Field[Any]] | None = None,
    model: ModelSchema | None = None,
) -> Any:
    """The instance for a reply, with all fields or with these; a missing item is tracked as missing.

    ``model`` is the item's, if that is known.
    """
    if raw is None or stored is None:
        return None if unit is None else unit.miss(key)
    if fields is not None:
        if unit is None:
            return make_part(binding, stored, key, fields)
        return unit.receive_part(binding, raw, stored, key, fields)
    if unit is None:
        return make_frozen(binding, stored, key, model)
    return unit.receive(binding, raw, stored, key, model)


async def load(context: Context, items: Iterable[object], names: Sequence[str]) -> None:
    """Load attributes, such as attachments, for all items of a class at once; classes are loaded concurrently."""
    classes: dict[type, list[Any]] = {}
    for item in items:
        if item is None or isinstance(item, str | type):
            raise InvalidOptionsError(
                f"{item!r:.80} is not an item", hint="pass items, then names: load(items, name)"
            )
        classes.setdefault(type(item), []).append(item)
    groups: dict[tuple[type, str], tuple[Loader, list[str]]] = {}
    for model in classes:
        for name in dict.fromkeys(names):
            loader = _loader(model, name)
            groups.setdefault((model, loader.kind), (loader, []))[1].append(name)
    flows = [
        loader.load_for(context, classes[model], wanted) for (model, _), (loader, wanted) in groups.items()
    ]
    if len(flows) == 1:
        await flows[0]
    elif flows:
        for outcome in await context.port.gather(flows):
            outcome.result()


def _loader(model: type, name: str) -> Loader:
    loader = inspect.getattr_static(model, name, None)
    if not isinstance(loader, Loader):
        known = [other for other, value in inspect.getmembers_static(model) if isinstance(value, Loader)]
        raise InvalidOptionsError(
            f"{model.__name__} has no attachment {name!r}",
            hint=suggest_name(name, known, "attachments"),
        )
    return loader
