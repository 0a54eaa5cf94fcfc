"""Rooms that store typed records write them only through changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "holdall"

ROOMS = ("archive", "artifacts", "attachments", "jobs", "maintenance", "worker", "tables/claim.py")

OWN_REQUESTS = {
    (
        "archive/exchange.py",
        "exchange_pointer",
    ): "changes a pointer of any model; repeating that has no effect",
    (
        "archive/item.py",
        "send_swap",
    ): "swaps attributes of any model for a pointer; repeating that has no effect",
    ("artifacts/version/reservation.py", "_request_number"): "reserves a number, which the reply contains",
    ("maintenance/copy/table.py", "TableCopy"): "writes a batch of items of any table",
    (
        "maintenance/doctor/trial.py",
        "plan_table_trials",
    ): "tries each request that Holdall sends, without changing anything",
    ("maintenance/dump/flow.py", "_Load"): "writes batches of items of any table",
}
"""Functions that build requests themselves, each with the reason."""

RAW = {
    "archive/item.py": "writes the keys of items of any model as text",
    "archive/ancestor.py": "reads pointers that another library left in items",
    "attachments/owner/resolution.py": "reads the key of an item of any model from an owner's id",
    "jobs/record.py": "pauses the jobs of a copied database, whose items may be malformed",
    "maintenance/copy/item.py": "checks whether an item of any table has expired",
    "maintenance/copy/table.py": "reads the keys of any table",
    "maintenance/doctor/guard.py": "compares attributes of any model with the guards of their values",
    "maintenance/doctor/trial.py": "invents a key of any table",
    "maintenance/dump/line.py": "writes attributes of any table as JSON, and reads them",
    "archive/export/parquet.py": "writes attributes of any model as JSON",
    "archive/pointer.py": "the pointer is an attribute of items of any model",
    "attachments/record.py": "declares columns of forms that only its records have",
    "artifacts/home.py": "makes the keys of the table of artifacts, and reads them",
    "artifacts/record.py": "reads the keys of its records",
    "artifacts/version/reservation.py": "computes the next number in the store",
}
"""Modules that handle stored attributes, each with the reason."""

REPEATING = {
    "archive/run.py": "examines an item again if another writer changed it; skips an item that keeps changing",
    "archive/storage.py": "each attempt depends on what the last one found at the key; no table is involved",
    "artifacts/version/reservation.py": "reserves a number in a free slot; no attempt waits for another writer",
    "attachments/upkeep/audit.py": "reads until nothing changes between two reads; writes nothing",
    "files/mirror.py": "no table is involved",
    "tables/flow.py": "creates what a table lacks, which takes minutes; no item is involved",
    "transactions/bulk/batch.py": "repeats a batch, which is not a commit, with the rule's pauses",
    "transactions/commit.py": "plans a blind write again if it met a pointer, within one attempt",
    "transactions/run/flow.py": "the rule itself, for the user's own code",
    "web/inbox.py": "lets other tasks run",
    "worker/feed.py": "polls as long as the worker runs, even while the service is down",
    "worker/runner.py": "a worker that holds a job outlasts a short failure of the service; each attempt is a commit",
    "worker/worker.py": "takes one job after another, and enqueues occurrences as long as the worker runs",
}
"""Modules with loops that repeat attempts without the rule of commits, each with the reason."""
REFUSALS = {
    *(
        "BaseException",
        "ConditionFailedError",
        "ConflictError",
        "ContentionError",
        "Exception",
        "HoldallError",
    ),
    *("OutcomeUnknown", "PreconditionFailedError", "ServiceUnavailableError", "ThrottledError"),
    *("TransactionCanceledError", "TransactionFailedError"),
}

WRITES = {"BatchWrite", "ConditionCheck", "DeleteItem", "PutItem", "TransactWrite", "UpdateItem", "stamped"}
KINDS = {"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}


def list_modules() -> list[Path]:
    places = [SOURCE / room for room in ROOMS]
    return sorted(
        module for place in places for module in ([place] if place.is_file() else place.rglob("*.py"))
    )


def walk_functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Each node of a module, with the name of the outermost function or class around it."""
    for top in tree.body:
        name = top.name if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ""
        for node in ast.walk(top):
            yield name, node


