"""How callers name an item: by a key, by a model and a value, or by a model and the key's components.

Pure. Keywords are key components if there is no positional key, and options if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdall.core.nearest_name import find_nearest, suggest_name
from holdall.errors import InvalidOptionsError
from holdall.models.keys.key import ModelKey, make_key
from holdall.models.model import Model

if TYPE_CHECKING:
    from holdall.models.fields.field import Field
    from holdall.models.schema import ModelSchema


def parse_target(
    target: object, values: tuple[object, ...], keywords: Mapping[str, Any], options: frozenset[str]
) -> tuple[ModelKey[Any], dict[str, Any]]:
    """The key and the options; `InvalidOptionsError` for an unknown option."""
    if isinstance(target, ModelKey):
        if values:
            raise InvalidOptionsError(
                "a key was given together with another value", hint="pass one or the other"
            )
        return target, _check_options(keywords, options)
    schema = model_schema(target)
    if values:
        return make_key(schema, values, {}), _check_options(keywords, options)
    for name in keywords if not options.isdisjoint(keywords) else ():
        if name in options and name not in schema.fields:
            raise InvalidOptionsError(
                f"the option {name} cannot be used together with the components of a key",
                hint=f"pass a key: get({schema.name}.key(...), {name}=...)",
            )
    return make_key(schema, (), keywords), {}


def model_schema(model: object) -> Any:
    """The schema of a model that is not abstract."""
    if isinstance(model, type) and issubclass(model, Model) and "_schema" in vars(model):
        if not model._schema.abstract:
            return model._schema
        raise InvalidOptionsError(
            f"{model.__name__} is abstract, so it has no items", hint="pass a model that is derived from it"
        )
    raise InvalidOptionsError(
        f"{model!r:.80} is neither a model nor a key", hint="pass a model class, or Model.key(...)"
    )


def refuse_values(
    method: str, schema: ModelSchema, values: Sequence[object], fields: Sequence[Field[Any]]
) -> InvalidOptionsError:
    """The error for values that were passed without their names; ``fields`` are those that the method takes."""
    given = [f"{value!r:.40}" for value in values] if len(values) == len(fields) else ["…"] * len(fields)
    named = ", ".join(f"{field.name}={value}" for field, value in zip(fields, given, strict=True))
    return InvalidOptionsError(
        f"{method} takes the values of fields by name, not {', '.join(map(repr, values)):.60}",
        hint=f"write {method}({schema.name}, {named})",
    )


def model_schemas(models: object) -> list[Any]:
    """The schemas of a model, or of several in a tuple or list."""
    if not isinstance(models, tuple | list):
        return [model_schema(models)]
    schemas = [model_schema(model) for model in models]
    if not schemas or len({schema.name for schema in schemas}) < len(schemas):
        raise InvalidOptionsError(
            f"a query of several models needs each of them once, not {models!r:.80}",
            hint="pass them as a tuple: query((Customer, Order), customer=...)",
        )
    return schemas


def refuse_components(method: str, targets: Sequence[object], components: Mapping[str, object]) -> None:
    """Raise an error for components of a key, where a whole key was expected."""
    for name in components:
        model = targets[0].__name__ if targets and isinstance(targets[0], type) else "Order"
        near = find_nearest(name, ["where"])
        raise InvalidOptionsError(
            f"{method} takes items and keys, and has no option {name!r}",
            hint=f"write {method}({model}.key({name}=...))" if near is None else f"did you mean {near!r}?",
        )


def refuse_others(
    method: str, schema: ModelSchema, given: Iterable[str], options: Mapping[str, object] | None
) -> None:
    """Raise an error for a keyword that is not one of the options of a method that takes no key."""
    known = options or {}
    for name in (name for name in given if name not in known):
        hint = suggest_name(name, known, "options")
        if name in schema.fields and method == "scan":
            field = f"{schema.name}.{name}"
            hint = f"write where=col({field}) == ..., or query({schema.name}, ...) to read one partition"
        raise InvalidOptionsError(f"{method} has no option {name!r}", hint=hint)


def take_create_if_missing(key: ModelKey[Any], options: Mapping[str, Any]) -> bool | Mapping[str, Any]:
    """The option ``create_if_missing`` of an update by key; `InvalidOptionsError` for any other."""
    for name in options:
        if name != "create_if_missing":
            hint = suggest_name(name, ("where", "create_if_missing"), "options")
            if name in key.schema.fields:
                hint = f"to set the field, write col({key.schema.name}.{name}).set(...)"
            raise InvalidOptionsError(f"update has no option {name!r}", hint=hint)
    found: bool | Mapping[str, Any] = options.get("create_if_missing", False)
    return found


def take_update(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The model, the expected values and the changes of an update without a key."""
    names = ("model", "expected", "changes")
    given = {**dict(zip(names, args, strict=False)), **options}
    if len(args) + len(options) != len(names) or given.keys() != {*names}:
        raise InvalidOptionsError(
            "update takes a key and changes of fields, or a model, the expected values and the changes",
            hint='write update(Order.key(...), col(Order.note).set("x")), or update(Order, {...}, {...})',
        )
    return given["model"], given["expected"], given["changes"]


def _check_options(given: Mapping[str, Any], options: frozenset[str]) -> dict[str, Any]:
    for name, value in given.items():
        if name not in options:
            raise InvalidOptionsError(
                f"there is no option {name!r}", hint=suggest_name(name, sorted(options), "options")
            )
        if name == "consistent" and not isinstance(value, bool):
            raise InvalidOptionsError(f"consistent must be True or False, not {value!r}")
        if name == "create_if_missing" and not isinstance(value, bool | Mapping):
            raise InvalidOptionsError(
                f"create_if_missing must be True, False or a mapping of values, not {value!r:.80}"
            )
    return dict(given)
