"""Where a bucket is: the host to ask, the path of a key there, and the region to sign for.

Pure. AWS is asked by virtual host (``bucket.s3.region.amazonaws.com``), any other endpoint by path
(``endpoint/bucket/key``), unless the style is given. A bucket with dots in its name goes by path: no certificate is
good for its virtual host.
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
    """A bucket's place. ``base`` goes before the path of every key; ``amazon`` says whether AWS itself is there."""

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
    """A key as it goes into a path: its slashes stay."""
    return quote(key, safe="/")


def place_of(bucket: str, endpoint: Endpoint, style: Style) -> Place:
    """The place of a bucket at an endpoint; `ConfigurationError` when there can be none."""
    if not _BUCKET.fullmatch(bucket):
        raise ConfigurationError(
            f"{bucket!r} cannot be the name of a bucket",
            hint="it has 3 to 63 lower-case letters, digits, dots and hyphens",
        )
    if style not in ("auto", "path", "virtual"):
        raise ConfigurationError(f"the style {style!r} is none of auto, path and virtual")
    amazon = _AMAZON.fullmatch(endpoint.host) is not None
    fits = _HOST_LABELS.fullmatch(bucket) is not None and not ("." in bucket and endpoint.scheme == "https")
    if style == "virtual":
        _check_virtual(bucket, endpoint, fits)
    if style == "virtual" or (style == "auto" and amazon and fits and "." not in bucket):
        host, base = f"{bucket}.{endpoint.host}", ""
    else:
        host, base = endpoint.host, f"/{bucket}"
    return Place(endpoint.scheme, host, endpoint.port, endpoint.region, base, amazon, bucket)


def _check_virtual(bucket: str, endpoint: Endpoint, fits: bool) -> None:
    if _NUMBERS.fullmatch(endpoint.host):
        raise ConfigurationError(
            f"{endpoint.host} is an address, below which there are no virtual hosts",
            hint="give the endpoint by its name, or use the style path",
        )
    if not fits:
        raise ConfigurationError(
            f"the bucket {bucket} cannot be asked by virtual host: no host, or no certificate, has such a name",
            hint="use the style path",
        )


def move_place(place: Place, region: str) -> Place | None:
    """The same bucket in the region that the service named; None when that is no news, or no place to go to.

    Only the region changes: of AWS the host of that region in the same partition, of any other endpoint nothing but
    what is signed. Hosts that a reply names are never followed.
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
    """The region in the name of a host of AWS, where a reply that sends us elsewhere says it only so."""
    if not place.amazon:
        return None
    found = re.search(r"\bs3[.-](?:dualstack\.)?([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\Z", host)
    return found[1] if found is not None else None
