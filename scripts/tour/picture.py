"""The pictures of the scenes: HTML and SVG, drawn from the values that each scene leaves in its variables."""

from __future__ import annotations

import base64
import html
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from holdall.core import GetItem, Scan

Scope = Mapping[str, Any]
Bar = tuple[str, Sequence[tuple[str, float]], str]


def bars(rows: Iterable[Bar], caption: str = "") -> str:
    """Draw horizontal bars on one scale: each has a label, parts with their classes, and the amount in words."""
    rows = list(rows)
    most = max(sum(amount for _, amount in parts) for _, parts, _ in rows) or 1.0
    lines = (
        f"<span>{html.escape(label)}</span><i>"
        + "".join(
            f'<i class="{kind}" style="width:{100 * amount / most:.2f}%"></i>' for kind, amount in parts
        )
        + f"</i><b>{html.escape(words)}</b>"
        for label, parts, words in rows
    )
    return figure(f"<div class=bars>{''.join(lines)}</div>", caption)


def figure(inside: str, caption: str) -> str:
    note = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f"<figure>{inside}{note}</figure>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    names = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return figure(f"<table><tr>{names}</tr>{body}</table>", caption)


def svg(width: float, height: float, title: str, inside: str) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img"><title>{html.escape(title)}</title>{inside}</svg>'


def legend(*entries: tuple[str, str]) -> str:
    return " ".join(f'<span class=key><i class="{kind}"></i>{text}</span>' for kind, text in entries)


def draw_item(scope: Scope) -> str:
    partition, sort = scope["Order"].key(customer="ada", number=1).encoded
    item = scope["db"].send(GetItem("holdall", {"pk": {"S": str(partition)}, "sk": {"S": str(sort)}})).item
    names = ("pk", "sk", "product", "quantity", "gsi1_pk", "gsi1_sk")
    rows = (
        (f"<code>{name}</code>", f"<code>{html.escape(next(iter(item[name].values())))}</code>")
        for name in names
    )
    return table(
        ("attribute", "value"),
        rows,
        "The stored item, in part. Numbers in keys are written so that text sorts as numbers do.",
    )


def draw_index(scope: Scope) -> str:
    rows = scope["db"].query(scope["Order"], index="by_product", product="tea", reverse=True).all()
    found = {order.number for order in scope["top"]}
    step, most = 420 / len(rows), max(order.quantity for order in rows)
    columns = "".join(
        f'<rect x="{place * step + 2:.1f}" y="{100 - 90 * order.quantity / most:.1f}" width="{step - 4:.1f}" '
        f'height="{90 * order.quantity / most:.1f}" rx="2" class="{"ok" if order.number in found else "rest"}"/>'
        f'<text x="{(place + 0.5) * step:.1f}" y="114" text-anchor="middle">{order.quantity}</text>'
        for place, order in enumerate(rows)
    )
    note = legend(("ok", "read"), ("rest", f"the other {len(rows) - len(found)} orders of tea, not read"))
    return figure(svg(420, 118, "Orders of tea, by quantity", columns), note)


def draw_conflict(scope: Scope) -> str:
    order = scope["order"]
    read, stored = (
        order.quantity - 1,
        scope["db"].get_one(scope["Order"], customer="grace", number=5).quantity,
    )
    lanes = "".join(
        f'<text x="0" y="{y + 4}">{name}</text><path d="M42 {y}H{end}" class="line"/>'
        for name, y, end in (("tx", 30, 370), ("other", 84, 290))
    )
    marks = "".join(
        f'<circle cx="{x}" cy="{y}" r="6" class="{kind}"/>'
        f'<text x="{x}" y="{y - 13}" text-anchor="middle">{text}</text>'
        for x, y, kind, text in (
            (70, 30, "rest", f"reads {read}"),
            (150, 84, "rest", f"reads {read}"),
            (280, 84, "ok", f"commits {stored}"),
            (360, 30, "bad", f"refused, it is {stored}"),
        )
    )
    return figure(
        svg(420, 100, "Two transactions", lanes + marks), "Time runs to the right. Nothing of tx was written."
    )


def draw_kill(scope: Scope) -> str:
    first, second = (scope["db"].get_one(scope["Order"], customer="ada", number=n).quantity for n in (1, 2))
    rows: list[Bar] = [
        ("before", [("ok", 1000), ("other", 1000)], "2,000 bags"),
        ("after SIGKILL", [("ok", first), ("other", second)], f"{first + second:,} bags"),
    ]
    return bars(rows, legend(("ok", "order 1"), ("other", "order 2")) + f" {second - 1000} bags were moved.")


