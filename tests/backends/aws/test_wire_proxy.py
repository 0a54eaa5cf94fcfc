"""Endpoints behind a proxy: which proxy the environment names, and requests through a real one with a password."""

from __future__ import annotations

import select
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from s3_rig import bucket, make_object_reply
from scripted_server import reply_with, serve_script
from test_wire_tls import make_certificate
from wire_rig import COLOURS, GET, KEY, KEYS, Colour, describe_things, send

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.aws.proxy import find_proxy
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.backends.s3 import S3Service
from holdall.core.objects import GetObject
from holdall.errors import ConfigurationError, EndpointError

USER = "Basic YWRhOnAvdw=="  # ada:p/w
VARIABLES = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "REQUEST_METHOD",
]


class TinyProxy:
    """A proxy on loopback that requires a user name and password, tunnels TLS and forwards plain requests."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            arrived = connection.recv(65536)
            if not arrived:
                return
            head += arrived
        head, _, rest = head.partition(b"\r\n\r\n")
        self.heads.append(head)
        if f"proxy-authorization: {USER}".encode() not in head:
            connection.sendall(b"HTTP/1.1 407 Who\r\nContent-Length: 4\r\n\r\nwho?")
            connection.close()
            return
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        place = target if method == "CONNECT" else target.removeprefix("http://").partition("/")[0]
        host, _, port = place.rpartition(":")
        onward = socket.create_connection((host, int(port)))
        self._open.append(onward)
        if method == "CONNECT":
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            onward.sendall(head.replace(f"http://{place}".encode(), b"") + b"\r\n\r\n" + rest)
        while True:
            for each in select.select([connection, onward], [], [])[0]:
                try:
                    data = each.recv(65536)
                except OSError:
                    data = b""
                if not data:
                    onward.close()
                    connection.close()
                    return
                (onward if each is connection else connection).sendall(data)

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(20)
        for each in self._open:
            each.close()


@pytest.fixture
def proxy() -> Iterator[TinyProxy]:
    running = TinyProxy()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def _no_other_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    return make_certificate(tmp_path_factory.mktemp("proxied"), "IP:127.0.0.1")


def backend_of(url: str) -> DynamoBackend:
    endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=KEYS)
    return DynamoBackend(endpoint, find_credentials(environment=KEYS))


def service_of(url: str) -> S3Service:
    return S3Service(
        "things", resolve_endpoint("s3", endpoint=url, environment=KEYS), find_credentials(environment=KEYS)
    )


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy"])
def test_tls_goes_through_a_tunnel(
    colour: Colour, variable: str, proxy: TinyProxy, tls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tls.file))
    monkeypatch.setenv(variable, f"http://ada:p%2Fw@127.0.0.1:{proxy.port}")
    with serve_script(describe_things(), reply_with({"Item": KEY}), tls=tls.server_side()) as server:
        assert send(colour, backend_of(server.url), GET).item == KEY
    with bucket(make_object_reply(b"bytes"), tls=tls.server_side()) as objects:
        assert send(colour, service_of(objects.url), GetObject("default", "a")).body == b"bytes"
    assert [head.split(b"\r\n")[0] for head in proxy.heads] == [
        f"CONNECT 127.0.0.1:{port} HTTP/1.1".encode() for port in (server.port, objects.port)
    ]
    assert USER.encode() not in b"".join(received.head for received in server.requests)


@pytest.mark.parametrize("colour", COLOURS)
def test_plain_requests_are_forwarded(
    colour: Colour, proxy: TinyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"ada:p%2Fw@127.0.0.1:{proxy.port}")
    with serve_script(describe_things(), reply_with({"Item": KEY})) as server:
        assert send(colour, backend_of(server.url), GET).item == KEY
    with bucket(make_object_reply(b"bytes")) as objects:
        assert send(colour, service_of(objects.url), GetObject("default", "a")).body == b"bytes"
    assert proxy.heads[0].startswith(f"POST {server.url}/ HTTP/1.1".encode())
    assert proxy.heads[1].startswith(f"GET {objects.url}/things/a HTTP/1.1".encode())


@pytest.mark.parametrize("colour", COLOURS)
def test_a_wrong_password_for_the_proxy_is_an_error_and_not_sent_again(
    colour: Colour, proxy: TinyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:sesame@127.0.0.1:{proxy.port}")
    with pytest.raises(EndpointError, match=f"the proxy 127.0.0.1:{proxy.port} answered 407") as refusal:
        send(colour, backend_of("https://127.0.0.1:9"), GET)
    assert len(proxy.heads) == 1
    assert "sesame" not in str(refusal.value)
    assert "HTTPS_PROXY" in str(refusal.value)


@pytest.mark.parametrize("colour", COLOURS)
def test_an_exempt_host_is_reached_directly(
    colour: Colour, proxy: TinyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", "example.com, 127.0.0.1")
    with serve_script(describe_things(), reply_with({"Item": KEY})) as server:
        assert send(colour, backend_of(server.url), GET).item == KEY
    assert proxy.heads == []


@pytest.mark.parametrize("url", ["https://proxy:3128", "socks5://proxy:1080", "http://pro xy", "http://:80"])
def test_an_unsupported_proxy_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as refusal:
        find_proxy("https", "service", 443, {"HTTPS_PROXY": url.replace("//", "//ada:sesame@")})
    assert "sesame" not in str(refusal.value)


HOSTS = ["localhost", "127.0.0.1", "dynamodb.eu-central-1.amazonaws.com", "amazonaws.com", "x.localhost"]
NAMES = st.sampled_from(
    ["*", "", "localhost", ".amazonaws.com", "amazonaws.com", "LOCALHOST:8000", "aws.com", "127.0.0.1", "443"]
)


@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(HOSTS),
    st.sampled_from([80, 443, 8000]),
    st.dictionaries(
        st.sampled_from(VARIABLES[:2] + VARIABLES[3:5]), st.sampled_from(["", "proxy:1", "http://other:2"])
    ),
    st.one_of(st.none(), st.lists(NAMES, max_size=3).map(", ".join)),
    st.one_of(st.none(), st.lists(NAMES, max_size=3).map(",".join)),
    st.booleans(),
)
def test_the_proxy_is_the_one_that_botocore_uses(
    scheme: str, host: str, port: int, named: dict[str, str], lower: str | None, upper: str | None, cgi: bool
) -> None:
    botocore = pytest.importorskip("botocore.utils")
    httpsession = pytest.importorskip("botocore.httpsession")
    environment = dict(named)
    if lower is not None:
        environment["no_proxy"] = lower
    if upper is not None:
        environment["NO_PROXY"] = upper
    if cgi:
        environment["REQUEST_METHOD"] = "GET"
    usual = {"http": 80, "https": 443}[scheme]
    url = f"{scheme}://{host}" + ("" if port == usual else f":{port}") + "/"
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, text in environment.items():
            monkeypatch.setenv(name, text)
        proxies = httpsession.ProxyConfiguration(botocore.get_environ_proxies(url))
        theirs = proxies.proxy_url_for(url)
    ours = find_proxy(scheme, host, port, environment)
    assert (None if ours is None else f"http://{ours.host}:{ours.port}") == theirs
