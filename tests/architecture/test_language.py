"""Words that the project avoids, because they hide who acts or read as a translation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / f"{name}.md"
    for name in ("README", "CONTRIBUTING", "CHANGELOG", "tests/README", "benchmarks/README")
]
TREES = ("src", "tests", "benchmarks", "examples", "scripts")
CODE = [path for tree in TREES for path in ROOT.glob(f"{tree}/**/*.py") if path != Path(__file__).resolve()]
TEXTS = [*PAGES, *ROOT.glob("docs/**/*.md"), *CODE]

AVOIDED = {
    r"\b(?:somebody|anybody|everybody|whoever)\b": "name the actor: the caller, another process, the worker",
    r"(?<!there)(?<!There)(?<!\s)\s+is no (?!longer|more)": "write: is not a ...",
    r"\bawaited are\b": "write: ... are awaited",
    r"(?:ecogn|ummar|ecial|rgan|ormal|uthor|ynchron|erial|inal)is(?:e|ing|ation)": "write -ize, as the public names do",
    r"[Aa]nalys(?:e[dr]?\b|ing)": "write analyze, as the public names do",
}


def test_no_text_uses_an_avoided_word() -> None:
    found = []
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        for pattern, advice in AVOIDED.items():
            for match in re.finditer(pattern, text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path.relative_to(ROOT)}:{line}: {match[0].strip()!r}; {advice}")
    assert found == []
