"""Paths, seeds, Hypothesis profiles, and a closing table of rooms, with the reasons of skipped tests."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from rig.huge_pages import use_huge_pages

TESTS = Path(__file__).parent
# every folder with tests is on the path, so that a test imports its room's rig by name, also from subfolders
sys.path += sorted({str(test.parent) for test in TESTS.rglob("test_*.py")} - {*sys.path, str(TESTS / "rig")})

gc.disable()  # until the tests are collected, because almost all objects created until then stay alive

MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = str(
        MEMORY
    )  # a killed process leaves the same files there, and no test waits for a disk

TORTURE = bool(os.environ.get("HOLDALL_TORTURE"))
FIXED_SEED = "20261115"

if TORTURE:
    os.environ.setdefault("HOLDALL_SEED", str(random.SystemRandom().randrange(2**32)))
    os.environ.setdefault("HOLDALL_TORTURE_ROUNDS", "40")
os.environ.setdefault("HOLDALL_SEED", FIXED_SEED)

settings.register_profile(
    "fixed",
    max_examples=20,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "torture", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("torture" if TORTURE else "fixed")

_seconds: dict[str, float] = defaultdict(float)
_results: dict[str, Counter[str]] = defaultdict(Counter)
_skips: Counter[str] = Counter()


def pytest_configure(config: pytest.Config) -> None:
    """Keep pytest from rewriting the assertions of the package, as it does for any plugin.

    In a fresh clone, rewriting takes each process longer than compiling.
    """
    hook: Any = config.pluginmanager.rewrite_hook
    getattr(hook, "_must_rewrite", set()).discard("holdall")
    getattr(hook, "_marked_for_rewrite_cache", {}).clear()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use two processes more than there are cores, because tests often wait for servers and killed processes."""
    return (os.cpu_count() or 1) + 2


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a parallel run, let each process import a share of the tests first, so that others find their bytecode.

    In a fresh clone, pytest rewrites the assertions of every file, which takes longer than all imports. Meanwhile, a
    run of all tests installs the packages and servers that they need.
    """
    process = getattr(session.config, "workerinput", None)
    if (
        process is None
        and session.config.getoption("numprocesses", None)
        and session.config.args == ["tests"]
    ):
        _installers.append(
            subprocess.Popen([sys.executable, TESTS / "rig" / "installation.py"], start_new_session=True)
        )
    if process is not None:
        share = slice(int(process["workerid"].removeprefix("gw")), None, process["workercount"])
        places = [Path(place.partition("::")[0]).resolve() for place in session.config.args]
        tests = {
            test for place in places for test in (place.rglob("test_*.py") if place.is_dir() else [place])
        }
        for test in sorted(tests)[share]:
            with suppress(Exception, pytest.skip.Exception):  # raised again when it is collected
                import_module(test.stem)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a parallel run, which keeps each file's tests together, start with the files that take longest.

    Those are files whose tests kill processes or race, then files with many tests. Otherwise, only one process would be
    busy at the end of the run.
    """
    if hasattr(config, "workerinput"):
        long = {item.path for item in items if item.get_closest_marker("torture")}
        counts = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.path not in long, -counts[item.path], item.path))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a parallel run, send one report per passed test: five messages per test would take minutes in total."""
    if not hasattr(item.config, "workerinput"):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        if report.when == "call":
            report.duration = sum(each.duration for each in reports)
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude the collected tests from garbage collection, and let forks copy their memory in large pages."""
    gc.enable()
    gc.freeze()
    if hasattr(session.config, "workerinput"):
        use_huge_pages()
    gc.set_threshold(10_000, 20, 20)


_installers: list[subprocess.Popen[bytes]] = []


def pytest_sessionfinish() -> None:
    """Stop an installation that no test has waited for; the next run starts it again."""
    for installer in _installers:
        if installer.poll() is None:
            os.killpg(installer.pid, signal.SIGTERM)
        installer.wait()


def pytest_report_header() -> str:
    how = "random seeds, many rounds" if TORTURE else "fixed seeds"
    return f"holdall: {how}, HOLDALL_SEED={os.environ['HOLDALL_SEED']}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    parts = Path(report.nodeid.partition("::")[0]).parts
    room = parts[1] if len(parts) > 2 else parts[0]
    _seconds[room] += report.duration
    if report.skipped:
        _results[room]["skipped"] += 1
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skips[f"{room}: {reason.removeprefix('Skipped: ')}"] += 1
    elif report.when == "call" or report.failed:
        _results[room][report.outcome] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("rooms")
    for room, seconds in sorted(_seconds.items(), key=lambda pair: -pair[1]):
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(_results[room].items()))
        terminalreporter.write_line(f"{room:14} {seconds:7.1f} s   {counts}")
    for reason, count in sorted(_skips.items()):
        terminalreporter.write_line(f"skipped {count} in {reason}")
    if not _skips:
        terminalreporter.write_line("nothing was skipped")
