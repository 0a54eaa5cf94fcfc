"""A tour of everything that exists, run for real on the embedded engine.

``make demo`` runs it in ``build/demo``, narrates on the terminal and ends with ``build/demo/report.html``.
Nothing is staged: each step sends real requests, checks what came back, and fails loudly if it is not so.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import sys
import time
from pathlib import Path

from tour import (
    archive,
    artifacts,
    attachments,
    crowds,
    files,
    items,
    jobs,
    models,
    queries,
    tables,
    trouble,
    web,
)
from tour.bank import move_money
from tour.report import page
from tour.stage import Tour, stops

import holdall


def main() -> None:
    options = argparse.ArgumentParser(description="A tour of Holdall on the embedded engine.")
    default = Path(__file__).resolve().parents[1] / "build" / "demo"
    options.add_argument("--folder", type=Path, default=default, help="where to work; it is emptied first")
    options.add_argument("--transfer", metavar="URL", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.transfer:
        move_money(chosen.transfer)
        return
    shutil.rmtree(chosen.folder, ignore_errors=True)
    chosen.folder.mkdir(parents=True)
    tour = Tour(chosen.folder)
    print(f"Holdall {holdall.__version__}, SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}")
    began = time.perf_counter()
    try:
        for stop in stops(
            models, queries, jobs, files, attachments, web, artifacts, archive, items, tables, crowds, trouble
        ):
            tour.take(stop)
    finally:
        tour.store.close()
    write_report(tour, time.perf_counter() - began)


def write_report(tour: Tour, seconds: float) -> None:
    meter = tour.meter
    facts = [
        ("requests", f"{meter.total:,}"),
        ("refused on purpose", f"{meter.refused:,}"),
        ("read units", f"{meter.units[False]:,.0f}"),
        ("write units", f"{meter.units[True]:,.0f}"),
        ("in the file", f"{tour.file.stat().st_size / 1e6:.1f} MB"),
        ("altogether", f"{seconds:.1f} s"),
    ]
    kinds = [(kind, float(count), f"{count:,}") for kind, count in meter.sent.most_common()]
    report = tour.folder / "report.html"
    report.write_text(page(tour.voice.steps, facts, kinds), encoding="utf-8")
    print("\n" + ", ".join(f"{number} {what}" for what, number in facts))
    print(f"The report: {report}")


if __name__ == "__main__":
    main()
