"""botocore resolves roles, web identities and credential processes; a local server stands in for STS."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aws_loopback import Answer, ReceivedRequest, loopback
from aws_secrecy import SECRET, TOKEN, assert_shows_no_secret

from holdall.backends.aws.credentials import find_credentials
from holdall.errors import CredentialsError

needs_botocore = pytest.mark.skipif(
    find_spec("botocore") is None,
    reason="botocore, which resolves roles, web identities and credential processes, is not installed",
)

ROLE = "arn:aws:iam::123456789012:role/reader"
PROFILE = f"""
[profile dev]
role_arn = {ROLE}
source_profile = base

[profile base]
aws_access_key_id = AKBASE
aws_secret_access_key = {SECRET}
"""


class Sts:
    """Returns numbered credentials that are valid for ``life``, or an error."""

    def __init__(self, life: timedelta = timedelta(hours=1)) -> None:
        self.life = life
        self.requests: list[dict[str, list[str]]] = []
        self.expires = datetime.now(UTC)
        self.refusal: Answer | None = None

    def __call__(self, received: ReceivedRequest) -> Answer:
        self.requests.append(parse_qs(received.body.decode()))
        if self.refusal is not None:
            return self.refusal
        self.expires = datetime.now(UTC).replace(microsecond=0) + self.life
        action = self.requests[-1]["Action"][0]
        return Answer(
            headers={"content-type": "text/xml"},
            body=f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>
                <Credentials><AccessKeyId>AKROLE{len(self.requests)}</AccessKeyId>
                <SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{TOKEN}</SessionToken>
                <Expiration>{self.expires:%Y-%m-%dT%H:%M:%SZ}</Expiration></Credentials>
                <AssumedRoleUser><Arn>{ROLE}</Arn><AssumedRoleId>x:y</AssumedRoleId></AssumedRoleUser>
                </{action}Result></{action}Response>""".encode(),
        )


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Replace the environment of this process, because botocore reads no other."""
    (tmp_path / ".aws").mkdir()
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(
        PATH=before.get("PATH", ""),
        HOME=str(tmp_path),
        AWS_EC2_METADATA_DISABLED="true",
        AWS_REGION="eu-west-1",
    )
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def sts(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    stand_in = Sts()
    with loopback(stand_in) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
        yield stand_in


@needs_botocore
def test_a_role_is_assumed(home: Path, sts: Sts) -> None:
    (home / ".aws" / "config").write_text(PROFILE)
    found = find_credentials(profile="dev").current()
    assert (found.access_key, found.secret_key, found.token) == ("AKROLE1", SECRET, TOKEN)
    assert sts.requests[0]["RoleArn"] == [ROLE]
    assert found.expires is not None
    assert sts.expires.timestamp() <= found.expires < sts.expires.timestamp() + 60


@needs_botocore
def test_a_role_is_assumed_in_the_callers_region(
    home: Path, sts: Sts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION")
    (home / ".aws" / "config").write_text(PROFILE)
    assert find_credentials(profile="dev", region="eu-north-1").current().access_key == "AKROLE1"
    with pytest.raises(CredentialsError, match="You must specify a region"):
        find_credentials(profile="dev").current()


@needs_botocore
def test_a_role_is_assumed_again_before_its_credentials_expire(home: Path, sts: Sts) -> None:
    (home / ".aws" / "config").write_text(PROFILE)
    sts.life = timedelta(minutes=5)
    ahead = [0.0]
    source = find_credentials(profile="dev", clock=lambda: time.time() + ahead[0])
    assert source.current().access_key == "AKROLE1"
    assert source.current().access_key == "AKROLE1"
    ahead[0] = 280.0
    assert not source.peek()
    assert source.current().access_key == "AKROLE2"


@needs_botocore
def test_a_rejected_role_is_assumed_again_at_once(home: Path, sts: Sts) -> None:
    (home / ".aws" / "config").write_text(PROFILE)
    source = find_credentials(profile="dev")
    source.renew(source.current())
    assert source.current().access_key == "AKROLE2"


@needs_botocore
def test_a_web_identity_from_the_environment_is_used(
    home: Path, sts: Sts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = AK\naws_secret_access_key = s\n"
    )
    (home / "identity").write_text("my-identity")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(home / "identity"))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    assert find_credentials().current().access_key == "AKROLE1"
    assert sts.requests[0]["WebIdentityToken"] == ["my-identity"]


def configure_process(home: Path, code: str) -> None:
    (home / "process.py").write_text(code)
    command = f"{sys.executable} {home / 'process.py'}"
    (home / ".aws" / "config").write_text(f"[default]\ncredential_process = {command}\n")


@needs_botocore
@pytest.mark.parametrize("expiry", ["", ', "Expiration": "2099-01-01T00:00:00Z"'])
def test_a_process_returns_the_credentials(home: Path, expiry: str) -> None:
    configure_process(
        home, f"""print('{{"Version": 1, "AccessKeyId": "AKP", "SecretAccessKey": "{SECRET}"{expiry}}}')"""
    )
    found = find_credentials().current()
    assert (found.access_key, found.secret_key, found.token) == ("AKP", SECRET, None)
    assert found.expires is None, "the expiry is so far away that we need not watch it"


@needs_botocore
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (f"import sys; sys.exit('{SECRET}')", "CredentialRetrievalError"),
        (f"print('{SECRET}')", "JSONDecodeError"),
        (f"print('[\"{SECRET}\"]')", "AttributeError"),
        (f"""print('{{"Version": 1, "SecretAccessKey": "{SECRET}"}}')""", "CredentialRetrievalError"),
        (f"""print('{{"Version": "{SECRET}"}}')""", "CredentialRetrievalError"),
    ],
)
def test_the_error_of_a_failing_process_shows_no_secret(home: Path, code: str, why: str) -> None:
    configure_process(home, code)
    with pytest.raises(CredentialsError, match=f"profile default has a credential_process.*{why}") as refusal:
        find_credentials().current()
    assert_shows_no_secret(refusal.value)


@needs_botocore
def test_the_error_of_a_refused_role_has_the_code_of_sts(home: Path, sts: Sts) -> None:
    (home / ".aws" / "config").write_text(PROFILE)
    sts.refusal = Answer(
        403,
        f"""<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
        <Code>AccessDenied</Code><Message>{SECRET} {TOKEN}</Message></Error></ErrorResponse>""".encode(),
    )
    with pytest.raises(CredentialsError, match="role_arn; AssumeRole answered AccessDenied") as refusal:
        find_credentials(profile="dev").current()
    assert_shows_no_secret(refusal.value)


@needs_botocore
@pytest.mark.parametrize(
    ("config", "why"),
    [
        (f"[default]\nrole_arn = {ROLE}\n", "Partial credentials found in assume-role"),
        (f"[default]\nrole_arn = {ROLE}\nsource_profile = gone\n", "does not exist"),
        (f"[default]\nrole_arn = {ROLE}\nweb_identity_token_file = /nowhere/at/all\n", "FileNotFoundError"),
        ("[default]\nsso_role_name = reader\n", "is missing required configuration"),
        ("[default]\ncredential_process = /nowhere/at/all\n", "FileNotFoundError"),
    ],
)
def test_an_incomplete_configuration_is_an_error_that_explains_it(home: Path, config: str, why: str) -> None:
    (home / ".aws" / "config").write_text(config)
    with pytest.raises(CredentialsError, match=why):
        find_credentials().current()


@needs_botocore
def test_a_missing_boto_config_file_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTO_CONFIG", str(home / "none"))
    with pytest.raises(CredentialsError, match="BOTO_CONFIG is set; botocore found no credentials"):
        find_credentials().current()


def test_without_botocore_the_error_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".aws" / "config").write_text(PROFILE)
    for name in ["botocore", *(name for name in sys.modules if name.startswith("botocore."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CredentialsError) as refusal:
        find_credentials(profile="dev").current()
    assert str(refusal.value).splitlines() == [
        "profile dev has a role_arn; this needs botocore, which is not installed",
        'hint: install it with: pip install "holdall[aws]"',
    ]
