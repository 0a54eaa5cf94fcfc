"""TLS: the endpoint's certificate is verified, by AWS_CA_BUNDLE where that is set, and nothing is sent before."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripted_server import ScriptedServer, Step, http, scripted
from wire_rig import COLOURS, GET, Colour, client, finished, lane_of, target_of

from holdall.backends.aws.connection import tls_context
from holdall.backends.aws.message import Reply
from holdall.backends.aws.transport import Transport, Unsent, exchange
from holdall.errors import ConfigurationError, EndpointError

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl, to make certificates, is missing"
)

ANSWER = http(200, {"Content-Length": 2}, b"ok")


@dataclass(frozen=True)
class Certificate:
    """Signed by itself, and so its own authority."""

    file: Path
    key: Path

    def server_side(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


def made(directory: Path, names: str) -> Certificate:
    certificate = Certificate(directory / "certificate.pem", directory / "key.pem")
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=holdall test"]
    command += [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-addext",
        f"subjectAltName={names}",
    ]
    command += ["-keyout", str(certificate.key), "-out", str(certificate.file)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return made(tmp_path_factory.mktemp("own"), "IP:127.0.0.1")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return made(tmp_path_factory.mktemp("foreign"), "DNS:dynamodb.example,IP:127.0.0.2")


def posted(colour: Colour, server: ScriptedServer, times: int = 1) -> list[Reply]:
    used = Transport(target_of(server.url, tls=tls_context()))

    async def flow() -> list[Reply]:
        return [
            await exchange(lane_of(colour, used), "POST", "/", {"host": "h"}, b"{}") for _ in range(times)
        ]

    try:
        return finished(colour, flow())
    finally:
        used.close()


@pytest.mark.parametrize("colour", COLOURS)
def test_a_certificate_that_nobody_vouches_for_is_refused_and_nothing_is_sent(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with scripted(tls=own.server_side()) as server:
        with pytest.raises(Unsent, match="TLS was refused: CERTIFICATE_VERIFY_FAILED"):
            posted(colour, server)
        assert server.requests == []


@pytest.mark.parametrize("colour", COLOURS)
def test_a_certificate_that_the_bundle_vouches_for_is_accepted_and_the_connection_kept(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    with scripted(Step((ANSWER,)), Step((ANSWER,)), tls=own.server_side()) as server:
        assert [reply.body for reply in posted(colour, server, times=2)] == [b"ok", b"ok"]
    assert [asked.connection for asked in server.requests] == [1, 1]


@pytest.mark.parametrize("colour", COLOURS)
def test_a_certificate_of_another_host_is_refused_and_nothing_is_sent(
    colour: Colour, foreign: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(foreign.file))
    with scripted(tls=foreign.server_side()) as server:
        with pytest.raises(Unsent, match="TLS was refused"):
            posted(colour, server)
        assert server.requests == []


@pytest.mark.parametrize("colour", COLOURS)
def test_a_server_that_has_no_cipher_in_common_with_us_is_refused(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    old = own.server_side()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("AES128-SHA")
    with scripted(tls=old) as server, pytest.raises(Unsent):
        posted(colour, server)


@pytest.mark.parametrize("colour", COLOURS)
def test_a_connection_closed_meanwhile_is_replaced_without_loss(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    with scripted(Step((ANSWER,), end="close"), Step((ANSWER,)), tls=own.server_side()) as server:
        used = Transport(target_of(server.url, tls=tls_context()))

        async def flow() -> list[bytes]:
            lane = lane_of(colour, used)
            first = await exchange(lane, "POST", "/", {"host": "h"}, b"{}")
            server.wait_for_ends(1)
            return [first.body, (await exchange(lane, "POST", "/", {"host": "h"}, b"{}")).body]

        assert finished(colour, flow()) == [b"ok", b"ok"]
        used.close()


@pytest.mark.parametrize("colour", COLOURS)
def test_a_refused_certificate_is_named_with_the_endpoint(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with (
        scripted(tls=own.server_side()) as server,
        client(colour, server.url, tls=tls_context()) as ours,
        pytest.raises(EndpointError, match="AWS_CA_BUNDLE") as refusal,
    ):
        ours.ask(GET)
    assert server.url in str(refusal.value)
    assert server.requests == []


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_bundle_that_cannot_be_read_is_named(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    with pytest.raises(ConfigurationError, match="AWS_CA_BUNDLE"):
        tls_context()
