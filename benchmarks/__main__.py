"""``python -m benchmarks`` lists the benchmarks, ``python -m benchmarks NAME…`` (or ``all``) runs them.

Figures go to stdout, one line each; the exit status is 1 if one of them misses its bar.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

from benchmarks.harness import benchmarks, check_readme, summary


def main() -> int:
    """List or run benchmarks; return the exit status."""
    known = benchmarks()
    check_readme(list(known))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Holdall against its peers."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a benchmark, or all; without a name, list them"
    )
    names: list[str] = parser.parse_args().names
    unknown = sorted({*names} - {*known, "all"})
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(unknown)}; choose from: {', '.join(known)}")
    if not names:
        width = max(map(len, known))
        print("\n".join(f"{name:{width}}  {summary(module)}" for name, module in known.items()))
        return 0
    return run([module for name, module in known.items() if name in names or "all" in names])


def run(chosen: list[ModuleType]) -> int:
    """Run these one after another; return 0 if every figure meets its bar, else 1."""
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} CPUs",
        file=sys.stderr,
    )
    start = time.monotonic()
    figures = []
    with tempfile.TemporaryDirectory(prefix="holdall-benchmarks-") as workshop:
        for module in chosen:
            for figure in module.figures(Path(workshop)):
                figures.append(figure)
                print(figure, flush=True)
    short = sum(not figure.met for figure in figures)
    print(f"{len(figures)} figures, {short} short, {time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
