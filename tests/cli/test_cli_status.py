"""What a script learns about a failed command: its exit status, and with --json the error's code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_rig import call

from holdall import Database, Key, Model, SortKey, errors
from holdall.cli.exit_status import ExitStatus, exit_status
from holdall.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _create_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("table", "create").exit_code == 0


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("artifacts", "show", "no-such-app", "--json"), ExitStatus.NOT_FOUND, "artifact-not-found"),
        (("jobs", "show", "no-such-job", "--json"), ExitStatus.NOT_FOUND, "job-not-found"),
        (("table", "plan", "--json", "--models", "no_such_module"), ExitStatus.USAGE, "usage"),
        (("jobs", "counts", "--json", "--url", "mysql://here"), ExitStatus.USAGE, "configuration"),
    ],
    ids=lambda part: "-".join(part[:2]) if isinstance(part, tuple) else str(part),
)
def test_with_json_an_error_has_a_code_and_an_exit_status(
    words: tuple[str, ...], status: int, code: str
) -> None:
    ended = call(*words)
    assert (ended.exit_code, ended.stdout) == (status, "")
    error = json.loads(ended.stderr)["error"]
    assert error["code"] == code
    assert error["message"]


def test_without_json_an_error_is_a_message_with_the_same_status() -> None:
    ended = call("artifacts", "show", "no-such-app")
    assert ended.exit_code == ExitStatus.NOT_FOUND
    assert ended.stderr.startswith("error: ")


def test_hints_name_environment_variables_instead_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "test")
    ended = call("artifacts", "list", "--url", "dynamodb://table?region=eu-west-1")
    assert (ended.exit_code, ended.stderr.splitlines()[1]) == (
        ExitStatus.USAGE,
        "hint: set HOLDALL_FILES=s3://BUCKET or file:PATH",
    )


def test_a_message_of_several_lines_is_printed_on_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("CONFIG_FILE", "SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(f"AWS_{name}", "nothing")
    ended = call("jobs", "list", "--url", "dynamodb://table")
    first, second, *_ = ended.stderr.splitlines()
    assert (first, second) == ("error: no AWS region was found", "  argument region: not given")


def test_an_unconfirmed_deletion_has_the_status_refused() -> None:
    ended = call("table", "delete")
    assert ended.exit_code == ExitStatus.REFUSED
    assert "--yes" in ended.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.ContentionError("changed"), ExitStatus.CONFLICT),
        (errors.ArtifactChangedError("changed"), ExitStatus.CONFLICT),
        (errors.ProtectedAliasError("protected"), ExitStatus.REFUSED),
        (errors.ArchiveLossError("never pays"), ExitStatus.REFUSED),
        (errors.ItemArchivedError("archived"), ExitStatus.REFUSED),
        (errors.ThrottledError("slow down"), ExitStatus.UNAVAILABLE),
        (errors.EndpointError("unreachable"), ExitStatus.UNAVAILABLE),
        (errors.TransactionTimeoutError("too long"), ExitStatus.UNAVAILABLE),
        (errors.OutcomeUnknown("lost"), ExitStatus.ERROR),
    ],
    ids=lambda part: type(part).__name__,
)
def test_each_error_has_its_exit_status(error: errors.HoldallError, status: ExitStatus) -> None:
    assert exit_status(error) == status


def test_a_failed_transaction_has_the_status_of_its_cause() -> None:
    failed = errors.TransactionFailedError("given up")
    failed.__cause__ = errors.ContentionError("changed")
    assert exit_status(failed) == ExitStatus.CONFLICT


class Sale(Model):
    shop: Key[str]
    number: SortKey[int]


def test_the_command_in_the_hint_for_a_missing_table_works(tmp_path: Path) -> None:
    url = "embedded:elsewhere.db"
    (tmp_path / "holdall.db").unlink()
    with Database(url, manage_table=False) as db:
        with pytest.raises(ConfigurationError) as caught:
            db.get(Sale, shop="a", number=1)
        command = str(caught.value.hint).split("`")[1]
        assert "--models" in str(caught.value.hint)
        assert call(*command.split()[1:]).exit_code == 0
        assert db.get(Sale, shop="a", number=1) is None
    assert not (tmp_path / "holdall.db").exists()
