"""TLS: the endpoint's certificate is verified, with AWS_CA_BUNDLE if that is set, before any request is sent."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig.colour import finish
from scripted_server import ScriptedServer, Step, http, serve_script
from wire_rig import COLOURS, GET, Colour, client, lane_of, request, target_of

from holdall.backends.aws.connection import Unsent, tls_context
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import Reply
from holdall.backends.aws.transport import Transport
from holdall.errors import ConfigurationError, EndpointError

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl, which makes the certificates, is not installed"
)

ANSWER = http(200, {"Content-Length": 2}, b"ok")


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate, which is its own authority."""

    file: Path
    key: Path

    def server_side(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context


def make_certificate(directory: Path, names: str) -> Certificate:
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
    return make_certificate(tmp_path_factory.mktemp("own"), "IP:127.0.0.1")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("foreign"), "DNS:dynamodb.example,IP:127.0.0.2")


def post(colour: Colour, server: ScriptedServer, times: int = 1) -> list[Reply]:
    used = Transport(target_of(server.url, tls=tls_context()))

    async def flow() -> list[Reply]:
        return [await request(lane_of(colour, used), Limit(60.0)) for _ in range(times)]

    try:
        return finish(colour, flow())
    finally:
        used.close()


CA = """
[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
serial = serial
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = IP:127.0.0.1
"""


@pytest.fixture(scope="module")
def expired_certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    directory = tmp_path_factory.mktemp("expired")
    certificate = make_certificate(directory, "IP:127.0.0.1")
    (directory / "ca").write_text(CA)
    (directory / "index").touch()
    (directory / "serial").write_text("01")
    request = ["req", "-new", "-key", "key.pem", "-subj", "/CN=holdall test", "-out", "request"]
    sign = ["ca", "-batch", "-config", "ca", "-selfsign", "-keyfile", "key.pem", "-in", "request", "-notext"]
    dates = ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-out", "certificate.pem"]
    for arguments in (request, sign + dates):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)
    return certificate


@pytest.mark.parametrize("colour", COLOURS)
def test_an_expired_certificate_is_reported_and_not_tried_again(
    colour: Colour, expired_certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(expired_certificate.file))
    with (
        serve_script(tls=expired_certificate.server_side()) as server,
        client(colour, server.url, tls=tls_context()) as ours,
        pytest.raises(EndpointError, match="the server's certificate has expired"),
    ):
        ours.ask(GET)
    assert server.connections == 1


@pytest.mark.parametrize("colour", COLOURS)
def test_a_server_without_tls_is_reported_and_not_tried_again(colour: Colour) -> None:
    accepted: list[socket.socket] = []

    def speak_plainly() -> None:
        while True:
            try:
                accepted.append(listening.accept()[0])
            except OSError:
                return
            accepted[-1].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        speaking = threading.Thread(target=speak_plainly, daemon=True)
        speaking.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        with (
            client(colour, url, tls=tls_context()) as ours,
            pytest.raises(EndpointError, match="TLS failed: WRONG_VERSION_NUMBER"),
        ):
            ours.ask(GET)
        listening.shutdown(socket.SHUT_RDWR)
        speaking.join()
    assert len(accepted) == 1
    accepted[0].close()


@pytest.mark.parametrize("colour", COLOURS)
def test_a_certificate_with_an_unknown_issuer_is_refused_and_nothing_is_sent(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with serve_script(tls=own.server_side()) as server:
        with pytest.raises(Unsent, match="certificate has an unknown issuer"):
            post(colour, server)
        assert server.requests == []


@pytest.mark.parametrize("colour", COLOURS)
def test_a_certificate_in_the_bundle_is_accepted_and_the_connection_kept(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    with serve_script(Step((ANSWER,)), Step((ANSWER,)), tls=own.server_side()) as server:
        assert [reply.body for reply in post(colour, server, times=2)] == [b"ok", b"ok"]
    assert [received.connection for received in server.requests] == [1, 1]


@pytest.mark.parametrize("colour", COLOURS)
def test_a_certificate_of_another_host_is_refused_and_nothing_is_sent(
    colour: Colour, foreign: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(foreign.file))
    with serve_script(tls=foreign.server_side()) as server:
        with pytest.raises(Unsent, match="certificate is for another host"):
            post(colour, server)
        assert server.requests == []


@pytest.mark.parametrize("colour", COLOURS)
def test_a_server_without_a_common_cipher_is_refused(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    old = own.server_side()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("AES128-SHA")
    with serve_script(tls=old) as server, pytest.raises(Unsent):
        post(colour, server)


@pytest.mark.parametrize("colour", COLOURS)
def test_a_tls_connection_that_the_server_has_closed_is_replaced_without_an_error(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    with serve_script(Step((ANSWER,), end="close"), Step((ANSWER,)), tls=own.server_side()) as server:
        used = Transport(target_of(server.url, tls=tls_context()))

        async def flow() -> list[bytes]:
            lane = lane_of(colour, used)
            first = await request(lane, Limit(60.0))
            server.wait_for_ends(1)
            return [first.body, (await request(lane, Limit(60.0))).body]

        assert finish(colour, flow()) == [b"ok", b"ok"]
        used.close()


@pytest.mark.parametrize("colour", COLOURS)
def test_the_error_of_a_refused_certificate_names_the_endpoint_and_the_variable(
    colour: Colour, own: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with (
        serve_script(tls=own.server_side()) as server,
        client(colour, server.url, tls=tls_context()) as ours,
        pytest.raises(EndpointError, match="AWS_CA_BUNDLE") as refusal,
    ):
        ours.ask(GET)
    assert server.url in str(refusal.value)
    assert server.requests == []


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_the_error_of_an_unreadable_bundle_names_the_variable(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    with pytest.raises(ConfigurationError, match="AWS_CA_BUNDLE"):
        tls_context()
