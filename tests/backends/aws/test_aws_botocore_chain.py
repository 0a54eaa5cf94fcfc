"""What takes more than a look is left to botocore: roles, web identities, processes. STS is played here."""

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
from aws_loopback import Answer, Asked, loopback
from aws_secrecy import SECRET, TOKEN, assert_tells_no_secret

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
    """Hands out numbered credentials of a given life, or refuses."""

    def __init__(self, life: timedelta = timedelta(hours=1)) -> None:
        self.life = life
        self.asked: list[dict[str, list[str]]] = []
        self.expires = datetime.now(UTC)
        self.refusal: Answer | None = None

    def __call__(self, asked: Asked) -> Answer:
        self.asked.append(parse_qs(asked.body.decode()))
        if self.refusal is not None:
            return self.refusal
        self.expires = datetime.now(UTC).replace(microsecond=0) + self.life
        action = self.asked[-1]["Action"][0]
        return Answer(
            headers={"content-type": "text/xml"},
            body=f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>
                <Credentials><AccessKeyId>AKROLE{len(self.asked)}</AccessKeyId>
                <SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{TOKEN}</SessionToken>
                <Expiration>{self.expires:%Y-%m-%dT%H:%M:%SZ}</Expiration></Credentials>
                <AssumedRoleUser><Arn>{ROLE}</Arn><AssumedRoleId>x:y</AssumedRoleId></AssumedRoleUser>
                </{action}Result></{action}Response>""".encode(),
        )


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """This process with an environment of its own, since botocore reads no other."""
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
    playing = Sts()
    with loopback(playing) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
        yield playing


@needs_botocore
def test_a_role_is_assumed(home: Path, sts: Sts) -> None:
    (home / ".aws" / "config").write_text(PROFILE)
    found = find_credentials(profile="dev").current()
    assert (found.access_key, found.secret_key, found.token) == ("AKROLE1", SECRET, TOKEN)
    assert sts.asked[0]["RoleArn"] == [ROLE]
    assert found.expires is not None
    assert sts.expires.timestamp() <= found.expires < sts.expires.timestamp() + 60


@needs_botocore
def test_a_role_is_assumed_where_the_caller_works(
    home: Path, sts: Sts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION")
    (home / ".aws" / "config").write_text(PROFILE)
    assert find_credentials(profile="dev", region="eu-north-1").current().access_key == "AKROLE1"
    with pytest.raises(CredentialsError, match="You must specify a region"):
        find_credentials(profile="dev").current()


@needs_botocore
def test_a_role_is_assumed_again_before_it_ends(home: Path, sts: Sts) -> None:
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
def test_a_web_identity_of_the_environment_is_used(
    home: Path, sts: Sts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = AK\naws_secret_access_key = s\n"
    )
    (home / "identity").write_text("my-identity")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(home / "identity"))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    assert find_credentials().current().access_key == "AKROLE1"
    assert sts.asked[0]["WebIdentityToken"] == ["my-identity"]


def process(home: Path, code: str) -> None:
    (home / "process.py").write_text(code)
    command = f"{sys.executable} {home / 'process.py'}"
    (home / ".aws" / "config").write_text(f"[default]\ncredential_process = {command}\n")


@needs_botocore
@pytest.mark.parametrize("expiry", ["", ', "Expiration": "2099-01-01T00:00:00Z"'])
def test_a_process_is_asked(home: Path, expiry: str) -> None:
    process(
        home, f"""print('{{"Version": 1, "AccessKeyId": "AKP", "SecretAccessKey": "{SECRET}"{expiry}}}')"""
    )
    found = find_credentials().current()
    assert (found.access_key, found.secret_key, found.token) == ("AKP", SECRET, None)
    assert found.expires is None, "so far away that it need not be watched"


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
def test_a_process_that_fails_gives_no_secret_away(home: Path, code: str, why: str) -> None:
    process(home, code)
    with pytest.raises(CredentialsError, match=f"profile default has a credential_process.*{why}") as refusal:
        find_credentials().current()
    assert_tells_no_secret(refusal.value)


@needs_botocore
def test_a_role_that_is_refused_is_told_by_its_code(home: Path, sts: Sts) -> None:
    (home / ".aws" / "config").write_text(PROFILE)
    sts.refusal = Answer(
        403,
        f"""<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
        <Code>AccessDenied</Code><Message>{SECRET} {TOKEN}</Message></Error></ErrorResponse>""".encode(),
    )
    with pytest.raises(CredentialsError, match="role_arn; AssumeRole answered AccessDenied") as refusal:
        find_credentials(profile="dev").current()
    assert_tells_no_secret(refusal.value)


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
def test_a_way_that_leads_nowhere_is_told(home: Path, config: str, why: str) -> None:
    (home / ".aws" / "config").write_text(config)
    with pytest.raises(CredentialsError, match=why):
        find_credentials().current()


@needs_botocore
def test_a_file_of_old_that_holds_none_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
