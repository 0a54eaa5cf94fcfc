"""The models that the README and the docs define, each as a separate module for type checkers.

A module has only the fields and class keywords of its model, because methods in the docs have no annotations, on
purpose. It also defines the names that the model refers to, as the page last defined them above the model.
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
    """The sources of the modules by file name; the name has the page, the class and the number of its statement."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return {name: text for page in pages for name, text in _make_modules(page)}


def _make_modules(page: Path) -> Iterator[tuple[str, str]]:
    imports: list[ast.Import | ast.ImportFrom] = []
    known: dict[str, ast.stmt] = {}
    models = {"Model"}
    for count, statement in enumerate(_parse_statements(page)):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(statement)
        elif isinstance(statement, ast.ClassDef):
            if models & {base.id for base in statement.bases if isinstance(base, ast.Name)}:
                models.add(statement.name)
                statement = _keep_fields(statement)
                needed = _collect_needed(statement, known)
                module = "\n".join(["# pyright: basic", *_find_used(imports, needed), *needed])
                yield f"doc_{page.stem.replace('-', '_')}_{statement.name}_{count}.py".lower(), f"{module}\n"
            known[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            known[statement.targets[0].id] = statement
        elif isinstance(statement, ast.FunctionDef):
            known[statement.name] = statement


def _find_used(imports: list[ast.Import | ast.ImportFrom], texts: list[str]) -> Iterator[str]:
    """The imports that the texts use; a page's other imports may not be installed, or be modules of the page itself."""
    names = {part.id for text in texts for part in ast.walk(ast.parse(text)) if isinstance(part, ast.Name)}
    for statement in imports:
        bound = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
        if bound & {*names, "*"}:
            yield ast.unparse(statement)


def _parse_statements(page: Path) -> Iterator[ast.stmt]:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield from ast.parse(block).body


def _keep_fields(model: ast.ClassDef) -> ast.ClassDef:
    body = [each for each in model.body if isinstance(each, ast.AnnAssign)]
    return ast.ClassDef(model.name, model.bases, model.keywords, list(body) or [ast.Pass()], [])


def _collect_needed(statement: ast.stmt, known: dict[str, ast.stmt]) -> list[str]:
    """The source of the statement, preceded by everything that it refers to."""
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
