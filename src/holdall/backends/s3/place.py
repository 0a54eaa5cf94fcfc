"""Where a bucket is: its host, the path of a key there, and the region to sign for.

Pure. AWS is addressed by virtual host (``bucket.s3.region.amazonaws.com``), any other endpoint by path
(``endpoint/bucket/key``), unless the style is given. A bucket with dots in its name is addressed by path: no
certificate is valid for its virtual host.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias
from urllib.parse import quote

from holdall.backends.aws.address import authority
from holdall.backends.aws.endpoint import Endpoint
from holdall.core.frozen import dataclass, replace
from holdall.errors import ConfigurationError

Style: TypeAlias = Literal["auto", "path", "virtual"]

_AMAZON = re.compile(
    r"s3[.-](?:[a-z0-9.-]+\.)?(amazonaws\.com(?:\.cn)?|amazonaws\.eu|c2s\.ic\.gov|sc2s\.sgov\.gov"
    r"|csp\.hci\.ic\.gov|cloud\.adc-e\.uk)"
)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_HOST_LABELS = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_NUMBERS = re.compile(r"[0-9.]+|.*:.*")
_REGION = re.compile(r"[a-z0-9-]{1,63}")


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket's address. ``base`` precedes the path of every key; ``amazon`` says whether it is AWS itself."""

    scheme: str
    host: str
    port: int
    region: str
    base: str
    amazon: bool
    bucket: str

    @property
    def authority(self) -> str:
        """The host as it is signed and sent."""
        return authority(self.scheme, self.host, self.port)

    def path(self, key: str | None) -> str:
        """The path of a key, or of the bucket itself."""
        return f"{self.base}/{encode_key(key)}" if key is not None else self.base or "/"


def encode_key(key: str) -> str:
    """A key as part of a path: its slashes stay."""
    return quote(key, safe="/")


def place_of(bucket: str, endpoint: Endpoint, style: Style) -> Place:
    """The address of a bucket at an endpoint; `ConfigurationError` if there cannot be one."""
    if not _BUCKET.fullmatch(bucket):
        raise ConfigurationError(
            f"{bucket!r} is not a valid name for a bucket",
            hint="use 3 to 63 lower-case letters, digits, dots and hyphens",
        )
    if style not in ("auto", "path", "virtual"):
        raise ConfigurationError(f"style must be auto, path or virtual, not {style!r}")
    amazon = _AMAZON.fullmatch(endpoint.host) is not None
    fits = _HOST_LABELS.fullmatch(bucket) is not None and not ("." in bucket and endpoint.scheme == "https")
    if style == "virtual":
        _check_virtual(bucket, endpoint, fits)
    if style == "virtual" or (style == "auto" and amazon and fits and "." not in bucket):
        host, base = f"{bucket}.{endpoint.host}", ""
    else:
        host, base = endpoint.host, f"/{bucket}"
    return Place(endpoint.scheme, host, endpoint.port, endpoint.region, base, amazon, bucket)


def name_server(endpoint: Endpoint, place: Place) -> str:
    """The server of a bucket: AWS copies between all buckets of a partition, any other server between its own."""
    if place.amazon:
        return f"{_partition(place.region)} partition"
    return f"{endpoint.scheme}://{endpoint.authority}"


def _check_virtual(bucket: str, endpoint: Endpoint, fits: bool) -> None:
    if _NUMBERS.fullmatch(endpoint.host):
        raise ConfigurationError(
            f"the endpoint {endpoint.host} is an IP address, which has no virtual hosts",
            hint="name the endpoint by a host name, or use style=path",
        )
    if not fits:
        raise ConfigurationError(
            f"the bucket {bucket} cannot be addressed by virtual host: its name is not valid in a host or certificate",
            hint="use style=path",
        )


def move_place(place: Place, region: str) -> Place | None:
    """The same bucket in the region that the service named; None if that is the same region, or not a valid one.

    For AWS, the host changes to that region in the same partition; for any other endpoint, only the signature changes.
    Hosts that a reply names are never followed.
    """
    if region == place.region or not _REGION.fullmatch(region):
        return None
    if not place.amazon:
        return replace(place, region=region)
    if f".{place.region}." not in place.host or _partition(place.region) != _partition(region):
        return None
    host = place.host.replace(f".{place.region}.", f".{region}.")
    return replace(place, host=host, region=region)


def _partition(region: str) -> str:
    special = ("cn-", "us-gov-", "us-iso-", "us-isob-", "us-isof-", "eu-isoe-", "eusc-")
    return next((prefix for prefix in special if region.startswith(prefix)), "aws")


def find_region(place: Place, host: str) -> str | None:
    """The region in the name of an AWS host, for redirects that name the region only there."""
    if not place.amazon:
        return None
    found = re.search(r"\bs3[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\Z", host)
    return found[1] if found is not None else None
