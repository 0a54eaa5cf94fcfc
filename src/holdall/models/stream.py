"""Turns records of DynamoDB Streams into changes of models.

Pure: it reads the event of a Lambda function, or the reply of GetRecords, and sends no requests. In the database's
table, an item names its model. A model's own table is recognised by its name, and its models by their default sort
keys. Items of other models, guards of unique fields and items of other programs are skipped. Anything that is not a
stream record raises `InvalidRequestError`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.measure import canonical_item
from holdall.core.schema import KeyAttribute
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError, InvalidRequestError, InvalidValueError
from holdall.models.keys import ModelKey, find_stored_key
from holdall.models.marks import FROZEN, Partial
from holdall.models.model import Model, build_instance
from holdall.models.schema import TYPE, ModelSchema
from holdall.models.stored_form import plain
from holdall.models.stored_key import decode_key

M = TypeVar("M", bound=Model)
M_co = TypeVar("M_co", bound=Model, covariant=True)

ChangeKind = Literal["insert", "modify", "remove", "archived", "restored"]

_KINDS: dict[str, ChangeKind] = {"INSERT": "insert", "MODIFY": "modify", "REMOVE": "remove"}
_EXPIRER = "dynamodb.amazonaws.com"
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
    changes = (decoder.change(record) for record in _records(event))
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


# --- records ----------------------------------------------------------------------------------------------


def _records(event: Any) -> Iterable[Any]:
    records = event.get("Records") if isinstance(event, Mapping) else event
    if records is None:
        raise _refusal("it has no Records", hint="for a single record, use stream_change")
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise _refusal(f"its records must be a list, not {type(records).__name__}")
    return records


def _refusal(problem: str, *, hint: str | None = None) -> InvalidRequestError:
    """Return an error that says what is wrong, without the content of the record."""
    usual = "pass the event of your Lambda function, or the reply of GetRecords"
    return InvalidRequestError(f"this is not from a DynamoDB stream: {problem}", hint=hint or usual)


class _Record:
    """A record, checked: its keys, and its images in DynamoDB's JSON form."""

    def __init__(self, record: Any) -> None:
        if not isinstance(record, Mapping):
            raise _refusal(f"a record must be a mapping, not {type(record).__name__}")
        source = record.get("eventSource", "aws:dynamodb")
        if source != "aws:dynamodb":
            raise _refusal(f"its eventSource is {source!r:.40}")
        event, change = record.get("eventName"), record.get("dynamodb")
        kind = _KINDS.get(event) if isinstance(event, str) else None
        if kind is None:
            raise _refusal(f"its eventName is {event!r:.40}")
        if not isinstance(change, Mapping):
            raise _refusal("a record has no 'dynamodb'")
        self.kind = kind
        self.keys = _item("Keys", change.get("Keys"))
        self.old, self.new = (
            None if change.get(name) is None else _item(name, change[name])
            for name in ("OldImage", "NewImage")
        )
        self.table = _table_name(record.get("eventSourceARN"))
        self.expired = kind == "remove" and _was_expirer(record.get("userIdentity"))
        self.sequence_number: str | None = change.get("SequenceNumber")
        self.at = _moment(change.get("ApproximateCreationDateTime"))
        self.event_id: str | None = record.get("eventID")


def _table_name(arn: object) -> str | None:
    """Find the table in ``arn:aws:dynamodb:eu-central-1:1234:table/Orders/stream/2026-01-31T09:30:00.000``."""
    if arn is None:
        return None
    _, mark, rest = arn.partition(":table/") if isinstance(arn, str) else ("", "", "")
    if not mark or not rest:
        raise _refusal("its eventSourceARN is not the ARN of a table's stream")
    return rest.partition("/")[0]


def _was_expirer(identity: object) -> bool:
    """Whether the identity is DynamoDB's TTL. Lambda and GetRecords spell the name differently."""
    if not isinstance(identity, Mapping):
        return False
    return _EXPIRER in (identity.get("principalId"), identity.get("PrincipalId"))


def _moment(given: object) -> datetime | None:
    """Return a time that Lambda gives as seconds since 1970 and boto3 as a datetime."""
    if isinstance(given, datetime):
        return given.astimezone(UTC)
    return datetime.fromtimestamp(float(given), UTC) if isinstance(given, int | float | Decimal) else None


# --- attributes -------------------------------------------------------------------------------------------


