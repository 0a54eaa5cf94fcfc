"""The pydantic side of a codec: the adapter of a type, built when it is first needed, and facts from its schema.

Pure; the first adapter that is built imports pydantic. Pydantic's errors are translated here: a value that does
not validate is an `InvalidValueError`, a type that cannot be stored is a `ModelDefinitionError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass
from holdall.errors import InvalidValueError, ModelDefinitionError
from holdall.models.codec.stored_form import encode_value, show

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Node = Mapping[str, Any]
"""A node of pydantic's core schema."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a type's schema says about its values.

    ``kind``: the letter under which all of them, except None, are stored. ``exact``: every value can be read back from
    its stored form, so this need not be checked. ``dumped``: pydantic must serialize them. ``faithful``: its
    serialization omits nothing. ``instances``: they contain models or dataclasses, whose contents pydantic does not
    validate again.
    """

    kind: str | None
    exact: bool
    dumped: bool
    faithful: bool
    instances: bool


class Adapter:
    """Validates and serializes one type. The first use of any attribute builds them all."""

    __slots__ = ("adapter", "annotation", "dump", "facts", "loose", "strict")

    adapter: TypeAdapter[Any]
    strict: Callable[[Any], Any]
    """Validates what a program assigns: ``'1'`` is not an int."""
    loose: Callable[[Any], Any]
    """Validates what was stored: a list can become a set, a text a date."""
    dump: Callable[[Any], Any]
    """Serializes models and the like, with their own serializers."""
    facts: Facts

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def __getattr__(self, name: str) -> Any:
        if name not in Adapter.__slots__:
            raise AttributeError(name)
        self._build()
        return getattr(self, name)

    def _build(self) -> None:
        from pydantic import ValidationError
        from pydantic_core import PydanticSerializationError

        adapter = _adapter_of(self.annotation)
        validate, to_python = adapter.validator.validate_python, adapter.serializer.to_python

        def strict(value: Any) -> Any:
            try:
                return validate(value)
            except ValidationError as error:
                raise _problem(error, value) from None

        def loose(value: Any) -> Any:
            try:
                return validate(value, strict=False)
            except ValidationError as error:
                raise _problem(error, value) from None

        def dump(value: Any) -> Any:
            try:
                return to_python(value, by_alias=True, round_trip=True, warnings=False)
            except (PydanticSerializationError, ValueError) as error:  # ValueError: it contains itself
                raise InvalidValueError(f"{error} (got {show(value)})") from None

        self.facts = _facts(adapter.core_schema, self.annotation)
        self.adapter, self.strict, self.loose, self.dump = adapter, strict, loose, dump


def _adapter_of(annotation: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter
    from pydantic_core import SchemaError

    try:
        try:
            config = ConfigDict(strict=True, allow_inf_nan=False)
            adapter = TypeAdapter(annotation, config=config)
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            adapter = TypeAdapter(annotation)  # a pydantic model has its own config
        adapter.core_schema["type"]  # an adapter that could not be built raises only when it is used
    except (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, ValueError) as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        raise ModelDefinitionError(
            f"{_name_of(annotation)} cannot be the type of a field: {problem}"
        ) from error
    return adapter


def _name_of(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


# --- errors ---------------------------------------------------------------------------------------------


def _problem(error: ValidationError, value: object) -> InvalidValueError:
    """Return the first problem with its place, and the number of further problems."""
    first, *others = error.errors(include_url=False, include_context=False)
    missing = first["type"] in ("missing", "missing_argument", "missing_keyword_only_argument")
    problem = first["msg"] if missing else f"{first['msg']} (got {show(first['input'])})"
    if others:
        problem += f"; {len(others)} more problem{'s' if len(others) > 1 else ''}"
    return InvalidValueError(problem, place=_place(first["loc"], value, missing=missing))


def _place(steps: Sequence[int | str], value: object, *, missing: bool) -> str:
    """Turn pydantic's location into a path, without labels, such as a union's member, which are not in the value."""
    place = ""
    for number, step in enumerate(steps):
        if isinstance(step, int) and not isinstance(value, Mapping):
            place += f"[{step}]"
            value = value[step] if isinstance(value, list | tuple) and step < len(value) else None
        elif (found := _member(value, step)) is not _NOWHERE:
            place += f".{step}" if place else str(step)
            value = found
        elif missing and number == len(steps) - 1:
            place += f".{step}" if place else str(step)
    return place


_NOWHERE = object()
_WITHOUT_MEMBERS = (str, bytes, int, float, list, tuple, set, frozenset)


def _member(value: object, step: int | str) -> object:
    if isinstance(value, Mapping):
        return next((member for key, member in value.items() if key == step or str(key) == step), _NOWHERE)
    if isinstance(value, _WITHOUT_MEMBERS):
        return _NOWHERE
    return getattr(value, str(step), _NOWHERE)


# --- facts ----------------------------------------------------------------------------------------------

_TEXTS = {"str", "date", "time", "datetime", "uuid"}
_NUMBERS = {"int", "float", "decimal"}
_KINDS = {
    **dict.fromkeys(_TEXTS, "S"),
    **dict.fromkeys([*_NUMBERS, "timedelta"], "N"),
    **dict.fromkeys(["list", "tuple", "deque", "named-tuple"], "L"),
    **dict.fromkeys(["dict", "model-fields", "dataclass", "typed-dict"], "M"),
    "bool": "BOOL",
    "bytes": "B",
}
_WRAPPERS = {"nullable", "default", "function-before", "function-after", "function-wrap", "model"}

# Values built only of these need no serialization.
_BARE = {
    *_TEXTS,
    *_NUMBERS,
    "timedelta",
    "bool",
    "bytes",
    "none",
    "list",
    "tuple",
    "set",
    "frozenset",
    "dict",
}
_BARE |= {"any", "enum", "literal", "nullable", "default", "union", "definitions", "definition-ref"}

# Values of these can be read back exactly. A timedelta of centuries cannot, if it is inside another value.
_EXACT = _BARE - {"timedelta", "any", "union"}
_EXACT |= {"model", "model-fields", "model-field", "dataclass", "dataclass-args", "dataclass-field"}
_EXACT |= {"typed-dict", "typed-dict-field"}

_INSTANCES = {"model", "dataclass"}

_REFUSED = {
    "json": "its value is parsed from text; use the parsed type itself",
    "generator": "an iterator cannot be stored; use a list",
    "callable": "a function cannot be stored",
}

_CHILDREN = (
    *("schema", "items_schema", "keys_schema", "values_schema", "choices", "fields", "steps", "definitions"),
    *("lax_schema", "strict_schema", "json_schema", "python_schema", "arguments_schema", "extras_schema"),
)


def _facts(schema: Node, annotation: Any) -> Facts:
    nodes = list(_nodes(schema))
    for node in nodes:
        if node["type"] in _REFUSED:
            raise ModelDefinitionError(
                f"{_name_of(annotation)} cannot be the type of a field", hint=_REFUSED[node["type"]]
            )
    return Facts(
        kind=_kind(schema, {node["ref"]: node for node in nodes if "ref" in node}),
        exact=all(map(_is_exact, nodes)),
        dumped=any(node["type"] not in _BARE or "serialization" in node for node in nodes),
        faithful=not any("serialization" in node or _is_left_out(node) for node in nodes),
        instances=any(node["type"] in _INSTANCES for node in nodes),
    )


def _nodes(part: Any) -> Iterator[Node]:
    """Yield every node of a schema. A recursive schema refers to itself by reference, so this ends."""
    if isinstance(part, Mapping):
        if isinstance(part.get("type"), str):
            yield part
            for name in _CHILDREN:
                yield from _nodes(part.get(name))
        else:  # by name: fields, or the choices of a tagged union
            for member in part.values():
                yield from _nodes(member)
    elif isinstance(part, list | tuple):
        for member in part:
            yield from _nodes(member)


def _is_exact(node: Node) -> bool:
    kind = node["type"]
    if kind not in _EXACT or "serialization" in node:
        return False
    check = _CHECKS.get(kind)
    return check is None or check(node)


def _exact_instance(node: Node) -> bool:
    extra = (node.get("config") or {}).get("extra_fields_behavior") == "allow"
    return not (extra or node.get("post_init") or node.get("custom_init"))


def _exact_fields(node: Node) -> bool:
    return node.get("extra_behavior") != "allow" and not node.get("extras_schema")


def _exact_field(node: Node) -> bool:
    same_name = node.get("validation_alias") == node.get("serialization_alias")
    return same_name and not _is_left_out(node) and node.get("init", True)


def _is_left_out(node: Node) -> bool:
    return any(node.get(name) for name in ("serialization_exclude", "serialization_exclude_if", "init_only"))


def _exact_members(node: Node) -> bool:
    return "items_schema" in node  # without it, the members can be anything


def _exact_entries(node: Node) -> bool:
    """Names in a map are stored as text; check that the type of the keys can be read back from text."""
    names = node.get("keys_schema", {"type": "any"})
    if "values_schema" not in node:
        return False
    if names["type"] in {"enum", "literal"}:
        return all(isinstance(_raw(choice), str) for choice in _choices(names))
    return names["type"] in {*_TEXTS, *_NUMBERS, "bool"}


def _exact_choices(node: Node) -> bool:
    kinds = {type(choice) for choice in map(_raw, _choices(node))}
    if node["type"] == "enum":
        return kinds <= {str, int} and not issubclass(node["cls"], Flag) and not node.get("missing")
    choices_are_plain = not any(isinstance(choice, Enum) for choice in _choices(node))
    return choices_are_plain and kinds <= {str, int, bytes, bool, type(None)} and not {int, bool} <= kinds


_CHECKS: dict[str, Callable[[Node], bool]] = {
    "model": _exact_instance,
    "dataclass": _exact_instance,
    "model-fields": _exact_fields,
    "typed-dict": _exact_fields,
    "dataclass-args": _exact_fields,
    "model-field": _exact_field,
    "dataclass-field": _exact_field,
    "typed-dict-field": _exact_field,
    **dict.fromkeys(["list", "tuple", "set", "frozenset"], _exact_members),
    "dict": _exact_entries,
    "enum": _exact_choices,
    "literal": _exact_choices,
    "datetime": lambda node: not isinstance(node.get("tz_constraint"), int),
}


def _choices(node: Node) -> Sequence[Any]:
    found: Sequence[Any] = node["members"] if node["type"] == "enum" else node["expected"]
    return found


def _raw(choice: Any) -> Any:
    return choice.value if isinstance(choice, Enum) else choice


def _kind(node: Node, named: Mapping[str, Node], *, depth: int = 0) -> str | None:
    """Return the letter under which all values of this node are stored, None if there are several."""
    kind = node["type"]
    if "serialization" in node or depth > 50:  # a reference may lead back to itself
        return None
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _WRAPPERS or kind == "definitions":
        return _kind(node["schema"]["schema"] if _is_root(node) else node["schema"], named, depth=depth + 1)
    if kind == "definition-ref":
        return _kind(named[node["schema_ref"]], named, depth=depth + 1)
    letters: set[str | None] = set()
    if kind in {"enum", "literal"}:
        letters = {
            letter for choice in _choices(node) if choice is not None for letter in encode_value(choice)
        }
    elif kind in {"union", "tagged-union"}:
        members = (member for member in _members(node) if member["type"] != "none")
        letters = {_kind(member, named, depth=depth + 1) for member in members}
    return letters.pop() if len(letters) == 1 else None


def _is_root(node: Node) -> bool:
    return bool(node.get("root_model")) and "schema" in node["schema"]


def _members(node: Node) -> Iterator[Node]:
    choices = node["choices"]
    for choice in choices.values() if isinstance(choices, Mapping) else choices:
        member = choice[0] if isinstance(choice, tuple) else choice
        if isinstance(member, Mapping):
            yield member
