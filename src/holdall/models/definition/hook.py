"""The hooks of a model: methods that Holdall calls before a write and after a read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getattr_static, iscoroutinefunction, signature
from typing import TYPE_CHECKING

from holdall.core.generator import is_generator_function
from holdall.models.definition.field import refuse_field

if TYPE_CHECKING:
    from holdall.models.model import Model

_BEFORE_WRITES = ("before_create", "before_update", "before_delete", "before_commit")


def list_hooks(cls: type[Model]) -> Iterator[str]:
    """Yield the names of the hooks of writes that the class defines."""
    for name in _BEFORE_WRITES:
        if not _is_defined(cls, name):
            continue
        if is_generator_function(getattr(cls, name)):
            raise refuse_field(
                cls,
                name,
                "it is a generator function, so calling it would run none of its code",
                hint="make it a plain method without yield",
            )
        _check_call(cls, name, "tx")
        yield name


def has_after_load(cls: type[Model]) -> bool:
    """Whether the class prepares items that were read."""
    if not _is_defined(cls, "after_load"):
        return False
    if is_generator_function(cls.after_load) or iscoroutinefunction(cls.after_load):
        raise refuse_field(
            cls, "after_load", "it must be a plain method, because items are made without waiting"
        )
    _check_call(cls, "after_load")
    return True


def _is_defined(cls: type[Model], name: str) -> bool:
    from holdall.models.model import Model

    return getattr(cls, name) is not getattr(Model, name)


def _check_call(cls: type[Model], name: str, *arguments: str) -> None:
    """Refuse a hook that cannot be called on an item with these arguments."""
    hook = getattr_static(cls, name)
    bound = hook.__get__(object(), cls) if hasattr(hook, "__get__") else hook
    wanted = f"def {name}({', '.join(('self', *arguments))})"
    if not callable(bound):
        raise refuse_field(
            cls, name, "it is the name of a hook, so it must be a method", hint=f"write {wanted}"
        )
    try:
        signature(bound).bind(*arguments)
    except ValueError:  # a function in C, whose parameters are unknown
        return
    except TypeError:
        raise refuse_field(
            cls,
            name,
            f"Holdall cannot call it: it is defined as {name}{signature(getattr(cls, name))}",
            hint=f"write {wanted}",
        ) from None
