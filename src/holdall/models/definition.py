"""Turns a class statement into a schema, and checks everything that can be checked before an item exists.

Pure. Mistakes raise `ModelDefinitionError`, which names the class and the field.
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from holdall.core.generator import is_generator_function
from holdall.core.nearest_name import suggest_name
from holdall.core.schema_rules import check_table_name
from holdall.errors import ConfigurationError, HoldallError, ModelDefinitionError
from holdall.models.annotation import is_set, peel
from holdall.models.codec import Codec, codec_for
from holdall.models.computation import Computed, ComputedField, derive_computed
from holdall.models.derived import Derived, Expiry
from holdall.models.fields import ABSENT, Field, FieldOptions, Key, SortKey, fold_case
from holdall.models.hydrator import Loader
from holdall.models.ids import IdKey
from holdall.models.indexes import BoundIndex, Index, PlainIndex
from holdall.models.key_form import (
    AncestorForm,
    CollectionForm,
    KeyForm,
    Layout,
    PlainForm,
    SharedForm,
    check_collection,
)
from holdall.models.migrations import Conversion, bind_migrations
from holdall.models.pattern import compile_decoder
from holdall.models.schema import ModelSchema
from holdall.models.template import Template

if TYPE_CHECKING:
    from holdall.models.hydrator import Hydrator, Joiner
    from holdall.models.model import Model

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_FOREIGN_NAME = re.compile(r"[^\s]+")
_SCALARS = {"S", "N", "B", "BOOL"}
_INDEX_ATTRIBUTE = re.compile(r"gsi\d+_(pk|sk)")


def define(
    cls: type[Model],
    *,
    name: str | None,
    table: str | None,
    layout: Layout | None,
    collection: str | None,
    abstract: bool,
    ttl: str | None,
    record_type: str | None,
    hydrator: Hydrator | None,
    indexes: Sequence[Index],
    migrations: Sequence[Conversion],
    names: Mapping[str, Any],
) -> None:
    """Make the schema of a class, and set its fields as attributes of the class."""
    parents: list[ModelSchema] = [
        base.__dict__["_schema"] for base in cls.__mro__[1:] if "_schema" in base.__dict__
    ]
    fields = _fields(cls, parents, names)
    root = next((parent for parent in parents if not parent.abstract), None)
    if root is not None:
        _check_same_key(cls, fields, root)
    elif not abstract and not any(field.is_key and not field.is_sort_key for field in fields.values()):
        fields = {"id": _default_id(cls, fields), **fields}
    home = _table(cls, table, root)
    expiry = _ttl(cls, fields, ttl, parents, own=home is not None)
    keys = tuple(f for f in fields.values() if isinstance(f, Key) and not f.is_sort_key)
    sort_keys = tuple(f for f in fields.values() if isinstance(f, SortKey))
    named = cls.__name__ if abstract and name is None else _model_name(cls, name, layout, root)
    key_name = named if root is None else root.root
    form = _form(cls, layout, _collection(cls, collection, home, root), home, root, key_name, fields)
    bound = _indexes(cls, indexes, parents, fields, form)
    derived: tuple[Derived, ...] = (
        *(index for index in bound if not isinstance(index, PlainIndex)),  # the store derives those itself
        *((Expiry(expiry),) if expiry is not None and home is None else ()),
    )
    hidden = frozenset(_find_hidden(fields, derived))
    derived = derive_computed(fields, derived)
    is_shared = (layout if root is None else root.layout) is not None
    for field in fields.values():
        field.foreign = form.foreign
        field.shared_set = is_shared and is_set(field.codec.annotation)
    fetcher = hydrator or next((parent.hydrator for parent in parents if parent.hydrator), None)
    versions = bind_migrations(cls, fields, migrations, parents, home)
    schema = ModelSchema(
        model=cls,
        name=named,
        root=key_name,
        record_type=record_type or (key_name if root is None else root.record_type),
        table=home,
        layout=layout if root is None else root.layout,
        form=form,
        abstract=abstract,
        keys=keys,
        sort_keys=sort_keys,
        key_fields={field.name: field for field in (*keys, *sort_keys)},
        mutable_keys=tuple(field for field in (*keys, *sort_keys) if field.codec.kind not in _SCALARS),
        plain=tuple(f for f in fields.values() if not f.is_key),
        fields=fields,
        ttl=expiry,
        version=_version(cls, fields, has_hydrator=fetcher is not None),
        hydrator=fetcher,
        joiners=_joiners(cls, fields),
        hooked=tuple(_list_hooks(cls)),
        prepares=_has_after_load(cls),
        locked=frozenset(_find_locked(fields, derived)),
        timed=tuple(field for field in fields.values() if field.now is not None),
        computed=tuple(field for field in fields.values() if isinstance(field, ComputedField)),
        hidden=hidden,
        derived=derived,
        indexes={index.name: index for index in bound},
        migrations=versions,
        used_as_stored=fetcher is None and versions is None,
    )
    _check(schema)
    if fetcher is not None:
        fetcher.adopt(schema)
    cls._schema = schema
    cls._fields = fields
    for field_name, field in fields.items():
        setattr(cls, field_name, field)
    _defer_decoder(cls, schema)


def _defer_decoder(cls: type[Model], schema: ModelSchema) -> None:
    """Compile the decoder of a class when it is first needed; many programs only write some of their models."""

    def decode_first(item: Any) -> dict[str, Any]:
        stored = schema.plain if schema.form.in_key_alone else schema.fields.values()
        cls._decode_all = staticmethod(compile_decoder(field for field in stored if not field.is_computed))
        return cls._decode_all(item)

    cls._decode_all = staticmethod(decode_first)


def _joiners(cls: type[Model], fields: Mapping[str, Field[Any]]) -> tuple[Joiner, ...]:
    """Return the class attributes, including inherited ones, that take part in transactions."""
    found = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
    return tuple(
        value for name, value in found.items() if name not in fields and hasattr(type(value), "participate")
    )


# --- fields ---------------------------------------------------------------------------------------------


def _fields(cls: type[Model], parents: list[ModelSchema], names: Mapping[str, Any]) -> dict[str, Field[Any]]:
    """Return the inherited fields, bound to this class, then its own. A bare value overrides an inherited default."""
    fields: dict[str, Field[Any]] = {}
    for parent in reversed(parents):
        for name, inherited in parent.fields.items():
            fields[name] = type(inherited)(cls.__name__, name, inherited.codec, inherited.options)
    annotated = dict(_annotations(cls, names))
    for name, annotation in annotated.items():
        _check_field_name(cls, name, fields)
        fields[name] = _field(cls, name, annotation, cls.__dict__.get(name, ABSENT))
    for name, given in list(cls.__dict__.items()):
        if isinstance(given, Computed):
            _check_field_name(cls, name, fields)
            fields[name] = _make_computed(cls, name, given, fields.get(name), names)
        elif name in fields and name not in annotated:
            _override(cls, fields, name, given)
        elif isinstance(given, FieldOptions) and name not in annotated:
            raise _wrong(cls, name, "it has no type", hint=f"add an annotation: {name}: str = field(...)")
    for field in fields.values():
        if isinstance(field, ComputedField):
            field.bind(cls, fields)
    return fields


def _annotations(cls: type[Model], names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    from inspect import get_annotations  # slow to load, so only when a model is defined

    for name, annotation in get_annotations(cls).items():
        found = _evaluate(cls, name, annotation, names)
        if typing.get_origin(found) is not ClassVar and found is not ClassVar:
            yield name, found


def _evaluate(cls: type[Model], name: str, annotation: Any, names: Mapping[str, Any]) -> Any:
    """Return the type that an annotation means."""
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    inner = {name: value for name, value in cls.__dict__.items() if isinstance(value, type)}
    holder = type(
        cls.__name__, (), {"__annotations__": {name: annotation}}
    )  # get_type_hints accepts ClassVar only in a class
    try:
        hints = typing.get_type_hints(
            holder, {**module}, {**names, cls.__name__: cls, **inner}, include_extras=True
        )
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise _wrong(
            cls,
            name,
            f"its annotation {annotation!r} cannot be evaluated: {error}",
            hint="define or import the type before the class, and not only under TYPE_CHECKING",
        ) from None
    return hints[name]


def _make_computed(
    cls: type[Model],
    name: str,
    given: Computed[Any],
    inherited: Field[Any] | None,
    names: Mapping[str, Any],
) -> Field[Any]:
    if inherited is not None and not inherited.is_computed:
        raise _wrong(
            cls, name, "a method or property has the same name as a field", hint="rename one of them"
        )
    try:
        annotation = given.function.__annotations__["return"]
    except (AttributeError, KeyError):
        raise _wrong(
            cls, name, "its method has no return type", hint=f"write def {name}(self) -> int: ..."
        ) from None
    return _field(cls, name, _evaluate(cls, name, annotation, names), given.options)


def _field(cls: type[Model], name: str, annotation: Any, given: Any) -> Field[Any]:
    options = given if isinstance(given, FieldOptions) else _only_default(given)
    kind: type[Field[Any]] = Field
    origin = typing.get_origin(annotation)
    if origin in (Key, SortKey):
        kind = origin
        (annotation,) = typing.get_args(annotation)
    elif annotation in (Key, SortKey):
        raise _wrong(
            cls, name, f"{annotation.__name__} needs a type", hint=f"write {annotation.__name__}[str]"
        )
    _check_inside(cls, name, annotation)
    try:
        codec = _codec(annotation, options)
        codec.kind  # noqa: B018 - checks, with pydantic if needed, whether the type can be stored at all
    except HoldallError as error:
        raise _wrong(cls, name, error.message, hint=error.hint) from error
    if options.default is None and codec.nullable:
        pass
    elif options.default is not ABSENT and options.default_factory is not None:
        raise _wrong(cls, name, "it has both a default and a default_factory", hint="remove one of them")
    kind = kind if options.computed is None else ComputedField
    return _check_field(cls, kind(cls.__name__, name, codec, options))


def _codec(annotation: Any, options: FieldOptions) -> Codec:
    if options.casing is not None:
        return _make_cased(annotation, options)
    if options.stored is None:
        return codec_for(annotation)
    from holdall.models.peer_form import codec_as

    return codec_as(annotation, options.stored)


def _make_cased(annotation: Any, options: FieldOptions) -> Codec:
    """Return a codec that changes the case of text before it validates it."""
    casing = options.casing
    if casing not in ("lower", "upper"):
        raise ModelDefinitionError(f'casing must be "lower" or "upper", not {casing!r:.60}')
    if peel(annotation).base is not str or options.stored is not None:
        raise ModelDefinitionError("only text has a casing", hint="make it a str, or leave out casing=")
    codec = Codec(annotation)  # not the one that other fields of this type share
    validate = codec.validate
    codec.validate = codec.comparable = lambda value: validate(fold_case(value, casing))
    return codec


def _check_inside(cls: type[Model], name: str, annotation: Any) -> None:
    """Check that the annotation contains no model, and `Key` or `SortKey` only as its outermost part."""
    from holdall.models.model import Model

    for part in _members(annotation):
        kind = typing.get_origin(part) or part
        if kind in (Key, SortKey):
            raise _wrong(
                cls,
                name,
                f"{kind.__name__} must be the outermost part of the annotation",
                hint=f"write {kind.__name__}[...] around the whole type, including Annotated",
            )
        if isinstance(part, type) and issubclass(part, Model):
            raise _wrong(
                cls,
                name,
                f"a field cannot hold another model, such as {part.__name__}",
                hint="store the key of the other item, or make the type a pydantic model or a dataclass",
            )


def _members(annotation: Any) -> Iterator[Any]:
    yield annotation
    for member in typing.get_args(annotation):
        if not isinstance(member, str):
            yield from _members(member)


def _only_default(default: Any) -> FieldOptions:
    return FieldOptions(default)


def _override(cls: type[Model], fields: dict[str, Field[Any]], name: str, given: Any) -> None:
    """Use a subclass's attribute with the name of an inherited field as the field's new default."""
    inherited = fields[name]
    options = inherited.options
    if isinstance(given, FieldOptions):
        keeps = given.default is ABSENT and given.default_factory is None
        options = FieldOptions(
            options.default if keeps else given.default,
            options.default_factory if keeps else given.default_factory,
            given.read_only or options.read_only,
            given.name or options.name,
            given.unique or options.unique,
            given.description or options.description,
            given.aliases or options.aliases,
            options.stored,
            given.version or options.version,
            given.now or options.now,
            given.hidden or options.hidden,
            options.casing,
        )
        if given.stored not in (None, options.stored):
            raise _wrong(cls, name, "stored= differs from that of the inherited field", hint="leave it out")
        if given.casing not in (None, options.casing):
            raise _wrong(cls, name, "casing= differs from that of the inherited field", hint="leave it out")
    elif hasattr(given, "__get__"):
        raise _wrong(
            cls, name, "a method or property has the same name as a field", hint="rename one of them"
        )
    else:
        options = FieldOptions(
            given,
            None,
            options.read_only,
            options.name,
            options.unique,
            options.description,
            options.aliases,
            options.stored,
            options.version,
            options.now,
            options.hidden,
            options.casing,
        )
    fields[name] = _check_field(cls, type(inherited)(cls.__name__, name, inherited.codec, options))


def _check_field(cls: type[Model], field: Field[Any]) -> Field[Any]:
    """Check that a field's options go together and its default fits; return the field."""
    options, name = field.options, field.name
    if options.default_factory is not None and not callable(options.default_factory):
        raise _wrong(cls, name, "its default_factory is not callable")
    if field.is_key:
        if field.codec.nullable:
            raise _wrong(cls, name, "part of a key cannot be None", hint="remove '| None' from its type")
        if options.default is not ABSENT and not field.is_sort_key:
            raise _wrong(
                cls,
                name,
                "part of a partition key cannot have a default",
                hint="pass a value for every item, or use default_factory",
            )
        if options.unique:
            raise _wrong(
                cls,
                name,
                "part of a key cannot be unique: the key as a whole already is",
                hint="remove unique=",
            )
        if options.hidden:
            raise _wrong(
                cls, name, "part of a key cannot be hidden: messages and logs name items by their keys"
            )
    if options.now is not None:
        _check_now(cls, field)
    if options.unique and field.codec.kind not in _SCALARS:
        raise _wrong(cls, name, "only a string, number, boolean or bytes field can be unique")
    if options.unique and options.stored == "json":
        raise _wrong(cls, name, "one value has several JSON texts, so it cannot be unique")
    if isinstance(options.default, Loader):
        raise _wrong(
            cls,
            name,
            "an attachment is not a field, so it is declared without an annotation",
            hint=f"remove the annotation: {name} = ...",
        )
    if options.default is not ABSENT:
        try:
            options.default = field.validate(options.default)
        except HoldallError as error:
            problem = getattr(error, "problem", error.message)
            raise _wrong(cls, name, f"its default does not fit its type: {problem}") from None
    return field


