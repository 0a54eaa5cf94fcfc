"""A MkDocs hook: the site's navigation, and pages for the files outside ``docs`` that pages link to.

The navigation follows ``docs/index.md``: its sections, and the links in each; the reference and the decisions are
groups that are closed until a reader opens them. Links in the pages work in a checkout; this hook rewrites them to lead
to the site's pages. A linked file of the repository becomes a page that shows it, a linked folder a page that lists its
files.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(?=[)#])")
_ENTRY = re.compile(r"\[([^\]]+)\]\((?!\.\.)([^)#]+\.md|decisions)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".toml": "toml", ".js": "javascript", ".css": "css", ".html": "html"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the index."""
    config.nav = navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    return config


def navigation(index: str) -> list[Any]:
    """The index's sections with the pages, and the groups of pages, that they link to."""
    groups: dict[str, list[Any]] = {
        "reference/index.md": ["reference/index.md", *_reference()],
        "decisions": ["decisions/index.md", *_folder("decisions")],
    }
    nav: list[Any] = [{"Home": "index.md"}]
    for section in index.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        entries = [{name: groups.get(path, path)} for name, path in _ENTRY.findall(body)]
        if entries:
            nav.append({title: entries})
    return nav


def _reference() -> list[dict[str, str]]:
    """The pages of the reference, under the names of their modules."""
    named = []
    for path in sorted((ROOT / "docs" / "reference").glob("*.md")):
        heading = _HEADING.search(path.read_text(encoding="utf-8"))
        if path.name != "index.md" and heading:
            named.append({heading[1].strip("`"): f"reference/{path.name}"})
    return sorted(named, key=lambda entry: next(iter(entry)))


def _folder(name: str) -> list[str]:
    pages = sorted(path.name for path in (ROOT / "docs" / name).glob("*.md"))
    return [f"{name}/{page}" for page in sorted(pages, key=lambda page: page != "index.md")]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file and folder of the repository that a page links to."""
    waiting = [ROOT / "docs" / file.src_uri for file in files.documentation_pages()]
    known = set(waiting)
    while waiting:
        origin = waiting.pop()
        for target in _targets(origin):
            if target not in known and target.exists():
                known.add(target)
                waiting.append(target)
                if not (ROOT / "docs" / _page_of(target)).exists():
                    files.append(File.generated(config, _page_of(target), content=_show(target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to files of the repository, and give headings the anchors that viewers of a checkout give them."""
    here = page.file.src_uri
    origin = _origin_of(here)
    seen: Counter[str] = Counter()

    def rewrite(link: re.Match[str]) -> str:
        target = (origin.parent / link[1]).resolve()
        return posixpath.relpath(_page_of(target), posixpath.dirname(here))

    def anchor_heading(heading: re.Match[str]) -> str:
        anchor = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
        seen[anchor] += 1
        again = f"-{seen[anchor] - 1}" if seen[anchor] > 1 else ""
        return f"{heading[0]} {{#{anchor}{again}}}"

    parts = _FENCE.split(markdown)  # prose and code, alternating
    parts[::2] = [_HEADING.sub(anchor_heading, _LINK.sub(rewrite, part)) for part in parts[::2]]
    return "".join(parts)


def _targets(origin: Path) -> Iterator[Path]:
    if origin.suffix == ".md":
        for part in _FENCE.split(origin.read_text(encoding="utf-8"))[::2]:
            yield from ((origin.parent / link).resolve() for link in _LINK.findall(part))
    elif origin.is_dir():
        yield from _content(origin)


def _content(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))


def _page_of(target: Path) -> str:
    """The page of the site for a path of the repository; for a picture, the picture itself."""
    path = target.relative_to(ROOT).as_posix()
    inside = path.removeprefix("docs/")
    if inside == path:
        return f"repository/{path}.md"
    return f"{inside}/index.md" if target.is_dir() else inside


def _origin_of(page: str) -> Path:
    if page.startswith("repository/"):
        return ROOT / page.removeprefix("repository/").removesuffix(".md")
    if page == "decisions/index.md":
        return ROOT / "docs" / "decisions"
    return ROOT / "docs" / page


def _show(target: Path) -> str:
    """The content of a page about a path: Markdown unchanged, source in a block, a folder as a list of its files."""
    if target.is_dir():
        lines = (f"- [{_title(path)}]({target.name}/{path.name})" for path in _content(target))
        return f"# {target.name.capitalize()}\n\n" + "\n".join(lines)
    if target.suffix == ".md":
        return target.read_text(encoding="utf-8")
    text = target.read_text(encoding="utf-8")
    return f"# {target.name}\n\n````{_LANGUAGES.get(target.suffix, 'text')}\n{text.rstrip()}\n````"


def _title(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return path.name
