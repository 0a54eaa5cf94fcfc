"""Rooms that declare what they store as typed records write it through a change, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "holdall"

ROOMS = ("archive", "artifacts", "attachments", "jobs", "maintenance", "worker", "tables/claim.py")

BY_HAND = {
    (
        "archive/exchange.py",
        "exchange_pointer",
    ): "changes a pointer of any model: to repeat it changes nothing",
    (
        "archive/item.py",
        "send_swap",
    ): "swaps attributes of any model for a pointer: to repeat it changes nothing",
    ("artifacts/version/reservation.py", "raise_counter"): "raises a counter: to repeat it changes nothing",
    ("artifacts/version/reservation.py", "_request_number"): "reserves a number: its reply is the point",
    ("maintenance/copy/table.py", "TableCopy"): "a batch of items of any table",
    (
        "maintenance/doctor/trial.py",
        "plan_table_trials",
    ): "tries each request that Holdall sends, to change nothing",
    ("maintenance/dump/flow.py", "_Load"): "items of any table, for the batches of `_send`",
    ("maintenance/dump/flow.py", "_send"): "a batch of items of any table",
    ("tables/claim.py", "release"): "a batch, which may be repeated: a claim that is gone is released",
}
"""Functions that build requests themselves, each with the reason."""

RAW = {
    "archive/ancestor.py": "reads pointers that another library left in items",
    "jobs/record.py": "pauses the jobs of a copied database, whose items may be malformed",
    "maintenance/copy/item.py": "finds out whether an item of any table has expired",
    "maintenance/copy/table.py": "reads the keys of any table",
    "maintenance/doctor/guard.py": "compares attributes of any model with the guards of their values",
    "maintenance/doctor/trial.py": "invents a key of any table",
    "maintenance/dump/line.py": "writes attributes of any table as JSON, and reads them",
    "archive/parquet.py": "writes attributes of any model as JSON",
    "archive/pointer.py": "the pointer is an attribute of items of any model",
    "artifacts/home.py": "makes the keys of the table of artifacts, and reads them",
    "artifacts/record.py": "reads the keys of its records",
    "artifacts/version/reservation.py": "computes the next number in the store",
}
"""Modules that handle stored attributes, each with the reason."""

REPEATING = {
    "archive/storage.py": "each attempt follows from what the last one found at the key; no table is involved",
    "artifacts/version/reservation.py": "reserves a number in a slot that is free: no attempt waits for another writer",
    "files/mirror.py": "files know no table",
}
"""Modules that count attempts themselves, each with the reason."""
REFUSALS = {"ConditionFailedError", "ConflictError", "ContentionError", "PreconditionFailedError"}

WRITES = {"BatchWrite", "ConditionCheck", "DeleteItem", "PutItem", "TransactWrite", "UpdateItem", "stamped"}
KINDS = {"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}


def modules() -> list[Path]:
    places = [SOURCE / room for room in ROOMS]
    return sorted(
        module for place in places for module in ([place] if place.is_file() else place.rglob("*.py"))
    )


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Each node of a module, with the outermost function or class that it is in."""
    for top in tree.body:
        name = top.name if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ""
        for node in ast.walk(top):
            yield name, node


def is_kind(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in KINDS


def is_raw(node: ast.AST) -> bool:
    """Whether code makes an attribute as it is stored, such as ``{"S": name}``, or looks into one."""
    if isinstance(node, ast.Dict):
        return len(node.keys) == 1 and is_kind(node.keys[0])
    if isinstance(node, ast.Subscript):
        return is_kind(node.slice)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return called and bool(node.args) and is_kind(node.args[0])  # type: ignore[attr-defined]


def test_what_is_raw_is_recognised() -> None:
    for code, raw in (
        ('{"S": name}', True),
        ('item["a"]["N"]', True),
        ('x.get("M")', True),
        ('{"S": 1, "T": 2}', False),
    ):
        assert any(map(is_raw, ast.walk(ast.parse(code)))) == raw, code


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_feature_speaks_in_records(module: Path) -> None:
    where = module.relative_to(SOURCE).as_posix()
    for function, node in functions(ast.parse(module.read_text())):
        assert where in RAW or not is_raw(node), f"{where}:{node.lineno} handles a stored attribute"  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WRITES:
            assert (where, function) in BY_HAND, f"{where}:{node.lineno} builds a {node.func.id} by hand"


def test_what_is_said_to_be_by_hand_is() -> None:
    for where, name in BY_HAND:
        built = {
            node.func.id
            for function, node in functions(ast.parse((SOURCE / where).read_text()))
            if function == name and isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert built & WRITES, f"{where}: {name} builds nothing by hand any more"


def test_what_is_said_to_be_raw_is() -> None:
    for where in RAW:
        tree = ast.parse((SOURCE / where).read_text())
        assert any(map(is_raw, ast.walk(tree))), f"{where} handles no stored attribute any more"


def repeats(tree: ast.Module) -> Iterator[int]:
    """The loops that count attempts, and go on after another writer was faster."""
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
        if isinstance(called, ast.Name) and called.id == "range":
            handlers = [
                node.type for node in ast.walk(loop) if isinstance(node, ast.ExceptHandler) and node.type
            ]
            names = {each.id for kind in handlers for each in ast.walk(kind) if isinstance(each, ast.Name)}
            if names & REFUSALS:
                yield loop.lineno


def test_a_change_is_repeated_by_the_rule_of_commits_alone() -> None:
    found = set()
    for room in (*ROOMS, "files", "transactions", "cli", "web"):
        for module in (SOURCE / room).rglob("*.py"):
            if any(repeats(ast.parse(module.read_text()))):
                found.add(module.relative_to(SOURCE).as_posix())
    assert found == set(REPEATING)
