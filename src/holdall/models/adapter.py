"""Pydantic's side of a codec: the adapter of a type, built when first needed, and what its schema tells.

Pure; pydantic is imported by the first adapter that is built and not before. Its errors end here: a value that does
not validate is an `InvalidValueError`, a type that cannot be stored is a `ModelDefinitionError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass
from holdall.errors import InvalidValueError, ModelDefinitionError
from holdall.models.stored_form import encode_value, show

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Node = Mapping[str, Any]
"""A part of a core schema."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a type's schema tells about its values.

    ``kind``: the one letter they are all stored under, None aside. ``exact``: the stored form gives back each of them,
    so that nobody has to look. ``dumped``: pydantic has to take them apart. ``faithful``: it leaves nothing out when it
    does. ``instances``: there are models or dataclasses among them, whose contents pydantic does not look at again.
    """

    kind: str | None
    exact: bool
    dumped: bool
    faithful: bool
    instances: bool


class Adapter:
    """Validation and dumping of one type. The first use of any attribute builds them all."""

    __slots__ = ("adapter", "annotation", "dump", "facts", "loose", "strict")

    adapter: TypeAdapter[Any]
    strict: Callable[[Any], Any]
    """Validates what a program assigns: ``'1'`` is no int."""
    loose: Callable[[Any], Any]
    """Validates what was stored: a list becomes a set, a text a date."""
    dump: Callable[[Any], Any]
    """Takes models and the like apart, as their serializers say."""
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
            adapter = TypeAdapter(annotation)  # it is a model, and brings its own
        adapter.core_schema["type"]  # one that could not be built yet says so only when it is used
    except (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, ValueError) as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        raise ModelDefinitionError(f"{_name_of(annotation)} cannot be a field's type: {problem}") from error
    return adapter


def _name_of(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


# --- errors ---------------------------------------------------------------------------------------------


def _problem(error: ValidationError, value: object) -> InvalidValueError:
    """The first thing that is wrong, where, and how many more there are."""
    first, *others = error.errors(include_url=False, include_context=False)
    missing = first["type"] in ("missing", "missing_argument", "missing_keyword_only_argument")
    problem = first["msg"] if missing else f"{first['msg']} (got {show(first['input'])})"
    if others:
        problem += f"; {len(others)} more problem{'s' if len(others) > 1 else ''}"
    return InvalidValueError(problem, place=_place(first["loc"], value, missing=missing))


def _place(steps: Sequence[int | str], value: object, *, missing: bool) -> str:
    """A location as a path. Steps that lead nowhere in the value are labels of pydantic's (a union's member)."""
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

# Built of these alone, values need no taking apart.
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

# Of these we know that what they store is what they read. A timedelta of centuries is read inexactly inside of others.
_EXACT = _BARE - {"timedelta", "any", "union"}
_EXACT |= {"model", "model-fields", "model-field", "dataclass", "dataclass-args", "dataclass-field"}
_EXACT |= {"typed-dict", "typed-dict-field"}

_INSTANCES = {"model", "dataclass"}

_REFUSED = {
    "json": "its value is not what it validates; use the parsed type",
    "generator": "an iterator cannot be stored; use list",
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
                f"{_name_of(annotation)} cannot be a field's type", hint=_REFUSED[node["type"]]
            )
    return Facts(
        kind=_kind(schema, {node["ref"]: node for node in nodes if "ref" in node}),
        exact=all(map(_is_exact, nodes)),
        dumped=any(node["type"] not in _BARE or "serialization" in node for node in nodes),
        faithful=not any("serialization" in node or _is_left_out(node) for node in nodes),
        instances=any(node["type"] in _INSTANCES for node in nodes),
    )


def _nodes(part: Any) -> Iterator[Node]:
    """Every node of a schema. A recursive one names itself by reference, so this ends."""
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
    return "items_schema" in node  # without one, they can be anything


def _exact_entries(node: Node) -> bool:
    """A name in a map is text; of these types we know that they are read from it."""
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
    """The one letter that values of this node are stored under, if there is one."""
    kind = node["type"]
    if "serialization" in node or depth > 50:  # a reference may lead back to where it came from
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
