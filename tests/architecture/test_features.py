"""Each feature is declared in one place, and everything that it declares exists."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import holdall
from holdall import AsyncDatabase, Database, errors
from holdall.attachments.locator import find_fetch
from holdall.cli.program import program
from holdall.composition import DatabaseArguments
from holdall.core.settings import SettingArguments
from holdall.features import FEATURES, Feature, declare_jobs, find_hook, load
from holdall.files.mirror import PLAN_COPIES, PlanCopies
from holdall.jobs.declaration import declared_jobs
from holdall.jobs.locator import FIND_FETCH, FindFetch
from holdall.jobs.mirror import enqueue_copies
from holdall.jobs.outbox import plan_job
from holdall.tables.export.policy import TABLE_ACTIONS
from holdall.testing.plugin import _REGISTRIES
from holdall.transactions.enqueued import PLAN_JOB, PlanJob

SOURCE = Path(holdall.__file__).parent
TEXTS = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}

every_feature = pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)


@every_feature
def test_a_feature_has_a_room_and_a_shell_on_each_database(feature: Feature) -> None:
    assert (SOURCE / feature.name / "__init__.py").exists()
    name = feature.attribute or feature.name
    with Database("memory:") as db:
        assert type(getattr(db, name)) is load(feature.shells[0])
        assert type(getattr(db.aio, name)) is load(feature.shells[1])
    for database in (Database, AsyncDatabase):  # written out, so that type checkers know their types
        assert (
            getattr(database, name).fget.__annotations__["return"]
            in load(feature.shells[database is AsyncDatabase]).__name__
        )


@every_feature
def test_a_feature_has_a_policy(feature: Feature) -> None:
    assert feature.name in TABLE_ACTIONS


@every_feature
def test_the_errors_of_a_feature_are_in_a_file_of_its_name(feature: Feature) -> None:
    own = importlib.import_module(f"holdall.errors.{feature.name}")
    assert set(own.__all__) <= set(errors.__all__)


def test_the_settings_of_features_are_arguments_of_a_database() -> None:
    named = {feature.name for feature in FEATURES if feature.parser}
    assert DatabaseArguments.__annotations__.keys() == SettingArguments.__annotations__.keys() | named
    assert all(callable(load(feature.parser)) for feature in FEATURES if feature.parser)


def test_the_declared_hooks_are_those_that_rooms_call() -> None:
    calls = {name for text in TEXTS.values() for name in re.findall(r"\.hook\((\w*)", text)}
    pattern = re.compile(r'^(\w+): Hook\[\w+\] = Hook\("(\w+)"\)', re.MULTILINE)
    named = dict(pair for text in TEXTS.values() for pair in pattern.findall(text))
    assert calls == named.keys()
    assert sorted(named.values()) == sorted(name for feature in FEATURES for name in feature.hooks)


def test_the_function_behind_a_hook_has_the_type_that_its_caller_declares() -> None:
    plan: PlanJob = plan_job  # mypy compares the types
    copies: PlanCopies = enqueue_copies
    assert find_hook(PLAN_JOB) is plan
    assert find_hook(PLAN_COPIES) is copies
    fetches: FindFetch = find_fetch
    assert find_hook(FIND_FETCH) is fetches


def test_every_job_of_holdall_itself_is_declared_for_workers() -> None:
    ours = {name for text in TEXTS.values() for name in re.findall(r'^@job\("([\w.-]+)"', text, re.MULTILINE)}
    declare_jobs()
    assert ours
    assert {job.name for job in declared_jobs().values() if job.place.startswith("holdall.")} == ours


def find_registries(text: str) -> set[str]:
    """The names of a module that begin as an empty collection and are then filled."""
    empty = re.findall(r"^(\w+)(?:: [^=\n]+)? = (?:\{\}|\[\]|set\(\))$", text, re.MULTILINE)
    filled = r"\b{}(?:\[.+\] = |\.(?:add|append|extend|insert|setdefault|update)\()"
    return {name for name in empty if re.search(filled.format(name), text)}


def test_registries_are_recognized() -> None:
    assert find_registries("_a: dict[str, int] = {}\ndef f(): _a['x'] = 1") == {"_a"}
    assert find_registries("_a = []\ndef f(): _a.append(1)") == {"_a"}
    assert not find_registries("_NONE: dict[str, int] = {}")


def test_the_pytest_plugin_resets_the_registries_of_all_features() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {
        "backends",
        "core",
        "errors",
        "web",
    }
    found = {
        f"{'.'.join(path.relative_to(SOURCE.parent).with_suffix('').parts)}.{name}"
        for path, text in TEXTS.items()
        if path.relative_to(SOURCE).parts[0] in rooms
        for name in find_registries(text)
    }
    assert found == {f"{module}._declared" for module in _REGISTRIES}


def test_every_command_belongs_to_a_feature_or_to_the_program_itself() -> None:
    declared = {load(place) for feature in FEATURES for place in feature.commands}
    assert all(isinstance(command, click.Command) for command in declared)
    assert set(program.commands.values()) > declared
    assert {command.name for command in set(program.commands.values()) - declared} == {
        *("backup", "completion", "copy", "doctor", "dump", "items", "load", "migrate", "models"),
        *("restore", "serve", "table"),
    }


def test_the_list_of_features_imports_none_of_them() -> None:
    tree = ast.parse(TEXTS[SOURCE / "features.py"])
    rooms = {feature.name for feature in FEATURES}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("holdall."):
            assert node.module.split(".")[1] not in rooms


def test_opening_a_database_loads_no_feature() -> None:
    script = "import sys; from holdall import Database; Database('memory:').close(); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[1] for name in result.stdout.split() if name.startswith("holdall.")}
    assert loaded.isdisjoint(feature.name for feature in FEATURES)
