"""Functions are named by verbs and modules by nouns, as CONTRIBUTING says, as far as that is cheap to check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdall"
OTHERS = ("tests", "benchmarks", "scripts", "examples")
PARTICIPLE = re.compile(
    "[a-z]+(ed|ing)|begun|bound|broken|built|caught|chosen|done|drawn|driven|found|frozen|given|gone|held|hidden|kept"
    "|known|left|lost|made|meant|met|said|seen|sent|shown|spent|taken|told|thrown|written"
)
VERB = re.compile("bring|embed|exceed|feed|heed|need|ping|proceed|ring|seed|shed|speed|succeed")
NOUN = re.compile("binding|listing|mapping|setting|spelling|string")
ALLOWED = {
    "blocking_transaction": "public: the twin of `transaction`, for endpoints that block",
    "computed": "public: a decorator, as pydantic's `computed_field`",
    "declared_jobs": "public",
    "destroying": "public: with db.destroying(owner)",
    "incoming_key": "a noun, like the other keys of its class",
    "joined": "public: a value made of two",
    "projected": "public",
    "restored": "its name is in the pickles of items",
    "saving": "public: with db.saving(owner)",
    "signed_id": "public: Rails' name for it",
    "stamped": "public: the write with its stamp",
    "verified_download": "public",
    "verified_upload": "public",
}
NOT_CALLED = {"property", "cached_property", "setter", "check"}
VALUES = {"fixture", "composite"}  # functions that are named after the value that they make
MODULES = {
    "awaiting": "the async colour",
    "blocking": "the sync colour",
    "binding": "a noun: where a model's items are",
    "listing": "a noun, and S3's word",
    "serving": "a noun: what the web application does for files",
    "testing": "the usual name of such packages",
}


def list_decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of a function's decorators, without their arguments."""
    plain = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return {ast.unparse(each).rpartition(".")[2] for each in plain}


def is_participle(name: str) -> bool:
    """Whether a name begins with a participle instead of an imperative."""
    first = name.strip("_").partition("_")[0]
    return bool(PARTICIPLE.fullmatch(first)) and not (VERB.fullmatch(first) or NOUN.fullmatch(first))


def is_misnamed(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function lacks a verb, or a fixture a noun; properties and the contract's checks need neither."""
    found = list_decorators(node)
    if found & VALUES and "_" in node.name.strip("_"):
        return False  # a participle before a noun, such as `expired_certificate`
    return is_participle(node.name) and not found & NOT_CALLED


def find_misnamed(root: Path) -> Iterator[tuple[str, str]]:
    """Files and names of the misnamed functions under a directory."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(map(is_participle, re.findall(r"\bdef\s+(\w+)", text))):
            continue
        nodes = ast.walk(ast.parse(text))
        for node in (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            if is_misnamed(node):
                yield str(path.relative_to(ROOT)), node.name


def test_functions_are_named_by_verbs() -> None:
    wrong = set(find_misnamed(SOURCE))
    assert {name for _, name in wrong} == set(ALLOWED), sorted(
        each for each in wrong if each[1] not in ALLOWED
    )


@pytest.mark.parametrize("tree", OTHERS)
def test_functions_outside_the_package_are_named_by_verbs(tree: str) -> None:
    assert sorted(find_misnamed(ROOT / tree)) == []


def test_modules_are_named_by_nouns() -> None:
    names = {
        path.stem if path.suffix else path.name
        for path in SOURCE.rglob("*")
        if "__pycache__" not in path.parts
    }
    assert {name for name in names if name.endswith("ing")} == set(MODULES)
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"`{name}" in contributing for name in MODULES)


def test_the_glossary_has_twenty_different_words() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| (\w+) \| ", contributing.partition("## Twenty words")[2], re.MULTILINE)
    assert len(words) == len(set(words)) == 21
    assert words[0] == "word", "the table's header"


@pytest.mark.parametrize("name", ["told", "_written", "held_by", "reading", "_checked_arm"])
def test_a_participle_is_recognized(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("@pytest.fixture\ndef opened(): ...", True),
        ("@pytest.fixture\ndef opened_store(): ...", False),
        ("def opened_store(): ...", True),
        ("@property\ndef opened(self): ...", False),
    ],
)
def test_a_fixture_may_be_a_participle_before_a_noun(code: str, wrong: bool) -> None:
    (node,) = ast.parse(code).body
    assert isinstance(node, ast.FunctionDef)
    assert is_misnamed(node) == wrong


@pytest.mark.parametrize("name", ["tell", "is_written", "_heed", "setting_parsers", "find_unread"])
def test_a_verb_or_a_noun_is_not_a_participle(name: str) -> None:
    assert not is_participle(name)
