"""Makes or restores a backup, and dies after this many of its steps: ``backup|restore PATH TARGET N``."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from typing import Any

from holdall import Database
from holdall.backends.port.blocking import BlockingPort


def main(act: str, database: str, directory: str, steps: str) -> None:
    numbers, last = count(1), int(steps)

    def count_step(name: str) -> None:
        step = getattr(BlockingPort, name)

        async def count_step(*args: Any) -> Any:
            result = await step(*args)
            if next(numbers) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(BlockingPort, name, count_step)

    with Database(f"embedded:{database}") as db:
        for name in ("send", "offload"):
            count_step(name)
        getattr(db, act)(directory)
    print("done", flush=True)


main(*sys.argv[1:])
