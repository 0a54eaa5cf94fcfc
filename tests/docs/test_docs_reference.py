"""The reference is generated from the source, and every public name has a docstring."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import importlib
import importlib.util
import inspect
import re
import sys
import typing
from pathlib import Path
from types import ModuleType

import pytest

import holdall

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.py")])


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("holdall_reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()


def test_the_reference_is_current() -> None:
    pages = SCRIPT.pages()
    assert pages.keys() >= set(SCRIPT.PAGES.values())
    for file, page in pages.items():
        on_disk = (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8")
        assert on_disk == page, f"{file}: run python scripts/reference.py"


def test_a_public_name_has_a_docstring_and_a_place_in_the_reference() -> None:
    assert SCRIPT.PAGES
    for module in SCRIPT.PAGES:
        page = SCRIPT.page(importlib.import_module(module))
        for name in SCRIPT.public_names(importlib.import_module(module)):
            assert SCRIPT.documentation(importlib.import_module(module), name), f"{module}.{name}"
            assert f"\n## {SCRIPT.headings(importlib.import_module(module))[name]}\n" in page


@pytest.mark.parametrize("name", SCRIPT.PUBLIC)
def test_public_classes_document_their_methods(name: str) -> None:
    module = importlib.import_module(name)
    for public in module.__all__:
        member = getattr(module, public)
        if inspect.isclass(member):
            for method, function in vars(member).items():
                if not method.startswith("_") and (
                    inspect.isfunction(function) or isinstance(function, property)
                ):
                    assert inspect.getdoc(function), f"{name}.{public}.{method} has no docstring"


def test_the_docstring_of_the_package_lists_all_public_modules() -> None:
    assert set(SCRIPT.PUBLIC) == {"holdall", *re.findall(r"`(holdall\.[\w.]+)`", str(holdall.__doc__))}
    assert len(SCRIPT.PUBLIC) == len(set(SCRIPT.PUBLIC))
    for name in SCRIPT.PUBLIC:
        assert importlib.import_module(name).__all__
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "(reference/index.md)" in index


def read_entry(name: str, module: str) -> str:
    """The section of a page about a name."""
    page: str = SCRIPT.page(importlib.import_module(module))
    return page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def test_a_class_shows_what_it_inherits_from_bases_without_an_entry() -> None:
    for name in ("Transaction", "AsyncTransaction"):
        shown = read_entry(name, "holdall")
        for member in ("get()", "get_one()", "query()", "scan()", "create()", "enqueue()", "changes()"):
            assert f"### {name}.{member}\n" in shown
    for name in ("Database", "AsyncDatabase"):
        for member in ("get()", "query()", "run()", "transaction()", "transactional()", "migrate()", "files"):
            assert f"### {name}.{member}\n" in read_entry(name, "holdall")


def test_a_member_inherited_from_a_class_with_an_entry_is_a_link() -> None:
    shown = read_entry("ScopedTransaction", "holdall.scope")
    assert "### ScopedTransaction.get()" not in shown
    assert "[`get()`](holdall.md#asynctransactionget)" in shown


def test_overloads_and_settings_are_shown_with_their_types() -> None:
    shown = read_entry("Transaction", "holdall").partition("### Transaction.get()")[2].partition("###")[0]
    assert shown.count("def get(") == 5
    assert "create_if_missing: Literal[True] | Mapping[str, Any]" in shown
    assert "    secret: str | Sequence[str] | None = ...,\n" in read_entry("Database", "holdall")
    assert 'Durability = Literal["full", "normal"]' in read_entry("Database", "holdall")


def test_a_method_bound_from_a_flow_has_the_signature_of_the_flow() -> None:
    assert "\nasync def counts(*, queue: str | None = None) -> dict[str, JobCounts]\n" in read_entry(
        "AsyncJobs", "holdall.jobs"
    )
    assert "\ndef counts(*, queue: str | None = None) -> dict[str, JobCounts]\n" in read_entry(
        "Jobs", "holdall.jobs"
    )


def test_fields_are_shown_with_their_types_and_docstrings() -> None:
    assert "\n    next: str | None\n" in read_entry("RowPage", "holdall.transactions")
    assert "\n    error: BaseException | None = None\n" in read_entry("JobEvent", "holdall.worker")
    assert "### Enqueued.queue\n\n```text\nqueue: str\n```\n\nThe queue" in read_entry(
        "Enqueued", "holdall.transactions"
    )


ELSEWHERE = {"AbstractContextManager", "Decimal", "Enum", "Flask", "HttpRequest", "HttpResponse", "NoneType"}
ELSEWHERE |= {"PathLike", "Starlette", "URLPattern", "UnionType", "WSGIApplication", "WSGIEnvironment"}
VARIABLES = {"M_co", "Ts"}
UNEXPLAINED = {"CommitPlan", "Context", "Dice", "Enqueueable", "HasMany", "HasOne", "Joining", "ModelSchema"}
UNEXPLAINED |= {"NeedsTable", "Owner", "Service", "Settings", "Store", "Term", "Turn"}
"""Types that signatures name but no page explains: users only pass them on and need not know what they are."""


def test_every_type_in_a_signature_is_explained() -> None:
    public = {name for module in SCRIPT.PUBLIC for name in importlib.import_module(module).__all__}
    known = public | set(dir(builtins)) | set(dir(typing)) | set(dir(collections.abc)) | ELSEWHERE | VARIABLES
    unknown = set()
    for module in SCRIPT.PUBLIC:
        page = SCRIPT.page(importlib.import_module(module))
        for head in re.findall(r"^##[^\n]*\n\n```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            unknown |= {*SCRIPT.type_names(head)} - known - {*re.findall(r"^(\w+) = ", head, re.MULTILINE)}
    assert unknown == UNEXPLAINED


def test_internal_members_are_not_shown() -> None:
    for page in SCRIPT.pages().values():
        for member in ("Accept.check_count", "Archive.adopt", "OneAttached.take", "Blob.of", "Field.peek"):
            assert f"### {member}" not in page
    assert "Context" not in read_entry("Transaction", "holdall")


def test_the_reference_has_pages_only_for_public_modules_and_the_commands() -> None:
    found = {path.name for path in (ROOT / "docs" / "reference").iterdir()}
    assert found == {*SCRIPT.PAGES.values(), SCRIPT.COMMANDS, SCRIPT.INDEX}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_and_examples_import_only_public_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    codes = (
        [text]
        if page.suffix == ".py"
        else re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    )
    for node in (node for code in codes for node in ast.walk(ast.parse(code))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("holdall"):
            for name in (alias.name for alias in node.names):
                is_module = f"{node.module}.{name}" in SCRIPT.PUBLIC
                is_exported = (
                    node.module in SCRIPT.PUBLIC and name in importlib.import_module(node.module).__all__
                )
                assert is_module or is_exported or name == "*", f"{node.module}.{name}"
        elif isinstance(node, ast.Import):
            ours = {alias.name for alias in node.names if alias.name.partition(".")[0] == "holdall"}
            assert ours <= set(SCRIPT.PUBLIC)
    if page.parent.name != "decisions":
        named = set(re.findall(r"`(holdall(?:\.[a-z_]+)+)`", text)) - {
            *SCRIPT.PUBLIC,
            "holdall.db",
            "holdall.toml",
        }
        private = {name for name in named if (SOURCE / name.replace(".", "/")).with_suffix(".py").exists()}
        assert private == set(), "hint: name what a public module exports"


def test_the_check_reports_a_stale_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SCRIPT, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reference.py"])
    assert SCRIPT.main() == 0
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    assert SCRIPT.main() == 0
    (tmp_path / "core.md").write_text("old")
    assert SCRIPT.main() == 1
    assert "core.md is stale" in capsys.readouterr().err