def _check_now(cls: type[Model], field: Field[Any]) -> None:
    """Check that Holdall can set a field to the time of a write."""
    options, name = field.options, field.name
    if options.now not in ("create", "update"):
        raise _wrong(cls, name, f'now= must be "create" or "update", not {options.now!r:.60}')
    if field.is_key or options.unique or options.version:
        raise _wrong(cls, name, "a field with now= cannot be part of a key, unique, or the version")
    if options.default not in (ABSENT, None) or options.default_factory is not None:
        raise _wrong(cls, name, "a field with now= cannot have a default", hint="Holdall sets its value")
    if field.codec.number is None and not field.codec.is_time:
        raise _wrong(cls, name, "a field with now= must be a datetime, an int or a float")


def _default_id(cls: type[Model], fields: Mapping[str, Field[Any]]) -> IdKey:
    if "id" in fields:
        raise _wrong(
            cls,
            "id",
            "the model has no key, and its id is not declared as one",
            hint="declare it as id: Key[...]",
        )
    return IdKey(cls.__name__)


# --- checks ---------------------------------------------------------------------------------------------


def _check_field_name(cls: type[Model], name: str, fields: Mapping[str, Field[Any]]) -> None:
    from holdall.models.model import Model

    if name.startswith("_"):
        raise _wrong(
            cls,
            name,
            "the name of a field cannot begin with an underscore",
            hint="rename it, or annotate it with ClassVar if it is not a field",
        )
    if name in fields:
        return
    if name in dir(Model):
        raise _wrong(
            cls,
            name,
            "a field cannot have this name, because every model has an attribute with it",
            hint="rename the field; name= keeps the stored name",
        )
    for base in cls.__mro__[1:]:
        if name in base.__dict__ and not isinstance(base.__dict__[name], Field):
            raise _wrong(cls, name, f"it hides an attribute of {base.__name__}", hint="rename the field")


