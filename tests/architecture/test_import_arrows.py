"""Each module imports only what the room card allows its room to import."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import holdall

SOURCE = Path(__file__).parents[2] / "src" / "holdall"

CARD = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The room card")[2]
PUBLIC = {"holdall", *re.findall(r"`(holdall\.[\w.]+)`", holdall.__doc__ or "")}
PROGRAM = {"__init__", "__main__"}  # the package's public names, and the entry point of `python -m holdall`


def parse_cell(cell: str) -> set[str]:
    return {name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`([\w./]+)`", cell)}


ROWS = [
    (parse_cell(rooms), named.strip())
    for rooms, _, named in (line.split("|")[1:4] for line in CARD.splitlines() if line.startswith("| `"))
]


def read_card() -> dict[str, set[str]]:
    """What each room may import, according to the card in CONTRIBUTING.md."""
    may = {room: {"*"} for room in PROGRAM}
    for rooms, named in ROWS:
        public = {"public names"} & {named.partition(",")[0]}
        may |= {room: parse_cell(named) | public | {room, "errors", "lazy"} for room in rooms}
    return may


MAY_IMPORT = read_card()

IMPURE_MODULES = {
    *(
        "asyncio",
        "atexit",
        "bz2",
        "concurrent",
        "contextvars",
        "ctypes",
        "fcntl",
        "fileinput",
        "getpass",
        "glob",
    ),
    *(
        "gzip",
        "http",
        "io",
        "linecache",
        "lzma",
        "mmap",
        "multiprocessing",
        "os",
        "pathlib",
        "platform",
        "pwd",
    ),
    *("queue", "random", "resource", "sched", "secrets", "select", "selectors", "shutil", "signal", "socket"),
    *("sqlite3", "ssl", "stat", "subprocess", "tarfile", "tempfile", "threading", "time", "urllib.request"),
    *("webbrowser", "zipfile", "zoneinfo"),
}
MAY_TOUCH: dict[str, set[str]] = {
    "core": {"io"},  # buffers in memory
    "local": {"fcntl", "io", "os", "pathlib", "shutil", "sqlite3", "stat", "tempfile"},
    "backends": IMPURE_MODULES,
    "jobs": {"contextvars"},  # the job that is running
    "transactions": {"contextvars"},  # the transaction that is running
    "async_database": {"asyncio"},
    "scope": {"asyncio"},
    "worker": {"asyncio", "contextvars", "os", "queue", "random", "threading", "time"},
    "testing": {"asyncio", "http", "os", "random", "threading"},
    "cli": {"asyncio", "os", "pathlib", "signal", "threading", "time"},
    "web": {"asyncio", "contextvars", "http", "os", "queue", "threading"},
}
"""The rooms that may import modules for waiting, files, threads, clocks, randomness, the network or ambient values."""

IMPURE_CALLS = {
    "date.today",
    "datetime.now",
    "datetime.today",
    "datetime.utcnow",
    "input",
    "open",
    "print",
    "uuid.uuid4",
    "uuid4",
}
"""Calls that reach files, the clock or randomness without such a module."""

IMPURE_ON_PURPOSE = {
    "artifacts/alias/alias.py": "an alias that the caller makes but does not store has the time at which it was made",
    "models/keys/ids.py": "a new item has its id before any transaction knows it",
}


def list_modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def find_room(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


class Facts(NamedTuple):
    """What the tests need to know about a module; the syntax tree is not kept."""

    docstring: str | None
    imports: list[str]
    typing: list[str]
    """What it imports only for type checkers."""
    private: list[tuple[int, str]]
    """Private names that it reads from other objects, with their lines."""
    scans: list[int]
    impure: set[str]
    """Which of `IMPURE_CALLS` it makes."""


@cache
def read_facts(module: Path) -> Facts:
    tree = ast.parse(module.read_text())
    facts = Facts(ast.get_docstring(tree), [], [], [], [], set())
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            todo.extend(node.orelse)
            inside = (each for part in node.body for each in ast.walk(part))
            named = (each for each in inside if isinstance(each, ast.ImportFrom))
            facts.typing.extend(f"{each.module}.{alias.name}" for each in named for alias in each.names)
            continue
        todo.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            facts.imports.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            facts.imports.extend(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                facts.private.append((node.lineno, node.attr))
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "import_module" and isinstance(node.args[0], ast.Constant):
                facts.imports.append(str(node.args[0].value))
            if called == "Scan":
                facts.scans.append(node.lineno)
            if called in {name.rpartition(".")[2] for name in IMPURE_CALLS}:
                facts.impure.update({ast.unparse(node.func)} & IMPURE_CALLS)
    return facts


def is_private(name: str) -> bool:
    documented = ("_asdict", "_exit")  # documented methods of named tuples and os
    return name.startswith("_") and not name.startswith("__") and name not in documented


def test_the_card_lists_exactly_the_rooms() -> None:
    found = {
        path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()
    }
    assert MAY_IMPORT.keys() == found - {"__pycache__"}
    assert {name for allowed in MAY_IMPORT.values() for name in allowed} <= {*MAY_IMPORT, "public names", "*"}


def test_a_module_imports_only_from_rooms_that_the_card_allows() -> None:
    for module in list_modules():
        allowed = MAY_IMPORT[find_room(module)]
        facts = read_facts(module)
        for name in () if "*" in allowed else facts.imports + facts.typing:
            top, _, rest = name.partition(".")
            if top == "holdall" and rest.partition(".")[0] not in allowed:
                assert "public names" in allowed, f"{module} imports {name}"
                assert not rest or is_public(name), f"{module} imports {name}"


def test_every_arrow_of_the_card_is_used() -> None:
    for rooms, named in ROWS:
        facts = [read_facts(module) for module in list_modules() if find_room(module) in rooms]
        imported = {name for each in facts for name in each.imports + each.typing}
        used = {name.split(".")[1] for name in imported if name.startswith("holdall.")}
        assert parse_cell(named) - used == set(), rooms


@cache
def is_public(name: str) -> bool:
    """Whether a documented module exports this name."""
    home, _, own = name.rpartition(".")
    return home in PUBLIC and own in import_module(home).__all__


def test_a_program_uses_no_private_names() -> None:
    programs = [module for module in list_modules() if "public names" in MAY_IMPORT[find_room(module)]]
    assert programs
    for module in programs:
        assert read_facts(module).private == [], module


def test_a_module_imports_only_impure_modules_that_its_room_may_touch() -> None:
    for module in list_modules():
        imported = read_facts(module).imports
        touched = {
            name for name in IMPURE_MODULES if any(f"{each}.".startswith(f"{name}.") for each in imported)
        }
        assert touched <= MAY_TOUCH.get(find_room(module), set()), f"{module} imports {touched}"


def test_every_module_that_a_room_may_touch_is_touched_there() -> None:
    for room, allowed in MAY_TOUCH.items():
        facts = [read_facts(module) for module in list_modules() if find_room(module) == room]
        imported = {f"{name}." for each in facts for name in each.imports}
        unused = {name for name in allowed if not any(each.startswith(f"{name}.") for each in imported)}
        assert unused == set() or room == "backends", room


def test_pure_rooms_make_no_impure_calls() -> None:
    found = {
        module.relative_to(SOURCE).as_posix()
        for module in list_modules()
        if read_facts(module).impure and not MAY_TOUCH.get(find_room(module), set()) & {"os", "time"}
    }
    assert found == set(IMPURE_ON_PURPOSE)


WHOLE_TABLES = (
    "archive/",
    "artifacts/catalogue",
    "attachments/upkeep/",
    "cli/items/source",
    "cli/models/models",
    "maintenance/",
    "testing/table_contract/",
    "transactions/migration/",
    "transactions/query/scan",
)


def test_only_whole_table_work_may_scan() -> None:
    scanning = {
        module.relative_to(SOURCE).as_posix() for module in list_modules() if read_facts(module).scans
    }
    for where in scanning:
        assert where.startswith(WHOLE_TABLES), f"{where} sends a Scan"
    for place in WHOLE_TABLES:
        assert any(where.startswith(place) for where in scanning), f"{place} no longer scans"


KIND = re.compile(r"(disk|dynamodb|embedded|file|memory|mirror|s3)(:|://.*)|dynamodb|embedded|memory|s3")
BY_NAME = (
    *("backends/", "core/settings.py", "testing/"),
    "tables/export/policy.py",  # policies exist only for S3
    "cli/copy.py",  # compares what the user typed
)


def test_above_the_backends_no_code_depends_on_the_name_of_a_store() -> None:
    for module in list_modules():
        where = module.relative_to(SOURCE).as_posix()
        for node in () if where.startswith(BY_NAME) else ast.walk(ast.parse(module.read_text())):
            is_test = isinstance(node, ast.Compare | ast.Match) or (
                isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "startswith"
            )
            for each in ast.walk(node) if is_test else ():
                is_name = isinstance(each, ast.Constant) and KIND.fullmatch(str(each.value))
                assert not is_name, f"{where}:{node.lineno} compares the name of a store"  # type: ignore[attr-defined]


def test_every_module_has_a_docstring() -> None:
    undocumented = [m.name for m in list_modules() if not read_facts(m).docstring]
    assert undocumented == []
