"""Turns the annotations of a class into fields, and checks each of them.

Pure. Mistakes raise `ModelDefinitionError`, which names the class and the field.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from holdall.core.frozen import replace
from holdall.errors import HoldallError, ModelDefinitionError
from holdall.models.codec.annotation import peel
from holdall.models.codec.codec import Codec, codec_for
from holdall.models.definition.computation import Computed, ComputedField
from holdall.models.fields.field import Field, Key, SortKey, fold_case
from holdall.models.fields.options import ABSENT, FieldOptions
from holdall.models.hydrator import Loader
from holdall.models.keys.ids import IdKey
from holdall.models.schema import ModelSchema

if TYPE_CHECKING:
    from holdall.models.model import Model

SCALARS = {"S", "N", "B", "BOOL"}
"""The types of attributes that can be keys, or texts in them."""


def define_fields(
    cls: type[Model], parents: list[ModelSchema], names: Mapping[str, Any]
) -> dict[str, Field[Any]]:
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
            raise refuse_field(
                cls, name, "it has no type", hint=f"add an annotation: {name}: str = field(...)"
            )
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
    # get_type_hints accepts ClassVar only in a class
    holder = type(cls.__name__, (), {"__annotations__": {name: annotation}})
    try:
        hints = typing.get_type_hints(
            holder, {**module}, {**names, cls.__name__: cls, **inner}, include_extras=True
        )
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise refuse_field(
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
    refuse = partial(refuse_field, cls, name)
    if inherited is not None and not inherited.is_computed:
        raise refuse("a method or property has the same name as a field", hint="rename one of them")
    try:
        annotation = given.function.__annotations__["return"]
    except (AttributeError, KeyError):
        raise refuse("its method has no return type", hint=f"write def {name}(self) -> int: ...") from None
    return _field(cls, name, _evaluate(cls, name, annotation, names), given.options)


def _field(cls: type[Model], name: str, annotation: Any, given: Any) -> Field[Any]:
    refuse = partial(refuse_field, cls, name)
    options = given if isinstance(given, FieldOptions) else FieldOptions(given)
    kind: type[Field[Any]] = Field
    origin = typing.get_origin(annotation)
    if origin in (Key, SortKey):
        kind = origin
        (annotation,) = typing.get_args(annotation)
    elif annotation in (Key, SortKey):
        raise refuse(f"{annotation.__name__} needs a type", hint=f"write {annotation.__name__}[str]")
    _check_inside(cls, name, annotation)
    try:
        codec = _codec(annotation, options)
        codec.kind  # noqa: B018 - checks, with pydantic if needed, whether the type can be stored at all
    except HoldallError as error:
        raise refuse(error.message, hint=error.hint) from error
    has_default = options.default is not ABSENT and not (options.default is None and codec.nullable)
    if has_default and options.default_factory is not None:
        raise refuse("it has both a default and a default_factory", hint="remove one of them")
    kind = kind if options.computed is None else ComputedField
    return _check_field(cls, kind(cls.__name__, name, codec, options))


def _codec(annotation: Any, options: FieldOptions) -> Codec:
    if options.casing is not None:
        return _make_cased(annotation, options)
    if options.stored is None:
        return codec_for(annotation)
    from holdall.models.codec.peer_form import codec_as

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
    refuse = partial(refuse_field, cls, name)
    from holdall.models.model import Model

    for part in _members(annotation):
        kind = typing.get_origin(part) or part
        if kind in (Key, SortKey):
            raise refuse(
                f"{kind.__name__} must be the outermost part of the annotation",
                hint=f"write {kind.__name__}[...] around the whole type, including Annotated",
            )
        if isinstance(part, type) and issubclass(part, Model):
            raise refuse(
                f"a field cannot hold another model, such as {part.__name__}",
                hint="store the key of the other item, or make the type a pydantic model or a dataclass",
            )


def _members(annotation: Any) -> Iterator[Any]:
    yield annotation
    for member in typing.get_args(annotation):
        if not isinstance(member, str):
            yield from _members(member)


def _override(cls: type[Model], fields: dict[str, Field[Any]], name: str, given: Any) -> None:
    """Use a subclass's attribute with the name of an inherited field as the field's new default."""
    refuse = partial(refuse_field, cls, name)
    inherited = fields[name]
    options = inherited.options
    if options.computed is not None:
        raise refuse("it is computed from other fields", hint="override it with another @computed method")
    if isinstance(given, FieldOptions):
        keeps = given.default is ABSENT and given.default_factory is None
        options = replace(
            options,
            default=options.default if keeps else given.default,
            default_factory=options.default_factory if keeps else given.default_factory,
            read_only=given.read_only or options.read_only,
            name=given.name or options.name,
            unique=given.unique or options.unique,
            description=given.description or options.description,
            aliases=given.aliases or options.aliases,
            version=given.version or options.version,
            now=given.now or options.now,
            hidden=given.hidden or options.hidden,
        )
        if given.stored not in (None, options.stored):
            raise refuse("stored= differs from that of the inherited field", hint="leave it out")
        if given.casing not in (None, options.casing):
            raise refuse("casing= differs from that of the inherited field", hint="leave it out")
    elif hasattr(given, "__get__"):
        raise refuse("a method or property has the same name as a field", hint="rename one of them")
    else:
        options = replace(options, default=given, default_factory=None)
    fields[name] = _check_field(cls, type(inherited)(cls.__name__, name, inherited.codec, options))


def _check_field(cls: type[Model], field: Field[Any]) -> Field[Any]:
    """Check that a field's options go together and its default fits; return the field."""
    options, refuse = field.options, partial(refuse_field, cls, field.name)
    if options.default_factory is not None and not callable(options.default_factory):
        raise refuse("its default_factory is not callable")
    if field.is_key:
        if field.codec.nullable:
            raise refuse("part of a key cannot be None", hint="remove '| None' from its type")
        if options.default is not ABSENT and not field.is_sort_key:
            raise refuse(
                "part of a partition key cannot have a default",
                hint="pass a value for every item, or use default_factory",
            )
        if options.unique:
            raise refuse(
                "part of a key cannot be unique: the key as a whole already is",
                hint="remove unique=",
            )
        if options.hidden:
            raise refuse("part of a key cannot be hidden: messages and logs name items by their keys")
    if options.now is not None:
        _check_now(cls, field)
    if options.unique and field.codec.kind not in SCALARS:
        raise refuse("only a string, number, boolean or bytes field can be unique")
    if options.unique and options.stored == "json":
        raise refuse("one value has several JSON texts, so it cannot be unique")
    if isinstance(options.default, Loader):
        raise refuse(
            "an attachment is not a field, so it is declared without an annotation",
            hint=f"remove the annotation: {field.name} = ...",
        )
    if options.default is not ABSENT:
        try:
            field.options = replace(options, default=field.validate(options.default))
        except HoldallError as error:
            problem = getattr(error, "problem", error.message)
            raise refuse(f"its default does not fit its type: {problem}") from None
    return field