def _item(name: str, given: object) -> Item:
    """Check attributes; errors do not contain their content."""
    if given is None:
        raise _refusal(f"a record has no {name}")
    if not isinstance(given, Mapping) or not given:
        raise _refusal(f"its {name} are not attributes")
    try:
        return canonical_item({each: _attribute(value) for each, value in given.items()})[0]
    except InvalidValueError:
        hint = 'DynamoDB\'s JSON form is {"name": {"S": "text"}}'
        raise _refusal(f"its {name} are not in DynamoDB's JSON form", hint=hint) from None


def _attribute(given: Any) -> Any:
    """Return an attribute with bytes, as boto3 returns them, converted to base64; everything else unchanged."""
    if not isinstance(given, Mapping) or len(given) != 1:
        return given
    ((kind, content),) = given.items()
    if kind == "B":
        return {kind: _base64(content)}
    if kind == "M" and isinstance(content, Mapping):
        return {kind: {name: _attribute(each) for name, each in content.items()}}
    if kind in ("L", "BS") and isinstance(content, list):
        return {kind: [_attribute(each) if kind == "L" else _base64(each) for each in content]}
    return given


def _base64(content: Any) -> Any:
    return b64encode(content).decode("ascii") if isinstance(content, bytes | bytearray) else content


# --- models -----------------------------------------------------------------------------------------------


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
        record = _Record(given)
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

    def _instance(self, record: _Record, image: Item | None) -> Any:
        schema = None if image is None else self._named.get(image.get(TYPE, {}).get("S", ""))
        if image is None or schema is None:
            return None
        return _prepare(_build(schema, record, image, None))

    def _key(self, record: _Record) -> ModelKey[Any] | None:
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

    def _decode(self, record: _Record, partition: str, sort: str) -> ModelKey[Any] | None:
        h, r = record.keys[partition].get("S"), record.keys[sort].get("S")
        if h is None or r is None:
            return None
        root = self._roots.get(h.partition("#")[0]) or self._roots.get(r.partition("#")[0])  # in a collection
        return None if root is None else decode_key(root, h, r)

    # --- tables of their own ------------------------------------------------------------------------------

    def _own_roots(self, record: _Record) -> list[ModelSchema]:
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

    def _own_change(self, record: _Record, roots: list[ModelSchema]) -> StreamChange[Any] | None:
        fitting = [root for root in roots if _fits(root, record)]
        if not fitting:
            raise _refusal(
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


def _fits(root: ModelSchema, record: _Record) -> bool:
    return record.keys.keys() == {key.name for key in _own_keys(root)}


def _own_keys(schema: ModelSchema) -> list[KeyAttribute]:
    return [key for key in schema.form.table_keys() or () if key is not None]


def _find_own_model(roots: list[ModelSchema], record: _Record) -> ModelSchema | None:
    """Return the model that the item names, or the one with this default sort key; otherwise the first that fits.

    None if the item names a model that is none of these; a record without images does not show that.
    """
    sort = plain(record.keys[_SORT]) if _SORT in record.keys else None
    image = record.new or record.old or {}
    models = [(root, root.of(image, sort)) for root in roots]
    found = [
        model or root for root, model in models if model is not None or not (image and root.form.is_parsed)
    ]
    certain = [schema for schema in found if sort is not None and schema.sort_default() == sort]
    fitting = (schema for schema in (*certain, *found) if _components(schema, record) is not None)
    return next(fitting, found[0] if found else None)


def _components(schema: ModelSchema, record: _Record) -> dict[str, Any] | None:
    """Return the components of a key of a model's own table; None if it is not a key of the model."""
    try:
        partition, *sort = (record.keys[key.name] for key in _own_keys(schema))
        return schema.form.components(partition, sort[0] if sort else None)
    except InvalidRequestError:
        return None


def _own_instance(schema: ModelSchema, record: _Record, image: Item, key: ModelKey[Any]) -> Any:
    item = _build(schema, record, image, key)
    fields = schema.key_fields
    alone = schema.form.in_key_alone  # elsewhere, an attribute may have the value in another case
    item.__dict__.update(
        {name: value for name, value in key.components.items() if alone or fields[name].stored not in image}
    )
    return _prepare(item)


def _build(schema: ModelSchema, record: _Record, image: Item, key: ModelKey[Any] | None) -> Any:
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


def _kind(schema: ModelSchema, record: _Record) -> ChangeKind:
    """Return what happened, as far as the images show it."""
    if record.kind != "modify" or record.new is None:
        return record.kind
    if _is_pointer(schema, record.new):
        return "archived"
    return "restored" if record.old is not None and _is_pointer(schema, record.old) else "modify"


def _change(
    record: _Record, key: ModelKey[Any], old: Any, new: Any, schema: ModelSchema
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
