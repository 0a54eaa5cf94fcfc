"""The site: MkDocs builds it without warnings, its search knows every page, and no page contacts another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torture

ROOT = Path(__file__).resolve().parents[2]
# What a browser fetches without being asked; ordinary links may lead to other hosts.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\s\">]+)|<link\b[^>]*\bhref=\"?([^\s\">]+)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, (
        result.stderr
    )  # MkDocs reports broken links and anchors, and unlisted pages
    return folder


def test_every_page_is_built_and_can_be_searched(site: Path) -> None:
    built = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert pages <= built
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert all(f'"location":"{page}.html"' in index for page in pages)


def test_the_navigation_is_short_until_a_reader_opens_a_group(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    closed = re.findall(
        r'<li class="md-nav__item md-nav__item--nested">.*?md-nav__link[^>]*>\s*<span[^>]*>\s*(\w+)',
        page,
        re.DOTALL,
    )
    assert closed == ["Reference", "Decisions"]


def test_no_page_contacts_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetched = (script or link for script, link in _FETCHED.findall(page.read_text(encoding="utf-8")))
        assert [url for url in fetched if re.match(r"(\w+:)?//", url)] == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name
