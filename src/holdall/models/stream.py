"""Turns records of DynamoDB Streams into changes of models.

Pure: it reads the event of a Lambda function, or the reply of GetRecords, and sends no requests. In the database's
table, an item names its model. A model's own table is recognized by its name, and its models by their default sort
keys. Items of other models, guards of unique fields and items of other programs are skipped. Anything that is not a
stream record raises `InvalidRequestError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.schema import KeyAttribute
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError, InvalidRequestError
from holdall.models.codec.stored_form import plain
from holdall.models.keys.key import ModelKey, default_sort, find_stored_key
from holdall.models.keys.stored import decode_key
from holdall.models.marks import FROZEN, Partial
from holdall.models.model import Model, build_instance
from holdall.models.schema import TYPE, ModelSchema
from holdall.models.stream_record import StreamRecord, list_records, refuse_record

M = TypeVar("M", bound=Model)
M_co = TypeVar("M_co", bound=Model, covariant=True)

ChangeKind = Literal["insert", "modify", "remove", "archived", "restored"]

_SORT = "_sk"  # the sort key of a table in the ancestor's form
_USUAL = "pk"  # the default partition key of the database's table


@dataclass(frozen=True, slots=True)
class StreamChange(Generic[M_co]):
    """A change of one item.

    ``old`` and ``new`` are the item before and after, if the stream's view includes them; they cannot be changed.
    ``kind`` is ``archived`` if the item became a pointer to its archived content, and ``restored`` if a write, which
    may also have changed it, replaced the pointer. Nothing is fetched: only the fields that a pointer keeps can be
    read. ``expired``: DynamoDB removed the item because its TTL had passed. ``at`` is the approximate time of the
    change. If the record has neither item, ``model`` is the model whose name the key begins with: a key does not
    distinguish models that derive from it.
    """

    kind: ChangeKind
    model: type[M_co]
    key: ModelKey[M_co]
    old: M_co | None
    new: M_co | None
    expired: bool
    sequence_number: str | None
    at: datetime | None
    event_id: str | None


def stream_changes(
    event: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    *models: type[M],
    table_prefix: str = "",
    table: str | None = None,
    partition_key: str | None = None,
) -> list[StreamChange[M]]:
    """Return the changes to items of these models and of models derived from them, in order; skip all others.

    ``event`` is the event of a Lambda function, the reply of GetRecords, or the records themselves. ``table_prefix`` is
    the database's setting. Records of GetRecords do not name their table: for models with their own table, pass it as
    ``table``. Pass ``partition_key`` if the partition key is not ``pk`` and the stream contains only keys.
    """
    decoder = _Decoder(models, table_prefix, table, partition_key)
    changes = (decoder.change(record) for record in list_records(event))
    return [change for change in changes if change is not None]


def stream_change(
    record: Mapping[str, Any],
    *models: type[M],
    table_prefix: str = "",
    table: str | None = None,
    partition_key: str | None = None,
) -> StreamChange[M] | None:
    """Return the change in one record; None if it concerns none of these models. See `stream_changes`."""
    return _Decoder(models, table_prefix, table, partition_key).change(record)


class _Decoder:
    """Finds the requested models by what identifies them in a record."""

    def __init__(
        self, models: tuple[Any, ...], prefix: str, table: str | None, partition_key: str | None
    ) -> None:
        self._table = table
        self._partition_key = partition_key
        self._named: dict[str, ModelSchema] = {}
        self._roots: dict[str, ModelSchema] = {}
        self._own: dict[str, list[ModelSchema]] = {}
        schemas = [each for model in models for each in _schema(model).family() if not each.abstract]
        self._wanted = {*schemas}
        for schema in schemas:
            root = _root(schema)
            if schema.table is None:
                self._named.setdefault(schema.name, schema)
                self._roots.setdefault(root.name, root)
            else:
                roots = self._own.setdefault(prefix + schema.table, [])
                roots += [] if root in roots else [root]
        if not schemas:
            raise InvalidOptionsError(
                "no models were passed", hint="pass the models: stream_changes(event, Order, User)"
            )

    def change(self, given: Any) -> StreamChange[Any] | None:
        record = StreamRecord(given)
        roots = self._own_roots(record)
        if roots:
            return self._own_change(record, roots)
        old, new = self._instance(record, record.old), self._instance(record, record.new)
        item = old if new is None else new
        if item is not None:
            return _change(record, item.key, old, new, item._schema)
        if record.old is not None or record.new is not None:
            return None
        key = self._key(record)
        return None if key is None else _change(record, key, None, None, key.schema)

    # --- the one table ------------------------------------------------------------------------------------

    def _instance(self, record: StreamRecord, image: Item | None) -> Any:
        schema = None if image is None else self._named.get(image.get(TYPE, {}).get("S", ""))
        if image is None or schema is None:
            return None
        return _prepare(_build(schema, record, image, None))

    def _key(self, record: StreamRecord) -> ModelKey[Any] | None:
        """Return the key of a record without images. Its attributes do not show which one is the partition key."""
        if len(record.keys) != 2:
            return None
        first, second = record.keys
        known = self._partition_key or (_USUAL if _USUAL in record.keys else None)
        ways = [(first, second), (second, first)]
        found = [self._decode(record, *way) for way in ways if known in (None, way[0])]
        keys = [key for key in found if key is not None]
        if len(keys) > 1:
            raise InvalidOptionsError(
                f"either {first!r} or {second!r} could be the partition key", hint="pass partition_key=…"
            )
        return keys[0] if keys else None

    def _decode(self, record: StreamRecord, partition: str, sort: str) -> ModelKey[Any] | None:
        h, r = record.keys[partition].get("S"), record.keys[sort].get("S")
        if h is None or r is None:
            return None
        root = self._roots.get(h.partition("#")[0]) or self._roots.get(r.partition("#")[0])  # in a collection
        return None if root is None else decode_key(root, h, r)

    # --- tables of their own ------------------------------------------------------------------------------

    def _own_roots(self, record: StreamRecord) -> list[ModelSchema]:
        """Return the models of the record's table, if it is a model's own table."""
        name = record.table or self._table
        if name is not None or any(TYPE in image for image in (record.old, record.new) if image):
            return [] if name is None else self._own.get(name, [])
        fitting = [roots for roots in self._own.values() if any(_fits(root, record) for root in roots)]
        if len(fitting) > 1:
            raise InvalidOptionsError(
                "the record does not name its table, and it fits several",
                hint="pass table=…",
            )
        return fitting[0] if fitting else []

    def _own_change(self, record: StreamRecord, roots: list[ModelSchema]) -> StreamChange[Any] | None:
        fitting = [root for root in roots if _fits(root, record)]
        if not fitting:
            raise refuse_record(
                f"the key of {roots[0].name} is not {', '.join(record.keys)}",
                hint=f"its table has the key {', '.join(key.name for key in _own_keys(roots[0]))}",
            )
        schema = _find_own_model(fitting, record)
        components = None if schema is None else _components(schema, record)
        if schema is None or components is None or schema not in self._wanted:
            return None
        key = find_stored_key(schema, components, record.keys)
        old, new = (
            None if image is None else _own_instance(schema, record, image, key)
            for image in (record.old, record.new)
        )
        return _change(record, key, old, new, schema)


def _schema(model: Any) -> ModelSchema:
    if isinstance(model, type) and issubclass(model, Model) and "_schema" in vars(model):
        return model._schema
    raise InvalidOptionsError(f"{model!r:.80} is not a model")


def _root(schema: ModelSchema) -> ModelSchema:
    """Return the model that declares the key of this one."""
    known: list[ModelSchema | None] = [vars(base).get("_schema") for base in schema.model.__mro__]
    return next(each for each in known if each is not None and each.name == schema.root)


def _fits(root: ModelSchema, record: StreamRecord) -> bool:
    return record.keys.keys() == {key.name for key in _own_keys(root)}


def _own_keys(schema: ModelSchema) -> list[KeyAttribute]:
    return [key for key in schema.form.table_keys() or () if key is not None]


def _find_own_model(roots: list[ModelSchema], record: StreamRecord) -> ModelSchema | None:
    """Return the model that the item names, or the one with this default sort key; otherwise the first that fits.

    None if the item names a model that is none of these; a record without images does not show that.
    """
    sort = plain(record.keys[_SORT]) if _SORT in record.keys else None
    image = record.new or record.old or {}
    models = [(root, root.of(image, sort)) for root in roots]
    found = [
        model or root for root, model in models if model is not None or not (image and root.form.is_parsed)
    ]
    certain = [schema for schema in found if sort is not None and default_sort(schema) == sort]
    fitting = (schema for schema in (*certain, *found) if _components(schema, record) is not None)
    return next(fitting, found[0] if found else None)


def _components(schema: ModelSchema, record: StreamRecord) -> dict[str, Any] | None:
    """Return the components of a key of a model's own table; None if it is not a key of the model."""
    try:
        partition, *sort = (record.keys[key.name] for key in _own_keys(schema))
        return schema.form.components(partition, sort[0] if sort else None)
    except InvalidRequestError:
        return None


