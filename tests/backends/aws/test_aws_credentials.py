"""Where credentials are found, in which order, and the error if there are none."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aws_loopback import Answer, ReceivedRequest, free_port_url, loopback
from aws_secrecy import SECRET, TOKEN, assert_shows_no_secret
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdall.backends.aws.credentials import CallableCredentials, Credentials, find_credentials
from holdall.errors import AwaitableRefused, ConfigurationError, CredentialsError

KEYS = {"AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": SECRET}
FULL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
METADATA = "AWS_EC2_METADATA_SERVICE_ENDPOINT"


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """An environment with its own home directory and without an instance metadata service."""
    (tmp_path / ".aws").mkdir()
    return {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}


def write(environment: Mapping[str, str], name: str, text: str) -> None:
    (Path(environment["HOME"]) / ".aws" / name).write_text(text)


def keys(name: str, secret: str = SECRET) -> str:
    return f"aws_access_key_id = {name}\naws_secret_access_key = {secret}\n"


def role_document(name: str, expires: datetime | None = None) -> bytes:
    moment = expires or datetime.now(UTC) + timedelta(hours=6)
    fields = {
        "AccessKeyId": name,
        "SecretAccessKey": SECRET,
        "Token": TOKEN,
        "Expiration": moment.isoformat(),
    }
    return json.dumps(fields).encode()


def container(received: ReceivedRequest) -> Answer:
    return Answer(body=role_document("AKCONTAINER"))


def instance(received: ReceivedRequest) -> Answer:
    if received.method == "PUT":
        return Answer(body=b"session")
    return Answer(body=b"role" if received.target.endswith("/") else role_document("AKINSTANCE"))


def test_the_environment_comes_first(alone: dict[str, str]) -> None:
    write(alone, "credentials", "[default]\n" + keys("AKFILE"))
    found = find_credentials(environment={**alone, **KEYS, "AWS_SESSION_TOKEN": TOKEN, FULL: "http://x/"})
    assert found.current() == Credentials("AKENV", SECRET, TOKEN)


def test_the_environment_can_contain_the_expiry_of_its_keys(alone: dict[str, str]) -> None:
    environment = {**alone, **KEYS, "AWS_CREDENTIAL_EXPIRATION": "2026-06-01T01:00:00Z"}
    now = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
    source = find_credentials(environment=environment, clock=lambda: now)
    assert source.current().expires == now + 3600


def test_a_named_profile_takes_precedence_over_keys_in_the_environment(alone: dict[str, str]) -> None:
    write(alone, "credentials", "[dev]\n" + keys("AKDEV") + "[default]\n" + keys("AKDEFAULT"))
    environment = {**alone, **KEYS}
    assert find_credentials(profile="dev", environment=environment).current().access_key == "AKDEV"
    assert find_credentials(profile="", environment=environment).current().access_key == "AKENV"


def test_the_files_come_next_with_the_credentials_file_first(alone: dict[str, str]) -> None:
    write(alone, "config", "[default]\n" + keys("AKCONFIG") + "aws_session_token = other\n[profile dev]\n")
    assert find_credentials(environment=alone).current() == Credentials("AKCONFIG", SECRET, "other")
    write(
        alone,
        "credentials",
        "[default]\n" + keys("AKFILE") + f"aws_session_token = {TOKEN}\n[dev]\n" + keys("D"),
    )
    assert find_credentials(environment=alone).current() == Credentials("AKFILE", SECRET, TOKEN)
    assert find_credentials(environment={**alone, "AWS_PROFILE": "dev"}).current().access_key == "D"


def test_the_container_comes_before_the_instance(alone: dict[str, str]) -> None:
    environment = {**alone, "AWS_EC2_METADATA_DISABLED": "false"}
    with loopback(container) as beside, loopback(instance) as metadata:
        environment[METADATA] = metadata.url
        assert find_credentials(environment=environment).current().access_key == "AKINSTANCE"
        environment[FULL] = beside.url
        assert find_credentials(environment=environment).current().access_key == "AKCONTAINER"
    assert len(metadata.requests) == 3


def test_credentials_are_not_searched_before_they_are_needed(alone: dict[str, str]) -> None:
    source = find_credentials(environment=alone)
    assert not source.peek()
    write(alone, "credentials", "[default]\n" + keys("AKFILE"))
    assert source.current().access_key == "AKFILE"
    assert source.peek()


def test_rejected_keys_are_read_again(alone: dict[str, str]) -> None:
    write(alone, "credentials", "[default]\n" + keys("AKOLD"))
    source = find_credentials(environment=alone)
    old = source.current()
    write(alone, "credentials", "[default]\n" + keys("AKNEW"))
    assert source.current() is old
    source.renew(old)
    assert not source.peek()
    assert source.current().access_key == "AKNEW"


def test_rotating_credentials_follow_the_endpoint(alone: dict[str, str]) -> None:
    now = [datetime(2026, 6, 1, tzinfo=UTC)]
    issued: list[str] = []

    def rotate(received: ReceivedRequest) -> Answer:
        issued.append(f"AK{len(issued)}")
        return Answer(body=role_document(issued[-1], now[0] + timedelta(hours=1)))

    with loopback(rotate) as server:
        source = find_credentials(environment={**alone, FULL: server.url}, clock=lambda: now[0].timestamp())
        seen = []
        for _ in range(4):
            seen += [source.current().access_key, source.current().access_key]
            now[0] += timedelta(minutes=55)
    assert seen == ["AK0", "AK0", "AK1", "AK1", "AK2", "AK2", "AK3", "AK3"]


def test_without_credentials_the_error_lists_every_source_and_what_it_lacks(alone: dict[str, str]) -> None:
    unused = free_port_url()
    environment = {**alone, "AWS_EC2_METADATA_DISABLED": "", METADATA: unused}
    with pytest.raises(CredentialsError) as refusal:
        find_credentials(environment=environment).current()
    folder = Path(alone["HOME"]) / ".aws"
    assert str(refusal.value).splitlines() == [
        "no AWS credentials were found",
        "  environment: AWS_ACCESS_KEY_ID is not set",
        f"  profile default: {folder / 'credentials'} does not exist; {folder / 'config'} does not exist",
        "  container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and AWS_CONTAINER_CREDENTIALS_FULL_URI are not set",
        f"  instance: {unused.removeprefix('http://')} cannot be reached (Connection refused)",
        "hint: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile that has credentials",
    ]
    assert refusal.value.code == "credentials"
    assert isinstance(refusal.value, ConfigurationError)


def test_a_profile_without_credentials_is_reported_as_such(alone: dict[str, str]) -> None:
    write(alone, "config", "[profile dev]\nregion = eu-west-1\n")
    write(alone, "credentials", "[dev]\n")
    with pytest.raises(CredentialsError) as refusal:
        find_credentials(profile="dev", environment={**alone, **KEYS}).current()
    assert "  environment: ignored, because a profile was named" in str(refusal.value)
    assert "  profile dev: it has neither keys nor a setting to obtain credentials" in str(refusal.value)


@pytest.mark.parametrize(
    ("environment", "credentials", "why"),
    [
        ({"AWS_ACCESS_KEY_ID": SECRET}, "", "AWS_SECRET_ACCESS_KEY is not"),
        ({**KEYS, "AWS_SESSION_TOKEN": f"{TOKEN}\r\nX: y"}, "", "the environment: the session token has"),
        ({**KEYS, "AWS_CREDENTIAL_EXPIRATION": TOKEN}, "", "the environment: the expiry is not a time"),
        ({**KEYS, "AWS_CREDENTIAL_EXPIRATION": "2020-01-01T00:00:00Z"}, "", "expired [0-9]+ seconds ago"),
        (
            {},
            f"[default]\naws_access_key_id = {SECRET}\n",
            "profile default in the credentials file: the secret key is missing",
        ),
        ({}, "[default]\n" + keys("AK") + f"aws_session_token = {TOKEN} {SECRET}\n", "session token has"),
        ({}, f"[default]\n{SECRET}\n", "line 2 is neither"),
        ({}, "[default]\n" + keys(f"\n  {SECRET} = {TOKEN}"), "the access key must be text, not a dict"),
        ({FULL: f"http://{SECRET}:{TOKEN}@localhost"}, "", "is not a valid URL"),
        ({"AWS_PROFILE": "prod"}, f"[default]\naws_secret_access_key = {SECRET}\n", "no AWS profile 'prod'"),
    ],
)
def test_an_invalid_setting_is_named_without_secrets(
    alone: dict[str, str], environment: dict[str, str], credentials: str, why: str
) -> None:
    write(alone, "credentials", credentials)
    source = find_credentials(environment={**alone, **environment})
    with pytest.raises(ConfigurationError, match=why) as refusal:
        source.current()
    assert_shows_no_secret(refusal.value)
    assert SECRET not in f"{source!r} {source}"


def test_neither_errors_nor_logs_of_a_failing_endpoint_show_secrets(
    alone: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    now = [datetime(2026, 6, 1, tzinfo=UTC)]
    good = Answer(body=role_document("AK", now[0] + timedelta(hours=1)))
    answers = [good, Answer(400, SECRET.encode()), Answer(body=f'"{SECRET}"'.encode())]
    with loopback(lambda received: answers.pop(0)) as server, caplog.at_level(0):
        source = find_credentials(environment={**alone, FULL: server.url}, clock=lambda: now[0].timestamp())
        first = source.current()
        now[0] += timedelta(minutes=51)
        assert source.current() is first
        now[0] += timedelta(minutes=9)
        with pytest.raises(CredentialsError, match="not a JSON object") as refusal:
            source.current()
    assert_shows_no_secret(refusal.value)
    assert "answered 400" in caplog.text
    assert SECRET not in caplog.text
    assert TOKEN not in caplog.text


# --- a function that the user passes ---


def test_a_function_returns_credentials() -> None:
    source = CallableCredentials(lambda: ("AK", SECRET))
    assert not source.peek()
    assert source.current() == Credentials("AK", SECRET)
    assert source.peek()


def test_a_function_is_called_again_when_its_credentials_are_due_for_renewal_or_rejected() -> None:
    now, calls = [0.0], [0]

    def give() -> dict[str, object]:
        calls[0] += 1
        return {"access_key": f"AK{calls[0]}", "secret_key": SECRET, "expires": now[0] + 3600}

    source = CallableCredentials(give, clock=lambda: now[0])
    first = source.current()
    assert source.current() is first
    now[0] += 3100
    second = source.current()
    assert second.access_key == "AK2"
    source.renew(second)
    assert source.current().access_key == "AK3"


def test_the_functions_own_errors_reach_the_caller() -> None:
    def give() -> None:
        raise KeyError("vault")

    with pytest.raises(KeyError, match="vault"):
        CallableCredentials(give).current()


def test_an_async_function_is_refused_by_name() -> None:
    async def give() -> tuple[str, str]:
        return "AK", SECRET

    with pytest.raises(AwaitableRefused, match="must not be async"):
        CallableCredentials(give).current()


def test_a_function_that_returns_something_else_is_an_error_that_does_not_show_it() -> None:
    with pytest.raises(CredentialsError, match="the credentials function returned a str") as refusal:
        CallableCredentials(lambda: SECRET).current()
    assert_shows_no_secret(refusal.value)


# --- the order, compared with botocore's ---

FAST = {"env", "shared-credentials-file", "config-file"}
SETTINGS = {
    "aws_access_key_id": "AK1",
    "role_arn": "arn:aws:iam::123456789012:role/r",
    "source_profile": "base",
    "web_identity_token_file": "/nowhere/token",
    "sso_account_id": "123456789012",
    "sso_role_name": "reader",
    "sso_start_url": "https://sso.example",
    "sso_region": "us-east-1",
    "credential_process": f"{sys.executable} -c 'print(0)'",
    "region": "eu-west-1",
}
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKENV",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token",
    "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/r",
    "AWS_PROFILE": "dev",
}


def some_of(choices: dict[str, str], most: int) -> st.SearchStrategy[dict[str, str]]:
    names = st.lists(st.sampled_from(sorted(choices)), max_size=most, unique=True)
    return names.map(lambda chosen: {name: choices[name] for name in chosen})


section = some_of(SETTINGS, 2) | some_of({"aws_access_key_id": "AK2"}, 1)
variables = some_of(VARIABLES, 1)


@pytest.fixture
def own_environment(alone: dict[str, str]) -> Iterator[dict[str, str]]:
    """Replace the environment of this process by ``alone``, because botocore reads no other."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({"PATH": before.get("PATH", ""), **alone})
    yield alone
    os.environ.clear()
    os.environ.update(before)