def _check_same_key(cls: type[Model], fields: Mapping[str, Field[Any]], root: ModelSchema) -> None:
    own = [name for name, field in fields.items() if field.is_key]
    theirs = [field.name for field in (*root.keys, *root.sort_keys)]
    for name in sorted({*own} ^ {*theirs}):
        raise _wrong(
            cls,
            name,
            f"a subclass of {root.name} must have exactly the key of {root.name}",
            hint=f"to share only fields, make {root.name} abstract=True",
        )
    for name in own:
        if type(fields[name]) is not type(root.fields[name]):
            raise _wrong(cls, name, f"it must be a {type(root.fields[name]).__name__}, as in {root.name}")
        mine, theirs_too = fields[name].codec, root.fields[name].codec
        if (mine.annotation, mine.stored_as) != (theirs_too.annotation, theirs_too.stored_as):
            raise _wrong(
                cls, name, f"it must have the same type as in {root.name}, because they share their keys"
            )
        if fields[name].options.casing != root.fields[name].options.casing:
            raise _wrong(cls, name, f"it must have the casing that it has in {root.name}")


def _check(schema: ModelSchema) -> None:
    cls = schema.model
    by_stored: dict[str, str] = {}
    for name, field in schema.fields.items():
        if field.stored.startswith("_") and schema.form.reserves_names:
            raise _wrong(cls, name, f"its stored name {field.stored!r} cannot begin with an underscore")
        if _INDEX_ATTRIBUTE.fullmatch(field.stored) and schema.form.reserves_names:
            raise _wrong(cls, name, f"its stored name {field.stored} is reserved for indexes")
        if field.stored in by_stored:
            raise _wrong(
                cls, name, f"its stored name {field.stored!r} is already that of {by_stored[field.stored]}"
            )
        by_stored[field.stored] = name
        if field.unique and schema.table is not None:
            raise _wrong(cls, name, "a model with its own table (table=) cannot have a unique field")
        if field.unique and schema.ttl is not None:
            raise _wrong(cls, name, "a model whose items expire (ttl=) cannot have a unique field")
    for field in schema.key_fields.values():
        if schema.table is None and field.codec.kind is None:
            raise _wrong(
                cls,
                field.name,
                "its values have different stored types, so it cannot be part of a key: 1 and '1' would be one item",
                hint="use a single type: str, int, UUID, datetime, ...",
            )
    for field in schema.sort_keys:
        if schema.table is None and field.codec.kind not in _SCALARS:
            raise _wrong(cls, field.name, "a list or map has no order, so it cannot be part of a sort key")
    _check_peer_forms(schema)


