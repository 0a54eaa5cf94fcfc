"""Models in JSON: what pydantic, and with it FastAPI, has to know to read and write them.

Pure; pydantic is imported when it asks. JSON becomes a detached instance, by pydantic's usual rules for JSON: a string
is taken for a datetime or a UUID, a name that is no field's is refused. An instance becomes JSON without anything
counting as read. An instance where one is expected stays the same instance.

Names are those of the fields; bytes are base64, so that any come back. What is wrong is an error of pydantic's, with
the field in its ``loc``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from holdall.errors import InvalidFieldError
from holdall.models.adapter import _nodes as nodes_of
from holdall.models.fields import ABSENT
from holdall.models.ids import IdKey

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
    from pydantic_core import CoreSchema

    from holdall.models.fields import Field
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema


def json_schema(schema: ModelSchema) -> dict[str, Any]:
    """The JSON schema of what the model is made from."""
    from pydantic import TypeAdapter

    return TypeAdapter(schema.model).json_schema()


def core_schema(schema: ModelSchema, handler: GetCoreSchemaHandler) -> CoreSchema:
    """How pydantic validates and serializes the model."""
    from pydantic_core import core_schema as build

    model = schema.model
    taken = build.typed_dict_schema(
        {
            name: build.typed_dict_field(_describe_input(field, handler), required=not field.has_default)
            for name, field in schema.fields.items()
        },
        cls=_form(model, extra="forbid"),
        extra_behavior="forbid",
        config=build.CoreConfig(val_json_bytes="base64"),
    )

    given = _Given(schema)

    def make(values: dict[str, Any]) -> Model:
        return _make(schema, values)

    def take(value: Any, proceed: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, model) else make(proceed(value))

    return build.json_or_python_schema(
        # apart, because what a wrapping function sees of JSON is not told from Python's values any more
        json_schema=build.no_info_after_validator_function(make, taken),
        python_schema=build.no_info_wrap_validator_function(take, taken),
        serialization=build.wrap_serializer_function_ser_schema(
            _giver(schema),
            schema=handler.generate_schema(Annotated[Any, given]),
            return_schema=handler.generate_schema(Annotated[Any, _Told(given)]),
        ),
        ref=f"{model.__module__}.{model.__qualname__}:{id(model)}",
    )


class _Given:
    """The form in which items go out."""

    def __init__(self, schema: ModelSchema) -> None:
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema as build

        fields = self._schema.fields.items()
        return build.typed_dict_schema(
            {name: build.typed_dict_field(_describe_output(field, handler)) for name, field in fields},
            cls=_form(self._schema.model),
        )


class _Told:
    """Tells that form where pydantic sees only a function, and of that nothing but that it returns something."""

    def __init__(self, given: _Given) -> None:
        self._given = given

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        from pydantic import TypeAdapter

        return handler(TypeAdapter(Annotated[Any, self._given]).core_schema)


def _form(model: type[Model], **config: Any) -> type:
    """Stands for the model where its name and text are told, what else it takes, and how bytes are spelt."""
    config |= {"ser_json_bytes": "base64", "val_json_bytes": "base64"}
    return type(model.__name__, (), {"__doc__": model.__doc__, "__pydantic_config__": config})


# --- fields ---------------------------------------------------------------------------------------------


def _describe_input(field: Field[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
    """A field as it comes in. Defaults are only told: the model fills them in, fresh for each item."""

    def tell(told: dict[str, Any]) -> None:
        _tell(field, told)
        if field.options.default is not ABSENT or field.codec.nullable:
            _tell_default(field, told)
        if field.options.read_only and field.has_default:  # else whoever makes one has to send it
            told["readOnly"] = True

    return _describe(field, handler, tell)


def _describe_output(field: Field[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
    """A field as it goes out."""
    from pydantic_core import core_schema as build

    def tell(told: dict[str, Any]) -> None:
        _tell(field, told)
        if field.options.read_only:
            told["readOnly"] = True

    described = _describe(field, handler, tell)
    _spell_bytes(described)
    if field.options.default is ABSENT:
        return described
    return build.with_default_schema(described, default=field.options.default)


def _describe(
    field: Field[Any], handler: GetCoreSchemaHandler, tell: Callable[[dict[str, Any]], None]
) -> CoreSchema:
    from pydantic import Field as Notes

    notes = Notes(description=field.description, json_schema_extra=tell)
    return handler.generate_schema(Annotated[field.codec.annotation, notes])


def _spell_bytes(part: CoreSchema) -> None:
    """Have bytes given out in base64; a setting would not do, as pydantic asks only models for theirs."""
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


def _tell(field: Field[Any], told: dict[str, Any]) -> None:
    if isinstance(field, IdKey):
        told["format"] = "uuid"


def _tell_default(field: Field[Any], told: dict[str, Any]) -> None:
    from contextlib import suppress

    from pydantic_core import PydanticSerializationError, to_jsonable_python

    default = field.codec.adapter.dump_python(field.default())
    with suppress(PydanticSerializationError):  # what has no form in JSON need not be sent either
        told["default"] = to_jsonable_python(default, bytes_mode="base64")


# --- in -------------------------------------------------------------------------------------------------


def _make(schema: ModelSchema, values: dict[str, Any]) -> Model:
    """A detached instance whose key is one, too."""
    from pydantic_core import PydanticCustomError

    if schema.abstract:
        raise PydanticCustomError(
            "abstract_model", "{model} is abstract, so there are no items of it", {"model": schema.name}
        )
    try:
        item = schema.model(**values)
        item.key  # noqa: B018 - made and kept, or refused
    except InvalidFieldError as error:
        raise _explain(schema, values, error) from None
    return item


def _explain(schema: ModelSchema, values: Mapping[str, Any], error: InvalidFieldError) -> ValidationError:
    """What pydantic let pass and we do not, for each field; ``error`` is the first."""
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
            input=values.get(name),
        )
        for name, found in problems.items()
    ]
    return ValidationError.from_exception_data(schema.model.__name__, details)


# --- out ------------------------------------------------------------------------------------------------


def _giver(schema: ModelSchema) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Gives out the fields of the model that was asked for, also of an instance of a derived one."""
    from pydantic_core import PydanticSerializationUnexpectedValue

    def give(item: Any, proceed: Callable[[Any], Any]) -> Any:
        if not isinstance(item, schema.model):  # perhaps another member of a union knows it
            raise PydanticSerializationUnexpectedValue(
                f"Expected `{schema.model.__name__}` but got `{type(item).__name__}`"
            )
        fields = ((name, type(item)._fields[name]) for name in schema.fields)
        return proceed({name: field.peek(item) for name, field in fields if _has_value(field, item)})

    return give


def _has_value(field: Field[Any], item: Model) -> bool:
    """As in `Model.to_dict`: what is neither stored nor shown in its place is left out."""
    if field.name in item.__dict__:
        return True
    stored = item._stored
    if stored is None:
        return False
    return field.stored in stored or (field.was_fetched(item) and field.absent_value() is not ABSENT)


def dataclass_fields(fields: Mapping[str, Field[Any]]) -> dict[str, Any]:
    """The fields as `dataclasses.fields` gives them."""
    import dataclasses

    notes = [(name, field.codec.annotation) for name, field in fields.items()]
    twin: Any = dataclasses.make_dataclass("Twin", notes, kw_only=True)
    return dict(twin.__dataclass_fields__)
