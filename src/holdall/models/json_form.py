"""Models in JSON: what pydantic, and so FastAPI, needs to read and write them.

Pure; pydantic is imported when it is used. JSON becomes an instance that belongs to no transaction, by pydantic's usual
rules for JSON: a string is accepted as a datetime or a UUID, an unknown field is refused. Writing an instance as JSON
marks no field as read. An instance that is validated as its model stays the same instance.

Names are those of the fields; bytes are written as base64, so that all bytes can be read back. Mistakes are pydantic's
errors, with the field in their ``loc``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from holdall.errors import InvalidFieldError
from holdall.models.codec.adapter import _nodes as nodes_of
from holdall.models.fields.options import ABSENT
from holdall.models.item_values import is_known
from holdall.models.keys.ids import IdKey

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
    from pydantic_core import CoreSchema

    from holdall.models.fields.field import Field
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema


def json_schema(schema: ModelSchema) -> dict[str, Any]:
    """Return the JSON schema of a model's input."""
    from pydantic import TypeAdapter

    return TypeAdapter(schema.model).json_schema()


def core_schema(schema: ModelSchema, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return the pydantic schema that validates and serializes the model."""
    from pydantic_core import core_schema as build

    model = schema.model
    taken = build.typed_dict_schema(
        {
            name: build.typed_dict_field(
                _describe_input(field, handler), required=not (field.has_default or field.is_kept)
            )
            for name, field in schema.fields.items()
        },
        cls=_form(model, extra="forbid"),
        extra_behavior="forbid",
        config=build.CoreConfig(val_json_bytes="base64"),
    )

    output = _OutputForm(schema)

    def make(values: dict[str, Any]) -> Model:
        return _make(schema, values)

    def take(value: Any, proceed: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, model) else make(proceed(value))

    return build.json_or_python_schema(
        # separate, because a wrapping function cannot distinguish JSON input from Python values
        json_schema=build.no_info_after_validator_function(make, taken),
        python_schema=build.no_info_wrap_validator_function(take, taken),
        serialization=build.wrap_serializer_function_ser_schema(
            _make_serializer(schema),
            schema=handler.generate_schema(Annotated[Any, output]),
            return_schema=handler.generate_schema(Annotated[Any, _OutputSchema(output)]),
        ),
        ref=f"{model.__module__}.{model.__qualname__}:{id(model)}",
    )


class _OutputForm:
    """The form of an item in JSON output."""

    def __init__(self, schema: ModelSchema) -> None:
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema as build

        fields = [(name, field) for name, field in self._schema.fields.items() if not field.hidden]
        return build.typed_dict_schema(
            {name: build.typed_dict_field(_describe_output(field, handler)) for name, field in fields},
            cls=_form(self._schema.model),
        )


class _OutputSchema:
    """Supplies that form's JSON schema, because pydantic knows only that the serializer is a function."""

    def __init__(self, output: _OutputForm) -> None:
        self._form = output

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        from pydantic import TypeAdapter

        return handler(TypeAdapter(Annotated[Any, self._form]).core_schema)


def _form(model: type[Model], **config: Any) -> type:
    """Return a class with the model's name and docstring, and with a config for extra fields and for bytes."""
    config |= {"ser_json_bytes": "base64", "val_json_bytes": "base64"}
    return type(model.__name__, (), {"__doc__": model.__doc__, "__pydantic_config__": config})


# --- fields ---------------------------------------------------------------------------------------------


def _describe_input(field: Field[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
    """Describe a field as input. Defaults are only described: the model sets them, new for each item."""

    def annotate(extra: dict[str, Any]) -> None:
        _describe_id(field, extra)
        if not field.is_computed and (field.options.default is not ABSENT or field.codec.nullable):
            _describe_default(field, extra)
        # a read-only field without a default must be sent by clients
        if field.is_kept or (field.options.read_only and field.has_default):
            extra["readOnly"] = True
        if field.hidden:
            extra["writeOnly"] = True

    return _describe(field, handler, annotate)


def _describe_output(field: Field[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
    """Describe a field as output."""
    from pydantic_core import core_schema as build

    def annotate(extra: dict[str, Any]) -> None:
        _describe_id(field, extra)
        if field.options.read_only or field.is_kept:
            extra["readOnly"] = True

    described = _describe(field, handler, annotate)
    _spell_bytes(described)
    if field.options.default is ABSENT:
        return described
    return build.with_default_schema(described, default=field.options.default)


def _describe(
    field: Field[Any], handler: GetCoreSchemaHandler, annotate: Callable[[dict[str, Any]], None]
) -> CoreSchema:
    from pydantic import Field as Notes

    notes = Notes(description=field.description, json_schema_extra=annotate)
    return handler.generate_schema(Annotated[field.codec.annotation, notes])


def _spell_bytes(part: CoreSchema) -> None:
    """Make bytes serialize as base64; a setting would not work, because pydantic reads it only from models."""
    from pydantic_core import core_schema as build

    spelt = build.plain_serializer_function_ser_schema(
        _base64, return_schema=build.str_schema(), when_used="json-unless-none"
    )
    for node in nodes_of(part):
        if node["type"] == "bytes" and isinstance(node, dict):
            node.setdefault("serialization", spelt)


def _base64(content: bytes) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(content).decode()


def _describe_id(field: Field[Any], extra: dict[str, Any]) -> None:
    if isinstance(field, IdKey):
        extra["format"] = "uuid"


def _describe_default(field: Field[Any], extra: dict[str, Any]) -> None:
    from contextlib import suppress

    from pydantic_core import PydanticSerializationError, to_jsonable_python

    default = field.codec.adapter.dump_python(field.default())
    with suppress(PydanticSerializationError):  # a default without a JSON form is not described
        extra["default"] = to_jsonable_python(default, bytes_mode="base64")


# --- in -------------------------------------------------------------------------------------------------


def _make(schema: ModelSchema, values: dict[str, Any]) -> Model:
    """Make an instance that belongs to no transaction, and check its key."""
    from pydantic_core import PydanticCustomError

    if schema.abstract:
        raise PydanticCustomError(
            "abstract_model", "{model} is abstract, so it has no items", {"model": schema.name}
        )
    for field in (*schema.timed, *schema.computed):
        values.pop(field.name, None)  # clients may send back what they received, but Holdall sets it
    try:
        item = schema.model(**values)
        item.key  # noqa: B018 - raises if the key is invalid
    except InvalidFieldError as error:
        raise _explain(schema, values, error) from None
    return item


def _explain(schema: ModelSchema, values: Mapping[str, Any], error: InvalidFieldError) -> ValidationError:
    """Return all errors that Holdall finds in values that pydantic accepted; ``error`` is the first."""
    from pydantic import ValidationError
    from pydantic_core import InitErrorDetails, PydanticCustomError

    problems = {}
    for name, value in values.items():
        try:
            schema.fields[name].validate(value)
        except InvalidFieldError as found:
            problems[name] = found
    problems.setdefault(error.field, error)
    details = [
        InitErrorDetails(
            type=PydanticCustomError("invalid_field", "{problem}", {"problem": found.problem}),
            loc=(name,),
            input=None if name in schema.hidden else values.get(name),
        )
        for name, found in problems.items()
    ]
    return ValidationError.from_exception_data(schema.model.__name__, details)


# --- out ------------------------------------------------------------------------------------------------


def _make_serializer(schema: ModelSchema) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Return a function that serializes the fields of this model, also of an instance of a derived model."""
    from pydantic_core import PydanticSerializationUnexpectedValue

    def serialize(item: Any, proceed: Callable[[Any], Any]) -> Any:
        if not isinstance(item, schema.model):  # another member of a union may accept it
            raise PydanticSerializationUnexpectedValue(
                f"Expected `{schema.model.__name__}` but got `{type(item).__name__}`"
            )
        own = type(item)._fields
        fields = ((name, own[name]) for name in schema.fields if not own[name].hidden)
        return proceed({name: field.peek(item) for name, field in fields if _has_value(field, item)})

    return serialize


def _has_value(field: Field[Any], item: Model) -> bool:
    """Whether a field has a value, as in `Model.to_dict`; fields without one are omitted."""
    if field.name in item.__dict__:
        return True
    if field.is_computed:
        return field.name in item.to_dict(hidden=True)
    return is_known(field, item)


def dataclass_fields(fields: Mapping[str, Field[Any]]) -> dict[str, Any]:
    """Return the fields in the form of `dataclasses.fields`."""
    import dataclasses

    notes = [(name, field.codec.annotation) for name, field in fields.items()]
    twin: Any = dataclasses.make_dataclass("Twin", notes, kw_only=True)
    return dict(twin.__dataclass_fields__)
