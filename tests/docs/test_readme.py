"""The README is short, and each of its blocks is a script that can run twice in the same directory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rig.warm import USERS_PATH, run_warm

from benchmarks.order_placement import count_lines

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


def test_every_block_prints_what_its_comments_say_also_in_a_second_run(tmp_path: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HOLDALL_")}
    for _ in range(2):
        for number, block in enumerate(BLOCKS):
            named = re.match(r"# (\w+\.py)\b", block)
            script = tmp_path / (named[1] if named else f"block_{number}.py")
            script.write_text(block, encoding="utf-8")
            result = run_warm([str(script)], environment=environment, folder=tmp_path, path=USERS_PATH)
            assert result.returncode == 0, result.stderr
            assert result.stdout.splitlines() == re.findall(r"^ *print\(.*\) +# (.+)$", block, re.MULTILINE)


def test_the_readme_states_the_true_line_counts_of_the_programs() -> None:
    counted = re.search(r"takes \[(\d+) lines, not (\d+) \(dyntastic\) or (\d+) \(PynamoDB\)\]", README)
    assert counted is not None
    assert [int(number) for number in counted.groups()] == [
        count_lines(library) for library in ("holdall", "dyntastic", "pynamodb")
    ]
