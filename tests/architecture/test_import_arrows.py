"""A line of code knows where it lives and what it may import."""

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
PROGRAM = {"__init__", "__main__"}  # the package itself: public names, and what `python -m holdall` runs


def parse_cell(cell: str) -> set[str]:
    return {name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`([\w./]+)`", cell)}


ROWS = [
    (parse_cell(rooms), named.strip())
    for rooms, _, named in (line.split("|")[1:4] for line in CARD.splitlines() if line.startswith("| `"))
]


def card() -> dict[str, set[str]]:
    """What each room of the card in CONTRIBUTING.md may import."""
    may = {room: {"*"} for room in PROGRAM}
    for rooms, named in ROWS:
        public = {"public names"} & {named.partition(",")[0]}
        may |= {room: parse_cell(named) | public | {room, "errors", "lazy"} for room in rooms}
    return may


MAY_IMPORT = card()

WORLDLY = {"asyncio", "concurrent", "fcntl", "glob", "http", "io", "mmap", "multiprocessing", "os", "pathlib"}
WORLDLY |= {
    "queue",
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
}
WORLDLY |= {"stat", "subprocess", "tempfile", "threading", "time"}
MAY_TOUCH: dict[str, set[str]] = {
    "core": {"io"},  # buffers in memory
    "local": {"fcntl", "io", "os", "pathlib", "shutil", "sqlite3", "stat", "tempfile"},
    "backends": WORLDLY,
    "async_database": {"asyncio"},
    "scope": {"asyncio"},
    "worker": {"asyncio", "os", "queue", "random", "threading", "time"},
    "testing": {"asyncio", "http", "os", "random", "threading"},
    "cli": {"asyncio", "os", "pathlib", "signal", "threading", "time"},
    "web": {"asyncio", "http", "os", "queue", "threading"},
}
"""Which rooms may import modules that wait, or touch files, threads, clocks, chance or the network. Others: none."""

ASKS = {
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
"""What reaches the world without such a module."""

ANSWERED_HERE = {
    "artifacts/alias/alias.py": "an alias that the caller makes, and does not store, has the time of its making",
    "models/keys/ids.py": "a new item has its id before any transaction knows it",
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


class Facts(NamedTuple):
    """What the tests ask of a module; its syntax tree is not kept."""

    docstring: str | None
    imports: list[str]
    typing: list[str]
    """What it imports for type checkers alone."""
    private: list[tuple[int, str]]
    """The names that begin with an underscore and are read from another object, with their lines."""
    scans: list[int]
    asks: set[str]
    """The built-in ways to the clock, to chance and to files that it calls."""


@cache
def facts_of(module: Path) -> Facts:
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
            if called in {name.rpartition(".")[2] for name in ASKS}:
                facts.asks.update({ast.unparse(node.func)} & ASKS)
    return facts


def is_private(name: str) -> bool:
    documented = ("_asdict", "_exit")  # of named tuples and of os
    return name.startswith("_") and not name.startswith("__") and name not in documented


def test_the_card_has_every_room_and_no_other() -> None:
    there = {
        path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()
    }
    assert MAY_IMPORT.keys() == there - {"__pycache__"}
    assert {name for allowed in MAY_IMPORT.values() for name in allowed} <= {*MAY_IMPORT, "public names", "*"}


def test_a_module_imports_only_from_rooms_below_it() -> None:
    for module in modules():
        allowed = MAY_IMPORT[room_of(module)]
        facts = facts_of(module)
        for name in () if "*" in allowed else facts.imports + facts.typing:
            top, _, rest = name.partition(".")
            if top == "holdall" and rest.partition(".")[0] not in allowed:
                assert "public names" in allowed, f"{module} imports {name}"
                assert not rest or is_public(name), f"{module} imports {name}"


def test_the_card_has_no_arrow_that_is_not_used() -> None:
    for rooms, named in ROWS:
        facts = [facts_of(module) for module in modules() if room_of(module) in rooms]
        imported = {name for each in facts for name in each.imports + each.typing}
        used = {name.split(".")[1] for name in imported if name.startswith("holdall.")}
        assert parse_cell(named) - used == set(), rooms


@cache
def is_public(name: str) -> bool:
    """Whether a name is one that a documented module exports."""
    home, _, own = name.rpartition(".")
    return home in PUBLIC and own in import_module(home).__all__


def test_a_program_looks_into_nothing_private() -> None:
    programs = [module for module in modules() if "public names" in MAY_IMPORT[room_of(module)]]
    assert programs
    for module in programs:
        assert facts_of(module).private == [], module


def test_a_module_touches_only_that_part_of_the_world_that_its_room_may() -> None:
    for module in modules():
        touched = {name.partition(".")[0] for name in facts_of(module).imports} & WORLDLY
        assert touched <= MAY_TOUCH.get(room_of(module), set()), f"{module} imports {touched}"


def test_what_needs_no_module_to_reach_the_world_is_asked_of_the_port() -> None:
    found = {
        module.relative_to(SOURCE).as_posix()
        for module in modules()
        if facts_of(module).asks and not MAY_TOUCH.get(room_of(module), set()) & {"os", "time"}
    }
    assert found == set(ANSWERED_HERE)


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
    scanning = {module.relative_to(SOURCE).as_posix() for module in modules() if facts_of(module).scans}
    for where in scanning:
        assert where.startswith(WHOLE_TABLES), f"{where} sends a Scan"
    for place in WHOLE_TABLES:
        assert any(where.startswith(place) for where in scanning), f"{place} does not scan any more"


KIND = re.compile(r"(disk|dynamodb|embedded|file|memory|mirror|s3)(:|://.*)|dynamodb|embedded|memory|s3")
BY_NAME = (
    *("backends/", "core/settings.py", "testing/"),
    "tables/export/policy.py",  # policies are about S3 alone
    "cli/copy.py",  # compares what the user typed
)


def test_above_the_backends_code_asks_what_a_store_can_do_and_not_what_it_is_called() -> None:
    for module in modules():
        where = module.relative_to(SOURCE).as_posix()
        for node in () if where.startswith(BY_NAME) else ast.walk(ast.parse(module.read_text())):
            is_test = isinstance(node, ast.Compare | ast.Match) or (
                isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "startswith"
            )
            for each in ast.walk(node) if is_test else ():
                is_name = isinstance(each, ast.Constant) and KIND.fullmatch(str(each.value))
                assert not is_name, f"{where}:{node.lineno} asks for the name of a store"  # type: ignore[attr-defined]


def test_every_module_says_what_lives_in_it() -> None:
    silent = [m.name for m in modules() if not facts_of(m).docstring]
    assert silent == []
