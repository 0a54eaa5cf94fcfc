"""The page about Active Storage answers each limit of the gem, and names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "from-active-storage.md"
ANSWERS = ("**lifted**", "**kept**", "with media")


def rows() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[0].isdigit()]


def test_all_32_limits_are_there_with_an_answer() -> None:
    assert [int(row[0]) for row in rows()] == list(range(1, 33))
    for row in rows():
        assert row[2].startswith(ANSWERS), f"limit {row[0]} has no answer"


def test_what_is_lifted_is_shown_by_tests_that_exist() -> None:
    there = set()
    for module in (ROOT / "tests").rglob("test_*.py"):
        there |= set(
            re.findall(r"^ *(?:async )?def (test_\w+)", module.read_text(encoding="utf-8"), re.MULTILINE)
        )
    for row in rows():
        named = re.findall(r"`(test_\w+)`", row[-1])
        assert named or not row[2].startswith("**lifted**"), f"nothing shows {row[0]}"
        assert not [name for name in named if name not in there], f"{row[0]} names tests that are not there"
