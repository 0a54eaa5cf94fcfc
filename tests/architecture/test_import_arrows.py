"""A line of code knows where it lives and what it may import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "holdall"

FEATURES = {"attachments", "artifacts", "archive"}
GROUND = {"core", "errors"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": {"errors"},
    "core": GROUND,
    "tables": GROUND | {"tables"},
    "models": GROUND | {"models"},
    "transactions": GROUND | {"tables", "models", "transactions"},
    "files": GROUND | {"files"},
    "jobs": GROUND | {"tables", "models", "transactions", "files", "jobs"},
    **{
        feature: GROUND | {"tables", "models", "transactions", "files", "jobs", feature}
        for feature in FEATURES
    },
    "backends": GROUND | {"backends"},
    "testing": GROUND | {"backends", "database", "async_database", "testing"},
}
MAY_IMPORT["composition"] = MAY_IMPORT["database"] = MAY_IMPORT["async_database"] = {*MAY_IMPORT} - {
    "testing"
} | {
    "composition",
    "database",
    "async_database",
    "features",
}
MAY_IMPORT["worker"] = GROUND | {"tables", "models", "transactions", "jobs", "worker"}
MAY_IMPORT["features"] = GROUND | FEATURES  # for the types of their settings
MAY_IMPORT["worker"] |= {"database", "async_database", "features"}
MAY_IMPORT["database"] |= {"worker"}
MAY_IMPORT["async_database"] |= {"worker"}
MAY_IMPORT["__init__"] = MAY_IMPORT["__main__"] = {"*"}
MAY_IMPORT["web"] = MAY_IMPORT["cli"] = {"*"}

WORLDLY = {"asyncio", "multiprocessing", "os", "random", "select", "socket", "sqlite3", "ssl", "subprocess"}
WORLDLY |= {"tempfile", "threading", "time"}
PURE_ROOMS = {"core", "models", "tables", "transactions", "files", "jobs", *FEATURES}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_rooms_below_it(module: Path) -> None:
    allowed = MAY_IMPORT[room_of(module)]
    if "*" in allowed:
        return
    for name in imports_of(module):
        top, _, rest = name.partition(".")
        if top == "holdall":
            assert rest.partition(".")[0] in allowed, f"{module.name} imports {name}"


@pytest.mark.parametrize(
    "module", [m for m in modules() if room_of(m) in PURE_ROOMS], ids=lambda path: path.name
)
def test_a_pure_room_does_not_touch_the_world(module: Path) -> None:
    touched = {name.partition(".")[0] for name in imports_of(module)} & WORLDLY
    assert not touched, f"{module.name} imports {touched}"


def test_only_whole_table_work_may_scan() -> None:
    allowed = (
        *("archive/", "testing/table_contract/", "cli/doctor", "tables/backfill"),
        *("transactions/migration", "transactions/scan", "artifacts/catalogue"),
    )
    for module in modules():
        where = module.relative_to(SOURCE).as_posix()
        if where.startswith(allowed):
            continue
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call):
                called = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                assert called != "Scan", f"{where}:{node.lineno} sends a Scan"


def test_every_module_says_what_lives_in_it() -> None:
    silent = [m.name for m in modules() if not ast.get_docstring(ast.parse(m.read_text()))]
    assert silent == []
