"""Pages that show another library's code beside Holdall's: both run, and both do the same to a table."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rig.electrodb import electrodb
from rig.peers import peers_interpreter
from rig.servers import ENVIRONMENT, sign_in, start_server
from test_docs_blocks import PEER_LANGUAGES, ROOT, Block, list_blocks, run_block

from holdall import Database
from holdall.core import Scan
from holdall.errors import TableNotFoundError

pytestmark = pytest.mark.torture

GUIDES = ROOT / "docs" / "guides"
TABLES = ("orders", "accounts", "shop")

Run = Callable[[str], str]
"""A function that runs the source of a block and returns its output."""


@pytest.fixture(scope="module")
def run_python() -> Iterator[Run]:
    """A function that runs blocks in the environment of the Python libraries; an empty source resets the namespace."""
    settings = {
        **ENVIRONMENT,
        "PATH": os.environ["PATH"],
        "AWS_DEFAULT_REGION": ENVIRONMENT["AWS_REGION"],
        "AWS_ENDPOINT_URL_DYNAMODB": start_server("ministack"),
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    process = subprocess.Popen(
        [str(peers_interpreter()), "-W", "ignore", str(Path(__file__).with_name("peer_blocks.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=settings,
        encoding="utf-8",
        start_new_session=True,
    )

    def run(source: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"run": source} if source else {"reset": True}) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline() or '{"error": "the program has ended"}')
        assert "error" not in answer, answer["error"]
        return str(answer["printed"])

    yield run
    process.communicate()


def run_javascript(source: str) -> str:
    program = electrodb()
    program(source)
    return program.printed


class HoldallBlocks:
    """Runs the page's Holdall blocks, in one namespace."""

    def __init__(self, page: Path, prefix: str) -> None:
        self._page = page
        self._prefix = prefix
        self.module = types.ModuleType("page")
        self._runner = asyncio.Runner()

    def __call__(self, block: Block) -> str:
        own = Block(block.info, rename(block.body, self._prefix), block.line, block.directly_below)
        return run_block(own, self._page, self.module, self._runner)

    @property
    def db(self) -> Database:
        return self.module.db  # type: ignore[no-any-return]

    def close(self) -> None:
        self._runner.close()
        self.db.close()


def rename(source: str, prefix: str) -> str:
    """Add a prefix to the names of tables, because other tests use the same server."""
    for table in TABLES:
        source = source.replace(f'"{table}"', f'"{prefix}{table}"')
    return source


def read_tables(db: Database, prefix: str) -> dict[str, list[Any]]:
    """Everything in the page's tables, whatever their prefix; sets in a fixed order."""
    found: dict[str, list[Any]] = {table: [] for table in TABLES}
    for table in TABLES:
        with contextlib.suppress(TableNotFoundError):
            items = db.send(Scan(prefix + table)).items
            alike = [{name: _order(item[name]) for name in sorted(item)} for item in items]
            found[table] = sorted(alike, key=str)
    return found


def _order(attribute: Any) -> Any:
    ((kind, value),) = attribute.items()
    return {kind: sorted(value) if kind in ("SS", "NS", "BS") else value}


def list_peer_pages() -> list[tuple[Path, str]]:
    names = {f'{language} title="{name}"': name for name, language in PEER_LANGUAGES.items()}
    found = {
        (page, names[b.info]) for page in GUIDES.glob("*.md") for b in list_blocks(page) if b.info in names
    }
    return sorted(found)


def run_page(page: Path, theirs: Run, ours: Callable[[Block], str], after_pair: Callable[[], None]) -> None:
    """Run all blocks in the order of the page, and compare what they print."""
    printed, last = "", ""
    for block in list_blocks(page):
        if "title=" in block.info:
            printed, last = theirs(block.body), "theirs"
        elif block.info == "python":
            printed, before, last = ours(block), last, "ours"
            if before == "theirs":
                after_pair()
        elif block.info == "text" and block.directly_below:
            assert printed == block.body, f"{page.name}, line {block.line}: prints something else"


