"""The endpoint and region that requests go to.

Plain regional endpoints follow a template. The rules for FIPS, dual-stack and account endpoints change, so botocore
resolves those, once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from holdall.backends.aws.address import authority, parse_address
from holdall.backends.aws.botocore_chain import INSTALL, BotocoreChain, describe_error
from holdall.core.frozen import dataclass
from holdall.errors import ConfigurationError

if TYPE_CHECKING:
    from holdall.backends.aws.profile import Profile

Service: TypeAlias = Literal["dynamodb", "s3"]

_SUFFIXES = (
    (re.compile(r"us-gov-[a-z]+-\d"), "amazonaws.com"),
    (re.compile(r"us-iso-[a-z]+-\d"), "c2s.ic.gov"),
    (re.compile(r"us-isob-[a-z]+-\d"), "sc2s.sgov.gov"),
    (re.compile(r"us-isof-[a-z]+-\d"), "csp.hci.ic.gov"),
    (re.compile(r"eu-isoe-[a-z]+-\d"), "cloud.adc-e.uk"),
    (re.compile(r"eusc-de-[a-z]+-\d"), "amazonaws.eu"),
    (re.compile(r"cn-[a-z]+-\d"), "amazonaws.com.cn"),
    (re.compile(r"(af|ap|ca|eu|il|me|mx|sa|us)-[a-z]+-\d"), "amazonaws.com"),
)
_REGION = re.compile(r"[A-Za-z0-9_-]{1,63}")
_WITHOUT_REGION = "us-east-1"
"""For endpoints that the user names, most of which ignore the region."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and the region they are signed for."""

    scheme: str
    host: str
    port: int
    region: str

    @property
    def authority(self) -> str:
        """The host as it is signed and sent: with the port unless it is the scheme's default."""
        return authority(self.scheme, self.host, self.port)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Properties of an endpoint beyond its region."""

    fips: bool
    dual_stack: bool
    by_account: bool

    @property
    def plain(self) -> bool:
        return not (self.fips or self.dual_stack or self.by_account)


def resolve_endpoint(
    service: Service,
    *,
    region: str | None = None,
    endpoint: str | None = None,
    profile: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Endpoint:
    """The endpoint from the arguments, else the environment, else the profile, else the region's default.

    With an endpoint and without a region, the region is ``us-east-1``. `ConfigurationError` says what is wrong, or
    where a region was looked for.
    """
    if endpoint and region:  # no profile is needed, so a broken one does not matter
        return _parse_given(endpoint, "the argument endpoint", region)
    from holdall.backends.aws.profile import read_profile

    settings = read_profile(profile, environment)
    found = region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    found = found or settings.get("region")
    if endpoint:
        return _parse_given(endpoint, "the argument endpoint", found or _WITHOUT_REGION)
    kind = _kind(service, settings, environment)
    url, source = _find_configured(service, settings, environment)
    if url:
        if kind.fips or kind.dual_stack:
            raise ConfigurationError(
                f"{source} names an endpoint, but another setting asks for a "
                f"{'FIPS' if kind.fips else 'dual-stack'} endpoint",
                hint="remove one of the two settings",
            )
        return _parse_given(url, source, found or _WITHOUT_REGION)
    if not found:
        raise _explain_no_region(settings)
    suffix = _suffix(found)
    if kind.plain:
        return Endpoint("https", f"{service}.{found}.{suffix}", 443, found)
    return _ask_botocore(service, found, kind, settings, environment, profile)


def _parse_given(url: str, source: str, region: str) -> Endpoint:
    try:
        address = parse_address(url)
        if address.target != "/":
            raise ValueError("it has a path or a query")
    except ValueError as error:
        raise ConfigurationError(
            f"{source} is not the URL of an endpoint: {error}",
            hint="write it like http://localhost:8000 or https://dynamodb.eu-central-1.amazonaws.com",
        ) from None
    if not _REGION.fullmatch(region):
        raise ConfigurationError(
            f"{region!r} is not a valid region", hint="use letters, digits and hyphens, like eu-central-1"
        )
    return Endpoint(address.scheme, address.host, address.port, region)


def _suffix(region: str) -> str:
    for pattern, suffix in _SUFFIXES:
        if pattern.fullmatch(region):
            return suffix
    raise ConfigurationError(
        f"{region!r} is not a known AWS region",
        hint="check its spelling, like eu-central-1; for a region newer than this version of Holdall, set endpoint",
    )


def _explain_no_region(profile: Profile) -> ConfigurationError:
    notes = "; ".join(profile.notes) or "it has no region"
    return ConfigurationError(
        "no AWS region was found\n"
        "  argument region: not given\n"
        "  environment: AWS_REGION and AWS_DEFAULT_REGION are not set\n"
        f"  profile {profile.name}: {notes}",
        hint="name one, like region=eu-central-1 in the URL",
    )


def _find_configured(
    service: Service, profile: Profile, environment: Mapping[str, str]
) -> tuple[str | None, str]:
    """The endpoint that the environment or the profile names, and the setting that names it."""
    if _on("ignore_configured_endpoint_urls", profile, environment):
        return None, ""
    own = f"AWS_ENDPOINT_URL_{service.upper()}"
    places = (
        (environment.get(own), own),
        (environment.get("AWS_ENDPOINT_URL"), "AWS_ENDPOINT_URL"),
        (
            profile.find_nested(profile.services, service, "endpoint_url"),
            f"endpoint_url for {service} in the services of profile {profile.name}",
        ),
        (profile.get("endpoint_url"), f"endpoint_url of profile {profile.name}"),
    )
    return next(((url, source) for url, source in places if url), (None, ""))


def _kind(service: Service, profile: Profile, environment: Mapping[str, str]) -> _Kind:
    dual_stack = _on("use_dualstack_endpoint", profile, environment)
    if service == "s3":
        own = profile.find_nested(profile.config, "s3", "use_dualstack_endpoint") or ""
        dual_stack = dual_stack or own.lower() == "true"
    mode = profile.find_setting("account_id_endpoint_mode", environment) or ""
    by_account = service == "dynamodb" and mode.lower() == "required"
    return _Kind(_on("use_fips_endpoint", profile, environment), dual_stack, by_account)


def _on(name: str, profile: Profile, environment: Mapping[str, str]) -> bool:
    return (profile.find_setting(name, environment) or "").lower() == "true"


def _ask_botocore(
    service: Service,
    region: str,
    kind: _Kind,
    settings: Profile,
    environment: Mapping[str, str],
    profile: str | None,
) -> Endpoint:
    """The host to which botocore would send a request; the request is signed with a dummy key, and not sent."""
    try:
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ModuleNotFoundError:
        raise ConfigurationError(
            "FIPS, dual-stack and account endpoints need botocore, which is not installed", hint=INSTALL
        ) from None
    options: dict[str, Any] = {
        "use_fips_endpoint": kind.fips,
        "use_dualstack_endpoint": kind.dual_stack,
        "ignore_configured_endpoint_urls": True,
    }
    made_up = ["none", "none"]
    if service == "s3":  # otherwise signed URLs use the global endpoint
        options["s3"] = {"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"}
    if kind.by_account:
        options["account_id_endpoint_mode"] = "required"
        account = environment.get("AWS_ACCOUNT_ID") or settings.get("aws_account_id")
        made_up += ["", account or BotocoreChain(profile).account() or ""]
    try:
        session = botocore.session.Session()
        session.set_credentials(*made_up)
        client = session.create_client(service, region_name=region, config=Config(**options))
        url = client.generate_presigned_url("list_tables" if service == "dynamodb" else "list_buckets")
        client.close()
    except (BotoCoreError, TypeError) as error:  # TypeError: an older botocore does not know an option
        url, trouble = "", describe_error(error)
    if not url:
        raise ConfigurationError(
            f"no endpoint of {service} in {region} matches the settings: {trouble}",
            hint="check use_fips_endpoint, use_dualstack_endpoint and account_id_endpoint_mode "
            "(with AWS_ACCOUNT_ID), or set endpoint",
        )
    address = parse_address(url)
    return Endpoint(address.scheme, address.host, address.port, region)
