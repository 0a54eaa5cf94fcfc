"""Credentials of an instance's role, from version 2 of the metadata service only; a local server stands in for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from aws_loopback import Answer, ReceivedRequest, free_port_url, loopback
from aws_secrecy import SECRET, TOKEN

from holdall.backends.aws.metadata import instance_credentials
from holdall.backends.aws.profile import Profile
from holdall.backends.aws.signer import Credentials
from holdall.errors import ConfigurationError

NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
SESSION = "AQAEAsession=="
ROLES = "/latest/meta-data/iam/security-credentials/"
NO_PROFILE = Profile("default", {}, {}, {}, ())


def document(**changes: object) -> bytes:
    fields = {
        "Code": "Success",
        "AccessKeyId": "AKINSTANCE",
        "SecretAccessKey": SECRET,
        "Token": TOKEN,
        "Expiration": "2026-06-01T06:00:00Z",
    }
    return json.dumps({**fields, **changes}).encode()


def service(**special: Answer | None) -> Callable[[ReceivedRequest], Answer | None]:
    """A metadata service; ``token``, ``roles`` and ``role`` replace its usual answers."""

    def answer(received: ReceivedRequest) -> Answer | None:
        if (received.method, received.target) == ("PUT", "/latest/api/token"):
            assert received.headers["x-aws-ec2-metadata-token-ttl-seconds"] == "21600"
            return special.get("token", Answer(body=SESSION.encode()))
        if received.headers.get("x-aws-ec2-metadata-token") != SESSION:
            return Answer(401)
        if received.target == ROLES:
            return special.get("roles", Answer(body=b"my-role\n"))
        assert received.target == ROLES + "my-role"
        return special.get("role", Answer(body=document()))

    return answer


def ask(url: str, profile: Profile = NO_PROFILE, **environment: str) -> Credentials | str:
    return instance_credentials(
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url, **environment}, profile, lambda: NOW
    )


def test_the_credentials_of_the_role_are_returned() -> None:
    with loopback(service()) as server:
        found = ask(server.url)
    assert found == Credentials("AKINSTANCE", SECRET, TOKEN, NOW + 6 * 3600)
    assert [received.method for received in server.requests] == ["PUT", "GET", "GET"]


def test_the_endpoint_may_end_in_a_slash_or_come_from_the_profile() -> None:
    with loopback(service()) as server:
        profile = Profile("p", {}, {"ec2_metadata_service_endpoint": f"{server.url}/"}, {}, ())
        assert isinstance(ask(f"{server.url}/"), Credentials)
        assert isinstance(ask("", profile), Credentials)


@pytest.mark.parametrize("status", [400, 403, 404, 405])
def test_without_a_session_token_nothing_else_is_requested(status: int) -> None:
    with loopback(service(token=Answer(status))) as server:
        assert ask(server.url) == f"{server.authority} answered {status}"
    assert [received.method for received in server.requests] == ["PUT"]


def test_it_can_be_switched_off() -> None:
    with loopback(service()) as server:
        assert ask(server.url, AWS_EC2_METADATA_DISABLED="True") == ("disabled by AWS_EC2_METADATA_DISABLED")
    assert server.requests == []


def test_on_a_machine_that_is_not_an_instance_there_is_one_request() -> None:
    assert "cannot be reached" in str(ask(free_port_url()))
    with loopback(service(token=None)) as server:
        found = ask(server.url, AWS_METADATA_SERVICE_TIMEOUT="0.05")
    assert found == f"{server.authority} did not answer within 0.05 s"
    assert len(server.requests) == 1


def test_the_first_request_is_repeated_if_the_environment_says_so() -> None:
    with loopback(service(token=Answer(503))) as server:
        ask(server.url, AWS_METADATA_SERVICE_NUM_ATTEMPTS="2")
    assert len(server.requests) == 2


def test_later_requests_are_tried_twice() -> None:
    answers = iter([Answer(500), Answer(body=b"my-role")])
    usual = service()

    def fail_once(received: ReceivedRequest) -> Answer | None:
        return next(answers) if received.target == ROLES else usual(received)

    with loopback(fail_once) as server:
        assert isinstance(ask(server.url), Credentials)


@pytest.mark.parametrize(
    ("special", "why"),
    [
        ({"roles": Answer(404)}, "answered 404"),
        ({"roles": Answer(body=b" \n")}, "returned no role"),
        ({"roles": Answer(body=b"\xff\xfe")}, "returned no role"),
        ({"token": Answer(body=b"")}, "returned no token"),
        ({"role": Answer(body=SECRET.encode())}, "not a JSON object"),
        ({"role": Answer(body=document(SecretAccessKey=None))}, "the secret key is missing"),
        ({"role": Answer(body=document(Token=f"{TOKEN} {SECRET}"))}, "the session token has characters"),
        ({"role": Answer(body=document(Expiration=TOKEN))}, "the expiry is not a time"),
        ({"role": Answer(body=b'{"Code": "Failed", "Message": "m"}')}, "returned Failed"),
    ],
)
def test_a_failure_is_explained_without_secrets(special: dict[str, Answer], why: str) -> None:
    with loopback(service(**special)) as server:
        reason = ask(server.url)
    assert isinstance(reason, str)
    assert why in reason
    assert server.authority in reason
    assert SECRET not in reason
    assert TOKEN not in reason


def test_expired_credentials_are_used_for_a_while() -> None:
    with loopback(service(role=Answer(body=document(Expiration="2026-05-31T23:00:00Z")))) as server:
        found = ask(server.url)
    assert isinstance(found, Credentials)
    assert found.expires is not None
    assert NOW + 300 <= found.expires <= NOW + 600


@pytest.mark.parametrize(
    "environment",
    [
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"ftp://{SECRET}"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": "ipv5"},
        {"AWS_METADATA_SERVICE_TIMEOUT": "soon"},
        {"AWS_METADATA_SERVICE_TIMEOUT": "-1"},
        {"AWS_METADATA_SERVICE_TIMEOUT": "nan"},
        {"AWS_METADATA_SERVICE_NUM_ATTEMPTS": "0"},
        {"AWS_METADATA_SERVICE_NUM_ATTEMPTS": "many"},
    ],
)
def test_malformed_settings_are_an_error(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="instance metadata service are not valid") as refusal:
        instance_credentials(environment, NO_PROFILE, lambda: NOW)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("mode", "host"), [("", "169.254.169.254"), ("IPv4", "169.254.169.254"), ("ipv6", "fd00:ec2::254")]
)
def test_the_default_endpoint_is_link_local(mode: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], *args: object, **options: object) -> None:
        hosts.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("socket.create_connection", connect)
    reason = instance_credentials({"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": mode}, NO_PROFILE, lambda: NOW)
    assert "cannot be reached (Connection refused)" in str(reason)
    assert hosts == [(host, 80)]
