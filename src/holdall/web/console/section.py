"""The sections of the console, each with its pages and its entry in the navigation.

To add a section, write a module with a constant ``SECTION`` and add the module's name to `_MODULES`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from holdall.web.console.visit import Visit

_MODULES = ("overview", "model", "blob", "artifact", "archive", "job")
"""In the order of the navigation."""


@dataclass(frozen=True, slots=True)
class Page:
    """What answers requests to a path. With ``changes``, it answers POST requests, and only if the console may write.

    The path has the form of Starlette's: ``/models/{name}``.
    """

    path: str
    answer: Callable[[Visit], Awaitable[Response]]
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A section; its first page is the one that the navigation leads to. ``icon`` is a name in ``icon.html``."""

    name: str
    title: str
    icon: str
    pages: tuple[Page, ...]


def list_sections() -> tuple[Section, ...]:
    """Return all sections."""
    found = (import_module(f"holdall.web.console.{name}").SECTION for name in _MODULES)
    return tuple(found)
