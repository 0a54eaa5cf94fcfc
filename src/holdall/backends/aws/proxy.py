"""Which proxy the environment names for an endpoint, and how to open a tunnel through it.

Pure, except for `open_tunnel`, which awaits only its stream. ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` are read
as botocore and urllib read them. No message repeats a proxy's URL, which may hold a password.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from holdall.backends.aws.address import authority, parse_address
from holdall.backends.aws.message import MAX_HEAD, MalformedReply, Stream, parse_head
from holdall.core.frozen import dataclass
from holdall.errors import ConfigurationError

_PASSING = (408, 425, 429)


class ProxyRefusal(ConnectionError):
    """The proxy refused the connection; ``lasting`` if trying again cannot help."""

    def __init__(self, why: str, *, lasting: bool) -> None:
        super().__init__(why)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, with an authorization header if its URL has a user name."""

    host: str
    port: int
    authorization: str | None = None

    def __repr__(self) -> str:
        return f"<proxy {self.host}:{self.port}>"

    @property
    def headers(self) -> dict[str, str]:
        """The headers for the proxy itself."""
        return {} if self.authorization is None else {"proxy-authorization": self.authorization}


def find_proxy(scheme: str, host: str, port: int, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy for an endpoint; None if it is reached directly."""
    variable, url = _variable(f"{scheme}_proxy", environment)
    if variable == "HTTP_PROXY" and "REQUEST_METHOD" in environment:
        return None  # in a CGI program, a request header could have set it
    if not url or _is_exempt(authority(scheme, host, port), host, _variable("no_proxy", environment)[1]):
        return None
    return _parse_proxy(variable, url)


def _variable(name: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable that applies, and its text: the lower-case one if it is set, even if it is empty."""
    variable = name if name in environment else name.upper()
    return variable, environment.get(variable, "").strip()


def _is_exempt(netloc: str, host: str, exempt: str) -> bool:
    if exempt == "*":
        return True
    names = (name.strip().lstrip(".").lower() for name in exempt.split(","))
    return any(each == name or each.endswith(f".{name}") for name in names if name for each in (netloc, host))


def _parse_proxy(variable: str, url: str) -> Proxy:
    if url.startswith("//"):
        url = f"http:{url}"
    elif "://" not in url:
        url = f"http://{url}"
    try:
        user, at, place = urlsplit(url).netloc.rpartition("@")
        if not url.startswith("http://"):
            raise ValueError("only proxies with an http:// URL are supported")
        address = parse_address(f"http://{place}")
    except ValueError as error:
        raise ConfigurationError(
            f"{variable} does not name a proxy: {error}", hint="write it like http://user:password@proxy:3128"
        ) from None
    if not at:
        return Proxy(address.host, address.port)
    name, _, password = user.partition(":")
    token = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode("ascii")
    return Proxy(address.host, address.port, f"Basic {token}")


async def open_tunnel(stream: Stream, proxy: Proxy, host: str, port: int) -> None:
    """Ask the proxy to connect the stream to the host; `ProxyRefusal` if it does not."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = "".join(f"{name}: {value}\r\n" for name, value in {"host": place, **proxy.headers}.items())
    await stream.send(f"CONNECT {place} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        arrived = await stream.receive()
        head += arrived
        if not arrived or len(head) > MAX_HEAD:
            raise ProxyRefusal(f"the proxy {proxy.host}:{proxy.port} sent no complete reply", lasting=False)
    try:
        status = parse_head(head.partition(b"\r\n\r\n")[0] + b"\r\n")[1]
    except MalformedReply:
        raise ProxyRefusal(f"{proxy.host}:{proxy.port} is not an HTTP proxy", lasting=True) from None
    if not 200 <= status < 300:
        login = " (it asks for a user name and password)" if status == 407 else ""
        raise ProxyRefusal(
            f"the proxy {proxy.host}:{proxy.port} answered {status}{login}",
            lasting=400 <= status < 500 and status not in _PASSING,
        )
