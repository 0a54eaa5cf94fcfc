"""Public names are documented, and sync and async twins have the same methods and parameters."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import holdall
from holdall import AsyncDatabase, Database
from holdall.archive import ArchiveActions, AsyncArchiveActions
from holdall.artifacts import Artifacts, AsyncArtifacts
from holdall.attachments import AsyncBlobs, Blobs
from holdall.errors import HoldallError
from holdall.files import AsyncFiles, AsyncObjectHandle, Files, ObjectHandle
from holdall.jobs import AsyncJobs, Jobs
from holdall.tables import AsyncTable, Table
from holdall.transactions import (
    AsyncBulk,
    AsyncRows,
    AsyncScanRows,
    AsyncTransaction,
    Bulk,
    Rows,
    ScanRows,
    Transaction,
)
from holdall.transactions.bulk.runner import AsyncBulkRunner, BulkRunner
from holdall.transactions.read.reader import AsyncReader, Reader
from holdall.transactions.run.runner import AsyncRunner, Runner

SOURCE = Path(holdall.__file__).parent
OPENED = [(Database, AsyncDatabase)]
TWINS = [
    *OPENED,
    (ArchiveActions, AsyncArchiveActions),
    (Artifacts, AsyncArtifacts),
    (Blobs, AsyncBlobs),
    (Bulk, AsyncBulk),
    (BulkRunner, AsyncBulkRunner),
    (Files, AsyncFiles),
    (Jobs, AsyncJobs),
    (ObjectHandle, AsyncObjectHandle),
    (Reader, AsyncReader),
    (Rows, AsyncRows),
    (Runner, AsyncRunner),
    (ScanRows, AsyncScanRows),
    (Table, AsyncTable),
    (Transaction, AsyncTransaction),
]
COLOURED = {"aio", "sync"}  # each returns the other twin
ENTERING = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


@cache
def list_modules() -> list[str]:
    found = pkgutil.walk_packages(holdall.__path__, "holdall.")
    return ["holdall", *(module.name for module in found)]


def test_everything_that_a_module_exports_exists_and_has_a_docstring() -> None:
    for name in list_modules():
        module = importlib.import_module(name)
        exported = {public: getattr(module, public) for public in getattr(module, "__all__", [])}
        own = {
            own: member for own, member in vars(module).items() if getattr(member, "__module__", "") == name
        }
        for public, member in (own | exported).items():
            if inspect.isclass(member) or inspect.isfunction(member):
                assert public.startswith("_") or inspect.getdoc(member), f"{name}.{public} has no docstring"


def list_subclasses(kind: type[HoldallError]) -> set[type[HoldallError]]:
    """An error and everything that derives from it."""
    return {kind}.union(*(list_subclasses(each) for each in kind.__subclasses__()))


def test_every_error_is_public_in_holdall_errors() -> None:
    ours = set(map(importlib.import_module, list_modules()))
    homes = {kind.__module__ for kind in list_subclasses(HoldallError)}
    assert {module.__name__ for module in ours} & homes == {"holdall.errors"}


def test_lazily_loaded_names_are_exported_and_visible_to_type_checkers() -> None:
    modules = [importlib.import_module(name) for name in list_modules() if name.count(".") < 2]
    lazy = [module for module in modules if hasattr(module, "_HOMES")]
    assert lazy
    for module in lazy:
        nodes = ast.walk(ast.parse(inspect.getsource(module)))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module != "typing"]
        seen = {alias.asname or alias.name for node in imports for alias in node.names}
        assert module._HOMES.keys() <= set(module.__all__) <= seen | {"__version__"}, module.__name__


def describe_shell(shell: type[Any]) -> dict[str, inspect.Signature | None]:
    """Public methods with their parameters; properties have none."""
    found: dict[str, inspect.Signature | None] = {}
    for name, member in vars(shell).items():
        if name in COLOURED or (name.startswith("_") and name != "__init__"):
            continue
        if inspect.isfunction(member):
            signature = inspect.signature(member)
            parameters = [
                # an async twin also takes async functions
                each.replace(
                    annotation=str(each.annotation).replace("Awaitable[T]", "T").replace("Async", "")
                )
                for each in signature.parameters.values()
            ]
            found[name] = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
        elif isinstance(member, property):
            found[name] = None
    return found


@pytest.mark.parametrize(("blocking", "awaiting"), TWINS)
def test_twins_have_the_same_methods_parameters_and_defaults(
    blocking: type[Any], awaiting: type[Any]
) -> None:
    assert describe_shell(blocking) == describe_shell(awaiting)


@pytest.mark.parametrize(("blocking", "awaiting"), OPENED)
def test_twins_are_sync_or_async_context_managers(blocking: type[Any], awaiting: type[Any]) -> None:
    for plain, awaited in ENTERING.items():
        assert hasattr(blocking, plain)
        assert not hasattr(blocking, awaited)
        assert hasattr(awaiting, awaited)
        assert not hasattr(awaiting, plain)


def test_every_pair_of_twins_is_compared() -> None:
    pairs = set()
    for name in list_modules():
        for public, member in vars(importlib.import_module(name)).items():
            if (
                inspect.isclass(member)
                and public.startswith("Async")
                and member.__module__.startswith("holdall")
            ):
                pairs.add(member)
    assert pairs == {awaiting for _, awaiting in TWINS}


# --- calls of commands and web applications ---------------------------------------------------------------


@cache
def list_methods() -> tuple[set[str], set[str]]:
    """The names of Holdall's methods that are marked as internal, and of all others."""
    marked, others = set[str](), set(dir(object))
    for kind in (str, bytes, list, dict, set, tuple, int, Thread, Path):
        others.update(dir(kind))
    for module in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_marked = any(ast.unparse(each) == "internal" for each in node.decorator_list)
                (marked if is_marked else others).add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                others.add(node.target.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                others.add(node.attr)
    return marked, others


@pytest.mark.parametrize("room", ["cli", "web"])
def test_commands_and_web_applications_call_no_internal_method(room: str) -> None:
    marked, others = list_methods()
    assert {"has_default", "list_page", "check_type"} <= others
    assert {"refuse_change", "was_fetched", "send_together"} <= marked - others
    for module in (SOURCE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                where = f"{module.relative_to(SOURCE)}:{node.lineno}"
                assert node.attr not in marked - others, f"{where} calls {node.attr}, which is internal"
