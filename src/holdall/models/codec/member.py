"""Members: what a type declares about the values inside it, for changes inside a field that was not read.

Pure. Parts are names and positions as they are stored: for a pydantic model, its aliases.
"""

from __future__ import annotations

import sys
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin

from holdall.core.frozen import dataclass
from holdall.core.nearest_name import suggest_name
from holdall.errors import InvalidValueError
from holdall.models.codec.annotation import peel
from holdall.models.codec.stored_form import show


@dataclass(frozen=True, slots=True)
class Member:
    """A value inside another: ``required`` if it cannot be absent, ``free`` if any name can be absent or new."""

    annotation: Any
    required: bool
    free: bool


def find_member(annotation: Any, part: str | int) -> Member:
    """The member of a type at a name or a position; `InvalidValueError` if the type has none, or does not say."""
    base = peel(annotation).base
    origin, arguments = get_origin(base), get_args(base)
    if base is Any or base is object:
        return Member(Any, False, isinstance(part, str))
    if base is list or origin is list:
        if not isinstance(part, int):
            raise InvalidValueError(f"a list has positions, not the name {show(part)}")
        return Member(arguments[0] if arguments else Any, False, False)
    if not isinstance(part, str):
        raise InvalidValueError(f"only a list has positions, such as {part}")
    if base is dict or (origin is dict and arguments[0] is str):
        return Member(arguments[1] if arguments else Any, False, True)
    members = _list_members(base)
    if members is None:
        raise InvalidValueError(
            "its type does not declare what is inside it",
            hint="read the item and change the value, or set the whole field",
        )
    if part not in members:
        raise InvalidValueError(f"it has no member {show(part)}", hint=suggest_name(part, members, "members"))
    return members[part]


def _list_members(base: Any) -> dict[str, Member] | None:
    """The members of a TypedDict, dataclass or pydantic model; None for any other type."""
    if hasattr(base, "__required_keys__"):  # a TypedDict of typing, or of typing_extensions
        hints = typing.get_type_hints(base)
        extras = typing.get_type_hints(base, include_extras=True)
        return {
            name: Member(
                hints[name] if get_origin(extra) in (typing.Required, typing.NotRequired) else extra,
                name in base.__required_keys__,
                False,
            )
            for name, extra in extras.items()
        }
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(base, type) and issubclass(base, pydantic.BaseModel):
        return {
            info.serialization_alias or info.alias or name: Member(
                Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation,
                info.is_required(),
                False,
            )
            for name, info in base.model_fields.items()  # type: ignore[attr-defined]
        }
    if isinstance(base, type) and is_dataclass(base):
        hints = typing.get_type_hints(base, include_extras=True)
        return {
            each.name: Member(
                hints[each.name], each.default is MISSING and each.default_factory is MISSING, False
            )
            for each in fields(base)
        }
    return None
