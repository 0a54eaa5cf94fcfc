"""Flows are plain coroutines: a paged read is a cursor, and only shells that programs iterate over are generators."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "holdall"
PROGRAMS = {"backends", "web", "testing"}
SHELLS = {
    "async_database.py",
    "core/shell.py",
    "files/api.py",
    "files/handle.py",
    "transactions/query/api.py",
}


def _list_own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from _list_own_nodes(node)


def has_async_generator(source: str) -> bool:
    """Whether an ``async def`` of the source yields."""
    return any(
        isinstance(node, ast.Yield)
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.AsyncFunctionDef)
        for node in _list_own_nodes(function)
    )


def test_async_generators_are_recognized() -> None:
    assert has_async_generator("async def pages():\n    for page in found:\n        yield page")
    assert not has_async_generator("async def pages():\n    def inner():\n        yield 1\n    return inner")


def test_only_shells_are_async_generators() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if has_async_generator(path.read_text(encoding="utf-8"))
    }
    assert {name for name in found if name.partition("/")[0] not in PROGRAMS} == SHELLS
