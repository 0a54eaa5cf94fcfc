"""The demo: eleven scenes on the embedded engine, or with ``--all`` the long tour of all features.

``make demo`` runs the scenes in ``build/demo``, shows each on the terminal and writes ``build/demo/report.html``.
The code that it shows is the code that it runs.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import textwrap
import time
from pathlib import Path

from tour.picture import PICTURES, draw_table
from tour.report import Step, Voice, page
from tour.scene import PROGRAM, Program

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    options = argparse.ArgumentParser(description="The demo of Holdall on the embedded engine.")
    options.add_argument("--all", action="store_true", help="the long tour: the scenes, and everything else")
    options.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "demo", help="where to work; it is emptied first"
    )
    chosen = options.parse_args()
    folder: Path = chosen.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.perf_counter()
    program = Program()
    table = play_scenes(program, folder)
    facts = [
        (str(len(program.scenes)), "scenes"),
        (str(sum(scene.lines for scene in program.scenes)), "lines of your code"),
        (f"{time.perf_counter() - began:.1f} s", "to run them"),
        ("0", "servers, containers or accounts"),
    ]
    steps = take_tour(folder, len(program.scenes) + 1) if chosen.all else []
    report = folder / "report.html"
    report.write_text(page(program, facts, table, steps), encoding="utf-8")
    print("\n" + ", ".join(f"{number} {what}" for number, what in facts))
    print(f"The scenes are one program: {PROGRAM.relative_to(ROOT)}")
    print(f"The report, with pictures: {report}")


def play_scenes(program: Program, folder: Path) -> str:
    """Show and run each scene in the folder; return a picture of the table after the last one."""
    album = runpy.run_path(str(ROOT / "examples" / "album" / "sample.py"))
    album["make_picture"](folder / "lake.jpg", "By the lake")
    os.chdir(folder)
    voice = Voice()
    for scene in program.run(PICTURES):
        if not scene.seconds:
            voice.title(program.scenes.index(scene) + 1, scene.title, scene.intro)
            print("\n" + textwrap.indent(scene.shown, "   │ ", lambda line: True) + "\n")
        else:
            for line in scene.output.splitlines():
                print(textwrap.fill(line, 96, initial_indent="   ", subsequent_indent="     "))
    table = draw_table(program.scope)
    program.scope["db"].close()
    return table


def take_tour(folder: Path, first: int) -> list[Step]:
    """Run all other steps; number them from ``first``."""
    from tour import artifacts, attachments, crowds, files, items, jobs, models, queries, tables, trouble, web
    from tour.stage import Tour, list_stops

    tour = Tour(folder, first)
    try:
        for stop in list_stops(
            models, queries, jobs, files, attachments, web, artifacts, items, tables, crowds, trouble
        ):
            tour.take(stop)
    finally:
        tour.store.close()
    return tour.voice.steps


if __name__ == "__main__":
    main()
