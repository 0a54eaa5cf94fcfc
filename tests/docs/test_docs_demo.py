"""The demo runs, shows its own code, and writes one page that needs no other file."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rig.browser import open_browser
from rig.torture import TORTURE

ROOT = Path(__file__).resolve().parents[2]


def run_demo(folder: Path, *options: str) -> str:
    """Run the demo; return its output."""
    settings = {name: text for name, text in os.environ.items() if not name.startswith("HOLDALL_")}
    command = [
        sys.executable,
        "-W",
        "error",
        str(ROOT / "scripts" / "demo.py"),
        "--folder",
        str(folder),
        *options,
    ]
    ended = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def output(folder: Path) -> str:
    return run_demo(folder)


@pytest.fixture(scope="module")
def page(folder: Path, output: str) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_demo_has_eleven_scenes_that_fit_on_a_terminal_without_colours(folder: Path, output: str) -> None:
    assert re.findall(r"^\d+(?=\. )", output, re.MULTILINE) == [str(number) for number in range(1, 12)]
    assert str(folder / "report.html") in output.splitlines()[-1]
    assert max(map(len, output.splitlines()[:-1])) <= 100
    assert "\033" not in output


def test_each_scene_is_a_few_lines_that_the_page_shows_unchanged(page: str) -> None:
    program = (ROOT / "scripts" / "scenes.py").read_text(encoding="utf-8")
    imports, *cells = program.split("\n# %% ")
    lines = [[line for line in cell.splitlines()[2:] if line] for cell in cells]
    shown = [
        html.unescape(re.sub("<.*?>", "", code))
        for code in re.findall("<pre class=code>(.*?)</pre>", page, re.DOTALL)
    ]
    assert [[line for line in code.splitlines() if line] for code in shown[:-1]] == lines
    assert shown[-1] in imports
    assert all(5 <= len(code) <= 10 and max(map(len, code)) <= 90 for code in lines)


def test_the_page_needs_no_other_file(page: str) -> None:
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*""", page)
    assert not re.findall(r"@import|(?<![\w.])url\(", page)


def test_a_browser_shows_the_page_without_requests_and_nothing_overflows(folder: Path, page: str) -> None:
    address = (folder / "report.html").as_uri()
    wide = (
        "[...document.querySelectorAll('html, pre')].filter(box => box.scrollWidth > box.clientWidth).length"
    )
    with open_browser() as browser:
        requested: list[str] = []
        shown = browser.new_page(viewport={"width": 1440, "height": 860}, color_scheme="dark")
        shown.on("request", lambda request: requested.append(request.url))
        shown.goto(address)
        assert [url for url in requested if not url.startswith("data:")] == [address]
        assert shown.evaluate("[...document.images].filter(image => image.naturalWidth).length") == 3
        assert shown.evaluate(wide) == 0


if TORTURE:

    def test_the_long_tour_runs(tmp_path: Path) -> None:
        assert run_demo(tmp_path, "--all")
