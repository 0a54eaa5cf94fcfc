"""A program that puts a file in parts and kills itself as soon as a given number of parts has arrived.

``python dying_putter.py WHERE KEY PATH PARTS``; WHERE is ``file:DIRECTORY``, or the URL of an S3 server and a prefix.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from rig.files import InterceptedService, service_at

from holdall import Database
from holdall.core.objects import UploadPart


def main(where: str, key: str, path: str, parts: int) -> None:
    service = InterceptedService(service_at(where))
    arrived = 0

    def count(request: Any) -> None:
        nonlocal arrived
        arrived += isinstance(request, UploadPart)
        if arrived >= parts:
            os.kill(os.getpid(), signal.SIGKILL)

    service.after = count
    Database("memory:", files=service).files.put(key, path, content_type="text/plain", resume=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
