"""The contracts as pytest tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, get_args

from holdall.core.port import Backend
from holdall.testing.table_contract import Calls, Capability, Check, checks, run_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.testing.file_contract import ServiceCapability, ServiceCheck


def contract(
    opened: Callable[[], AbstractContextManager[Backend]],
    *,
    lacks: Iterable[Capability] = (),
) -> Callable[..., Any]:
    """A test function, for pytest to collect, that checks a backend against the whole contract, sync and async.

    ``opened`` is called for each check, and returns a context manager that opens the backend::

        test_my_backend = contract(my_backend)

    ``lacks`` names capabilities that the backend does not have; checks that need one are skipped with that reason.
    """
    import pytest

    missing = set(lacks)

    @pytest.mark.parametrize("calls", get_args(Calls))
    @pytest.mark.parametrize("check", checks(), ids=str)
    def test_contract(check: Check, calls: Calls) -> None:
        lacking = sorted(check.requires & missing)
        if lacking:
            pytest.skip(f"the backend lacks: {', '.join(lacking)}")
        with opened() as backend:
            run_check(check, backend, calls)

    return test_contract


def service_contract(
    opened: Callable[[], AbstractContextManager[Backend]],
    *,
    lacks: Iterable[ServiceCapability] = (),
) -> Callable[..., Any]:
    """A test function, for pytest to collect, that checks a file service against the whole contract, sync and async.

    ``opened`` and ``lacks`` are as in `contract`. Objects that are already in the service are left alone: each check
    uses keys with its own prefix, and deletes them.
    """
    import pytest

    from holdall.testing.file_contract import run_service_check, service_checks

    missing = set(lacks)

    @pytest.mark.parametrize("calls", get_args(Calls))
    @pytest.mark.parametrize("check", service_checks(), ids=str)
    def test_service_contract(check: ServiceCheck, calls: Calls) -> None:
        lacking = sorted(check.requires & missing)
        if lacking:
            pytest.skip(f"the service lacks: {', '.join(lacking)}")
        with opened() as service:
            run_service_check(check, service, calls)

    return test_service_contract
