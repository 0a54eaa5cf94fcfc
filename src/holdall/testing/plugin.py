"""The pytest plugin: loaded by pytest in every project that has Holdall installed, so it imports almost nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holdall.database import Database

_MODULES = pytest.StashKey["frozenset[str | None]"]()

pytest.register_assert_rewrite("holdall.testing.file_contract", "holdall.testing.table_contract")


@pytest.fixture
def holdall_memory() -> Iterator[Database]:
    """A fresh database in memory, closed after the test."""
    from holdall.database import Database

    with Database("memory:") as database:
        yield database


@pytest.fixture(autouse=True)
def holdall_declarations(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let each test know the jobs and handlers of the program and of its own file, and forget those it declares.

    They belong to the process. Without this, a recurring job of one test file would run in the workers of another.
    """
    imported = set(sys.modules)
    here = _module_of(request.node)
    hidden = {
        name: job
        for name, job in _jobs().items()
        if (home := _home_of(job)) != here and home in _test_modules(request.session)
    }
    for name in hidden:
        del _jobs()[name]
    known = _jobs().copy()
    yield
    jobs = _jobs()
    for name, job in list(jobs.items()):
        # a module that the test was the first to import declares its jobs only once: these stay
        if known.get(name) is not job and _home_of(job) not in sys.modules.keys() - imported:
            del jobs[name]
    jobs.update({name: job for name, job in (known | hidden).items() if name not in jobs})


def _jobs() -> dict[str, Any]:
    """The jobs of this process; none before the first is declared."""
    declaration = sys.modules.get("holdall.jobs.declaration")
    return {} if declaration is None else declaration.declared_jobs()


def _home_of(job: Any) -> str | None:
    return getattr(job.function, "__module__", None)


def _test_modules(session: pytest.Session) -> frozenset[str | None]:
    """The modules that tests were collected from, found once: there may be thousands of tests."""
    if _MODULES not in session.stash:
        session.stash[_MODULES] = frozenset(_module_of(item) for item in session.items)
    return session.stash[_MODULES]


def _module_of(item: Any) -> str | None:
    return getattr(getattr(item, "module", None), "__name__", None)
