"""What mypy (strict, with Holdall's plugin) and pyright find in ``cases/``: errors, and the types of expressions.

A comment at the end of a line states what the checkers must find there: ``# E`` an error, ``# E: text`` an error whose
message contains the text, ``# R: type`` the type that ``reveal_type`` reveals. ``# E[mypy]`` is only for mypy. They
must find nothing else. If pyright reports a deprecated overload of a generated stub instead, only mypy's message must
contain the text.
The first line of each case excludes it from the project's own run of mypy; the test removes that line.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections import defaultdict
from importlib.resources import files
from inspect import getsource, signature
from pathlib import Path
from typing import NamedTuple

import pytest
from documented_models import collect_models

from holdall import Model
from holdall.artifacts import overload
from holdall.artifacts.version.delivery import download
from holdall.cli.models.stub import write_stubs
from holdall.models import find_models

pytestmark = pytest.mark.torture  # it takes long, so it should be among the first to run

ROOT = Path(__file__).resolve().parents[2]
CASES = sorted(Path(__file__).with_name("cases").glob("*.py"))
SILENCE = "# mypy: ignore-errors"
DOCUMENTED = collect_models()

CALLS = "documented_calls.py"
SHOWN = re.findall(
    r"^\| `(db\..*)` \| `(.*)` \|$",
    (ROOT / "docs" / "guides" / "models.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
"""The calls in the guide, with the errors that mypy reports for them."""

_MARK = re.compile(r"# (?P<kind>[ER])(?:\[(?P<only>mypy|pyright)\])?(?:: (?P<text>.*))?$")
_MYPY = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): (?P<kind>error|note): (?P<text>.*)$")
_REVEALED = {
    "mypy": re.compile(r'^Revealed type is "(?P<type>.*)"$'),
    "pyright": re.compile(r'^Type of ".*" is "(?P<type>.*)"$', re.DOTALL),
}


class Found(NamedTuple):
    """What a checker reported for one line: the messages of errors, and the revealed types."""

    errors: list[str]
    types: list[str]


Findings = dict[str, dict[int, Found]]
"""By file and line."""


def make_empty() -> Findings:
    return defaultdict(lambda: defaultdict(lambda: Found([], [])))


def add(findings: Findings, checker: str, place: tuple[str, int], is_error: bool, text: str) -> None:
    found = findings[place[0]][place[1]]
    revealed = _REVEALED[checker].match(text)
    if revealed is not None:
        found.types.append(re.sub(r"\b(?:\w+\.)+(?=\w)", "", revealed["type"]))  # without the modules
    elif is_error:
        found.errors.append(text)


def load_key_models() -> list[type[Model]]:
    spec = importlib.util.spec_from_file_location("key_models", CASES[0].with_name("key_models.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["key_models"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return find_models(vars(module), "key_models")


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typing")
    for case in CASES:
        text = case.read_text(encoding="utf-8")
        assert text.startswith(SILENCE)
        (folder / case.name).write_text(text.replace(SILENCE, "#", 1), encoding="utf-8")
    (folder / "mypy.toml").write_text('[tool.mypy]\nplugins = ["holdall.mypy"]\n', encoding="utf-8")
    for name, text in DOCUMENTED.items():
        (folder / name).write_text(text, encoding="utf-8")
    for path, text in write_stubs(load_key_models()).items():
        stub = folder / "typings" / path
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(text, encoding="utf-8")
    order = next(name for name in DOCUMENTED if name.startswith("doc_models_order_")).removesuffix(".py")
    calls = ["from holdall import Database", f"from {order} import Order", "db = Database()"]
    text = "\n".join(calls + [call for call, _ in SHOWN])
    (folder / CALLS).write_text(f"{text}\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def mypy(cases: Path) -> Findings:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "mypy.toml",
        "--no-error-summary",
        "--no-pretty",
    ]
    cache = ROOT / ".mypy_cache" / "typing"
    ended = subprocess.run(
        [*command, "--cache-dir", str(cache), *(case.name for case in CASES), *DOCUMENTED, CALLS],
        cwd=cases,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    findings = make_empty()
    for line in ended.stdout.splitlines():
        report = _MYPY.match(line)
        assert report is not None, line
        add(
            findings, "mypy", (report["file"], int(report["line"])), report["kind"] == "error", report["text"]
        )
    return findings


@pytest.fixture(scope="session")
def pyright(cases: Path) -> Findings:
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    settings = {
        "typeCheckingMode": "strict",
        "reportUnusedExpression": "none",
        "reportUnusedCoroutine": "none",
    }
    (cases / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    ended = subprocess.run(
        [*command, "--project", str(cases)], cwd=cases, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    findings = make_empty()
    for report in json.loads(ended.stdout)["generalDiagnostics"]:
        place = Path(report["file"]).name, report["range"]["start"]["line"] + 1
        add(findings, "pyright", place, report["severity"] == "error", report["message"])
    return findings


def find_differences(case: Path, checker: str, findings: Findings) -> list[str]:
    """The lines for which a checker's report differs from the case's comment."""
    wrong = []
    for number, line in enumerate(case.read_text(encoding="utf-8").splitlines(), start=1):
        found = findings[case.name][number]
        mark = _MARK.search(line)
        expected = mark is not None and mark["only"] in (None, checker)
        is_error = expected and mark is not None and mark["kind"] == "E"
        text = (mark["text"] or "") if mark is not None else ""
        fits = any(text in error or "is deprecated" in error for error in found.errors)
        if bool(found.errors) != is_error or (is_error and not fits):
            wrong.append(f"line {number}: {line.strip()}\n    found: {found.errors or 'no error'}")
        types = [text] if expected and not is_error else []
        if found.types != types:
            wrong.append(f"line {number}: {line.strip()}\n    revealed: {found.types}")
    return wrong


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_mypy_finds_what_the_case_says_and_nothing_else(case: Path, mypy: Findings) -> None:
    wrong = find_differences(case, "mypy", mypy)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_pyright_finds_what_the_case_says_and_nothing_else(case: Path, pyright: Findings) -> None:
    wrong = find_differences(case, "pyright", pyright)
    assert not wrong, "\n".join(wrong)


def list_errors_in_documented_models(findings: Findings) -> list[str]:
    return [
        f"{name}, line {line}: {error}"
        for name in DOCUMENTED
        for line, found in findings[name].items()
        for error in found.errors
    ]


def test_mypy_accepts_every_model_of_the_docs(mypy: Findings) -> None:
    assert len(DOCUMENTED) > 50
    assert not list_errors_in_documented_models(mypy)


def test_mypy_reports_what_the_guide_shows(mypy: Findings) -> None:
    assert len(SHOWN) == 6
    found = [mypy[CALLS][line].errors for line in range(4, 4 + len(SHOWN))]
    assert [[error.partition("  [")[0] for error in errors] for errors in found] == [
        [message] for _, message in SHOWN
    ]


def test_pyright_accepts_every_model_of_the_docs(pyright: Findings) -> None:
    assert not list_errors_in_documented_models(pyright)


def test_there_are_cases_with_errors_and_with_types() -> None:
    marks = [_MARK.search(line) for case in CASES for line in case.read_text(encoding="utf-8").splitlines()]
    kinds = [mark["kind"] for mark in marks if mark is not None]
    assert kinds.count("E") > 30
    assert kinds.count("R") > 30


def test_differences_are_found(tmp_path: Path) -> None:
    case = tmp_path / "case.py"
    case.write_text("x = 1  # E: wrong\ny = 2\nreveal_type(y)  # R: int\n", encoding="utf-8")
    findings = make_empty()
    assert [text.splitlines()[0] for text in find_differences(case, "mypy", findings)] == [
        "line 1: x = 1  # E: wrong",
        "line 3: reveal_type(y)  # R: int",
    ]
    add(findings, "mypy", ("case.py", 1), True, "that is wrong")
    add(findings, "mypy", ("case.py", 3), False, 'Revealed type is "builtins.int"')
    assert find_differences(case, "mypy", findings) == []
    add(findings, "mypy", ("case.py", 2), True, "also wrong")
    assert len(find_differences(case, "mypy", findings)) == 1


def test_overloads_have_the_parameters_of_their_flow() -> None:
    flow = [each for each in signature(download).parameters if each != "context"]
    tree = ast.parse(getsource(overload))
    found = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "__call__"]
    assert len(found) == 5
    for each in found:
        named = [argument.arg for argument in (*each.args.args, *each.args.kwonlyargs)]
        assert [*named, *overload.DownloadOptions.__annotations__] == ["self", *flow]


def test_the_package_is_marked_as_typed() -> None:
    assert files("holdall").joinpath("py.typed").is_file()
