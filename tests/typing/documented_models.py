"""The models that the README and the docs define, each as a module of its own for type checkers.

Only fields and class keywords are taken: methods of documented models have no annotations, on purpose. Names that a
model refers to are taken from the page as well, as they were last defined above it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["collect_models"]

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def collect_models() -> dict[str, str]:
    """Modules by file name; the name tells page, class and how many of that name came before it."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return {name: text for page in pages for name, text in _modules(page)}


def _modules(page: Path) -> Iterator[tuple[str, str]]:
    imports: list[ast.Import | ast.ImportFrom] = []
    known: dict[str, ast.stmt] = {}
    models = {"Model"}
    for count, statement in enumerate(_statements(page)):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(statement)
        elif isinstance(statement, ast.ClassDef):
            if models & {base.id for base in statement.bases if isinstance(base, ast.Name)}:
                models.add(statement.name)
                statement = _fields_of(statement)
                needed = _collect_needed(statement, known)
                module = "\n".join(["# pyright: basic", *_find_used(imports, needed), *needed])
                yield f"doc_{page.stem.replace('-', '_')}_{statement.name}_{count}.py".lower(), f"{module}\n"
            known[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            known[statement.targets[0].id] = statement
        elif isinstance(statement, ast.FunctionDef):
            known[statement.name] = statement


def _find_used(imports: list[ast.Import | ast.ImportFrom], texts: list[str]) -> Iterator[str]:
    """The imports that the texts use: a page may import what is not installed, or is a module of the page's own."""
    names = {part.id for text in texts for part in ast.walk(ast.parse(text)) if isinstance(part, ast.Name)}
    for statement in imports:
        bound = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
        if bound & {*names, "*"}:
            yield ast.unparse(statement)


def _statements(page: Path) -> Iterator[ast.stmt]:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield from ast.parse(block).body


def _fields_of(model: ast.ClassDef) -> ast.ClassDef:
    body = [each for each in model.body if isinstance(each, ast.AnnAssign)]
    return ast.ClassDef(model.name, model.bases, model.keywords, list(body) or [ast.Pass()], [])


def _collect_needed(statement: ast.stmt, known: dict[str, ast.stmt]) -> list[str]:
    """The statement as text, after what it refers to."""
    found: dict[str, str] = {}

    def add(name: str, statement: ast.stmt) -> None:
        for part in ast.walk(statement):
            if isinstance(part, ast.Name) and part.id in known and part.id not in found and part.id != name:
                add(part.id, known[part.id])
        if isinstance(statement, ast.FunctionDef):
            found[name] = f"def {name}(*given: Any) -> Any: ...\nfrom typing import Any"
        else:
            found[name] = ast.unparse(ast.fix_missing_locations(statement))

    add(getattr(statement, "name", ""), statement)
    return list(found.values())