@pytest.fixture(params=list_peer_pages(), ids=lambda pair: pair[0].stem)
def page_and_peer(request: pytest.FixtureRequest, run_python: Run) -> Iterator[tuple[Path, Run]]:
    page, name = request.param
    if PEER_LANGUAGES[name] == "js":
        yield page, run_javascript
    else:
        yield page, run_python
        run_python("")


def make_url(table: str) -> str:
    return f"dynamodb://{table}?endpoint={start_server('ministack')}&region={ENVIRONMENT['AWS_REGION']}"


def test_both_programs_store_the_same_items(
    page_and_peer: tuple[Path, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, theirs = page_and_peer
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDALL_URL", raising=False)
    prefix = f"docs-{uuid4().hex[:8]}-"
    ours = HoldallBlocks(page, "")
    monkeypatch.setitem(sys.modules, "page", ours.module)
    compared = []
    with Database(make_url("unused"), credentials=sign_in) as other:

        def compare() -> None:
            compared.append(read_tables(other, prefix))
            assert read_tables(ours.db, "") == compared[-1]

        run_page(page, lambda source: theirs(rename(source, prefix)), ours, compare)
    ours.close()
    assert len(compared) > 5
    assert any(compared[-1].values())


def test_both_programs_can_share_one_table(
    page_and_peer: tuple[Path, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, theirs = page_and_peer
    monkeypatch.chdir(tmp_path)
    prefix = f"docs-{uuid4().hex[:8]}-"
    settings = {"HOLDALL_URL": make_url(f"{prefix}own"), "HOLDALL_MANAGE_TABLE": "true"}
    for name, value in {**ENVIRONMENT, **settings}.items():
        monkeypatch.setenv(name, value)
    ours = HoldallBlocks(page, prefix)
    monkeypatch.setitem(sys.modules, "page", ours.module)
    run_page(page, lambda source: theirs(rename(source, prefix)), ours, lambda: None)
    ours.close()


# --- claims of the guides about other libraries ---------------------------------------------------------------

CREATE = """
import boto3

table = boto3.resource("dynamodb").create_table(
    TableName="orders",
    BillingMode="PAY_PER_REQUEST",
    AttributeDefinitions=[{"AttributeName": "customer", "AttributeType": "S"}],
    KeySchema=[{"AttributeName": "customer", "KeyType": "HASH"}],
)


def put(**more):
    table.put_item(Item={"customer": "ada", "total": 1, **more})


def get():
    return table.get_item(Key={"customer": "ada"})["Item"]
"""

CLAIMS = {
    "PynamoDB's save deletes what its model does not declare": """
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

class Order(Model):
    class Meta:
        table_name = "orders"
        region = "us-east-1"
    customer = UnicodeAttribute(hash_key=True)
    total = NumberAttribute()
    note = UnicodeAttribute(null=True)

put(extra="x")
order = Order.get("ada")
order.save()
assert get() == {"customer": "ada", "total": 1}
""",
    "dyntastic's save does so too, and its update ignores a failed condition": """
from dyntastic import A, Dyntastic

class Order(Dyntastic):
    __table_name__ = "orders"
    __table_region__ = "us-east-1"
    __hash_key__ = "customer"
    customer: str
    total: int
    note: str | None = None

put(extra="x")
order = Order.get("ada")
order.save()
assert get() == {"customer": "ada", "total": 1}
order.update(A.total.set(2), condition=A.total > 5)
order.update(A.note.set("x"), condition=A.total == 1)
order.update(A.total.set("many"), refresh=False)
assert get() == {"customer": "ada", "total": "many", "note": "x"}
""",
    "boto3 stores None as null and refuses floats; DynamoDB refuses empty sets": """
from botocore.exceptions import ClientError

put(note=None)
raw = boto3.client("dynamodb").get_item(TableName="orders", Key={"customer": {"S": "ada"}})["Item"]
assert raw["note"] == {"NULL": True}
for value in (1.5, set()):
    try:
        put(note=value)
    except (TypeError, ClientError):
        continue
    raise AssertionError(value)
""",
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_about_another_library_is_true(claim: str, run_python: Run) -> None:
    run_python("")
    run_python(rename(CREATE + CLAIMS[claim], f"docs-{uuid4().hex[:8]}-"))
