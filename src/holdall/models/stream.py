"""Records of DynamoDB Streams as changes of models.

Pure: it reads what Lambda is called with, or what GetRecords answered, and asks nobody. In the one table an item names
its model itself; an own table is known by its name, and its models by their sort keys' defaults. What is of none of the
models asked for (other models, guards of unique fields, items of somebody else) is left out. What is no record at all
raises `InvalidRequestError`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.values import Item, canonical_item
from holdall.errors import InvalidOptionsError, InvalidRequestError, InvalidValueError
from holdall.models.keys import ModelKey, decode_components
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
_PARTITION, _SORT = "_id", "_sk"  # the key of an own table
_USUAL = "pk"  # the partition key of the one table, where nobody called it something else


@dataclass(frozen=True, slots=True)
class StreamChange(Generic[M_co]):
    """A change of one item.

    ``old`` and ``new`` are the item before and after, as far as the stream's view has them; they cannot be changed.
    An item that was ``archived`` is left as a pointer; one that was ``restored`` came back with a write, which may have
    changed it. Nothing is fetched: of a pointer only the fields that stay in the table can be read.
    ``expired``: it was removed because its time was over. ``at`` is about when it happened. Without either item
    ``model`` is the one whose name keys begin with: models derived from it cannot be told apart by a key.
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
    """The changes of items of these models, and of those derived from them, in their order; others are left out.

    ``event`` is what Lambda was called with, what GetRecords answered, or the records themselves. ``table_prefix`` is
    the database's. Records of GetRecords do not say which table they are of: ``table`` does, for models with tables of
    their own. ``partition_key`` is the name of that attribute, when it is not ``pk`` and the stream has keys alone.
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
    """The change that one record tells of; None when it is of none of these models. As `stream_changes`."""
    return _Decoder(models, table_prefix, table, partition_key).change(record)


# --- records ----------------------------------------------------------------------------------------------


def _records(event: Any) -> Iterable[Any]:
    records = event.get("Records") if isinstance(event, Mapping) else event
    if records is None:
        raise _refusal("it has no Records", hint="for a single record there is stream_change")
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise _refusal(f"its records are a {type(records).__name__}")
    return records


def _refusal(problem: str, *, hint: str | None = None) -> InvalidRequestError:
    """Says what is wrong, and never what is in it."""
    usual = "hand over the event that Lambda was called with, or what GetRecords answered"
    return InvalidRequestError(f"this is not from a DynamoDB stream: {problem}", hint=hint or usual)


class _Record:
    """A record, checked: its keys, and its images in DynamoDB's JSON form."""

    def __init__(self, record: Any) -> None:
        if not isinstance(record, Mapping):
            raise _refusal(f"a record is a {type(record).__name__}")
        source = record.get("eventSource", "aws:dynamodb")
        if source != "aws:dynamodb":
            raise _refusal(f"its source is {source!r:.40}")
        event, told = record.get("eventName"), record.get("dynamodb")
        kind = _KINDS.get(event) if isinstance(event, str) else None
        if kind is None:
            raise _refusal(f"its eventName is {event!r:.40}")
        if not isinstance(told, Mapping):
            raise _refusal("a record says nothing under 'dynamodb'")
        self.kind = kind
        self.keys = _item("Keys", told.get("Keys"))
        self.old, self.new = (
            None if told.get(name) is None else _item(name, told[name]) for name in ("OldImage", "NewImage")
        )
        self.table = _table_name(record.get("eventSourceARN"))
        self.expired = kind == "remove" and _was_expirer(record.get("userIdentity"))
        self.sequence_number: str | None = told.get("SequenceNumber")
        self.at = _moment(told.get("ApproximateCreationDateTime"))
        self.event_id: str | None = record.get("eventID")


def _table_name(arn: object) -> str | None:
    """``arn:aws:dynamodb:eu-central-1:1234:table/Orders/stream/2026-01-31T09:30:00.000``."""
    if arn is None:
        return None
    _, mark, rest = arn.partition(":table/") if isinstance(arn, str) else ("", "", "")
    if not mark or not rest:
        raise _refusal("its eventSourceARN is not a table's")
    return rest.partition("/")[0]


def _was_expirer(identity: object) -> bool:
    """Lambda and GetRecords begin the name with different letters."""
    if not isinstance(identity, Mapping):
        return False
    return _EXPIRER in (identity.get("principalId"), identity.get("PrincipalId"))


def _moment(given: object) -> datetime | None:
    """Seconds since 1970 from Lambda, a datetime from boto3."""
    if isinstance(given, datetime):
        return given.astimezone(UTC)
    return datetime.fromtimestamp(float(given), UTC) if isinstance(given, int | float | Decimal) else None


# --- attributes -------------------------------------------------------------------------------------------


def _item(name: str, given: object) -> Item:
    """Attributes, checked; errors tell nothing of what is in them."""
    if given is None:
        raise _refusal(f"a record has no {name}")
    if not isinstance(given, Mapping) or not given:
        raise _refusal(f"its {name} are not attributes")
    try:
        return canonical_item({each: _attribute(value) for each, value in given.items()})[0]
    except InvalidValueError:
        hint = 'which is {"name": {"S": "text"}}'
        raise _refusal(f"its {name} are not in DynamoDB's JSON form", hint=hint) from None


