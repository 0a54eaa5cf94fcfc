"""What objects do in a forked child, where the parent's threads, and the holders of its locks, do not exist."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import MethodType
from typing import Any, cast
from weakref import WeakKeyDictionary


def call_after_fork(method: Callable[[], None]) -> None:
    """Call an object's method in every child that is forked from now on, as long as the object lives."""
    bound = cast("MethodType", method)
    _methods[bound.__self__] = bound.__func__


_methods: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()


def _call_all() -> None:
    for each, method in list(_methods.items()):
        method(each)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_call_all)
