"""Run a server on a leash: it and all its children are killed as soon as our standard input ends.

Whoever starts the server holds the other end of that pipe. However that process ends, by an interrupt or a kill too,
the pipe ends with it, and no server is left behind.

    python leash.py command argument ...
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

LOOK_SECONDS = 0.2
"""How often to look whether the server has ended by itself."""


def main(command: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        while server.poll() is None:
            if select.select([0], [], [], LOOK_SECONDS)[0] and not os.read(0, 1024):
                break
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)  # nothing they hold is worth a farewell
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
