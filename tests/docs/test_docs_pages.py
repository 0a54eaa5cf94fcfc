"""The pages are consistent: links resolve, every error is explained, the README says how to begin."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from holdall import Database, errors
from holdall.composition import DatabaseArguments
from holdall.core.settings import NAMES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests" / "README.md"])
DOCS = sorted(ROOT.glob("docs/**/*.md"))

_LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def read_prose(page: Path) -> str:
    return _CODE.sub("", page.read_text(encoding="utf-8"))


def find_anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Markdown readers make them."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in _HEADING.findall(read_prose(page)):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def list_error_classes() -> list[type[errors.HoldallError]]:
    named = (getattr(errors, name) for name in errors.__all__)
    return [found for found in named if issubclass(found, Exception)]


def find_links(page: Path) -> list[tuple[Path, str]]:
    """The files and anchors to which a page links, inside this repository."""
    found = (
        link.partition("#") for link in _LINK.findall(read_prose(page)) if not re.match(r"[a-z]+:", link)
    )
    return [((page.parent / file).resolve() if file else page, anchor) for file, _, anchor in found]


def list_linked_files(page: Path) -> list[Path]:
    return [file for file, _ in find_links(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = [
        (str(file), anchor)
        for file, anchor in find_links(page)
        if not file.exists() or (anchor and anchor not in find_anchors(file))
    ]
    assert not broken


def test_every_page_can_be_reached_from_the_index() -> None:
    waiting = [ROOT / "docs" / "index.md"]
    reached: set[Path] = set()
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        if page.is_dir():
            waiting += page.glob("*.md")
        elif page.suffix == ".md":
            waiting += list_linked_files(page)
    assert [str(page.relative_to(ROOT)) for page in DOCS if page not in reached] == []


def test_every_error_code_has_exactly_one_section() -> None:
    sections = re.findall(r"^## (.+)$", read_prose(ROOT / "docs" / "errors.md"), re.MULTILINE)
    codes = [found.code for found in list_error_classes()]
    assert sorted(sections) == sorted(codes)


@pytest.mark.parametrize("error", list_error_classes(), ids=lambda found: found.__name__)
def test_the_section_of_an_error_names_its_class_and_whether_a_retry_can_help(
    error: type[errors.HoldallError],
) -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {error.code}\n")[2].partition("\n## ")[0]
    assert f"`{error.__name__}`" in section
    assert ("**Retryable.**" in section) == bool(error.retryable)


def test_decisions_are_numbered_and_dated() -> None:
    decisions = sorted(ROOT.glob("docs/decisions/*.md"))
    assert [int(page.name[:4]) for page in decisions] == [*range(1, len(decisions) + 1)]
    for page in decisions:
        title, _, status, *_ = page.read_text(encoding="utf-8").splitlines()
        assert title.startswith(f"# {int(page.name[:4])}. ")
        assert re.match(r"Date: \d{4}-\d\d-\d\d\. Status: ", status), page.name


def test_the_readme_says_how_to_begin() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "Makefile"])
def test_pages_name_the_oldest_supported_python(page: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python (\d\.\d+)", (ROOT / page).read_text(encoding="utf-8"))
    assert {f">={version}" for version in named} == {project["requires-python"]}


def test_contributing_lists_every_make_command() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = {*re.findall(r"^([a-z]+):", makefile, re.MULTILINE)}
    assert {*re.findall(r"^\| `make (\w+)`", contributing, re.MULTILINE)} == rules - {"clean"}
    assert {*re.findall(r"`make ([a-z]+)", contributing)} <= rules


def test_every_setting_is_explained() -> None:
    settings = NAMES | DatabaseArguments.__annotations__.keys()
    page = (ROOT / "docs/guides/tables.md").read_text(encoding="utf-8").partition("| setting | default |")[2]
    rows = (
        line.split("|")[1] for line in page.partition("\n\n")[0].splitlines()[1:] if line.startswith("| `")
    )
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == settings | {"url"}
    docstring = (Database.__doc__ or "").partition("The settings are")[2]
    assert settings - {*re.findall(r"``(\w+)``", docstring)} == set()


@pytest.mark.parametrize(
    "picture", sorted(ROOT.glob("docs/pictures/*.svg")), ids=lambda picture: picture.stem
)
def test_a_drawing_has_a_title_a_description_dark_colours_and_a_page_that_shows_it(picture: Path) -> None:
    drawn = picture.read_text(encoding="utf-8")
    assert re.search(r"<title.*>.+</title>\n<desc.*>.+</desc>", drawn)
    assert "prefers-color-scheme: dark" in drawn
    assert any(f"pictures/{picture.name})" in page.read_text(encoding="utf-8") for page in PAGES)
