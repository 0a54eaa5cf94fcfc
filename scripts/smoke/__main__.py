"""Run every smoke script in this directory in its own process, and print one line for each.

``python scripts/smoke`` exits with 1 if a script failed, and prints the errors of that script.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    failed = 0
    for script in sorted(Path(__file__).parent.glob("[!_]*.py")):
        began = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-W", "error", script], capture_output=True, text=True, timeout=120
        )
        seconds = time.perf_counter() - began
        verdict = "FAILED" if ended.returncode else "ok"
        print(f"{verdict:6} {script.stem:18} {seconds:5.2f} s  {ended.stdout.strip()}", flush=True)
        if ended.returncode:
            failed += 1
            print(ended.stderr, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
