"""Refuses generators in place of functions: calling a generator function runs nothing, so Holdall never accepts one.

Pure. The rule has two halves: a generator function is refused when it is passed in (`refuse_generator_function`), and a
generator that any other function returns is refused after the call (`refuse_generator`). Both raise `GeneratorRefused`.
"""

from __future__ import annotations

from functools import partial
from types import AsyncGeneratorType, FunctionType, GeneratorType, MethodType
from typing import Any

from holdall.errors import GeneratorRefused

_GENERATOR = 0x20 | 0x200
"""The code flags of generator functions, sync and async; `inspect` is slow to load."""
_COROUTINE = 0x100
"""The flag that `types.coroutine` adds: the generator of such a function can be awaited."""

_HINT = "use a plain function without yield; to return several values, collect them in a list"


def refuse_generator_function(function: Any, role: str) -> None:
    """Refuse a function with ``yield`` in it; ``role`` is what it was passed as, like "a job"."""
    if is_generator_function(function):
        raise GeneratorRefused(
            f"{name_of(function)} is a generator function: calling it as {role} would run none of its code",
            hint=_HINT,
        )


def refuse_generator(result: Any, function: Any) -> None:
    """Refuse a generator that a function returned: its body would never run."""
    if isinstance(result, GeneratorType | AsyncGeneratorType):
        raise GeneratorRefused(
            f"{name_of(function)} returned a generator, which would run only after the call has ended",
            hint=_HINT,
        )


def is_generator_function(function: Any) -> bool:
    """Whether a call returns a generator, sync or async. Looks inside partials, methods and callable objects."""
    while not isinstance(function, FunctionType):
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        else:
            function = getattr(type(function), "__call__", None)  # noqa: B004 - to look into it
            if not isinstance(function, FunctionType):
                return False
    flags = function.__code__.co_flags
    return bool(flags & _GENERATOR) and not flags & _COROUTINE


def name_of(function: Any) -> str:
    """Return the name of a user's function for a message."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__name__))