def _check_now(cls: type[Model], field: Field[Any]) -> None:
    """Check that Holdall can set a field to the time of a write."""
    options, refuse = field.options, partial(refuse_field, cls, field.name)
    if options.now not in ("create", "update"):
        raise refuse(f'now= must be "create" or "update", not {options.now!r:.60}')
    if field.is_key or options.unique or options.version:
        raise refuse("a field with now= cannot be part of a key, unique, or the version")
    if options.default not in (ABSENT, None) or options.default_factory is not None:
        raise refuse("a field with now= cannot have a default", hint="Holdall sets its value")
    if field.codec.number is None and not field.codec.is_time:
        raise refuse("a field with now= must be a datetime, an int or a float")


def declare_id(cls: type[Model], fields: Mapping[str, Field[Any]]) -> IdKey:
    """The key of a model that declares none."""
    if "id" in fields:
        raise refuse_field(
            cls,
            "id",
            "the model has no key, and its id is not declared as one",
            hint="declare it as id: Key[...]",
        )
    return IdKey(cls.__name__)


def _check_field_name(cls: type[Model], name: str, fields: Mapping[str, Field[Any]]) -> None:
    refuse = partial(refuse_field, cls, name)
    from holdall.models.model import Model

    if name.startswith("_"):
        raise refuse(
            "the name of a field cannot begin with an underscore",
            hint="rename it, or annotate it with ClassVar if it is not a field",
        )
    if name in fields:
        return
    if name in dir(Model):
        raise refuse(
            "a field cannot have this name, because every model has an attribute with it",
            hint="rename the field; name= keeps the stored name",
        )
    for base in cls.__mro__[1:]:
        if name in base.__dict__ and not isinstance(base.__dict__[name], Field):
            raise refuse(f"it hides an attribute of {base.__name__}", hint="rename the field")


def refuse_field(cls: type, field: str, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    """The error about a field of a class, or another attribute of it."""
    return ModelDefinitionError(f"{cls.__name__}.{field}: {problem}", hint=hint)