def _own_instance(schema: ModelSchema, record: StreamRecord, image: Item, key: ModelKey[Any]) -> Any:
    item = _build(schema, record, image, key)
    fields = schema.key_fields
    alone = schema.form.in_key_alone  # elsewhere, an attribute may have the value in another case
    item.__dict__.update(
        {name: value for name, value in key.components.items() if alone or fields[name].stored not in image}
    )
    return _prepare(item)


def _build(schema: ModelSchema, record: StreamRecord, image: Item, key: ModelKey[Any] | None) -> Any:
    """Make an instance of an image, converted to this version of the model. If the item has just been archived, its
    content comes from the image before it."""
    if _is_pointer(schema, image):
        before = record.old
        if image is not record.new or before is None or _is_pointer(schema, before):
            fetched = frozenset(
                name for name, field in schema.fields.items() if field.is_key or field.stored in image
            )
            return build_instance(schema.model, image, Partial(fetched), key)
        image = {**before, **image}
    if schema.migrations is not None:
        image = schema.migrations.current(image, list(record.keys))
    return build_instance(schema.model, image, FROZEN, key)


def _prepare(item: Any) -> Any:
    """Call the hook of an item, unless it has only a part of its fields."""
    if item._schema.prepares and not isinstance(item._marks, Partial):
        item.after_load()
    return item


def _is_pointer(schema: ModelSchema, image: Item) -> bool:
    return schema.hydrator is not None and schema.hydrator.is_pointer(image)


def _kind(schema: ModelSchema, record: StreamRecord) -> ChangeKind:
    """Return what happened, as far as the images show it."""
    if record.kind != "modify" or record.new is None:
        return record.kind
    if _is_pointer(schema, record.new):
        return "archived"
    return "restored" if record.old is not None and _is_pointer(schema, record.old) else "modify"


def _change(
    record: StreamRecord, key: ModelKey[Any], old: Any, new: Any, schema: ModelSchema
) -> StreamChange[Any]:
    return StreamChange(
        _kind(schema, record),
        key.model,
        key,
        old,
        new,
        record.expired,
        record.sequence_number,
        record.at,
        record.event_id,
    )
