"""Functions are named by verbs and modules by nouns, as CONTRIBUTING says; what is cheap to check is checked here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdall"
PARTICIPLE = re.compile(
    "[a-z]+(ed|ing)|begun|bound|broken|built|caught|chosen|done|drawn|driven|found|frozen|given|gone|held|hidden|kept"
    "|known|left|lost|made|meant|met|said|seen|sent|shown|spent|taken|told|thrown|written"
)
VERB = re.compile("bring|embed|exceed|feed|heed|need|ping|proceed|ring|seed|shed|speed")
NOUN = re.compile("binding|listing|mapping|setting|spelling|string")
ALLOWED = {
    "blocking_transaction": "public: the twin of `transaction`, for endpoints that block",
    "computed": "public: a decorator, as pydantic's `computed_field`",
    "declared_jobs": "public",
    "destroying": "public: with db.destroying(owner)",
    "incoming_key": "a noun, as the other keys of its class are",
    "joined": "public: a value that is made of two",
    "projected": "public",
    "restored": "stands in the pickles of items",
    "saving": "public: with db.saving(owner)",
    "signed_id": "public: what Rails calls so, too",
    "stamped": "public: the write, with its stamp",
    "verified_download": "public",
    "verified_upload": "public",
}
NOT_CALLED = {"property", "cached_property", "setter", "check"}
MODULES = {
    "awaiting": "one of the two colours",
    "blocking": "the other",
    "binding": "where a model's items are",
    "listing": "what S3 calls so, too",
    "serving": "as a noun: what the web application does for files",
    "testing": "the name that such packages have",
}


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of a function's decorators, without their arguments."""
    plain = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return {ast.unparse(each).rpartition(".")[2] for each in plain}


def is_participle(name: str) -> bool:
    """Whether a name begins with what was done, or is being done, instead of what to do."""
    first = name.strip("_").partition("_")[0]
    return bool(PARTICIPLE.fullmatch(first)) and not (VERB.fullmatch(first) or NOUN.fullmatch(first))


def participles() -> Iterator[tuple[str, str]]:
    """Functions and methods that are called by such a name: neither properties nor the contract's checks."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(map(is_participle, re.findall(r"\bdef\s+(\w+)", text))):
            continue
        nodes = ast.walk(ast.parse(text))
        for node in (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            if is_participle(node.name) and not decorators(node) & NOT_CALLED:
                yield str(path.relative_to(SOURCE)), node.name


def test_functions_are_named_by_what_they_do() -> None:
    wrong = set(participles())
    assert {name for _, name in wrong} == set(ALLOWED), sorted(
        each for each in wrong if each[1] not in ALLOWED
    )


def test_modules_are_named_by_nouns() -> None:
    names = {
        path.stem if path.suffix else path.name
        for path in SOURCE.rglob("*")
        if "__pycache__" not in path.parts
    }
    assert {name for name in names if name.endswith("ing")} == set(MODULES)
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"`{name}" in contributing for name in MODULES)


@pytest.mark.parametrize("name", ["told", "_written", "held_by", "reading", "_checked_arm"])
def test_a_participle_is_seen(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["tell", "is_written", "_heed", "setting_parsers", "find_unread"])
def test_a_verb_or_a_noun_is_not_a_participle(name: str) -> None:
    assert not is_participle(name)
