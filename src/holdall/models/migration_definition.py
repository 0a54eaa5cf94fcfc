"""From declared aliases and conversions to a model's migrations, with the checks that can be made beforehand. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdall.errors import ModelDefinitionError
from holdall.models.fields import Field
from holdall.models.migrations import Conversion, Migrations

if TYPE_CHECKING:
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema


def bind_migrations(
    cls: type[Model],
    fields: Mapping[str, Field[Any]],
    own: Sequence[Conversion],
    parents: Sequence[ModelSchema],
    table: str | None,
) -> Migrations | None:
    """Renames from the fields, conversions from the class or else from its nearest parent that has some."""
    renames = _renames(cls, fields)
    conversions = _conversions(cls, own, parents, table)
    if not renames and not conversions:
        return None
    fixed = [field.stored for field in fields.values() if field.is_key or field.unique]
    return Migrations(cls.__name__, renames, conversions, fixed)


def _renames(cls: type[Model], fields: Mapping[str, Field[Any]]) -> dict[str, str]:
    renames: dict[str, str] = {}
    taken = {field.stored for field in fields.values()}
    for field in fields.values():
        aliases = field.options.aliases
        if isinstance(aliases, str):
            raise _wrong(cls, field, "aliases is a list of names", hint=f'aliases=["{aliases}"]')
        for alias in aliases:
            _check_renamed(cls, field)
            if alias in taken or alias in renames or alias.startswith("_"):
                raise _wrong(cls, field, f"the alias {alias!r} is another field's name")
            renames[alias] = field.stored
    return renames


def _check_renamed(cls: type[Model], field: Field[Any]) -> None:
    hint = "keep its stored name with name="
    if field.is_key:
        raise _wrong(cls, field, "part of a key cannot be renamed", hint=hint)
    if field.unique:
        problem = "a unique field cannot be renamed: its values are guarded under the stored name"
        raise _wrong(cls, field, problem, hint=hint)


def _conversions(
    cls: type[Model], own: Sequence[Conversion], parents: Sequence[ModelSchema], table: str | None
) -> tuple[Conversion, ...]:
    if callable(own):
        raise ModelDefinitionError(
            f"{cls.__name__}: migrations is a list of functions",
            hint=f"migrations=[{getattr(own, '__name__', 'a_function')}]",
        )
    found = tuple(own) or next((parent.conversions for parent in parents if parent.conversions), ())
    if found and table is not None:
        raise ModelDefinitionError(
            f"{cls.__name__}: conversions need a mark on each item, which a table of the model's own has no room for",
            hint="rename fields with aliases=, or convert such a table with a program of your own",
        )
    for conversion in found:
        if not callable(conversion):
            raise ModelDefinitionError(
                f"{cls.__name__}: migrations holds {conversion!r:.60}, which is no function"
            )
    return found


def _wrong(cls: type, field: Field[Any], problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    return ModelDefinitionError(f"{cls.__name__}.{field.name}: {problem}", hint=hint)
