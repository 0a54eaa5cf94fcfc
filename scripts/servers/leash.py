"""Run a server on a leash: when the standard input of this program ends, it kills the server and all its children.

The process that starts the server holds the other end of that pipe. However that process ends, even by an interrupt or
a kill, the pipe ends with it, and no server is left running.

    python leash.py command argument ...

``LEASH_HOME`` names a directory that is removed afterwards, and its parent directory too if that is then empty.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

CHECK_SECONDS = 0.2
"""The interval at which to check whether the server has ended by itself."""


def main(command: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        while server.poll() is None:
            if select.select([0], [], [], CHECK_SECONDS)[0] and not os.read(0, 1024):
                break
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)  # they have no state worth a clean shutdown
    ended = server.wait()
    home = os.environ.get("LEASH_HOME")
    if home is not None:
        shutil.rmtree(home, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(os.path.dirname(home))  # noqa: PTH106, PTH120 - pathlib would slow the start
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
