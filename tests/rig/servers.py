"""Real servers for the suites: each starts when a test first needs it, and ends with the test processes.

- ``ministack``: from PyPI, installed on first need into its own virtual environment (``.venv-ministack``).
- ``DynamoDB Local``: where Java and Maven are installed; from Maven Central into ``.venv-dynamodb-local``. It has no
  option to choose an interface, so it listens on all, without telemetry, with only the tests' tables in memory.
- ``HOLDALL_TEST_DYNAMODB``: an additional endpoint, named by that variable.

`start_server` returns a server's URL. A server that cannot run here skips the test, with the reason. Every test uses
only its own tables. The processes of one parallel run share their servers: the first process that needs a server starts
it and writes its URL into the run's directory; every process that uses it holds the server's leash.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rig.installation import ROOT, NotHereError, install

__all__ = ["ENVIRONMENT", "GIVEN", "NAMES", "free_port", "serve", "share", "sign_in", "start_server"]

LEASH = ROOT / "scripts" / "servers" / "leash.py"

GIVEN = "HOLDALL_TEST_DYNAMODB"
NAMES = ["ministack", "DynamoDB Local", *([GIVEN] if os.environ.get(GIVEN) else [])]

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
"""The credentials for the servers that are started here; any would do."""


def sign_in() -> tuple[str, str, None, None]:
    """The same credentials, as ``credentials=`` of a database."""
    return ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], None, None


PATIENCE_SECONDS = 180.0


def start_server(name: str) -> str:
    """The URL of a server, which is started if necessary."""
    if name == GIVEN:
        return os.environ[GIVEN]
    place = name if name == "ministack" else f"{name} for {_name_group()}"
    if place not in _attempts:
        start = {"ministack": _start_ministack, "DynamoDB Local": _start_dynamodb_local}[name]
        try:
            _attempts[place] = share(place, start)
        except NotHereError as error:
            _attempts[place] = error
    outcome = _attempts[place]
    if isinstance(outcome, NotHereError):
        pytest.skip(f"{name} cannot run here: {outcome}")
    return outcome


ADDERS = ("backends", "tables", "query", "migration")
"""The directories with tests that add indexes to tables."""


def _name_group() -> str:
    """The group of tests that shares a DynamoDB Local with the running test.

    DynamoDB Local waits a second for every table with a time to live before it adds an index. So the tests that add
    indexes have a server for each directory, and all others, which leave hundreds of tables behind, share one.
    """
    test = Path(os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0])
    return next((folder for folder in test.parts if folder in ADDERS), "the others")


_attempts: dict[str, str | NotHereError] = {}
"""The URL of each server requested so far, by group where groups have their own, or the reason for its absence."""


# --- ministack ---


def _start_ministack(home: Path) -> str:
    program = install(".venv-ministack").with_name("ministack")
    port = free_port()
    settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "LOG_LEVEL": "WARNING", **ENVIRONMENT}
    return serve(home, [str(program)], port, settings, _answers)


# --- DynamoDB Local ---


def _start_dynamodb_local(home: Path) -> str:
    libraries = install(".venv-dynamodb-local")
    port = free_port()
    runner = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
    quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]  # a short-lived process should start quickly
    java = ["java", "-Xmx1g", *quick, f"-Djava.library.path={libraries}", "-cp", f"{libraries}/*", runner]
    command = [*java, "-inMemory", "-disableTelemetry", "-port", str(port)]
    return serve(home, command, port, {}, _answers)


# --- running ---


def share(place: str, start: Callable[[Path], str]) -> str:
    """The URL of a server, which this process starts unless another process of this run has.

    ``start`` receives a directory for the server, which is removed when the server ends.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone-{os.getpid()}"
    home = Path(tempfile.gettempdir(), f"holdall-servers-{run}", place.replace(" ", "-"))
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        url = home / "url"
        if url.exists():
            _held.append(os.open(home / "leash", os.O_WRONLY))
        else:
            try:
                url.write_text(start(home), encoding="utf-8")
            except NotHereError:
                shutil.rmtree(home)
                raise
        return url.read_text(encoding="utf-8")


_held: list[int] = []
"""This process's ends of the leashes: a server ends when the last process that holds its leash has ended."""

_processes: list[subprocess.Popen[bytes]] = []
"""The servers that this process started, referenced so that Python does not warn about them."""


def serve(
    home: Path, command: list[str], port: int, settings: dict[str, str], answers: Callable[[str], bool]
) -> str:
    """Start a server on a leash, and wait until it answers."""
    leash = home / "leash"
    os.mkfifo(leash)
    theirs = os.open(leash, os.O_RDONLY | os.O_NONBLOCK)  # does not wait for a writer, which is opened next
    _held.append(os.open(leash, os.O_WRONLY))
    log = home / "server.log"
    places = {"HOME": str(home), "TMPDIR": str(home), "LEASH_HOME": str(home)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-ES", str(LEASH), *command],
            stdin=theirs,
            stdout=output,
            stderr=output,
            cwd=home,
            env={"PATH": os.environ["PATH"], **places, **settings},
            start_new_session=True,
        )
    os.close(theirs)
    _processes.append(process)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not answers(url):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{command[0]} does not answer:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    return url


def _answers(url: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
        "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=0",
        "X-Amz-Date": "20260101T000000Z",
    }
    try:
        connection.request("POST", "/", b"{}", headers)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
