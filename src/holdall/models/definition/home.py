"""Finds out where the items of a class are stored, under which name and in which key form.

Pure. Mistakes raise `ModelDefinitionError`, which names the class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdall.core.rules.schema import check_table_name
from holdall.errors import ConfigurationError, ModelDefinitionError
from holdall.models.definition.field import refuse_field
from holdall.models.fields.field import Field, Key, SortKey
from holdall.models.keys.form import (
    AncestorForm,
    CollectionForm,
    KeyForm,
    Layout,
    PlainForm,
    SharedForm,
    check_collection,
)
from holdall.models.keys.template import Template
from holdall.models.schema import ModelSchema

if TYPE_CHECKING:
    from holdall.models.model import Model

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_FOREIGN_NAME = re.compile(r"[^\s]+")


def check_same_key(cls: type[Model], fields: Mapping[str, Field[Any]], root: ModelSchema) -> None:
    """Refuse a derived model whose key differs from that of its root."""
    own = [name for name, field in fields.items() if field.is_key]
    theirs = [field.name for field in (*root.keys, *root.sort_keys)]
    for name in sorted({*own} ^ {*theirs}):
        raise refuse_field(
            cls,
            name,
            f"a subclass of {root.name} must have exactly the key of {root.name}",
            hint=f"to share only fields, make {root.name} abstract=True",
        )
    for name in own:
        if type(fields[name]) is not type(root.fields[name]):
            raise refuse_field(
                cls, name, f"it must be a {type(root.fields[name]).__name__}, as in {root.name}"
            )
        mine, theirs_too = fields[name].codec, root.fields[name].codec
        if (mine.annotation, mine.stored_as) != (theirs_too.annotation, theirs_too.stored_as):
            raise refuse_field(
                cls, name, f"it must have the same type as in {root.name}, because they share their keys"
            )
        if fields[name].options.casing != root.fields[name].options.casing:
            raise refuse_field(cls, name, f"it must have the casing that it has in {root.name}")


def name_model(cls: type[Model], given: str | None, layout: Layout | None, root: ModelSchema | None) -> str:
    """The name under which the items are stored."""
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


def find_home(cls: type[Model], given: str | None, root: ModelSchema | None) -> str | None:
    """The model's own table; None if its items are in the database's table."""
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


def make_form(
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


def find_collection(
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
            f"{cls.__name__}: nothing in a plain table distinguishes items of {cls.__name__} and {root.name}",
            hint=f"make {root.name} abstract=True, or use a Template with type=",
        )
    if len(keys) > 1 or len(sort_keys) > 1:
        raise ModelDefinitionError(
            f"{cls.__name__}: a plain table has one partition key and at most one sort key",
            hint="declare one Key and one SortKey, or use a Template for keys that are made of several fields",
        )
    for field in (*keys, *sort_keys):
        if field.codec.kind not in ("S", "N", "B"):
            raise refuse_field(cls, field.name, "a table's key is a string, a number or binary")
    return PlainForm(keys, sort_keys)
