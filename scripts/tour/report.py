"""The demo's voice: what it says goes to the terminal as it happens, and into one HTML page at the end.

The page stands alone: its style is inside it, it loads nothing, and it follows the reader's light or dark setting.
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

WIDTH = 96


@dataclass
class Step:
    """One stop of the tour: what was said, what came out, and the code that did it."""

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
    """Says things twice: on the terminal now, in the report later."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def begin(self, title: str, intro: str, source: str) -> Step:
        step = Step(title, intro, source)
        self.steps.append(step)
        print("\n" + self._bold(f"{len(self.steps)}. {title}"))
        self._wrapped(intro)
        return step

    def end(self) -> None:
        step = self.steps[-1]
        print(self._dim(f"   {step.requests:,} requests, {step.seconds:.2f} s"))

    def say(self, text: str) -> None:
        self._wrapped(text)
        self._add(f"<p>{html.escape(text)}</p>")

    def show(self, text: str) -> None:
        """Output as it is."""
        print(textwrap.indent(text, "   │ "))
        self._add(f"<pre>{html.escape(text)}</pre>")

    def table(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        cells = [[str(cell) for cell in row] for row in rows]
        widths = [min(max(len(row[place]) for row in [head, *cells]), 46) for place in range(len(head))]
        if any(head):
            names = "  ".join(text.ljust(width) for text, width in zip(head, widths, strict=True))
            print(self._dim("   " + names.rstrip()))
        for row in cells:
            line = "  ".join(_cut(text, width).ljust(width) for text, width in zip(row, widths, strict=True))
            print("   " + line.rstrip())
        self._add(_table(head, cells))

    def bars(self, rows: Iterable[tuple[str, float, str]]) -> None:
        """Amounts side by side: name, amount, and the amount in words."""
        found = list(rows)
        most = max(amount for _, amount, _ in found) or 1.0
        for name, amount, words in found:
            print(f"   {name:22} {'█' * max(1, round(30 * amount / most)):30} {words}")
        self._add(_bars(found))

    def refusal(self, what: str, code: str, message: str, hint: str | None) -> None:
        print(f"   {what}\n     {self._bold(code)}: {message}" + (f"\n     hint: {hint}" if hint else ""))
        advice = f"<p class=hint><b>hint:</b> {html.escape(hint)}</p>" if hint else ""
        self._add(
            f"<div class=refusal><p class=what>{html.escape(what)}</p>"
            f"<p><code>{html.escape(code)}</code> {html.escape(message)}</p>{advice}</div>"
        )

    def picture(self, svg: str, caption: str) -> None:
        """A drawing of our own, which only the report shows; its caption is for both."""
        self._wrapped(caption)
        self._add(f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>")

    def listing(self, summary: str, lines: Iterable[str]) -> None:
        """A long list that only the report shows, folded."""
        items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        self._add(f"<details><summary>{html.escape(summary)}</summary><ul class=long>{items}</ul></details>")

    def _add(self, part: str) -> None:
        self.steps[-1].parts.append(part)

    def _wrapped(self, text: str) -> None:
        print(textwrap.fill(text, WIDTH, initial_indent="   ", subsequent_indent="   "))

    def _bold(self, text: str) -> str:
        return f"\033[1m{text}\033[0m" if self._colour else text

    def _dim(self, text: str) -> str:
        return f"\033[2m{text}\033[0m" if self._colour else text


def page(steps: Sequence[Step], facts: Sequence[tuple[str, str]], kinds: list[tuple[str, float, str]]) -> str:
    """The report."""
    tiles = "".join(
        f"<div class=tile><b>{html.escape(n)}</b><span>{html.escape(w)}</span></div>" for w, n in facts
    )
    links = "".join(f'<li><a href="#{step.anchor}">{html.escape(step.title)}</a></li>' for step in steps)
    sections = "".join(_section(place, step) for place, step in enumerate(steps, start=1))
    times = [(step.title, step.seconds, f"{step.seconds:.2f} s") for step in steps]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Holdall: the demo</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><style>{STYLE}</style></head><body>'
        f"<nav><p class=brand>Holdall</p><ol>{links}<li><a href='#sum'>The sum</a></li></ol></nav><main>"
        "<header><h1>The data layer, on one machine</h1><p class=lead>Everything that exists today, run for "
        "real on the embedded engine. Each number was measured, each message was raised, while this page was made."
        f"</p><div class=tiles>{tiles}</div></header>{sections}"
        f"<section id=sum><h2>The sum</h2><p>Requests of the tour by kind, processes of their own not counted.</p>"
        f"{_bars(kinds)}<p>Where the time went.</p>{_bars(times)}</section>"
        "</main></body></html>\n"
    )


def _section(place: int, step: Step) -> str:
    code = textwrap.dedent(step.source)
    return (
        f'<section id="{step.anchor}"><h2><i>{place}</i>{html.escape(step.title)}</h2>'
        f"<p class=lead>{html.escape(step.intro)}</p>{''.join(step.parts)}"
        f"<details><summary>The code that did this <small>{step.requests:,} requests · {step.seconds:.2f} s</small>"
        f"</summary><pre class=code>{_highlighted(code)}</pre></details></section>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    top = f"<thead><tr>{names}</tr></thead>" if any(head) else ""
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<div class=wide><table>{top}<tbody>{body}</tbody></table></div>"


def _bars(rows: Sequence[tuple[str, float, str]]) -> str:
    most = max(amount for _, amount, _ in rows) or 1.0
    return (
        "<div class=bars>"
        + "".join(
            f"<span>{html.escape(name)}</span><i><i style='width:{100 * amount / most:.1f}%'></i></i>"
            f"<b>{html.escape(words)}</b>"
            for name, amount, words in rows
        )
        + "</div>"
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _highlighted(source: str) -> str:
    """Python as HTML, its tokens marked by kind."""
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


STYLE = """
:root{--paper:#fbfaf7;--card:#fff;--ink:#1d2327;--soft:#5c666d;--line:#e3dfd6;--accent:#0b6b62;--wash:#e5f1ef;
--stop:#a8391f;--stopwash:#fbeee9;--k:#8a3b8f;--s:#2f6b2f;--c:#8a8577;--n:#9a5b00}
@media (prefers-color-scheme: dark){:root{--paper:#14181a;--card:#1b2124;--ink:#e6e4df;--soft:#9aa5ab;
--line:#2d3539;--accent:#5cc4b6;--wash:#17302d;--stop:#f08c6f;--stopwash:#33211c;--k:#d59add;--s:#93c98a;--c:#7d868b;--n:#e0b06a}}
*{box-sizing:border-box}html{scroll-behavior:smooth;scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"Segoe UI",sans-serif;
display:grid;grid-template-columns:15rem minmax(0,54rem);gap:3rem;justify-content:center;padding:0 1.5rem}
nav{position:sticky;top:0;align-self:start;max-height:100vh;overflow:auto;padding:2.5rem 0;font-size:.9rem}
nav .brand{font-weight:700;font-size:1.15rem;color:var(--accent);margin:0 0 1rem}
nav ol{list-style:none;margin:0;padding:0;border-left:2px solid var(--line)}
nav a{display:block;padding:.22rem 0 .22rem 1rem;color:var(--soft);text-decoration:none;margin-left:-2px;
border-left:2px solid transparent}nav a:hover{color:var(--accent);border-color:var(--accent)}
main{padding:2.5rem 0 6rem}h1{font-size:2.3rem;line-height:1.15;letter-spacing:-.02em;margin:0 0 .6rem}
.lead{color:var(--soft);font-size:1.06rem;margin:.2rem 0 1.2rem;max-width:44rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.2rem,1fr));gap:.8rem;margin:1.6rem 0 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.9rem 1rem}
.tile b{display:block;font-size:1.45rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:.84rem}
section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:1.5rem 1.7rem;
margin:1.6rem 0}
h2{font-size:1.3rem;margin:0;letter-spacing:-.01em}h2 i{font-style:normal;color:var(--accent);margin-right:.6rem}
p{margin:.7rem 0}pre,code{font:.86rem/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--paper);border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;overflow:auto;
margin:.8rem 0}.wide{overflow-x:auto;margin:.8rem 0}table{border-collapse:collapse;width:100%;font-size:.9rem;
font-variant-numeric:tabular-nums}th{text-align:left;color:var(--soft);font-weight:600;font-size:.8rem}
th,td{padding:.4rem .9rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:break-word;
max-width:21rem}th{white-space:nowrap}
tbody tr:last-child td{border-bottom:0}
.refusal{border-left:3px solid var(--stop);background:var(--stopwash);border-radius:0 8px 8px 0;padding:.6rem 1rem;
margin:.7rem 0;font-size:.93rem}.refusal p{margin:.15rem 0}.refusal .what{color:var(--soft)}
.refusal code{color:var(--stop);font-weight:700;margin-right:.4rem}.hint{color:var(--ink)}
details{margin:1rem 0 0}summary{cursor:pointer;color:var(--accent);font-weight:600;font-size:.9rem}
summary small{color:var(--soft);font-weight:400;margin-left:.5rem}
.long{columns:2;gap:2rem;font-size:.85rem;padding-left:1.1rem}
.bars{display:grid;grid-template-columns:minmax(8rem,max-content) 1fr max-content;gap:.4rem 1rem;align-items:center;
font-size:.9rem;margin:.8rem 0}.bars>i{background:var(--wash);border-radius:4px;height:.85rem;overflow:hidden}
.bars>i>i{display:block;height:100%;background:var(--accent);border-radius:4px;min-width:2px}
figure{margin:1rem 0}figcaption{color:var(--soft);font-size:.9rem}
.bars b{font-weight:600;font-variant-numeric:tabular-nums;text-align:right}
.code .k{color:var(--k)}.code .s{color:var(--s)}.code .c{color:var(--c);font-style:italic}.code .n{color:var(--n)}
@media (max-width:60rem){body{grid-template-columns:minmax(0,1fr);gap:0}nav{display:none}.long{columns:1}
h1{font-size:1.8rem}section{padding:1.1rem 1.1rem}}
@media print{nav{display:none}body{display:block}section{break-inside:avoid}}
"""