def is_kind(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in KINDS


def is_raw(node: ast.AST) -> bool:
    """Whether code makes a stored attribute, such as ``{"S": name}``, reads one, compares its kind, or could convert
    one."""
    if isinstance(node, ast.ImportFrom) and node.module == "holdall.core.values":
        return not {each.name for each in node.names} <= {"Attribute", "Item"}
    if isinstance(node, ast.Dict):
        return len(node.keys) == 1 and is_kind(node.keys[0])
    if isinstance(node, ast.Subscript):
        return is_kind(node.slice)
    if isinstance(node, ast.Compare):
        return any(is_kind(part) for each in (node.left, *node.comparators) for part in ast.walk(each))
    if isinstance(node, ast.MatchMapping | ast.MatchValue):
        return any(map(is_kind, node.keys if isinstance(node, ast.MatchMapping) else [node.value]))
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return called and bool(node.args) and is_kind(node.args[0])  # type: ignore[attr-defined]


def test_raw_attributes_are_recognized() -> None:
    for code, raw in (
        ('{"S": name}', True),
        ('item["a"]["N"]', True),
        ('x.get("M")', True),
        ('{"S": 1, "T": 2}', False),
        ('if kind == "B": pass', True),
        ('known = kind in ("S", "N")', True),
        ('match x:\n  case {"S": name}: pass', True),
        ('match kind:\n  case "S" | "N": pass', True),
        ('kind == "T"', False),
        ("from holdall.core.values import Item, encode", True),
        ("from holdall.core.values import Attribute, Item", False),
    ):
        assert any(map(is_raw, ast.walk(ast.parse(code)))) == raw, code


def find_writes(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """The write requests that a module builds, under any alias: the function or class, the line, and the request."""
    names = {name: name for name in WRITES}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname: each.name for each in node.names if each.asname and each.name in WRITES}
    for function, node in walk_functions(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", None) or names.get(getattr(node.func, "id", ""))
            if called in WRITES:
                yield function, node.lineno, called


def test_write_requests_are_recognized() -> None:
    for code in ("PutItem(t, k)", "requests.PutItem(t, k)", "from a import PutItem as P\nP(t, k)"):
        assert [name for *_, name in find_writes(ast.parse(code))] == ["PutItem"], code
    assert not [*find_writes(ast.parse("GetItem(t, k)"))]


@pytest.mark.parametrize("module", list_modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_feature_writes_only_records(module: Path) -> None:
    where = module.relative_to(SOURCE).as_posix()
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree):
        assert where in RAW or not is_raw(node), f"{where}:{node.lineno} handles a stored attribute"  # type: ignore[attr-defined]
    for function, line, request in find_writes(tree):
        assert (where, function) in OWN_REQUESTS, f"{where}:{line} builds a {request} itself"


def test_every_exemption_for_requests_is_still_needed() -> None:
    for where, name in OWN_REQUESTS:
        built = {function for function, *_ in find_writes(ast.parse((SOURCE / where).read_text()))}
        assert name in built, f"{where}: {name} no longer builds a request"


def test_every_exemption_for_raw_attributes_is_still_needed() -> None:
    for where in RAW:
        tree = ast.parse((SOURCE / where).read_text())
        assert any(map(is_raw, ast.walk(tree))), f"{where} no longer handles a stored attribute"


def is_fixed(counted: ast.expr) -> bool:
    """Whether a loop counts up to a constant; a loop over parts has a step, or computes its limit."""
    for node in ast.walk(counted):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("count", "range", "repeat"):
            inside = [part for argument in node.args for part in ast.walk(argument)]
            return len(node.args) < 2 and not any(isinstance(part, ast.Call) for part in inside)
    return False


def walk_body(loop: ast.AST) -> Iterator[ast.AST]:
    """The nodes in a loop, without those in loops inside it."""
    for node in ast.iter_child_nodes(loop):
        yield node
        if not isinstance(node, ast.For | ast.While):
            yield from walk_body(node)


def continues_after_refusal(loop: ast.AST) -> bool:
    """Whether a loop continues after another writer was faster, or after a failure that may be temporary."""
    for node in walk_body(loop):
        caught: list[ast.AST] = []
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise | ast.Return):
            caught = [node.type] if node.type else [ast.Name("BaseException")]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "suppress":
            caught = list(node.args)
        if REFUSALS & {getattr(name, "id", "") for each in caught for name in ast.walk(each)}:
            return True
    return False


def find_retries(tree: ast.AST) -> Iterator[int]:
    """The lines of loops that wait and repeat attempts without asking the rule of commits for another attempt."""
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For | ast.While):
            continue
        inside = list(ast.walk(loop))
        waits = any(isinstance(node, ast.Await | ast.AsyncWith) for node in inside)
        asks = any(isinstance(node, ast.Attribute) and node.attr == "another" for node in inside)
        if (
            waits
            and not asks
            and (is_fixed(loop.iter) if isinstance(loop, ast.For) else continues_after_refusal(loop))
        ):
            yield loop.lineno


@pytest.mark.parametrize(
    ("header", "body", "counts"),
    [
        ("for _ in range(5)", "await f()", True),
        ("for left in reversed(range(_TRIES))", "await f()", True),
        ("for start in range(0, len(items), 100)", "await f()", False),
        ("for _ in range(5)", "f()", False),
        ("while True", "try: await f()\n    except ContentionError: pass", True),
        ("while True", "try: await f()\n    except (A, OutcomeUnknown): await sleep()", True),
        ("while True", "try: await f()\n    except HoldallError: raise", False),
        ("while True", "with suppress(ConflictError): await f()", True),
        ("for item in items", "try: await f()\n    except ConflictError: continue", False),
        ("while await attempts.another()", "try: await f()\n    except ContentionError: pass", False),
    ],
)
def test_retries_are_recognized(header: str, body: str, counts: bool) -> None:
    code = f"async def g():\n  {header}:\n    {body}"
    assert bool([*find_retries(ast.parse(code))]) == counts


def test_changes_are_retried_only_by_the_rule_of_commits() -> None:
    found = set()
    for module in SOURCE.rglob("*.py"):
        where = module.relative_to(SOURCE).as_posix()
        is_below = where.startswith(("backends/", "tables/commit/", "testing/"))
        if not is_below and any(find_retries(ast.parse(module.read_text()))):
            found.add(where)
    assert found == set(REPEATING)
