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
    ("artifacts/version/reservation.py", "_request_number"): "reserves a number: its reply is the point",
    ("maintenance/copy/table.py", "TableCopy"): "a batch of items of any table",
    (
        "maintenance/doctor/trial.py",
        "plan_table_trials",
    ): "tries each request that Holdall sends, to change nothing",
    ("maintenance/dump/flow.py", "_Load"): "items of any table, for the batches of `_send`",
    ("maintenance/dump/flow.py", "_send"): "a batch of items of any table",
}
"""Functions that build requests themselves, each with the reason."""

RAW = {
    "archive/item.py": "writes the keys of items of any model as text",
    "archive/ancestor.py": "reads pointers that another library left in items",
    "attachments/owner/resolution.py": "reads the key of an item of any model from an owner's id",
    "jobs/record.py": "pauses the jobs of a copied database, whose items may be malformed",
    "maintenance/copy/item.py": "finds out whether an item of any table has expired",
    "maintenance/copy/table.py": "reads the keys of any table",
    "maintenance/doctor/guard.py": "compares attributes of any model with the guards of their values",
    "maintenance/doctor/trial.py": "invents a key of any table",
    "maintenance/dump/line.py": "writes attributes of any table as JSON, and reads them",
    "archive/export/parquet.py": "writes attributes of any model as JSON",
    "archive/pointer.py": "the pointer is an attribute of items of any model",
    "artifacts/home.py": "makes the keys of the table of artifacts, and reads them",
    "artifacts/record.py": "reads the keys of its records",
    "artifacts/version/reservation.py": "computes the next number in the store",
}
"""Modules that handle stored attributes, each with the reason."""

REPEATING = {
    "archive/run.py": "examines an item again that was written meanwhile; one that keeps changing is for the next run",
    "archive/storage.py": "each attempt follows from what the last one found at the key; no table is involved",
    "artifacts/version/reservation.py": "reserves a number in a slot that is free: no attempt waits for another writer",
    "attachments/upkeep/audit.py": "reads until nothing changes between two reads; writes nothing",
    "files/mirror.py": "files know no table",
    "tables/flow.py": "creates what a table lacks, which takes minutes; no item is involved",
    "transactions/bulk/batch.py": "sends a batch again, which is not a commit, with the pauses of the rule",
    "transactions/commit.py": "plans a blind write again that met a pointer, within one attempt",
    "transactions/run/flow.py": "the rule itself, for the user's own code",
    "web/inbox.py": "lets other tasks run",
    "worker/feed.py": "polls as long as the worker runs, also while the service is down",
    "worker/runner.py": "a worker that holds a job outlasts a short failure of the service; each attempt is a commit",
    "worker/worker.py": "takes one job after the other, and enqueues occurrences as long as the worker runs",
}
"""Modules with loops that make attempts, and do not ask the rule of commits; each with the reason."""
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
    """Whether code makes a stored attribute, such as ``{"S": name}``, looks into one, or asks for its kind."""
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


def test_what_is_raw_is_recognised() -> None:
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
    ):
        assert any(map(is_raw, ast.walk(ast.parse(code)))) == raw, code


def writes_of(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """The requests that a module builds: the function or class, the line, and the request, however it was imported."""
    names = {name: name for name in WRITES}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname: each.name for each in node.names if each.asname and each.name in WRITES}
    for function, node in functions(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", None) or names.get(getattr(node.func, "id", ""))
            if called in WRITES:
                yield function, node.lineno, called


def test_a_request_is_recognised() -> None:
    for code in ("PutItem(t, k)", "requests.PutItem(t, k)", "from a import PutItem as P\nP(t, k)"):
        assert [name for *_, name in writes_of(ast.parse(code))] == ["PutItem"], code
    assert not [*writes_of(ast.parse("GetItem(t, k)"))]


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_feature_speaks_in_records(module: Path) -> None:
    where = module.relative_to(SOURCE).as_posix()
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree):
        assert where in RAW or not is_raw(node), f"{where}:{node.lineno} handles a stored attribute"  # type: ignore[attr-defined]
    for function, line, request in writes_of(tree):
        assert (where, function) in BY_HAND, f"{where}:{line} builds a {request} by hand"


def test_what_is_said_to_be_by_hand_is() -> None:
    for where, name in BY_HAND:
        built = {function for function, *_ in writes_of(ast.parse((SOURCE / where).read_text()))}
        assert name in built, f"{where}: {name} builds nothing by hand any more"


def test_what_is_said_to_be_raw_is() -> None:
    for where in RAW:
        tree = ast.parse((SOURCE / where).read_text())
        assert any(map(is_raw, ast.walk(tree))), f"{where} handles no stored attribute any more"


def is_fixed(counted: ast.expr) -> bool:
    """Whether a loop counts up to a constant; a loop over the parts of something has steps, or measures it."""
    for node in ast.walk(counted):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("count", "range", "repeat"):
            inside = [part for argument in node.args for part in ast.walk(argument)]
            return len(node.args) < 2 and not any(isinstance(part, ast.Call) for part in inside)
    return False


def body_of(loop: ast.AST) -> Iterator[ast.AST]:
    """What is in a loop, without the loops inside it."""
    for node in ast.iter_child_nodes(loop):
        yield node
        if not isinstance(node, ast.For | ast.While):
            yield from body_of(node)


def goes_on(loop: ast.AST) -> bool:
    """Whether a loop goes on after another writer was faster, or after a failure that may be over the next time."""
    for node in body_of(loop):
        caught: list[ast.AST] = []
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise | ast.Return):
            caught = [node.type] if node.type else [ast.Name("BaseException")]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "suppress":
            caught = list(node.args)
        if REFUSALS & {getattr(name, "id", "") for each in caught for name in ast.walk(each)}:
            return True
    return False


def repeats(tree: ast.AST) -> Iterator[int]:
    """The loops that wait, make attempts, and do not ask the rule of commits whether there is another."""
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For | ast.While):
            continue
        inside = list(ast.walk(loop))
        waits = any(isinstance(node, ast.Await | ast.AsyncWith) for node in inside)
        asks = any(isinstance(node, ast.Attribute) and node.attr == "another" for node in inside)
        if waits and not asks and (is_fixed(loop.iter) if isinstance(loop, ast.For) else goes_on(loop)):
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
def test_attempts_are_recognised(header: str, body: str, counts: bool) -> None:
    code = f"async def g():\n  {header}:\n    {body}"
    assert bool([*repeats(ast.parse(code))]) == counts


def test_a_change_is_repeated_by_the_rule_of_commits_alone() -> None:
    found = set()
    for module in SOURCE.rglob("*.py"):
        where = module.relative_to(SOURCE).as_posix()
        is_below = where.startswith(("backends/", "tables/commit/", "testing/"))
        if not is_below and any(repeats(ast.parse(module.read_text()))):
            found.add(where)
    assert found == set(REPEATING)
