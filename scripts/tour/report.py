"""The demo's output: it goes to the terminal at once, and into one HTML page at the end.

The page is self-contained: it contains its style, loads nothing, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import html
import io
import keyword
import os
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from tour.picture import bars
from tour.scene import Program, Scene

WIDTH = 96
STYLE = Path(__file__).with_name("report.css")


@dataclass
class Step:
    """One step of the tour: its introduction, its output, and its code."""

    title: str
    intro: str
    source: str
    seconds: float = 0.0
    requests: int = 0
    parts: list[str] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


class Voice:
    """Prints everything on the terminal at once, and keeps it for the report."""

    def __init__(self, first: int = 1) -> None:
        self.steps: list[Step] = []
        self._first = first
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def begin(self, title: str, intro: str, source: str) -> Step:
        step = Step(title, intro, source)
        self.steps.append(step)
        self.title(self._first + len(self.steps) - 1, title, intro)
        return step

    def title(self, place: int, title: str, intro: str) -> None:
        print("\n" + self._bold(f"{place}. {title}"))
        self._wrap(intro)

    def end(self) -> None:
        step = self.steps[-1]
        print(self._dim(f"   {step.requests:,} requests, {step.seconds:.2f} s"))

    def say(self, text: str) -> None:
        self._wrap(text)
        self._add(f"<p>{html.escape(text)}</p>")

    def show(self, text: str) -> None:
        """Show a text as a block, unchanged."""
        print(textwrap.indent(text, "   │ "))
        self._add(f"<pre>{html.escape(text)}</pre>")

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        cells = [[str(cell) for cell in row] for row in rows]
        widths = [max(len(row[place]) for row in [head, *cells]) for place in range(len(head))]
        while 2 * len(widths) + sum(widths) > WIDTH:
            widths[widths.index(max(widths))] -= 1
        if any(head):
            names = "  ".join(text.ljust(width) for text, width in zip(head, widths, strict=True))
            print(self._dim("   " + names.rstrip()))
        for row in cells:
            line = "  ".join(_cut(text, width).ljust(width) for text, width in zip(row, widths, strict=True))
            print("   " + line.rstrip())
        self._add(_table(head, cells))

    def bars(self, rows: Iterable[tuple[str, float, str]]) -> None:
        """Show amounts as bars: name, amount, and the amount in words."""
        found = list(rows)
        most = max(amount for _, amount, _ in found) or 1.0
        for name, amount, words in found:
            print(f"   {name:22} {'█' * max(1, round(30 * amount / most)):30} {words}")
        self._add(bars([(name, [("ok", amount)], words) for name, amount, words in found]))

    def refusal(self, what: str, code: str, message: str, hint: str | None) -> None:
        print(f"   {what}")
        for line in [f"{code}: {message}", *([f"hint: {hint}"] if hint else [])]:
            print(textwrap.fill(line, WIDTH, initial_indent="     ", subsequent_indent="       "))
        advice = f"<p class=hint><b>hint:</b> {html.escape(hint)}</p>" if hint else ""
        self._add(
            f"<div class=refusal><p class=what>{html.escape(what)}</p>"
            f"<p><code>{html.escape(code)}</code> {html.escape(message)}</p>{advice}</div>"
        )

    def listing(self, summary: str, lines: Iterable[str]) -> None:
        """Add a long, folded list to the report only."""
        items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        self._add(f"<details><summary>{html.escape(summary)}</summary><ul class=long>{items}</ul></details>")

    def _add(self, part: str) -> None:
        self.steps[-1].parts.append(part)

    def _wrap(self, text: str) -> None:
        print(textwrap.fill(text, WIDTH, initial_indent="   ", subsequent_indent="   "))

    def _bold(self, text: str) -> str:
        return f"\033[1m{text}\033[0m" if self._colour else text

    def _dim(self, text: str) -> str:
        return f"\033[2m{text}\033[0m" if self._colour else text


def page(program: Program, facts: Sequence[tuple[str, str]], table: str, steps: Sequence[Step]) -> str:
    """Make the report: the scenes, and the steps of the long tour, if any."""
    tiles = "".join(f"<div><b>{html.escape(number)}</b>{html.escape(what)}</div>" for number, what in facts)
    shown: list[Scene | Step] = [*program.scenes, *steps]
    links = "".join(f'<a href="#{each.anchor}">{html.escape(each.title)}</a>' for each in shown)
    acts = "".join(_scene(place, scene) for place, scene in enumerate(program.scenes, start=1))
    stops = "".join(_section(place, step) for place, step in enumerate(steps, start=len(program.scenes) + 1))
    style = STYLE.read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Holdall: the demo</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><style>{style}</style></head><body>'
        f"<header><div>{MARK}<h1>One table for your application’s data</h1>"
        "<p>Models, transactions, jobs, files, releases and an archive. Every scene below is a few lines of "
        "Python and the output of the run that made this page: the code is the code that ran, and every number was "
        f"measured.</p><div class=tiles>{tiles}</div></div>{table}<nav>{links}</nav></header><main>{acts}{stops}</main>"
        "<footer><p>Made by <code>make demo</code>. <code>make demo ALL=1</code> is the long tour. The scenes are "
        "one program, <code>scripts/scenes.py</code>.</p><details><summary>How it begins: the imports</summary>"
        f"<pre class=code>{_highlight(program.imports)}</pre></details></footer>"
        "</body></html>\n"
    )


def _scene(place: int, scene: Scene) -> str:
    return (
        f'<section class=scene id="{scene.anchor}"><div class=head><h2><i>{place}</i>{html.escape(scene.title)}</h2>'
        f"<p>{html.escape(scene.intro)}</p></div><pre class=code>{_highlight(scene.shown)}</pre>"
        f"<div class=result><pre>{html.escape(scene.output)}</pre>{scene.picture}</div></section>"
    )


def _section(place: int, step: Step) -> str:
    code = textwrap.dedent(step.source)
    return (
        f'<section id="{step.anchor}"><div class=head><h2><i>{place}</i>{html.escape(step.title)}</h2>'
        f"<p>{html.escape(step.intro)}</p></div>{''.join(step.parts)}"
        f"<details><summary>The code that did this <small>{step.requests:,} requests · {step.seconds:.2f} s</small>"
        f"</summary><pre class=code>{_highlight(code)}</pre></details></section>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    top = f"<thead><tr>{names}</tr></thead>" if any(head) else ""
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<div class=wide><table>{top}<tbody>{body}</tbody></table></div>"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _highlight(source: str) -> str:
    """Convert Python source to HTML that marks tokens by their kind."""
    starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    out: list[str] = []
    done = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = _kind(token)
        begin, end = (min(starts[row - 1] + column, len(source)) for row, column in (token.start, token.end))
        if kind:
            out += [
                html.escape(source[done:begin]),
                f"<span class={kind}>{html.escape(source[begin:end])}</span>",
            ]
            done = end
    return ("".join(out) + html.escape(source[done:])).rstrip()


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return "k" if keyword.iskeyword(token.string) else ""
    return {tokenize.STRING: "s", tokenize.COMMENT: "c", tokenize.NUMBER: "n"}.get(token.type, "")


MARK = (
    '<svg class=mark viewBox="0 0 48 40" aria-hidden="true"><path d="M15 13v-4a7 7 0 0 1 7-7h4a7 7 0 0 1 7 7v4" '
    'fill="none" stroke="currentColor" stroke-width="3.4"/><rect x="2" y="13" width="44" height="25" rx="7" '
    'fill="currentColor"/><path d="M2 23h44" stroke="var(--paper)" stroke-width="2.4"/></svg>'
)