def _check_peer_forms(schema: ModelSchema) -> None:
    """Check that fields in the forms of other programs are parts of keys only where these are stored as they are."""
    for field in schema.key_fields.values():
        if field.codec.stored_as is not None and schema.layout is None:
            raise _wrong(
                schema.model,
                field.name,
                "stored= applies to part of a key only in a table that another program laid out",
                hint="leave out stored=, or declare layout=",
            )
    if isinstance(schema.layout, Template):
        return  # a template knows which texts are in order
    indexes = schema.indexes.values()
    sorted_by = {
        field.name for field in (*schema.sort_keys, *(f for index in indexes for f in index.sort_key))
    }
    parts: list[Field[Any]] = [*schema.key_fields.values()]
    for part in (*parts, *(part for index in indexes for part in index.components)):
        form = part.codec.stored_as
        if form == "json" or (
            form == "iso" and part.name in sorted_by and not isinstance(schema.form, SharedForm)
        ):
            raise _wrong(
                schema.model,
                part.name,
                f'stored="{form}" does not go with a key, because its texts '
                + ("have no fixed spelling" if form == "json" else "do not sort as the times do"),
                hint='use stored="epoch" or "pynamodb", or declare the field as str',
            )


def _model_name(cls: type[Model], given: str | None, layout: Layout | None, root: ModelSchema | None) -> str:
    if root is None and isinstance(layout, Template) and layout.type_name is not None:
        if given is not None:
            raise ModelDefinitionError(
                f"{cls.__name__}: the template's type= gives the name of the model", hint="leave out name="
            )
        return layout.type_name
    name = cls.__name__ if given is None else given
    is_theirs = isinstance(layout if root is None else root.layout, Template)  # as another program names it
    if not (_FOREIGN_NAME if is_theirs else _NAME).fullmatch(name):
        raise ModelDefinitionError(
            f"{cls.__name__}: {name!r} cannot be the name of a model",
            hint="use text without spaces"
            if is_theirs
            else "use letters and digits, beginning with a capital letter; set another name with name=",
        )
    return name


