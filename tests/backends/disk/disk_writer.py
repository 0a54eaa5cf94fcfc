"""A process that changes objects one by one, and prints a line before and after each change.

``disk_writer.py ROOT KIND`` with put, create, upload or delete.
"""

from __future__ import annotations

import os
import sys

from holdall.backends.disk import DiskService
from holdall.core.objects import BeginUpload, CompleteUpload, DeleteObject, PutObject, UploadPart

NAME = "disk"


def main(root: str, kind: str) -> None:
    service = DiskService(root)
    for number in range(3):
        key = f"dir {number}/key"
        if kind == "delete":
            service.send_blocking(PutObject(NAME, key, b"x" * 9000))
            os.write(1, b"begin\n")
            service.send_blocking(DeleteObject(NAME, key))
        elif kind == "upload":
            upload = service.send_blocking(BeginUpload(NAME, key))
            parts = [service.send_blocking(UploadPart(NAME, upload, n, b"x" * 9000)) for n in (1, 2)]
            os.write(1, b"begin\n")
            service.send_blocking(CompleteUpload(NAME, upload, tuple(parts)))
        else:
            os.write(1, b"begin\n")
            put_id = "id" if kind == "create" else None
            service.send_blocking(PutObject(NAME, key, b"x" * 9000, if_absent=put_id))
        os.write(1, b"ack\n")
    service.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
