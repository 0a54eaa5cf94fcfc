"""The tests that the testing guide shows pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "testing.md"


def test_the_tests_of_the_guide_pass(pytester: pytest.Pytester) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    suite = "\n".join(blocks)
    pytester.makepyfile(test_guide=suite)
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(passed=suite.count("\ndef test_"))