def _table(cls: type[Model], given: str | None, root: ModelSchema | None) -> str | None:
    if root is not None:
        if given is not None and given != root.table:
            raise ModelDefinitionError(
                f"{cls.__name__}: a subclass of {root.name} is stored in the same table as {root.name}",
                hint="remove table=",
            )
        return root.table
    if given is not None:
        try:
            check_table_name(given)
        except ConfigurationError as error:
            raise ModelDefinitionError(f"{cls.__name__}: {error.message}", hint=error.hint) from None
    return given


def _form(
    cls: type[Model],
    layout: Layout | None,
    collection: str | None,
    table: str | None,
    root: ModelSchema | None,
    key_name: str,
    fields: Mapping[str, Field[Any]],
) -> KeyForm:
    """How the class's keys are stored; a subclass has its root's layout."""
    keys = tuple(f for f in fields.values() if isinstance(f, Key) and not f.is_sort_key)
    sort_keys = tuple(f for f in fields.values() if isinstance(f, SortKey))
    if root is not None:
        if layout is not None and layout != root.layout:
            raise ModelDefinitionError(
                f"{cls.__name__}: a subclass of {root.name} has the layout of {root.name}",
                hint="leave out layout=",
            )
        layout = root.layout
    if layout is None:
        if collection is not None:
            return CollectionForm(collection, key_name, keys, sort_keys)
        return SharedForm(key_name, keys, sort_keys) if table is None else AncestorForm(keys, sort_keys)
    if table is None:
        raise ModelDefinitionError(
            f"{cls.__name__}: layout= describes a table that other programs use, and the model names none",
            hint='name it: table="products"',
        )
    if isinstance(layout, Template):
        return layout.bind(cls, fields, keys, sort_keys)
    if layout != "plain":
        raise ModelDefinitionError(
            f"{cls.__name__}: layout is {layout!r:.60}", hint='it is "plain" or a Template'
        )
    return _plain_form(cls, root, keys, sort_keys)


