"""The endpoint of requests, determined by arguments, environment, profile and region."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_secrecy import SECRET, assert_shows_no_secret
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.endpoint import Endpoint, Service, resolve_endpoint
from holdall.errors import ConfigurationError

WHY_SKIPPED = "botocore, which knows FIPS, dual-stack and account endpoints, is not installed"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with its own home directory; set in this process too, because botocore reads no other."""
    (tmp_path / ".aws").mkdir()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return {"HOME": str(tmp_path)}


def write_config(home: dict[str, str], text: str) -> None:
    (Path(home["HOME"]) / ".aws" / "config").write_text(text)


# --- region ---


def test_the_region_comes_from_the_argument_the_environment_or_the_profile(home: dict[str, str]) -> None:
    write_config(home, "[default]\nregion = eu-north-1\n[profile dev]\nregion = eu-south-1\n")
    old = {**home, "AWS_DEFAULT_REGION": "eu-west-2"}
    new = {**old, "AWS_REGION": "eu-west-1"}
    assert resolve_endpoint("dynamodb", environment=home).region == "eu-north-1"
    assert resolve_endpoint("dynamodb", profile="dev", environment=home).region == "eu-south-1"
    assert resolve_endpoint("dynamodb", environment=old).region == "eu-west-2"
    assert resolve_endpoint("dynamodb", environment=new).region == "eu-west-1"
    assert resolve_endpoint("dynamodb", region="eu-west-3", environment=new).region == "eu-west-3"
    assert (
        resolve_endpoint("dynamodb", region="", environment={**new, "AWS_REGION": ""}).region == "eu-west-2"
    )


