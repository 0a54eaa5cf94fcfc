"""What objects do in the child of a fork, where the parent's threads, and whoever held its locks, do not exist."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakMethod


def call_after_fork(method: Callable[[], None]) -> None:
    """Call an object's method in every child that is forked from now on, as long as the object lives."""
    _methods.add(WeakMethod(method, _methods.discard))


_methods: set[WeakMethod[Any]] = set()


def _call_all() -> None:
    for reference in list(_methods):
        method = reference()
        if method is not None:
            method()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_call_all)
