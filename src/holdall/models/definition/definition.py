"""Turns a class statement into a schema, and checks everything that can be checked before an item exists.

Pure. Mistakes raise `ModelDefinitionError`, which names the class and the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from holdall.core.nearest_name import suggest_name
from holdall.models.codec.annotation import is_set
from holdall.models.codec.pattern import compile_decoder
from holdall.models.codec.peer_form import UNORDERED
from holdall.models.definition.computation import ComputedField, derive_computed
from holdall.models.definition.derived import Derived, Expiry
from holdall.models.definition.field import SCALARS, declare_id, define_fields, refuse_field
from holdall.models.definition.home import check_same_key, find_collection, find_home, make_form, name_model
from holdall.models.definition.hook import has_after_load, list_hooks
from holdall.models.definition.index import define_indexes
from holdall.models.fields.field import Field
from holdall.models.indexes import Index, PlainIndex
from holdall.models.keys.form import KeyForm, Layout, SharedForm
from holdall.models.keys.template import Template
from holdall.models.migrations import INDEX_ATTRIBUTE, Conversion, bind_migrations
from holdall.models.schema import ModelSchema

if TYPE_CHECKING:
    from holdall.models.hydrator import Hydrator, Joiner
    from holdall.models.model import Model


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
    fields = define_fields(cls, parents, names)
    root = next((parent for parent in parents if not parent.abstract), None)
    if root is not None:
        check_same_key(cls, fields, root)
    elif not abstract and not any(field.is_key and not field.is_sort_key for field in fields.values()):
        fields = {"id": declare_id(cls, fields), **fields}
    home = find_home(cls, table, root)
    expiry = _ttl(cls, fields, ttl, parents, own=home is not None)
    named = cls.__name__ if abstract and name is None else name_model(cls, name, layout, root)
    key_name = named if root is None else root.root
    form = make_form(cls, layout, find_collection(cls, collection, home, root), home, root, key_name, fields)
    bound = define_indexes(cls, indexes, parents, fields, form)
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
    as_stored, prepares = fetcher is None and versions is None, has_after_load(cls)
    schema = ModelSchema(
        model=cls,
        name=named,
        root=key_name,
        record_type=record_type or (key_name if root is None else root.record_type),
        table=home,
        layout=layout if root is None else root.layout,
        form=form,
        abstract=abstract,
        fields=fields,
        **_group_fields(fields, form),
        ttl=expiry,
        version=_version(cls, fields, has_hydrator=fetcher is not None),
        hydrator=fetcher,
        joiners=_joiners(cls, fields),
        hooked=tuple(list_hooks(cls)),
        prepares=prepares,
        locked=frozenset(_find_locked(fields, derived)),
        hidden=hidden,
        derived=derived,
        indexes={index.name: index for index in bound},
        migrations=versions,
        used_as_stored=as_stored,
        is_direct=as_stored and not (prepares or form.in_key_alone or form.is_parsed),
    )
    _check(schema)
    if fetcher is not None:
        fetcher.adopt(schema)
    _install(cls, schema)


def _group_fields(fields: Mapping[str, Field[Any]], form: KeyForm) -> dict[str, Any]:
    """The fields in their groups, by the names that a schema has for them."""
    key_fields = {field.name: field for field in (*form.keys, *form.sort_keys)}
    return {
        "keys": form.keys,
        "sort_keys": form.sort_keys,
        "key_fields": key_fields,
        "mutable_keys": tuple(field for field in key_fields.values() if field.codec.kind not in SCALARS),
        "plain": tuple(field for field in fields.values() if not field.is_key),
        "timed": tuple(field for field in fields.values() if field.now is not None),
        "computed": tuple(field for field in fields.values() if isinstance(field, ComputedField)),
    }


def _install(cls: type[Model], schema: ModelSchema) -> None:
    """Make the schema and its fields attributes of the class."""
    cls._schema = schema
    cls._fields = schema.fields
    for name, field in schema.fields.items():
        setattr(cls, name, field)
    _defer_decoder(cls, schema)


def _defer_decoder(cls: type[Model], schema: ModelSchema) -> None:
    """Compile the decoder of a class when it is first needed; many programs only write some of their models."""

    def decode_first(item: Any) -> dict[str, Any]:
        stored = schema.plain if schema.form.in_key_alone else schema.fields.values()
        cls._decode_all = staticmethod(compile_decoder(field for field in stored if not field.is_computed))
        return cls._decode_all(item)

    cls._decode_all = staticmethod(decode_first)


def _joiners(cls: type[Model], fields: Mapping[str, Field[Any]]) -> dict[str, Joiner]:
    """Return the class attributes, including inherited ones, that take part in transactions."""
    found = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
    return {
        name: value
        for name, value in found.items()
        if name not in fields and hasattr(type(value), "participate")
    }


def _check(schema: ModelSchema) -> None:
    cls = schema.model
    by_stored: dict[str, str] = {}
    for name, field in schema.fields.items():
        refuse = partial(refuse_field, cls, name)
        if field.stored.startswith("_") and schema.form.reserves_names:
            raise refuse(f"its stored name {field.stored!r} cannot begin with an underscore")
        if INDEX_ATTRIBUTE.fullmatch(field.stored) and schema.form.reserves_names:
            raise refuse(f"its stored name {field.stored} is reserved for indexes")
        if field.stored in by_stored:
            raise refuse(f"its stored name {field.stored!r} is already that of {by_stored[field.stored]}")
        by_stored[field.stored] = name
        if field.unique and schema.table is not None:
            raise refuse("a model with its own table (table=) cannot have a unique field")
        if field.unique and schema.ttl is not None:
            raise refuse("a model whose items expire (ttl=) cannot have a unique field")
    for field in schema.key_fields.values():
        if schema.table is None and field.codec.kind is None:
            raise refuse_field(
                cls,
                field.name,
                "its values have different stored types, so it cannot be part of a key: 1 and '1' would be one item",
                hint="use a single type: str, int, UUID, datetime, ...",
            )
    for field in schema.sort_keys:
        if schema.table is None and field.codec.kind not in SCALARS:
            raise refuse_field(
                cls, field.name, "a list or map has no order, so it cannot be part of a sort key"
            )
    _check_peer_forms(schema)


def _check_peer_forms(schema: ModelSchema) -> None:
    """Check that fields in the forms of other programs are parts of keys only where these are stored as they are."""
    for field in schema.key_fields.values():
        if field.codec.stored_as is not None and schema.layout is None:
            raise refuse_field(
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
            form in UNORDERED and part.name in sorted_by and not isinstance(schema.form, SharedForm)
        ):
            values = "times" if form == "iso" else "bytes"
            raise refuse_field(
                schema.model,
                part.name,
                f'stored="{form}" does not go with a key, because its texts '
                + ("have no fixed spelling" if form == "json" else f"do not sort as the {values} do"),
                hint="declare the field as bytes, without stored="
                if form == "base64"
                else 'use stored="epoch" or "pynamodb", or declare the field as str',
            )


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
    wanted = inherited if given is None else given
    if wanted is None:
        return None
    refuse = partial(refuse_field, cls, wanted)
    if root is not None and wanted != inherited:
        raise refuse(
            f"{root.name} and its subclasses share their keys, so they must expire by the same field",
            hint=f"set ttl= on {root.name}",
        )
    if wanted not in fields:
        raise refuse("ttl= names a field that does not exist", hint=suggest_name(wanted, fields, "fields"))
    field = fields[wanted]
    if field.now is not None:
        raise refuse("the field of ttl= cannot have now=: its items would expire at once")
    if field.codec.number is None and not field.codec.is_time:
        raise refuse("the field of ttl= must be a datetime, an int or a float")
    if own and field.codec.is_time and field.codec.stored_as != "epoch":
        raise refuse(
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
        raise refuse_field(cls, found[1].name, f"{field.name} already counts the item's writes")
    if (
        field.is_key
        or field.codec.annotation is not int
        or field.options.default != 0
        or field.options.stored
    ):
        raise refuse_field(
            cls,
            field.name,
            "a version is a whole number that begins with 0",
            hint=f"declare it as {field.name}: int = field(default=0, version=True)",
        )
    if has_hydrator:
        raise refuse_field(
            cls, field.name, "items that are archived cannot have a version", hint="leave it out"
        )
    return field


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
