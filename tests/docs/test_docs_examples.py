"""The examples run without errors."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rig.warm import USERS_PATH, run_warm

pytestmark = pytest.mark.torture  # it takes long, so it should be among the first to run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def run_program(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {name: text for name, text in os.environ.items() if not name.startswith("HOLDALL_")}
    return run_warm(arguments, environment=settings, folder=folder, path=USERS_PATH, strict=True)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_prints_something(example: Path, tmp_path: Path) -> None:
    ended = run_program(str(example), folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    assert not ended.stderr


@pytest.fixture
def lambda_handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module as Lambda imports it, with one product to order."""
    monkeypatch.setenv("HOLDALL_URL", "memory:")
    spec = importlib.util.spec_from_file_location("lambda_handler", ROOT / "examples" / "lambda_handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.db.run(lambda tx: tx.create(module.Product, name="tea", stock=3))
    yield module
    module.db.close()


def make_event(name: str, **changes: Any) -> dict[str, Any]:
    """An event of API Gateway's payload format 2.0."""
    event: dict[str, Any] = json.loads((ROOT / "examples" / "events" / f"{name}.json").read_text())
    return event | changes


def test_the_lambda_handler_answers_a_repeated_event_with_the_same_response(
    lambda_handler: ModuleType,
) -> None:
    first = lambda_handler.handler(make_event("place-order"), None)
    assert first["statusCode"] == 201
    assert json.loads(first["body"]) == {"customer": "ada", "number": 1, "product": "tea", "quantity": 2}
    assert lambda_handler.handler(make_event("place-order"), None) == first
    shown = lambda_handler.handler(make_event("show-product"), None)
    assert (shown["statusCode"], json.loads(shown["body"])) == (200, {"name": "tea", "stock": 1})


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        ("place-order", {"body": '{"product": "tea", "quantity": 4}'}, 409),
        ("place-order", {"body": '{"product": "milk"}'}, 404),
        ("place-order", {"body": '{"product": "tea", "quantity": 0}'}, 422),
        ("place-order", {"body": "eyJwcm9kdWN0IjogInRlYSJ9", "isBase64Encoded": True}, 201),
        ("show-product", {"pathParameters": {"name": "milk"}}, 404),
    ],
    ids=["too-many", "unknown-product", "invalid", "base64", "missing"],
)
def test_the_lambda_handler_answers_each_event_with_its_status(
    lambda_handler: ModuleType, name: str, changes: dict[str, Any], status: int
) -> None:
    reply = lambda_handler.handler(make_event(name, **changes), None)
    assert reply["statusCode"] == status
    assert json.loads(reply["body"])
