"""A process without privileges: ``unprivileged_opener.py PATH`` opens the store, reads and writes.

It prints ``opened``, ``read`` and ``wrote`` after each step, and the name of the error that stopped it.
"""

from __future__ import annotations

import os
import sys

from embedded_things import get, put

from holdall.backends.embedded import EmbeddedBackend
from holdall.errors import HoldallError

NOBODY = 65534


def main(path: str) -> None:
    if os.getuid() == 0:  # permissions do not apply to root
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        backend = EmbeddedBackend(path)
        print("opened")
        backend.send_blocking(get("thing0"))
        print("read")
        backend.send_blocking(put("new"))
        print("wrote")
        backend.close()
    except HoldallError as error:
        print(type(error).__name__)


if __name__ == "__main__":
    main(*sys.argv[1:])
