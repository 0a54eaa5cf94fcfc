"""The pytest plugin: loaded by pytest in every project that has Holdall installed, so it imports almost nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holdall.async_database import AsyncDatabase
    from holdall.database import Database
    from holdall.testing.clock import Clock
    from holdall.testing.faults import FaultyBackend

_MODULES = pytest.StashKey["frozenset[str | None]"]()

_REGISTRIES = ("holdall.jobs.declaration", "holdall.attachments.picture.analysis")
"""The modules that keep what a process has declared, each in a dict ``_declared``."""

pytest.register_assert_rewrite("holdall.testing.file_contract", "holdall.testing.table_contract")


@pytest.hookimpl(
    tryfirst=True
)  # before tests are deselected: the jobs of their files are declared all the same
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Remember which modules have tests, once: there may be thousands of tests."""
    session.stash[_MODULES] = frozenset(_module_of(item) for item in items)


_SECRET = "a secret that is known to every test"  # signs URLs; nothing that it protects leaves the test


@pytest.fixture
def holdall_settings() -> dict[str, Any]:
    """The settings that ``holdall_db`` is opened with; override this fixture to add to them or change them."""
    return {}


@pytest.fixture
def holdall_db(request: pytest.FixtureRequest, holdall_settings: dict[str, Any]) -> Iterator[Database]:
    """A new database in memory, with a secret and with files in memory; closed after the test."""
    from holdall.database import Database

    settings: dict[str, Any] = {"files": "memory:", "secret": _SECRET, **holdall_settings}
    if "holdall_faults" in request.fixturenames:
        settings["backend"] = request.getfixturevalue("holdall_faults")
    with Database("memory:", **settings) as database:
        yield database


@pytest.fixture
def async_holdall_db(holdall_db: Database) -> AsyncDatabase:
    """The async twin of ``holdall_db``, on the same store. It needs no event loop to open or to close."""
    return holdall_db.aio


@pytest.fixture
def holdall_faults() -> Iterator[FaultyBackend]:
    """The store of ``holdall_db``, which fails where the test says: ``holdall_faults.inject(Fault.LOST_AFTER)``."""
    from holdall.backends.embedded import EmbeddedBackend
    from holdall.testing.faults import FaultyBackend

    backend = FaultyBackend(EmbeddedBackend(None))
    yield backend
    backend.close()


@pytest.fixture
def holdall_clock() -> Iterator[Clock]:
    """Time stands still for every database of this process, and ``holdall_clock.advance(60)`` moves it."""
    from holdall.testing.clock import Clock

    with Clock() as clock:
        yield clock


@pytest.fixture(autouse=True)
def holdall_declarations(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let each test know the jobs, handlers and analyzers of the program and of its own file, and forget its own.

    They belong to the process. Without this, a recurring job of one test file would run in the workers of another.
    """
    imported = set(sys.modules)
    others = request.session.stash.get(_MODULES, frozenset()) - {_module_of(request.node)}
    known = {place: _declarations(place).copy() for place in _REGISTRIES}
    for place, declared in known.items():
        for name in [name for name, each in declared.items() if _home_of(each) in others]:
            del _declarations(place)[name]
    yield
    for place, declared in known.items():
        found = _declarations(place)
        # a module that the test was the first to import declares its jobs only once: these stay
        new = {
            name: each
            for name, each in found.items()
            if declared.get(name) is not each and _home_of(each) in sys.modules.keys() - imported
        }
        found.clear()
        found.update(declared | new)


def _declarations(place: str) -> dict[Any, Any]:
    """What this process has declared in a registry; nothing before its module is loaded."""
    module = sys.modules.get(place)
    return {} if module is None else module._declared


def _home_of(declared: Any) -> str | None:
    return getattr(getattr(declared, "function", declared), "__module__", None)


def _module_of(item: Any) -> str | None:
    return getattr(getattr(item, "module", None), "__name__", None)
