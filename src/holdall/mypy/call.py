"""Checks of calls that name a model's key, fields or indexes.

A check reports what is wrong and leaves the rest to mypy, which calls it once for each overload of a method; the check
acts for the overload with a certain parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from mypy.errorcodes import ARG_TYPE, CALL_ARG, ErrorCode
from mypy.messages import format_type
from mypy.nodes import CallExpr, DictExpr, Expression, StrExpr
from mypy.plugin import CheckerPluginInterface, MethodContext, MethodSigContext
from mypy.subtypes import is_subtype
from mypy.typeops import make_simplified_union
from mypy.types import Instance, LiteralType, NoneType, TupleType, Type, TypeType, get_proper_type

from holdall.core.nearest_name import find_nearest
from holdall.mypy.model import KEY, ModelType, find_model, make_instance

Values: TypeAlias = Mapping[str, Expression]


class Call:
    """A call, as it is written. ``is_open``: it may have arguments that the source does not show."""

    def __init__(self, expression: CallExpr, api: CheckerPluginInterface, options: Iterable[str]) -> None:
        self.api = api
        self.expression = expression
        written = [*zip(expression.arg_kinds, expression.arg_names, expression.args, strict=True)]
        self.is_open = any(kind.is_star() for kind, _, _ in written)
        self.positional = [value for kind, _, value in written if kind.is_positional()]
        named = {name: value for _, name, value in written if name is not None}
        self.options: Values = {name: value for name, value in named.items() if name in options}
        self.named: Values = {name: value for name, value in named.items() if name not in options}

    def find_model(self) -> ModelType | None:
        """Return the model of the first argument: a class, a key or an item."""
        return find_model(self.type_of(self.positional[0]), self.api) if self.positional else None

    def type_of(self, value: Expression, expected: Type | None = None) -> Type:
        """Return the type of an expression."""
        return self.api.get_expression_type(value, expected)

    def fail(self, text: str, at: Expression, code: ErrorCode = CALL_ARG) -> None:
        """Report an error."""
        self.api.fail(text, at, code=code)

    def check_value(self, model: ModelType, name: str, expected: Type, given: Expression) -> None:
        """Report a value that does not fit its field."""
        found = self.type_of(given, expected)
        if not is_subtype(found, expected):
            wanted, got = (format_type(each, self.api.options) for each in (expected, found))
            self.fail(f'"{name}" of "{model.name}" must be {wanted}, not {got}', given, ARG_TYPE)

    def check_values(self, model: ModelType, what: str, expected: Mapping[str, Type], given: Values) -> None:
        """Report names that are not expected, and values that do not fit."""
        for name, value in given.items():
            if name in expected:
                self.check_value(model, name, expected[name], value)
            else:
                near = None if name in model.fields else find_nearest(name, expected.keys() - given.keys())
                self.fail(f'{what} has no "{name}"{_suggest(near)}', value)

    def check_key(self, model: ModelType, what: str, expected: Mapping[str, Type], given: Values) -> None:
        """Report names and values as `check_values`, and components that are missing."""
        self.check_values(model, what, expected, given)
        missing = [name for name in expected if name not in given and name not in model.optional]
        if missing and not self.is_open and given.keys() <= expected.keys():
            self.fail(f'{what} needs "{missing[0]}"', self.expression)

    def check_fields(self, model: ModelType, given: Expression, *, none: bool = False) -> None:
        """Report wrong names and values in a dict of fields that is written out; ``none``: any of them can be None."""
        fields = model.fields
        if none:
            fields = {name: make_simplified_union([kind, NoneType()]) for name, kind in fields.items()}
        self.check_values(model, f'"{model.name}"', fields, _members(given))


def _suggest(name: str | None) -> str:
    return "" if name is None else f'; did you mean "{name}"?'


def _members(value: Expression) -> Values:
    items = value.items if isinstance(value, DictExpr) else []
    return {name.value: member for name, member in items if isinstance(name, StrExpr)}


def _open(context: MethodSigContext, parameter: str) -> Call | None:
    """The call, if this is the overload with this parameter."""
    names = context.default_signature.arg_names
    if parameter not in names or not isinstance(context.context, CallExpr):
        return None
    options = [name for name in names if name is not None and name != parameter]
    return Call(context.context, context.api, options)


def _open_on_model(context: MethodSigContext, parameter: str) -> tuple[Call | None, ModelType | None]:
    """The call, if this is the overload with this parameter, and the model that it names first."""
    call = _open(context, parameter)
    return call, None if call is None else call.find_model()


# --- keys -------------------------------------------------------------------------------------------------


def check_get(context: MethodSigContext) -> None:
    """Check ``get(Order, customer="ada")`` and ``get(Order, "ada")``."""
    call = _open(context, "components")
    if call is not None and call.positional and not _is_key(call.type_of(call.positional[0])):
        _check_key(call, call.find_model(), call.positional[1:])


def check_key(context: MethodSigContext) -> None:
    """Check ``Order.key(customer="ada")`` and ``Order.key("ada")``."""
    call = _open(context, "components")
    if call is not None and isinstance(context.type, Instance):
        _check_key(call, find_model(context.type.args[0], call.api), call.positional)


def _check_key(call: Call, model: ModelType | None, values: list[Expression]) -> None:
    if model is None or len(values) > 1:
        return
    what = f'The key of "{model.name}"'
    if not values:
        call.check_key(model, what, model.key, call.named)
        return
    (value,) = values
    needed = [name for name in model.key if name not in model.optional]
    if len(needed) == 1:
        call.check_value(model, needed[0], model.key[needed[0]], value)
    elif isinstance(value, DictExpr):
        call.check_key(model, what, model.key, _members(value))
    elif (
        isinstance(kind := get_proper_type(call.type_of(value)), Instance) and kind.type.fullname in _SCALARS
    ):
        parts = ", ".join(f"{name}=..." for name in model.key)
        call.fail(f"{what} has {len(needed)} components: write {parts}", value)


_SCALARS = {f"builtins.{name}" for name in ("str", "bytes", "int", "float", "bool")}


def _is_key(given: Type) -> bool:
    kind = get_proper_type(given)
    return isinstance(kind, Instance) and kind.type.fullname == KEY


def check_get_by(context: MethodSigContext) -> None:
    """Check ``get_by(Account, email="ada@example.com")``."""
    call, model = _open_on_model(context, "value")
    if call is None or model is None:
        return
    for name, value in call.named.items():
        if name in model.fields and name not in model.unique:
            call.fail(f'"{name}" of "{model.name}" is not unique', value)
        else:
            call.check_values(model, f'"{model.name}"', model.fields, {name: value})


# --- queries ----------------------------------------------------------------------------------------------


def check_query(context: MethodSigContext) -> None:
    """Check ``query(Order, customer="ada")`` and ``query(Order, index="by_product", product="tea")``."""
    call, model = _open_on_model(context, "components")
    if call is None or model is None or not _is_overload_for(context, call):
        return
    if len(call.positional) > 1:
        if "change" not in context.default_signature.arg_names:
            return  # mypy refuses it
        call.check_fields(model, call.positional[1])  # update_all
    index = call.options.get("index")
    name: str | None = None
    key: list[str] | None = [*model.partition]
    if index is not None and not isinstance(get_proper_type(call.type_of(index)), NoneType):
        name, key = _find_index(call, model, index)
    if key is None or "scan" in call.options:
        return
    what = f'The partition key of "{model.name}"' if name is None else f'The index "{name}" of "{model.name}"'
    expected = {each: model.fields[each] for each in key if each in model.fields}
    call.check_key(model, what, expected, call.named)


def _is_overload_for(context: MethodSigContext, call: Call) -> bool:
    """Whether the overload is for as many models as the call names: the options for one and for several differ."""
    expected, given = context.default_signature.arg_types[0], call.type_of(call.positional[0])
    return isinstance(get_proper_type(expected), TypeType) is not isinstance(
        get_proper_type(given), TupleType
    )


def infer_rows(context: MethodContext) -> Type:
    """Infer the type of the rows of several models, for which mypy finds only a common base."""
    rows = get_proper_type(context.default_return_type)
    given = get_proper_type(context.arg_types[0][0]) if context.arg_types and context.arg_types[0] else None
    if not isinstance(rows, Instance) or not isinstance(given, TupleType):
        return context.default_return_type
    models = [make_instance(each) for each in given.items]
    if len(rows.args) != 1 or None in models:
        return context.default_return_type
    return rows.copy_modified(args=[make_simplified_union([each for each in models if each is not None])])


def _find_index(call: Call, model: ModelType, given: Expression) -> tuple[str | None, list[str] | None]:
    """The name and the key of an index; None for what the source does not show."""
    name = _read_literal(call, given)
    if name is None or model.indexes is None:
        return name, None
    if name not in model.indexes:
        also = _suggest(find_nearest(name, model.indexes))
        call.fail(f'"{model.name}" has no index "{name}"{also}', given, ARG_TYPE)
        return name, None
    key = model.indexes[name]
    return name, [*model.partition] if key == [] else key


def _read_literal(call: Call, given: Expression) -> str | None:
    kind = get_proper_type(call.type_of(given))
    literal = kind.last_known_value if isinstance(kind, Instance) else kind
    return literal.value if isinstance(literal, LiteralType) and isinstance(literal.value, str) else None


# --- fields -----------------------------------------------------------------------------------------------


def check_update(context: MethodSigContext) -> None:
    """Check ``db.update(key, note="x")``."""
    call, model = _open_on_model(context, "values")
    if call is not None and model is not None and len(call.positional) == 1 and not call.is_open:
        call.check_values(model, f'"{model.name}"', model.fields, call.named)


def check_blind(context: MethodSigContext) -> None:
    """Check ``tx.update(Order, {...}, {...})`` and ``tx.create_or_put(Order, {...}, {...})``."""
    call, model = _open_on_model(context, "expected")
    if call is not None and model is not None:
        for each in (*call.positional[1:], *call.named.values()):
            call.check_fields(model, each, none=True)


def check_increment(context: MethodSigContext) -> None:
    """Check ``tx.increment(order, quantity=1)``."""
    call, model = _open_on_model(context, "amounts")
    if call is not None and model is not None:
        call.check_values(model, f'"{model.name}"', model.fields, call.named)


def check_item(context: MethodSigContext) -> None:
    """Check ``order.assign({"note": "x"})`` and ``order.field("note")``."""
    call = _open(context, "values") or _open(context, "name")
    model = None if call is None else find_model(context.type, call.api)
    if call is None or model is None or not call.positional:
        return
    call.check_fields(model, call.positional[0])
    if "name" in context.default_signature.arg_names:
        name = _read_literal(call, call.positional[0])
        if name is not None and name not in model.fields:
            call.check_values(model, f'"{model.name}"', model.fields, {name: call.positional[0]})


Check: TypeAlias = Callable[[MethodSigContext], None]

_READERS = "holdall.transactions.read.reader.Reader", "holdall.transactions.read.reader.AsyncReader"
_RUNNERS = "holdall.transactions.run.runner.Runner", "holdall.transactions.run.runner.AsyncRunner"
_BULK_RUNNERS = (
    "holdall.transactions.bulk.runner.BulkRunner",
    "holdall.transactions.bulk.runner.AsyncBulkRunner",
)
_WRITES = "holdall.transactions.api.Writes"
_ITEM = "holdall.models.model.Declared"
_KEY_MAKER = "holdall.models.keys.key.KeyMaker"

CHECKS: Mapping[str, Mapping[str, Check]] = {
    "__call__": {_KEY_MAKER: check_key},
    "get": dict.fromkeys(_READERS, check_get),
    "get_one": dict.fromkeys(_READERS, check_get),
    "get_by": dict.fromkeys(_READERS, check_get_by),
    "query": dict.fromkeys(_READERS, check_query),
    "update_all": dict.fromkeys(_BULK_RUNNERS, check_query),
    "delete_all": dict.fromkeys(_BULK_RUNNERS, check_query),
    "update": {**dict.fromkeys(_RUNNERS, check_update), _WRITES: check_blind},
    "create_or_put": {_WRITES: check_blind},
    "increment": {_WRITES: check_increment},
    "assign": {_ITEM: check_item},
    "field": {_ITEM: check_item},
}
"""The check of each method, by its name and the class that declares it."""