def draw_race(scope: Scope) -> str:
    lanes: dict[int, list[float]] = defaultdict(list)
    for task, at in scope["attempts"]:
        lanes[task].append(at)
    done: dict[int, float] = dict(scope["commits"])
    began, ended = min(min(times) for times in lanes.values()), max(done.values())

    def x(at: float) -> float:
        return 500 * (at - began) / (ended - began)

    parts = []
    for y, task in enumerate(sorted(lanes, key=lambda each: done[each])):
        times = [*lanes[task], done[task]]
        for place, (start, end) in enumerate(pairwise(times)):
            kind = "ok" if place == len(times) - 2 else "wait"
            wide = max(1.0, x(end) - x(start) - 0.8)
            parts.append(
                f'<rect x="{x(start):.1f}" y="{4 * y}" width="{wide:.1f}" height="3" class="{kind}"/>'
            )
    tries = max(map(len, lanes.values()))
    note = (
        legend(("wait", "collided, then waited its turn"), ("ok", "ran and committed"))
        + f" One lane per task, {1000 * (ended - began):,.0f} ms in all; no task needed more than {tries} attempts."
    )
    return figure(svg(500, 4 * len(lanes), "Attempts of fifty tasks", "".join(parts)), note)


def draw_job(scope: Scope) -> str:
    rows = []
    for customer in ("mary", "edgar"):
        order = scope["db"].get(scope["Order"], customer=customer, number=1)
        rows.append((customer, *(("<b class=ok>yes</b>",) * 2 if order else ("<b class=bad>no</b>",) * 2)))
    done = scope["metrics"].succeeded
    return table(
        ("customer", "order exists", "receipt sent"), rows, f"The worker found {done} job and ran it."
    )


def draw_photo(scope: Scope) -> str:
    from holdall import Variant

    db, blob = scope["db"], scope["postcard"].photo.blob
    shown = [
        (blob, "the photo", 'style="height:144px"'),
        (scope["thumb"], "thumb", ""),
        (db.blobs.variant(blob, Variant(resize_to_fill=(84, 144), format="webp")), "WebP", ""),
    ]
    pictures = "".join(
        f'<div><img alt="{name}" {style} src="data:{each.content_type};base64,'
        f'{base64.b64encode(db.blobs.download(each)).decode()}"><span>{name}<br>{each.byte_size:,} bytes</span></div>'
        for each, name, style in shown
    )
    return figure(
        f"<div class=shots>{pictures}</div>", "The stored files themselves. The demo painted the photo."
    )


def draw_canary(scope: Scope) -> str:
    served = scope["served"]
    rows: list[Bar] = [
        ("before", [("ok", 10_000)], "0 %"),
        (
            "canary",
            [("ok", served["1"]), ("other", served["2"])],
            f"{served['2'] / 100:.1f} %",
        ),
        ("rolled back", [("ok", 10_000)], "0 %"),
    ]
    return bars(
        rows,
        legend(("ok", "version 1"), ("other", "version 2"))
        + " The share of version 2 among 10,000 users, as resolve() returned it.",
    )


def draw_archive(scope: Scope) -> str:
    report = scope["report"]
    prices = report.prices
    million = 1e6 / report.archived
    before = report.item_bytes * prices.table_storage / 1e9 * million
    saved, once = report.estimate.monthly * million, report.estimate.once * million
    files = report.object_bytes * prices.object_storage / 1e9 * million
    rows: list[Bar] = [
        ("in DynamoDB", [("ok", before)], f"${before:.2f}"),
        ("archived", [("ok", before - saved - files), ("other", files)], f"${before - saved:.2f}"),
    ]
    note = (
        f" Storage of a million such items, dollars per month (prices of {prices.date}, {prices.region}). "
        f"Archiving them costs ${once:.2f} once: paid for after {report.estimate.payback_months:.1f} months."
    )
    return bars(rows, legend(("ok", "table"), ("other", "files")) + note)


def draw_template(scope: Scope) -> str:
    items = [item for page in scope["db"].pages(Scan("depot")) for item in page.items]
    names = ("pk", "sk", "id", "weight", "van")
    rows = (
        [f"<code>{html.escape(next(iter(item.get(name, {'S': ''}).values())))}</code>" for name in names]
        for item in sorted(items, key=lambda item: item["pk"]["S"])
    )
    return table(names, rows, "The other program's table: all items have the form that it writes.")


def draw_backends(scope: Scope) -> str:
    rows: list[Bar] = [
        (url, [("ok", seconds)], f"{1000 * seconds:.2f} ms") for url, seconds in scope["seconds"].items()
    ]
    return bars(rows, "Mean time of a transaction that reads an item and changes it.")


def draw_table(scope: Scope) -> str:
    """Draw what all scenes together left in the table."""
    found: Counter[str] = Counter()
    for page in scope["db"].pages(Scan("holdall")):
        for item in page.items:
            kind = item["_type"]["S"] if "_type" in item else "holdall.Artifact"
            if item["pk"]["S"].startswith("ActiveStorage#"):
                kind = "attached files"
            elif kind.startswith("holdall."):
                kind = "artifacts" if kind.startswith("holdall.Artifact") else "jobs and markers"
            found[f"{kind}, archived" if "_archive" in item else kind] += 1
    rows: list[Bar] = [(name, [("ok", count)], str(count)) for name, count in found.most_common()]
    return bars(rows, f"What the scenes left in one table: {found.total()} items.")


PICTURES: list[Callable[[Scope], str]] = [
    draw_item,
    draw_index,
    draw_conflict,
    draw_kill,
    draw_race,
    draw_job,
    draw_photo,
    draw_canary,
    draw_archive,
    draw_template,
    draw_backends,
]
