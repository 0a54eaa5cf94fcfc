"""Real servers for the suites: each is started when a test first needs it and ends with the test processes.

- ``ministack``: from PyPI, in a virtual environment of its own (``.venv-ministack``), made on first need.
- ``DynamoDB Local``: where Java and Maven are installed; from Maven Central into ``.venv-dynamodb-local``. It has no
  option for it and so listens on every interface, without telemetry, with nothing but our tests' tables in memory.
- ``HOLDALL_TEST_DYNAMODB``: any endpoint named by that variable, besides those two.

`start_server` returns a server's URL. A server that cannot run here skips the test, with the reason. Every test has its
own tables and touches no others. The processes of one parallel run share their servers: the first that needs
one starts it and writes its URL into the run's directory; each that uses it holds the server's leash.
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
"""What to sign with for the servers that are started here; none of them minds."""


def sign_in() -> tuple[str, str, None, None]:
    """The same, as ``credentials=`` of a database."""
    return ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], None, None


PATIENCE_SECONDS = 180.0


def start_server(name: str) -> str:
    """The URL of a server, started now if it was not."""
    if name == GIVEN:
        return os.environ[GIVEN]
    place = name if name == "ministack" else f"{name} for {_crowd()}"
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


def _crowd() -> str:
    """Those with whom the running test shares DynamoDB Local.

    It waits a second for every table with a time to live before it adds an index. So the tests that add some have a
    server for each directory, and all others, which leave hundreds of tables behind, have one.
    """
    test = Path(os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0])
    return next((folder for folder in test.parts if folder in ADDERS), "the others")


_attempts: dict[str, str | NotHereError] = {}
"""The URL of each server that was asked for, by directory where each has one, or why there is none."""


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
    quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]  # it lives for minutes: starting is what costs
    java = ["java", "-Xmx1g", *quick, f"-Djava.library.path={libraries}", "-cp", f"{libraries}/*", runner]
    command = [*java, "-inMemory", "-disableTelemetry", "-port", str(port)]
    return serve(home, command, port, {}, _answers)


# --- running ---


def share(place: str, start: Callable[[Path], str]) -> str:
    """The URL of a server that another process of this run has started, or else of the one that is started now.

    ``start`` is given a directory for the server, which is removed when the server ends.
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
"""Our ends of the servers' leashes: a server ends when the last process that holds its leash has ended."""

_processes: list[subprocess.Popen[bytes]] = []
"""The servers that this process has started, referenced so that Python does not warn about them."""


def serve(
    home: Path, command: list[str], port: int, settings: dict[str, str], answers: Callable[[str], bool]
) -> str:
    """Start a server on a leash, and wait until it answers."""
    leash = home / "leash"
    os.mkfifo(leash)
    theirs = os.open(
        leash, os.O_RDONLY | os.O_NONBLOCK
    )  # without waiting for a writer, which we are about to be
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
