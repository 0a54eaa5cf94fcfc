"""Opening a database: which backend the settings choose, and which modules it loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rig.machine import strip_machine

from holdall import AsyncDatabase, Database
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.backends.dynamodb.boto import BotoBackend
from holdall.backends.embedded import EmbeddedBackend
from holdall.errors import ConfigurationError

DATABASES = [Database, AsyncDatabase]


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strip_machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("database", DATABASES)
def test_a_dynamodb_url_opens_the_wire_backend_without_connecting(database: Any) -> None:
    db = database("dynamodb://my-app?region=eu-central-1", endpoint="http://127.0.0.1:1")
    assert isinstance(db._backend, DynamoBackend)
    assert db.table.name == "my-app"
    assert repr(db) == f"{database.__name__}('dynamodb://my-app?region=eu-central-1')"
    db._backend.close()


def test_a_dynamodb_url_without_a_region_says_where_it_looked() -> None:
    with pytest.raises(ConfigurationError, match="no AWS region was found"):
        Database("dynamodb://my-app")


def test_a_bad_endpoint_is_refused_when_opening() -> None:
    with pytest.raises(ConfigurationError, match="endpoint"):
        Database("dynamodb://my-app", endpoint="localhost:8000")


@pytest.mark.parametrize("database", DATABASES)
def test_a_client_carries_the_requests_of_a_dynamodb_database(database: Any) -> None:
    db = database("dynamodb://my-app", client=object())
    assert isinstance(db._backend, BotoBackend)


@pytest.mark.parametrize("url", [None, "memory:", "embedded:app.db"])
def test_a_client_is_refused_for_a_url_that_is_not_dynamodb(url: str | None, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a DynamoDB table") as caught:
        Database(url, client=object())
    assert caught.value.hint == 'name the table: Database("dynamodb://TABLE", client=client)'
    assert list(tmp_path.iterdir()) == []


def test_a_client_and_a_backend_cannot_be_passed_together() -> None:
    backend = EmbeddedBackend(None)
    with pytest.raises(ConfigurationError, match="backend and client cannot be passed together"):
        Database("dynamodb://my-app", client=object(), backend=backend)
    backend.close()


def test_settings_are_found_in_holdall_toml(tmp_path: Path) -> None:
    (tmp_path / "holdall.toml").write_text('url = "memory:"\ntable_name = "mine"\nmanage_table = false\n')
    with Database() as db:
        assert db.table.name == "mine"
        assert db._context.settings.manage_table is False


def test_a_misspelt_keyword_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unknown settings: tabel_name"):
        Database("memory:", tabel_name="mine")  # type: ignore[call-arg]


@pytest.mark.parametrize("use", ["db.table.create()", "db.table.layout()", "db.table.export()"])
def test_an_embedded_database_loads_no_module_of_the_wire(use: str) -> None:
    script = f"""
import sys
from holdall import Database
with Database("memory:") as db:
    {use}
print(*sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    wire = ("holdall.backends.aws", "holdall.backends.dynamodb", "h11", "botocore", "boto3", "click")
    assert not {name for name in loaded if name.startswith(wire)}


def test_a_function_can_return_the_credentials() -> None:
    calls: list[bool] = []

    def credentials() -> tuple[str, str]:
        calls.append(True)
        raise LookupError("the vault is shut")

    url = "dynamodb://things?region=eu-central-1&endpoint=http://127.0.0.1:9"
    with Database(url, credentials=credentials) as db, pytest.raises(LookupError, match="the vault is shut"):
        db.table.exists()
    assert calls


@pytest.mark.parametrize("url", ["memory:", "embedded:x.db"])
def test_credentials_are_refused_for_other_stores(url: str) -> None:
    with pytest.raises(ConfigurationError, match="credentials was passed, but"):
        Database(url, credentials=lambda: ("key", "secret"))


CLOSES_NOTHING = """
import asyncio
from holdall import AsyncDatabase, Database, Key, Model

class Cup(Model):
    name: Key[str]

for url in ("memory:", "embedded:app.db"):
    db = Database(url, files="memory:")
    with db.transaction() as tx:
        tx.create(Cup, name="blue")
    db.files.put("key", b"bytes")
    adb = AsyncDatabase(url, files="memory:")
    asyncio.run(adb.files.put("key", b"bytes"))
"""


def test_a_program_that_closes_nothing_ends_without_warnings(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", CLOSES_NOTHING], capture_output=True, text=True, cwd=tmp_path
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