def _collection(
    cls: type[Model], given: str | None, table: str | None, root: ModelSchema | None
) -> str | None:
    """The name of the collection; a subclass is in that of its root."""
    if root is not None:
        inherited = root.form.head if isinstance(root.form, CollectionForm) else None
        if given not in (None, inherited):
            raise ModelDefinitionError(
                f"{cls.__name__}: a subclass of {root.name} is stored where {root.name} is",
                hint="leave out collection=",
            )
        return inherited
    if given is not None and table is not None:
        raise ModelDefinitionError(
            f"{cls.__name__}: collection= is for models in the database's table, and this one has its own table",
            hint="leave out collection=; models that share partitions of their own table need no more than that",
        )
    return check_collection(cls.__name__, given)


def _plain_form(
    cls: type[Model], root: ModelSchema | None, keys: tuple[Key[Any], ...], sort_keys: tuple[Key[Any], ...]
) -> PlainForm:
    if root is not None:
        raise ModelDefinitionError(
            f"{cls.__name__}: nothing in a plain table tells items of {cls.__name__} and {root.name} apart",
            hint=f"make {root.name} abstract=True, or use a Template with type=",
        )
    if len(keys) > 1 or len(sort_keys) > 1:
        raise ModelDefinitionError(
            f"{cls.__name__}: a plain table has one partition key and at most one sort key",
            hint="declare one Key and one SortKey, or use a Template for keys that are made of several fields",
        )
    for field in (*keys, *sort_keys):
        if field.codec.kind not in ("S", "N", "B"):
            raise _wrong(cls, field.name, "a table's key is a string, a number or binary")
    return PlainForm(keys, sort_keys)


