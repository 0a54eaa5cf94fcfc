"""The shipped contract without pytest: every check, sync and async, on a store in memory."""

from __future__ import annotations

from typing import get_args

from holdall.backends.embedded import EmbeddedBackend
from holdall.testing import checks, run_check
from holdall.testing.table_contract import Calls


def main() -> None:
    for colour in get_args(Calls):
        for check in checks():
            backend = EmbeddedBackend(None)
            try:
                run_check(check, backend, colour)
            finally:
                backend.close()
    print(f"{len(checks())} checks passed, sync and async")


if __name__ == "__main__":
    main()