def _attribute(given: Any) -> Any:
    """An attribute with its bytes, which boto3 gives as such, as base64; whatever else it is, as it is."""
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
    """Knows the models that are asked for, by what tells them."""

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
            raise InvalidOptionsError("no model was named", hint="write stream_changes(event, Order, User)")

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
        return _build(schema, record, image, None)

    def _key(self, record: _Record) -> ModelKey[Any] | None:
        """The key of a record without an image. Its attributes do not say which of them is the partition key."""
        if len(record.keys) != 2:
            return None
        first, second = record.keys
        known = self._partition_key or (_USUAL if _USUAL in record.keys else None)
        ways = [(first, second), (second, first)]
        found = [self._decode(record, *way) for way in ways if known in (None, way[0])]
        keys = [key for key in found if key is not None]
        if len(keys) > 1:
            raise InvalidOptionsError(
                f"{first!r} or {second!r} could be the partition key", hint="say so: partition_key=…"
            )
        return keys[0] if keys else None

    def _decode(self, record: _Record, partition: str, sort: str) -> ModelKey[Any] | None:
        h, r = record.keys[partition].get("S"), record.keys[sort].get("S")
        if h is None or r is None:
            return None
        root = self._roots.get(h.partition("#")[0])
        return None if root is None else decode_key(root, h, r)

    # --- tables of their own ------------------------------------------------------------------------------

    def _own_roots(self, record: _Record) -> list[ModelSchema]:
        """The models of the record's table, when it is one of theirs."""
        name = record.table or self._table
        if name is not None or any(TYPE in image for image in (record.old, record.new) if image):
            return [] if name is None else self._own.get(name, [])
        fitting = [roots for roots in self._own.values() if any(_fits(root, record) for root in roots)]
        if len(fitting) > 1:
            raise InvalidOptionsError(
                "the record does not say which table it is of, and several could be it",
                hint="say so: table=…",
            )
        return fitting[0] if fitting else []

    def _own_change(self, record: _Record, roots: list[ModelSchema]) -> StreamChange[Any] | None:
        fitting = [root for root in roots if _fits(root, record)]
        if not fitting:
            raise _refusal(
                f"the key of {roots[0].name} is not {', '.join(record.keys)}",
                hint="a model's own table has the key _id and, with a sort key, _sk",
            )
        schema = _model_by_sort_key(fitting, record)
        components = _components(schema, record)
        if components is None or schema not in self._wanted:
            return None
        key: ModelKey[Any] = ModelKey(schema, components)
        old, new = (
            None if image is None else _own_instance(schema, record, image, key)
            for image in (record.old, record.new)
        )
        return _change(record, key, old, new, schema)


def _schema(model: Any) -> ModelSchema:
    if isinstance(model, type) and issubclass(model, Model) and "_schema" in vars(model):
        return model._schema
    raise InvalidOptionsError(f"{model!r:.80} is no model")


def _root(schema: ModelSchema) -> ModelSchema:
    """The model with the key that this one has too."""
    known: list[ModelSchema | None] = [vars(base).get("_schema") for base in schema.model.__mro__]
    return next(each for each in known if each is not None and each.name == schema.root)


def _fits(root: ModelSchema, record: _Record) -> bool:
    return record.keys.keys() == ({_PARTITION, _SORT} if root.sort_keys else {_PARTITION})


def _model_by_sort_key(roots: list[ModelSchema], record: _Record) -> ModelSchema:
    """The model whose sort key's default it is; otherwise the first that nothing speaks against."""
    sort = plain(record.keys[_SORT]) if _SORT in record.keys else None
    found = [root.of({}, sort) or root for root in roots]
    told = [schema for schema in found if sort is not None and schema.sort_default() == sort]
    return next((schema for schema in (*told, *found) if _components(schema, record) is not None), found[0])


def _components(schema: ModelSchema, record: _Record) -> dict[str, Any] | None:
    """The components of an own table's key; None when it is not the model's."""
    try:
        found = decode_components(schema.keys, plain(record.keys[_PARTITION]))
        if schema.sort_keys:
            found |= decode_components(schema.sort_keys, plain(record.keys[_SORT]))
        return found
    except InvalidRequestError:
        return None


def _own_instance(schema: ModelSchema, record: _Record, image: Item, key: ModelKey[Any]) -> Any:
    item = _build(schema, record, image, key)
    item.__dict__.update(key.components)
    return item


def _build(schema: ModelSchema, record: _Record, image: Item, key: ModelKey[Any] | None) -> Any:
    """An image as this version of the model has it. What has just been archived is still in the image before it."""
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


def _is_pointer(schema: ModelSchema, image: Item) -> bool:
    return schema.hydrator is not None and schema.hydrator.is_pointer(image)


def _kind(schema: ModelSchema, record: _Record) -> ChangeKind:
    """What happened, as far as the images tell."""
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