def _ttl(
    cls: type[Model],
    fields: Mapping[str, Field[Any]],
    given: str | None,
    parents: list[ModelSchema],
    *,
    own: bool,
) -> Field[Any] | None:
    inherited = next((parent.ttl.name for parent in parents if parent.ttl is not None), None)
    root = next((parent for parent in parents if not parent.abstract), None)
    if given is not None and root is not None and given != inherited:
        raise _wrong(
            cls,
            given,
            f"{root.name} and its subclasses share their keys, so they must expire by the same field",
            hint=f"set ttl= on {root.name}",
        )
    given = inherited if given is None else given
    if given is None:
        return None
    if given not in fields:
        raise _wrong(
            cls,
            given,
            "ttl= names a field that does not exist",
            hint=suggest_name(given, fields, "fields"),
        )
    field = fields[given]
    if field.now is not None:
        raise _wrong(cls, given, "the field of ttl= cannot have now=: its items would expire at once")
    if field.codec.number is None and not field.codec.is_time:
        raise _wrong(cls, given, "the field of ttl= must be a datetime, an int or a float")
    if own and field.codec.is_time and field.codec.stored_as != "epoch":
        raise _wrong(
            cls,
            given,
            "in a model's own table, the field of ttl= must hold seconds since 1970",
            hint='use an int or a float, or field(stored="epoch")',
        )
    return field


def _version(cls: type[Model], fields: Mapping[str, Field[Any]], *, has_hydrator: bool) -> Field[Any] | None:
    """The field that counts the writes of an item."""
    found = [field for field in fields.values() if field.options.version]
    if not found:
        return None
    field = found[0]
    if len(found) > 1:
        raise _wrong(cls, found[1].name, f"{field.name} already counts the item's writes")
    if (
        field.is_key
        or field.codec.annotation is not int
        or field.options.default != 0
        or field.options.stored
    ):
        raise _wrong(
            cls,
            field.name,
            "a version is a whole number that begins with 0",
            hint=f"declare it as {field.name}: int = field(default=0, version=True)",
        )
    if has_hydrator:
        raise _wrong(cls, field.name, "items that are archived cannot have a version", hint="leave it out")
    return field


def _indexes(
    cls: type[Model],
    own: Sequence[Index],
    parents: list[ModelSchema],
    fields: Mapping[str, Field[Any]],
    form: KeyForm,
) -> list[BoundIndex]:
    """Return the indexes of the class, including inherited ones, each bound to its fields."""
    from holdall.models.indexes import bind_indexes

    for index in own:
        if not isinstance(index, Index):
            raise ModelDefinitionError(
                f"{cls.__name__}: indexes= must be a list of Index, not of {index!r:.60}"
            )
    known = (index for parent in reversed(parents) for index in parent.indexes.values())
    inherited = [index.declared for index in known if not index.is_of_layout]
    declared = {index.name: index for index in (*inherited, *own)}
    return bind_indexes(cls, list(declared.values()), fields, form)


def _find_locked(fields: Mapping[str, Field[Any]], derived: Sequence[Derived]) -> Iterator[str]:
    """Yield the fields on which other stored attributes depend: incrementing one of them is an assignment."""
    yield from (name for name, field in fields.items() if field.unique)
    yield from (field.name for attribute in derived for field in attribute.components)


def _find_hidden(fields: Mapping[str, Field[Any]], derived: Sequence[Derived]) -> Iterator[str]:
    """Yield the names, also the stored ones, of what messages must not show."""
    for field in fields.values():
        if field.hidden:
            yield from (field.name, field.stored)
    for each in derived:
        if any(field.hidden for field in each.components):
            yield from each.attributes({field.name: None for field in each.components})


def _list_hooks(cls: type[Model]) -> Iterator[str]:
    """Yield the names of the hooks that the class defines."""
    from holdall.models.model import Model

    for name in ("before_create", "before_update", "before_delete", "before_commit"):
        hook = getattr(cls, name)
        if is_generator_function(hook):
            raise _wrong(
                cls,
                name,
                "it is a generator function, so calling it would run none of its code",
                hint="make it a plain method without yield",
            )
        if hook is not getattr(Model, name):
            yield name


def _has_after_load(cls: type[Model]) -> bool:
    from inspect import iscoroutinefunction

    from holdall.models.model import Model

    hook = cls.after_load
    if is_generator_function(hook) or iscoroutinefunction(hook):
        raise _wrong(cls, "after_load", "it must be a plain method, because items are made without waiting")
    return hook is not Model.after_load


def _wrong(cls: type, field: str, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    return ModelDefinitionError(f"{cls.__name__}.{field}: {problem}", hint=hint)