def section_text(name: str, settings: dict[str, str]) -> str:
    lines = [f"{key} = {value}" for key, value in settings.items()]
    if "aws_access_key_id" in settings:
        lines.append(f"aws_secret_access_key = {SECRET}")
    return "\n".join([f"[{name}]", *lines, ""])


BASE = f"[base]\naws_access_key_id = AKBASE\naws_secret_access_key = {SECRET}\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(config=section, credentials=section, environment=variables, profile=st.sampled_from([None, "dev"]))
@example({"aws_access_key_id": "AK1", "credential_process": "false"}, {}, {}, None)
@example({"credential_process": "false"}, {"aws_access_key_id": "AK1"}, {}, None)
@example({"role_arn": "r", "source_profile": "base"}, {"aws_access_key_id": "AK1"}, {}, None)
@example({}, {"aws_access_key_id": "AK1"}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/f", "AWS_ROLE_ARN": "r"}, "dev")
@example({}, {"aws_access_key_id": "AK1"}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/f", "AWS_ROLE_ARN": "r"}, None)
def test_the_order_of_sources_is_botocores(
    own_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    config: dict[str, str],
    credentials: dict[str, str],
    environment: dict[str, str],
    profile: str | None,
) -> None:
    session_module: Any = pytest.importorskip(
        "botocore.session", reason="botocore, whose order of sources this test compares, is not installed"
    )
    from botocore.exceptions import BotoCoreError

    write(
        own_environment,
        "config",
        section_text("default", config)
        + section_text("profile dev", config)
        + BASE.replace("[", "[profile "),
    )
    write(
        own_environment,
        "credentials",
        section_text("default", credentials) + section_text("dev", credentials),
    )
    secret = {"AWS_SECRET_ACCESS_KEY": SECRET} if "AWS_ACCESS_KEY_ID" in environment else {}
    with monkeypatch.context() as patched:
        for name, value in {**environment, **secret}.items():
            patched.setenv(name, value)
        try:
            theirs = session_module.Session(profile=profile).get_credentials()
            method = None if theirs is None else theirs.method
        except (BotoCoreError, ValueError, AttributeError):  # it chose a source that cannot work here
            theirs, method = None, "another"
        for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
            patched.setitem(sys.modules, name, None)
        source = find_credentials(profile=profile)
        if method in FAST:
            assert source.current() == Credentials(theirs.access_key, theirs.secret_key, theirs.token)
        else:
            with pytest.raises(CredentialsError) as refusal:
                source.current()
            gave_up = refusal.value.message.startswith("no AWS credentials were found")
            assert gave_up is (method is None), "we must leave other sources to botocore"


def test_credentials_are_shared_between_threads(alone: dict[str, str]) -> None:
    with loopback(container) as server:
        source = find_credentials(environment={**alone, FULL: server.url})
        seen: list[Credentials] = []
        threads = [threading.Thread(target=lambda: seen.append(source.current())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {found.access_key for found in seen} == {"AKCONTAINER"}
    assert len(seen) == 8
    assert len(server.requests) == 1
