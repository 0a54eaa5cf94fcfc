"""The lines of code that place an order safely, against PynamoDB and dyntastic."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import peers
from benchmarks.harness import Figure
from benchmarks.ministack import start_ministack
from benchmarks.placement import BUYERS, STOCK
from benchmarks.wire_race import wire_environment

HERE = Path(__file__).parent
BARS = {"dyntastic": 0.6, "pynamodb": 0.6}


def figures(workshop: Path) -> Iterator[Figure]:
    """Lines of the three programs; first, each must sell exactly its stock to ten concurrent buyers."""
    endpoint = start_ministack()
    for name in ("holdall", *BARS):
        _check(name, endpoint)
    ours = count_lines("holdall")
    for name, bar in BARS.items():
        theirs = count_lines(name)
        note = f"{ours} against {theirs} lines"
        yield Figure("order_placement", ("lines of code", f"against {name}"), ours / theirs, bar, note=note)


def count_lines(name: str) -> int:
    """Count the lines of a program, without its docstring and blank lines."""
    text = (HERE / "placement" / f"with_{name}.py").read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0].end_lineno or 0
    return sum(bool(line.strip()) for line in text.splitlines()[docstring:])


def _check(name: str, endpoint: str) -> None:
    python = sys.executable if name == "holdall" else str(peers.interpreter())
    environment = {**wire_environment(os.environ), "AWS_ENDPOINT_URL_DYNAMODB": endpoint}
    command = [python, "-m", "benchmarks.placement", name]
    result = subprocess.run(command, cwd=HERE.parent, env=environment, check=True, stdout=subprocess.PIPE)
    found = json.loads(result.stdout)
    if found != {"placed": STOCK, "left": 0}:
        raise AssertionError(f"{name}: {BUYERS} buyers for {STOCK} in stock ended with {found}")
