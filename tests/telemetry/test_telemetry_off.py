"""Without telemetry, OpenTelemetry is not loaded and no layer stands between a database and its store."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import sampling
from telemetry_rig import Account, open_faulty, set_up_telemetry

from holdall.core.telemetry import instruments

WORK = """
from holdall import Database, Key, Model

class Account(Model):
    owner: Key[str]
    cents: int = 0

def work(db):
    db.run(lambda tx: tx.create(Account, owner="ada"))
    with db.transaction() as tx:
        tx.get_one(Account, "ada").cents += 1
    return db.get(Account, "ada").cents
"""
SET_UP = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()

def set_up():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
"""
ABSENT = """
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent)
"""


def print_from(script: str) -> str:
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_without_opentelemetry_requests_go_directly_to_the_store() -> None:
    script = f"""{ABSENT}{WORK}
with Database("memory:") as db:
    assert work(db) == 1
    print(db.port._backend is db._backend)
"""
    assert print_from(script) == "True"


def find_loaded(statement: str) -> set[str]:
    modules = print_from(
        f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*set(sys.modules) - before)"
    )
    return {name.partition(".")[0] for name in modules.split()}


@pytest.mark.parametrize(
    "statement", ["import holdall", "from holdall import AsyncDatabase, Database, Model"]
)
def test_importing_does_not_load_opentelemetry(statement: str) -> None:
    assert not {"opentelemetry"} & find_loaded(statement)


def test_opentelemetry_is_not_loaded_if_the_program_does_not_use_it() -> None:
    assert "opentelemetry" not in find_loaded(f"{WORK}\nwith Database('memory:') as db: work(db)")


def test_logging_is_not_loaded_for_a_debug_message() -> None:
    script = "from holdall.core.telemetry import debug, warn\ndebug('room', 'a message')"
    assert "logging" not in find_loaded(script)
    assert "logging" in find_loaded(f"{script}\nwarn('room', 'a message')")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_program_can_set_up_telemetry_before_or_after_it_opens_a_database(when: str) -> None:
    opening, setting = "db = Database('memory:')", "set_up()"
    first, second = (setting, opening) if when == "before" else (opening, setting)
    script = f"""{WORK}{SET_UP}
{first}
{second}
db.get(Account, "missing")
exporter.clear()
work(db)
db.close()
print(*(span.name.partition(" ")[0] for span in exporter.get_finished_spans()))
"""
    block = "GetItem UpdateItem holdall.transaction"
    assert print_from(script) == f"PutItem holdall.transaction {block} GetItem"


def test_a_provider_that_the_environment_names_is_found() -> None:
    """OpenTelemetry loads the provider at the first use, which can be Holdall's."""
    script = f"""
import os
os.environ["OTEL_PYTHON_TRACER_PROVIDER"] = "sdk_tracer_provider"
{WORK}
import opentelemetry.trace
from holdall.core.telemetry import instruments
with Database("memory:") as db:
    work(db)
print(type(instruments().tracer).__module__)
"""
    assert print_from(script) == "opentelemetry.sdk.trace"


def test_opentelemetrys_own_no_op_provider_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert instruments() is None
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", trace.NoOpTracerProvider())
    assert instruments() is None


def test_the_provider_is_found_without_opentelemetrys_private_variable() -> None:
    with set_up_telemetry(measures=False) as recording, pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer_provider", lambda: recording.tracing)
        patch.delattr(trace, "_TRACER_PROVIDER")
        found = instruments()
        assert found is not None
        assert found.tracer is not None
    assert instruments() is None


def test_a_transaction_that_is_not_sampled_still_runs() -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        recording.tracing.sampler = sampling.ALWAYS_OFF
        db.run(lambda tx: tx.create(Account, owner="ada", cents=3))
        account = db.get(Account, "ada")
        assert account is not None
        assert account.cents == 3
    assert recording.spans == []
