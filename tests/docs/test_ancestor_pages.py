"""Pages about known problems of older libraries: each problem has an answer, and each test that they name exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
DOCS = TESTS.parent / "docs"
MODELS, ARTIFACTS = "concepts/ancestor-models.md", "concepts/ancestor-artifacts.md"
ATTACHMENTS = "guides/from-active-storage.md"
PROBLEMS = [
    (MODELS, 22, ("**fixed**", "**impossible**", "**documented**"), ()),
    (ARTIFACTS, 47, ("",), ()),
    (ATTACHMENTS, 32, ("**lifted**", "**kept**", "with media"), ("**kept**", "with media")),
]
"""Pages with a table of problems: how many rows, the possible answers, and the answers that need no test."""


@cache
def list_tests() -> set[str]:
    texts = (file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py"))
    return {
        name for text in texts for name in re.findall(r"^ *(?:async )?def (test_\w+)", text, re.MULTILINE)
    }


def read_page(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [MODELS, ARTIFACTS, ATTACHMENTS, "concepts/transactions.md"])
def test_every_test_that_the_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", read_page(page)))
    assert named
    assert sorted(named - list_tests()) == []


@pytest.mark.parametrize(("page", "count", "answers", "untested"), PROBLEMS)
def test_every_known_problem_has_a_row_with_an_answer_and_a_test(
    page: str, count: int, answers: tuple[str, ...], untested: tuple[str, ...]
) -> None:
    rows = re.findall(r"^\| (\d+) \|(.+)\|$", read_page(page), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, count + 1))
    for number, row in rows:
        assert any(answer in row for answer in answers), f"row {number} has no answer"
        is_covered = "`test_" in row or any(answer in row for answer in untested)
        assert is_covered, f"row {number} names no test"
