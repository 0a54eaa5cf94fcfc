"""The mark of members that only Holdall itself calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def internal(function: F) -> F:
    """Mark a method of a public class that is not for its users: the reference leaves it out, and it may change.

    On ``__init__`` it means that users do not make instances themselves: other methods return them.
    """
    return function