def test_without_a_region_the_error_says_where_it_looked(home: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        resolve_endpoint("dynamodb", environment=home)
    folder = Path(home["HOME"]) / ".aws"
    assert str(refusal.value).splitlines() == [
        "no AWS region was found",
        "  argument region: not given",
        "  environment: AWS_REGION and AWS_DEFAULT_REGION are not set",
        f"  profile default: {folder / 'credentials'} does not exist; {folder / 'config'} does not exist",
        "hint: name one, like region=eu-central-1 in the URL",
    ]


@pytest.mark.parametrize(
    ("service", "region", "host"),
    [
        ("dynamodb", "eu-central-1", "dynamodb.eu-central-1.amazonaws.com"),
        ("s3", "us-east-1", "s3.us-east-1.amazonaws.com"),
        ("dynamodb", "us-gov-west-1", "dynamodb.us-gov-west-1.amazonaws.com"),
        ("s3", "cn-northwest-1", "s3.cn-northwest-1.amazonaws.com.cn"),
        ("dynamodb", "us-iso-east-1", "dynamodb.us-iso-east-1.c2s.ic.gov"),
        ("dynamodb", "us-isob-east-1", "dynamodb.us-isob-east-1.sc2s.sgov.gov"),
        ("dynamodb", "us-isof-south-1", "dynamodb.us-isof-south-1.csp.hci.ic.gov"),
        ("dynamodb", "eu-isoe-west-1", "dynamodb.eu-isoe-west-1.cloud.adc-e.uk"),
        ("dynamodb", "eusc-de-east-1", "dynamodb.eusc-de-east-1.amazonaws.eu"),
    ],
)
def test_a_region_has_its_own_endpoint(
    home: dict[str, str], service: Service, region: str, host: str
) -> None:
    found = resolve_endpoint(service, region=region, environment=home)
    assert found == Endpoint("https", host, 443, region)
    assert found.authority == host


def test_every_region_that_botocore_knows_is_accepted(home: dict[str, str]) -> None:
    session = pytest.importorskip("botocore.session", reason=WHY_SKIPPED).Session()
    for partition in session.get_available_partitions():
        for region in session.get_available_regions("dynamodb", partition):
            assert resolve_endpoint("dynamodb", region=region, environment=home).region == region


@pytest.mark.parametrize(
    "region",
    [
        "mars-1",
        "eu-central",
        "eu_central_1",
        "EU-CENTRAL-1",
        "eu-central-1.evil.com",
        "eu-central-1\n",
        "é",
        " ",
    ],
)
def test_an_unknown_region_is_refused_with_a_hint(home: dict[str, str], region: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a known AWS region") as refusal:
        resolve_endpoint("dynamodb", region=region, environment=home)
    assert refusal.value.hint
    assert repr(region) in str(refusal.value)


@given(st.text(min_size=1))
def test_no_region_can_change_the_host_of_requests(region: str) -> None:
    environment = {
        "AWS_CONFIG_FILE": "/nowhere/config",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
    }
    with pytest.raises(ConfigurationError):
        resolve_endpoint("s3", region=region + ".evil.com/", environment=environment)
    with pytest.raises(ConfigurationError, match="is not a valid region"):
        resolve_endpoint("s3", region=region + "/", endpoint="http://localhost", environment=environment)


# --- endpoint ---

LOCAL = Endpoint("http", "localhost", 8000, "us-east-1")
SERVICES = """
[default]
services = here
endpoint_url = http://general.test
[profile plain]
endpoint_url = http://plain.test
[profile quiet]
endpoint_url = http://quiet.test
ignore_configured_endpoint_urls = true
region = eu-west-1
[services here]
dynamodb =
    endpoint_url = http://dynamodb.test:8001
"""


def test_an_endpoint_needs_no_region(home: dict[str, str]) -> None:
    found = resolve_endpoint("dynamodb", endpoint="http://localhost:8000", environment=home)
    assert found == LOCAL
    assert found.authority == "localhost:8000"


def test_requests_to_an_endpoint_are_signed_for_the_configured_region(home: dict[str, str]) -> None:
    write_config(home, "[default]\nregion = eu-north-1\n")
    url = "http://localhost:8000"
    assert resolve_endpoint("dynamodb", endpoint=url, environment=home).region == "eu-north-1"
    for region in ("local", "auto", "mars_1"):
        assert resolve_endpoint("dynamodb", endpoint=url, region=region, environment=home).region == region


def test_with_both_an_endpoint_and_a_region_the_profile_is_not_read(home: dict[str, str]) -> None:
    write_config(home, "this is not a config file")
    found = resolve_endpoint(
        "dynamodb", endpoint="http://localhost:8000", region="us-east-1", profile="gone", environment=home
    )
    assert found == LOCAL


def hosts(home: dict[str, str], profile: str | None = None, **environment: str) -> tuple[str, str]:
    settings = {**home, "AWS_REGION": "eu-west-1", **environment}
    found = [
        resolve_endpoint(service, profile=profile, environment=settings) for service in ("dynamodb", "s3")
    ]
    return found[0].authority, found[1].authority


REGIONAL = ("dynamodb.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com")


def test_the_most_specific_endpoint_setting_takes_precedence(home: dict[str, str]) -> None:
    write_config(home, SERVICES)
    everywhere = {"AWS_ENDPOINT_URL": "https://all.test"}
    own = {
        **everywhere,
        "AWS_ENDPOINT_URL_DYNAMODB": "http://own.test",
        "AWS_ENDPOINT_URL_S3": "http://s3.test",
    }
    assert hosts(home) == ("dynamodb.test:8001", "general.test")
    assert hosts(home, "plain") == ("plain.test", "plain.test")
    assert hosts(home, **everywhere) == ("all.test", "all.test")
    assert hosts(home, **own) == ("own.test", "s3.test")
    found = resolve_endpoint(
        "s3",
        endpoint="http://mine.test",
        environment={**home, **own, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
    )
    assert found.authority == "mine.test"


def test_endpoint_settings_can_be_ignored(home: dict[str, str]) -> None:
    write_config(home, SERVICES)
    ignore = {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
    assert hosts(home, AWS_ENDPOINT_URL="http://all.test", **ignore) == REGIONAL
    assert hosts(home, "quiet", AWS_ENDPOINT_URL="http://all.test") == REGIONAL


@pytest.mark.parametrize("variable", [None, "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"])
@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "http://",
        "ftp://host",
        "http://host:x",
        "http://host/path",
        "http://host?q",
        "http://h h",
    ],
)
def test_a_malformed_endpoint_is_refused_and_its_source_named(
    home: dict[str, str], url: str, variable: str | None
) -> None:
    environment = home if variable is None else {**home, variable: url}
    with pytest.raises(ConfigurationError, match="is not the URL of an endpoint") as refusal:
        resolve_endpoint("dynamodb", endpoint=url if variable is None else None, environment=environment)
    assert (variable or "the argument endpoint") in refusal.value.message
    assert refusal.value.hint


def test_a_password_in_an_endpoint_is_not_repeated(home: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="contains a user name") as refusal:
        resolve_endpoint("dynamodb", endpoint="http://me:sesame@host", environment=home)
    assert "sesame" not in str(refusal.value)


# --- endpoints that botocore resolves ---

FIPS = "AWS_USE_FIPS_ENDPOINT"
DUAL = "AWS_USE_DUALSTACK_ENDPOINT"
MODE = "AWS_ACCOUNT_ID_ENDPOINT_MODE"


@pytest.mark.parametrize(
    ("service", "region", "settings", "host"),
    [
        ("dynamodb", "us-east-1", {FIPS: "true"}, "dynamodb-fips.us-east-1.amazonaws.com"),
        ("dynamodb", "us-gov-west-1", {FIPS: "True"}, "dynamodb.us-gov-west-1.amazonaws.com"),
        ("dynamodb", "eu-west-1", {DUAL: "true"}, "dynamodb.eu-west-1.api.aws"),
        ("s3", "us-east-1", {FIPS: "true"}, "s3-fips.us-east-1.amazonaws.com"),
        ("s3", "eu-central-1", {FIPS: "true"}, "s3-fips.eu-central-1.amazonaws.com"),
        ("s3", "eu-west-1", {FIPS: "true", DUAL: "true"}, "s3-fips.dualstack.eu-west-1.amazonaws.com"),
    ],
)
def test_special_endpoints_follow_botocores_rules(
    home: dict[str, str], service: Service, region: str, settings: dict[str, str], host: str
) -> None:
    pytest.importorskip("botocore", reason=WHY_SKIPPED)
    found = resolve_endpoint(service, region=region, environment={**home, **settings})
    assert found == Endpoint("https", host, 443, region)


def test_a_profile_can_request_special_endpoints(home: dict[str, str]) -> None:
    pytest.importorskip("botocore", reason=WHY_SKIPPED)
    write_config(
        home, "[default]\nuse_fips_endpoint = true\n[profile dual]\ns3 =\n  use_dualstack_endpoint = true\n"
    )
    fips = resolve_endpoint("dynamodb", region="us-east-1", environment=home)
    assert fips.host == "dynamodb-fips.us-east-1.amazonaws.com"
    dual = resolve_endpoint("s3", region="us-east-1", profile="dual", environment=home)
    assert dual.host == "s3.dualstack.us-east-1.amazonaws.com"
    plain = resolve_endpoint("dynamodb", region="us-east-1", profile="dual", environment=home)
    assert plain.host == "dynamodb.us-east-1.amazonaws.com"


def test_an_account_has_its_own_endpoint_when_that_is_required(home: dict[str, str]) -> None:
    pytest.importorskip("botocore", reason=WHY_SKIPPED)
    account = {**home, MODE: "required", "AWS_ACCOUNT_ID": "123456789012"}
    found = resolve_endpoint("dynamodb", region="eu-west-1", environment=account)
    assert found.host == "123456789012.ddb.eu-west-1.amazonaws.com"
    assert resolve_endpoint("s3", region="eu-west-1", environment=account).host == REGIONAL[1]
    account[MODE] = "preferred"
    assert resolve_endpoint("dynamodb", region="eu-west-1", environment=account).host == REGIONAL[0]


@pytest.mark.parametrize("known", [True, False])
def test_the_account_can_come_with_the_credentials(home: dict[str, str], known: bool) -> None:
    pytest.importorskip("botocore", reason=WHY_SKIPPED)
    own = ', "AccountId": "123456789012"' if known else ""
    script = Path(home["HOME"]) / "process.py"
    script.write_text(
        f"""print('{{"Version": 1, "AccessKeyId": "AK", "SecretAccessKey": "{SECRET}"{own}}}')"""
    )
    write_config(home, f"[profile dev]\ncredential_process = {sys.executable} {script}\n")
    environment = {**home, MODE: "required"}
    if known:
        found = resolve_endpoint("dynamodb", region="eu-west-1", profile="dev", environment=environment)
        assert found.host == "123456789012.ddb.eu-west-1.amazonaws.com"
    else:
        with pytest.raises(ConfigurationError, match="AWS_ACCOUNT_ID") as refusal:
            resolve_endpoint("dynamodb", region="eu-west-1", profile="dev", environment=environment)
        assert_shows_no_secret(refusal.value)


def test_a_special_endpoint_that_a_partition_does_not_have_is_an_error(home: dict[str, str]) -> None:
    pytest.importorskip("botocore", reason=WHY_SKIPPED)
    with pytest.raises(ConfigurationError, match="no endpoint of s3 in cn-north-1"):
        resolve_endpoint("s3", region="cn-north-1", environment={**home, FIPS: "true"})


@pytest.mark.parametrize(("setting", "kind"), [(FIPS, "FIPS"), (DUAL, "dual-stack")])
def test_a_configured_endpoint_together_with_a_special_one_is_an_error(
    home: dict[str, str], setting: str, kind: str
) -> None:
    environment = {**home, setting: "true", "AWS_ENDPOINT_URL": "http://localhost:8000"}
    with pytest.raises(
        ConfigurationError,
        match=f"AWS_ENDPOINT_URL names an endpoint, but another setting asks for a {kind} endpoint",
    ):
        resolve_endpoint("dynamodb", region="us-east-1", environment=environment)
    passed = resolve_endpoint("dynamodb", endpoint="http://localhost:8000", environment=environment)
    assert passed == LOCAL


def test_without_botocore_the_error_says_what_to_install(
    home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ["botocore", *(name for name in sys.modules if name.startswith("botocore."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigurationError, match=r'need botocore.*\n.*pip install "holdall\[aws\]"'):
        resolve_endpoint("dynamodb", region="us-east-1", environment={**home, FIPS: "true"})


def test_a_plain_endpoint_loads_no_sdk_and_no_parser(home: dict[str, str]) -> None:
    import subprocess

    script = (
        "import sys; from holdall.backends.aws.endpoint import resolve_endpoint; "
        "from holdall.backends.aws.credentials import find_credentials; import os; "
        "resolve_endpoint('dynamodb', region='eu-west-1'); find_credentials().current(); "
        "print(*{'botocore', 'configparser', 'http.client', 'logging', 'ssl'} & set(sys.modules))"
    )
    environment: dict[str, Any] = {**home, "AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "s"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == "\n"
