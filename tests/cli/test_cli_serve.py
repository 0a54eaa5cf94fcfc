"""``holdall serve``: the console and the files of a database, served from the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cli_rig import INSTALLED, bare_environment, call, start

from holdall import Database

MODULE = '''
from holdall import Key, Model


class Parcel(Model):
    """A parcel to be sent."""

    number: Key[str]
'''


@contextmanager
def serve(folder: Path, *options: str, **settings: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start a server; yield its first line of output, and the process."""
    assert INSTALLED is not None
    (folder / "parcels.py").write_text(MODULE, encoding="utf-8")
    with Database(f"embedded:{folder / 'holdall.db'}", durability="normal") as db:
        db.table.create()
    with subprocess.Popen(
        [INSTALLED, "serve", "--port", "0", *options],
        cwd=folder,
        env={**bare_environment(folder), **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip(), server
        finally:
            if server.poll() is None:
                server.kill()


def test_the_printed_link_signs_in_and_a_signal_stops_the_server(tmp_path: Path) -> None:
    with serve(tmp_path, "--models", "parcels") as (link, server):
        with httpx.Client(follow_redirects=True) as client:
            page = client.get(link)
            assert (page.status_code, page.url.path) == (200, "/console/")
            assert "Read-only" in page.text
            assert client.get(page.url.join("/")).url == page.url
            models = client.get(page.url.join("models")).text
            assert "A parcel to be sent." in models
            uploads = page.url.join("/attachments/direct_uploads")
            facts = {"blob": {"filename": "a", "byte_size": 1, "checksum": "x", "content_type": "text/plain"}}
            assert client.post(uploads, json=facts).status_code == 403
        server.send_signal(signal.SIGTERM)
        _, stderr = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "table holdall, read-only; Ctrl-C stops the server" in stderr
    token = stderr.split()[-1]
    assert len(token) == 32


def test_the_token_comes_from_the_environment_and_is_not_printed(tmp_path: Path) -> None:
    token = "a token of the environment"
    with serve(tmp_path, "--read-write", HOLDALL_CONSOLE_TOKEN=token) as (link, server):
        with httpx.Client(follow_redirects=True) as client:
            page = client.post(link.partition("?")[0], data={"token": token})
            assert "Read-write" in page.text
        server.send_signal(signal.SIGINT)
        _, stderr = server.communicate(timeout=60)
    assert server.returncode == 0
    assert token not in stderr


def test_invalid_options_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("serve", "--port", "99999").exit_code == 2
    assert "there is no module nowhere" in call("serve", "--models", "nowhere").stderr
    short = call("serve", "--token", "short")
    assert (short.exit_code, "at least 16 characters" in short.stderr) == (2, True)
    assert "there is no table holdall" in call("serve").stderr


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    with serve(tmp_path, "--no-console") as (address, server):
        assert address.startswith("http://127.0.0.1:")
        assert httpx.get(f"{address}/console/sign-in").status_code == 404
        port = address.rpartition(":")[2]
        ended = start("serve", "--port", port, folder=tmp_path)
        assert ended.returncode == 4
        first, second = ended.stderr.splitlines()
        assert first == f"error: cannot listen on port {port} of 127.0.0.1: Address already in use"
        assert second.startswith("hint: another program may use the port")
        server.terminate()
        server.communicate(timeout=60)


def test_without_uvicorn_the_error_names_the_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert call("table", "create").exit_code == 0
    ended = call("serve")
    assert ended.exit_code == 1
    assert "error: `holdall serve` needs uvicorn" in ended.stderr
