"""Credentials of a container's role, from an endpoint that is played here."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aws_loopback import Answer, Asked, loopback
from aws_secrecy import SECRET, TOKEN, assert_tells_no_secret

from holdall.backends.aws.metadata import container_credentials
from holdall.backends.aws.signer import Credentials
from holdall.errors import CredentialsError

LATER = datetime(2099, 1, 1, tzinfo=UTC)
DOCUMENT = json.dumps(
    {
        "AccessKeyId": "AKROLE",
        "SecretAccessKey": SECRET,
        "Token": TOKEN,
        "Expiration": "2099-01-01T00:00:00Z",
        "RoleArn": "arn:aws:iam::1:role/r",
    }
).encode()
FOUND = Credentials("AKROLE", SECRET, TOKEN, LATER.timestamp())

RELATIVE = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
FULL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
SHOWN = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
SHOWN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"


class Connected(Exception):
    """Where a connection would have been made."""


def connect(address: tuple[str, int], *args: object, **options: object) -> None:
    raise Connected(*address)


def give(asked: Asked) -> Answer:
    return Answer(body=DOCUMENT)


def test_a_machine_that_is_no_container_says_so() -> None:
    assert container_credentials({}) == f"{RELATIVE} and {FULL} are not set"


def test_a_relative_uri_leads_to_the_endpoint_of_ecs() -> None:
    with loopback(give) as server:
        assert container_credentials({RELATIVE: "/v2/credentials/0?x=1"}, ecs=server.url) == FOUND
    assert server.asked[0].target == "/v2/credentials/0?x=1"
    assert "authorization" not in server.asked[0].headers


def test_a_full_uri_leads_where_it_says() -> None:
    with loopback(give) as server:
        assert container_credentials({FULL: f"{server.url}/creds"}) == FOUND
    assert server.asked[0].target == "/creds"


def test_the_relative_uri_wins() -> None:
    with loopback(give) as server:
        found = container_credentials({RELATIVE: "/a", FULL: "http://example.com/"}, ecs=server.url)
    assert found == FOUND


def test_the_token_is_shown(tmp_path: Path) -> None:
    with loopback(give) as server:
        container_credentials({FULL: server.url, SHOWN: "Bearer one"})
    assert server.asked[0].headers["authorization"] == "Bearer one"


def test_the_token_of_the_file_wins_and_is_read_every_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    environment = {SHOWN: "one", SHOWN_FILE: str(file)}
    with loopback(give) as server:
        for token in ("two", "three\n"):
            file.write_text(token)
            container_credentials({**environment, FULL: server.url})
    assert [asked.headers["authorization"] for asked in server.asked] == ["two", "three"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"],
)
def test_plain_http_is_spoken_to_hosts_that_are_this_machines(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.create_connection", connect)
    with pytest.raises(Connected) as reached:
        container_credentials({FULL: f"http://{host}/creds"})
    assert reached.value.args == (host.strip("[]"), 80)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/creds",
        "http://10.0.0.1/creds",
        "http://169.254.169.254/creds",
        "http://127.0.0.1.example.com/creds",
        "http://localhost.example.com/creds",
    ],
)
def test_plain_http_is_not_spoken_to_strangers(url: str) -> None:
    with pytest.raises(CredentialsError, match="credentials are not requested from it over plain http"):
        container_credentials({FULL: url, SHOWN: TOKEN})


def test_https_may_be_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.create_connection", connect)
    with pytest.raises(Connected) as reached:
        container_credentials({FULL: "https://example.com/creds"})
    assert reached.value.args == ("example.com", 443)


@pytest.mark.parametrize(
    "environment",
    [
        {RELATIVE: "no-slash"},
        {RELATIVE: ".example.com/x"},
        {RELATIVE: f"/{SECRET} {TOKEN}"},
        {FULL: "localhost:80"},
        {FULL: f"http://{SECRET}:{TOKEN}@127.0.0.1/"},
    ],
)
def test_a_malformed_uri_is_an_error_that_does_not_show_it(environment: dict[str, str]) -> None:
    with pytest.raises(CredentialsError, match="is not a valid URL") as refusal:
        container_credentials(environment)
    assert next(iter(environment)) in str(refusal.value)
    assert_tells_no_secret(refusal.value)


def test_a_token_that_is_none_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for content in (b"", f"{TOKEN}\r\nX: y".encode(), TOKEN.encode() + b"\xff", f"{TOKEN}é".encode()):
        file.write_bytes(content)
        with pytest.raises(CredentialsError, match=f"{SHOWN_FILE} does not contain a valid token") as refusal:
            container_credentials({FULL: "http://127.0.0.1:9/", SHOWN_FILE: str(file)})
        assert_tells_no_secret(refusal.value)
    with pytest.raises(CredentialsError, match=f"{SHOWN} does not contain a valid token") as refusal:
        container_credentials({FULL: "http://127.0.0.1:9/", SHOWN: f"{TOKEN}\nX: y"})
    assert_tells_no_secret(refusal.value)


def test_a_token_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="cannot be read: No such file"):
        container_credentials({FULL: "http://127.0.0.1:9/", SHOWN_FILE: str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(403, SECRET.encode()), "answered 403"),
        (Answer(500, SECRET.encode()), "answered 500"),
        (Answer(302, headers={"location": "http://127.0.0.1/"}), "answered 302"),
        (Answer(body=SECRET.encode()), "not a JSON object"),
        (Answer(body=json.dumps({"SecretAccessKey": SECRET}).encode()), "the access key is missing"),
        (Answer(body=DOCUMENT.replace(b"2099-01-01T00:00:00Z", b"soon")), "the expiry is not a time"),
    ],
)
def test_an_endpoint_that_should_give_credentials_and_does_not_is_an_error(answer: Answer, why: str) -> None:
    with loopback(lambda asked: answer) as server, pytest.raises(CredentialsError, match=why) as refusal:
        container_credentials({FULL: f"{server.url}/{TOKEN}", SHOWN: TOKEN})
    assert server.authority in str(refusal.value)
    assert_tells_no_secret(refusal.value)


def test_an_endpoint_that_fails_for_a_moment_is_asked_again() -> None:
    answers = iter([Answer(500), Answer(body=DOCUMENT)])
    with loopback(lambda asked: next(answers)) as server:
        assert container_credentials({FULL: server.url}) == FOUND
