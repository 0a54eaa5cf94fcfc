"""Run blocks of a page that are written for another Python library, in an environment that has it.

Each line is a request, ``{"run": source}`` or ``{"reset": true}``; so is each answer, ``{"printed": text}`` or
``{"error": message}``. Blocks share a namespace until it is reset.
"""

# mypy: ignore-errors
from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback


def main():
    names = {"__name__": "page"}
    for line in sys.stdin:
        request = json.loads(line)
        if "reset" in request:
            names = {"__name__": "page"}
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                exec(compile(request.get("run", ""), "page", "exec"), names)
            answer = {"printed": output.getvalue()}
        except Exception:  # noqa: BLE001 - the test reports any error
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
