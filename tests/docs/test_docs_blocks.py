"""Every Python block of the docs is executed.

The blocks of a page run in order, in one namespace, in an empty working directory; ``await`` works at the top
level. A ``text`` block directly below a Python block is what that block prints.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import re
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig.servers import ENVIRONMENT, start_server

PEER_LANGUAGES = {"PynamoDB": "python", "dyntastic": "python", "boto3": "python", "ElectroDB": "js"}
"""Libraries whose code some pages show beside Holdall's; ``test_docs_peers`` runs it."""

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
PEERS = {f'{language} title="{name}"' for name, language in PEER_LANGUAGES.items()}
FENCES = {"python", "text", "bash", "toml", "json", *PEERS}

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    info: str
    body: str
    line: int
    directly_below: bool


def list_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        touching = bool(found) and not text[end : match.start()].strip()
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(match["info"], match["body"], line, touching))
        end = match.end()
    return found


def list_python_pages() -> list[Path]:
    """Pages with Python blocks, without the README, whose blocks are scripts that ``test_readme`` runs."""
    pages = (page for page in PAGES if page.name != "README.md")
    return [page for page in pages if any(block.info == "python" for block in list_blocks(page))]


def uses_dynamodb(page: Path) -> bool:
    """Whether its code talks to DynamoDB; if so, a local server stands in for the region's endpoint."""
    return any(block.info == "python" and '("dynamodb://' in block.body for block in list_blocks(page))


@contextmanager
def forget_django(page: Path) -> Iterator[None]:
    """Let a page configure Django although other tests in this process have configured it already."""
    if not any("settings.configure(" in block.body for block in list_blocks(page)):
        yield
        return
    from django.conf import empty, settings

    state = settings.__dict__
    before = dict(state)
    state.clear()
    state["_wrapped"] = empty
    try:
        yield
    finally:
        state.clear()
        state.update(before)


def name_page(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_a_page_has_only_known_kinds_of_fences(page: Path) -> None:
    unknown = {
        f"line {block.line - 1}: {block.info!r}" for block in list_blocks(page) if block.info not in FENCES
    }
    assert not unknown, "fence a Python block as python and nothing more, so that it is run"


@pytest.mark.parametrize("page", list_python_pages(), ids=name_page)
def test_the_code_of_a_page_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shop", "page"):  # other tests imported such modules
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("HOLDALL_URL", "HOLDALL_DURABILITY"):
        monkeypatch.delenv(name, raising=False)
    if uses_dynamodb(page):
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", start_server("ministack"))
        for name, setting in ENVIRONMENT.items():
            monkeypatch.setenv(name, setting)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    printed = ""
    was_python = False
    with forget_django(page), asyncio.Runner() as runner:
        for block in list_blocks(page):
            if block.info == "python":
                printed = run_block(block, page, module, runner)
            elif block.info == "text" and block.directly_below and was_python:
                assert printed == block.body, f"{name_page(page)}, line {block.line}: prints something else"
            was_python = block.info == "python"


def run_block(block: Block, page: Path, module: types.ModuleType, runner: asyncio.Runner) -> str:
    # The blank lines make tracebacks point into the page.
    source = "\n" * (block.line - 1) + block.body
    code = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    output = io.StringIO()
    with redirect_stdout(output):
        waiting = eval(code, module.__dict__)
        if inspect.iscoroutine(waiting):
            runner.run(waiting)
    return output.getvalue()


def test_the_runner_sees_a_failing_block(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\nvalue = 1\n```\n\n```python\nassert value == 2\n```\n")
    first, second = list_blocks(page)
    module = types.ModuleType("page")
    with asyncio.Runner() as runner:
        run_block(first, page, module, runner)
        with pytest.raises(AssertionError) as caught:
            run_block(second, page, module, runner)
    assert caught.traceback[-1].lineno == 7


def test_an_output_block_belongs_to_the_code_directly_above_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n1\n```\n\nWords.\n\n```text\n2\n```\n")
    assert [block.directly_below for block in list_blocks(page)] == [False, True, False]
