"""The description of a model: how it is declared and stored, as JSON data for commands, consoles and programs.

Pure. It looks at no table, so what it says of a table is what the model expects of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from holdall.core.schema import TTL, KeyAttribute
from holdall.errors import InvalidOptionsError
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT
from holdall.models.keys.form import AncestorForm, CollectionForm, SharedForm
from holdall.models.keys.part import NO_SORT_KEY

if TYPE_CHECKING:
    from holdall.models.indexes import BoundIndex
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema


class KeyFacts(TypedDict):
    """A key attribute of a table or an index.

    ``attribute`` is None for the key of the database's table, because its table decides the names. ``type`` is S, N or
    B. ``template`` shows how the text is made of fields, ``Order#{customer}``, if it is.
    """

    attribute: str | None
    type: str
    template: str | None


class FieldFacts(TypedDict):
    """A field of a model.

    ``type`` is the annotation as text. ``attribute`` is the stored name; None if the value is stored only in the key.
    ``kind`` is DynamoDB's letter for the stored value, None if there are several; ``stored`` is the option of that
    name. ``key`` is set for parts of the key. ``default`` is the default as Python text, or the factory's name.
    ``computed`` has the fields that a computed field is computed from; None for other fields.
    """

    name: str
    type: str
    attribute: str | None
    kind: str | None
    stored: str | None
    key: Literal["partition", "sort"] | None
    required: bool
    default: str | None
    unique: bool
    read_only: bool
    version: bool
    now: Literal["create", "update"] | None
    computed: list[str] | None
    hidden: bool
    casing: Literal["lower", "upper"] | None
    aliases: list[str]
    description: str | None


class IndexFacts(TypedDict):
    """An index of a model. ``table_index`` is its name in the table; ``include`` is None if it holds whole items."""

    name: str
    table_index: str
    key: list[str]
    sort_key: list[str]
    attributes: list[KeyFacts]
    include: list[str] | None
    local: bool


class ModelFacts(TypedDict):
    """A model.

    ``model`` is ``module:Class``, ``name`` the name in stored items. ``table`` is the model's own table, without the
    prefix of the settings; None for the database's table. ``layout`` is how items are laid out there: ``shared`` in the
    database's table, ``own`` in a table that Holdall made for the model, ``plain`` or ``template`` as declared.
    ``collection`` is the one whose partitions the model shares. ``type_attribute`` holds the model's name in each item,
    if an attribute does. ``expires_by`` is the attribute of expiry, ``version`` the field that counts writes.
    ``migrations`` are the names of the conversions.
    """

    model: str
    name: str
    description: str | None
    base: str | None
    table: str | None
    layout: Literal["shared", "own", "plain", "template"]
    collection: str | None
    key: list[str]
    sort_key: list[str]
    attributes: list[KeyFacts]
    type_attribute: str | None
    fields: list[FieldFacts]
    indexes: list[IndexFacts]
    unique: list[str]
    expires_by: str | None
    version: str | None
    attachments: list[str]
    archive: bool
    migrations: list[str]
    hooks: list[str]


def describe_model(model: type[Model]) -> ModelFacts:
    """Return how a model is declared and stored, as JSON data."""
    schema: ModelSchema | None = getattr(model, "_schema", None)
    if schema is None or schema.abstract:
        raise InvalidOptionsError(
            f"{getattr(model, '__name__', repr(model)):.80} is not a model with items",
            hint="pass a model class that is not abstract",
        )
    return {
        "model": _name_class(model),
        "name": schema.name,
        "description": model.__dict__.get("__doc__"),
        "base": _name_base(schema),
        "table": schema.table,
        "layout": _name_layout(schema),
        "collection": schema.form.head if isinstance(schema.form, CollectionForm) else None,
        "key": [field.name for field in schema.keys],
        "sort_key": [field.name for field in schema.sort_keys],
        "attributes": _describe_key(schema),
        "type_attribute": schema.form.type_attribute,
        "fields": [_describe_field(schema, field) for field in schema.fields.values()],
        "indexes": [_describe_index(schema, index) for index in schema.indexes.values()],
        "unique": [field.name for field in schema.plain if field.unique],
        "expires_by": None if schema.ttl is None else TTL if schema.table is None else schema.ttl.stored,
        "version": None if schema.version is None else schema.version.name,
        "attachments": list(schema.joiners),
        "archive": schema.hydrator is not None,
        "migrations": [getattr(each, "__name__", repr(each)) for each in schema.conversions],
        "hooks": [*schema.hooked, *(["after_load"] if schema.prepares else [])],
    }


def _name_class(model: type) -> str:
    return f"{model.__module__}:{model.__qualname__}"


def _name_base(schema: ModelSchema) -> str | None:
    """The model that this one derives from, and whose key it shares."""
    bases = ((base, vars(base).get("_schema")) for base in schema.model.__mro__[1:])
    return next((_name_class(base) for base, each in bases if each is not None and not each.abstract), None)


def _name_layout(schema: ModelSchema) -> Literal["shared", "own", "plain", "template"]:
    if isinstance(schema.form, SharedForm):
        return "shared"
    if isinstance(schema.form, AncestorForm):
        return "own"
    return "plain" if schema.layout == "plain" else "template"


def _describe_key(schema: ModelSchema) -> list[KeyFacts]:
    if isinstance(schema.form, SharedForm):
        head = "#".join([schema.form.head, *(f"{{{field.name}}}" for field in schema.keys)])
        texts = "\0".join(f"{{{field.name}}}" for field in schema.sort_keys)
        sort = f"{schema.form.sort_head}{texts}" or NO_SORT_KEY
        return [{"attribute": None, "type": "S", "template": text} for text in (head, sort)]
    keys = schema.form.table_keys()
    assert keys is not None
    templates = getattr(schema.layout, "key", {})
    return [_describe_attribute(key, templates) for key in keys if key is not None]


def _describe_attribute(key: KeyAttribute, templates: Mapping[str, str]) -> KeyFacts:
    return {"attribute": key.name, "type": key.type, "template": templates.get(key.name)}


def _describe_field(schema: ModelSchema, field: Field[Any]) -> FieldFacts:
    in_key_alone = field.is_key and schema.form.in_key_alone
    return {
        "name": field.name,
        "type": _show_type(field.codec.annotation),
        "attribute": None if in_key_alone else field.stored,
        "kind": field.codec.kind,
        "stored": field.codec.stored_as,
        "key": ("sort" if field.is_sort_key else "partition") if field.is_key else None,
        "required": not field.has_default and not field.is_kept,
        "default": _show_default(field),
        "unique": field.unique,
        "read_only": field.options.read_only,
        "version": field.options.version,
        "now": field.now,
        "computed": None if field.options.computed is None else list(field.options.computed[1]),
        "hidden": field.hidden,
        "casing": field.options.casing,
        "aliases": list(field.options.aliases),
        "description": field.description,
    }


def _describe_index(model: ModelSchema, index: BoundIndex) -> IndexFacts:
    declared, schema = index.declared, index.schema
    kind = "local" if index.local else "indexes"
    templates = getattr(model.layout, kind, {}).get(index.name, {})
    return {
        "name": index.name,
        "table_index": schema.name,
        "key": [field.name for field in index.key],
        "sort_key": [field.name for field in index.sort_key],
        "attributes": [_describe_attribute(key, templates) for key in schema.keys],
        "include": None if declared.include is None else list(declared.include),
        "local": index.local,
    }


def _show_type(annotation: Any) -> str:
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__name__
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", str(annotation))  # without the names of modules


def _show_default(field: Field[Any]) -> str | None:
    options = field.options
    if options.default_factory is not None:
        return f"{getattr(options.default_factory, '__qualname__', 'factory').lstrip('_')}()"
    return None if options.default is ABSENT else f"{options.default!r:.80}"
