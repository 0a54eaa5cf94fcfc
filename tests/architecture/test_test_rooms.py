"""The folders of tests mirror the rooms of the source, and tests/README.md lists them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "holdall"
WHOLE_PROJECT = {"architecture", "distribution", "docs", "fixtures", "rig", "telemetry", "typing"}


def list_folders() -> set[Path]:
    """All folders of tests, relative to ``tests``."""
    files = (path for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.parent.relative_to(TESTS) for path in files} - {Path()}


def test_every_folder_belongs_to_a_room_or_to_the_whole_project() -> None:
    misplaced = [
        str(folder)
        for folder in list_folders()
        if folder.parts[0] not in WHOLE_PROJECT and not (SOURCE / folder).is_dir()
    ]
    assert misplaced == [], "hint: put the tests into the folder of the room that they test"


def test_every_room_has_a_folder() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert rooms - {folder.parts[0] for folder in list_folders()} == {"mypy"}, "mypy's tests are in typing"


def test_the_page_lists_exactly_these_folders() -> None:
    page = (TESTS / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `") and "/` |" in line]
    listed = [name for row in rows for name in re.findall(r"`(\w+)/`", row)]
    assert sorted(listed) == sorted({folder.parts[0] for folder in list_folders()})


def test_every_file_that_the_page_names_exists() -> None:
    page = (TESTS / "README.md").read_text(encoding="utf-8")
    files = {*re.findall(r"(?<![\w>*/])(?:tests/)?((?:\w+/)*\w+\.py)\b", page)}
    files |= {f"rig/{name}.py" for name in re.findall(r"\brig\.(\w+)", page)}
    assert len(files) > 15
    paths = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py")}
    names = {Path(each).name for each in paths}
    assert {each for each in files if each not in paths and each not in names} == set()


def test_test_modules_have_unique_names() -> None:
    names = Counter(path.name for path in TESTS.rglob("*.py") if path.parent.name not in ("cases", "rig"))
    assert [name for name, count in names.items() if count > 1] == []


def test_helpers_that_two_rooms_use_are_in_the_rig() -> None:
    homes = {path.stem: path.relative_to(TESTS).parts[0] for path in TESTS.rglob("*.py")}
    misplaced = []
    for path in TESTS.rglob("*.py"):
        room = path.relative_to(TESTS).parts[0]
        named = re.findall(r"^ *(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        misplaced += [
            f"{path.relative_to(TESTS)} imports {name}"
            for name in named
            if homes.get(name, room) not in (room, "rig", "typing")
        ]
    assert misplaced == [], "hint: move it to tests/rig"


def forwards(kind: ast.ClassDef) -> bool:
    """Whether a class passes requests on to a backend in both colours, each in a method of its own."""
    methods = {
        node.name: node for node in kind.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return all(
        name in methods
        and any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(methods[name]))
        for name in ("send_blocking", "send_awaiting")
    )


def test_backends_around_a_backend_have_one_base() -> None:
    found = [
        f"{path.relative_to(TESTS)}: {node.name}"
        for path in TESTS.rglob("*.py")
        if "send_awaiting" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and forwards(node)
    ]
    assert found == [], "hint: derive it from rig.wrapper.Wrapper, and override _answer"
