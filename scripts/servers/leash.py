"""Run a server on a leash: it and all its children are killed as soon as our standard input ends.

The process that starts the server holds the other end of that pipe. However it ends, even by an interrupt or a kill,
the pipe ends with it, and no server is left behind.

    python leash.py command argument ...

``LEASH_HOME`` names a directory that is removed afterwards, and the directory around it when it is the last in there.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

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
    ended = server.wait()
    home = os.environ.get("LEASH_HOME")
    if home is not None:
        shutil.rmtree(home, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(os.path.dirname(home))  # noqa: PTH106, PTH120 - as quick to start as can be
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
