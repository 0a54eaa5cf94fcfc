"""The pages that say what is tested where: every test that they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CONCEPTS = TESTS.parent / "docs" / "concepts"
PAGE = CONCEPTS / "ancestor-models.md"
POINTS = 22


@pytest.mark.parametrize("page", ["ancestor-models.md", "transactions.md"])
def test_every_test_that_the_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (CONCEPTS / page).read_text(encoding="utf-8")))
    defined: set[str] = set()
    for file in TESTS.glob("**/test_*.py"):
        defined.update(
            re.findall(r"^(?:async )?def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        )
    assert named
    assert sorted(named - defined) == []


def test_every_known_problem_has_a_row_with_an_answer_and_a_test() -> None:
    rows = re.findall(r"^\| (\d+) \|(.+)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, POINTS + 1))
    for number, row in rows:
        assert re.search(r"\*\*(fixed|impossible|documented)\*\*", row), f"row {number} gives no answer"
        assert "`test_" in row, f"row {number} names no test"
