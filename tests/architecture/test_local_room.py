"""Code that touches the caller's files blocks, so it is plain functions, called only through `Port.offload`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "holdall"
LOCAL = sorted((SOURCE / "local").rglob("*.py"))
FUNCTIONS = {
    (".".join(module.relative_to(SOURCE.parent).with_suffix("").parts), node.name)
    for module in LOCAL
    for node in ast.parse(module.read_text()).body
    if isinstance(node, ast.FunctionDef)
}


@pytest.mark.parametrize("module", LOCAL, ids=lambda path: path.name)
def test_the_room_has_no_async_code_and_its_classes_have_no_methods(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text())):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), f"{module.name}:{node.lineno}"
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            assert methods <= {"__init__"}, f"{module.name}: {node.name}"


def find_uses(module: Path) -> Iterator[tuple[str, int, bool]]:
    """Each use of a function of the room: its name, the line, and whether it is passed to `offload`."""
    text = module.read_text()
    if "holdall.local" not in text and "import local" not in text:
        return
    tree = ast.parse(text)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not any(each.name.startswith("holdall.local") for each in node.names), module
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdall.local"):
            assert node.module != "holdall.local", f"{module}: import names, not modules"
            for each in node.names:
                if (node.module, each.name) in FUNCTIONS:
                    known[each.asname or each.name] = each.name
    offloaded = {
        id(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "offload"
        and node.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in known:
            yield known[node.id], node.lineno, id(node) in offloaded


def test_other_rooms_call_its_functions_only_through_offload() -> None:
    offloaded = set()
    for module in sorted(SOURCE.rglob("*.py")):
        if module in LOCAL:
            continue
        for name, line, is_offloaded in find_uses(module):
            assert is_offloaded, f"{module.relative_to(SOURCE)}:{line} uses {name} without offload"
            offloaded.add(name)
    assert len(offloaded) > 20
    public = {name for _, name in FUNCTIONS if not name.startswith("_")}
    inside = {"close_checked", "hash_file", "name_draft", "remove_tree"}
    assert public - offloaded <= inside, "no flow uses these functions"
