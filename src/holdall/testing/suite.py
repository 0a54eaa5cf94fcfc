"""The contracts as pytest tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, get_args

from holdall.core.port import Backend
from holdall.testing.table_contract import Capability, Check, Colour, checks, run_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.testing.file_contract import ServiceCapability, ServiceCheck


def contract(
    opened: Callable[[], AbstractContextManager[Backend]],
    *,
    lacks: Iterable[Capability] = (),
) -> Callable[..., Any]:
    """A test function, for pytest to collect, that holds a backend to the whole contract in both colours.

    ``opened`` gives a context manager with the backend in it, anew for each check::

        test_my_backend = contract(my_backend)

    ``lacks`` names capabilities that the backend does not claim; their checks are skipped, by name.
    """
    import pytest

    missing = set(lacks)

    @pytest.mark.parametrize("colour", get_args(Colour))
    @pytest.mark.parametrize("check", checks(), ids=str)
    def test_contract(check: Check, colour: Colour) -> None:
        lacking = sorted(check.requires & missing)
        if lacking:
            pytest.skip(f"the backend does not claim: {', '.join(lacking)}")
        with opened() as backend:
            run_check(check, backend, colour)

    return test_contract


def service_contract(
    opened: Callable[[], AbstractContextManager[Backend]],
    *,
    lacks: Iterable[ServiceCapability] = (),
) -> Callable[..., Any]:
    """A test function, for pytest to collect, that holds a service for files to the whole contract in both colours.

    ``opened`` and ``lacks`` are as for `contract`. What is in the service already is left alone: checks use keys with
    a prefix of their own, and delete them.
    """
    import pytest

    from holdall.testing.file_contract import run_service_check, service_checks

    missing = set(lacks)

    @pytest.mark.parametrize("colour", get_args(Colour))
    @pytest.mark.parametrize("check", service_checks(), ids=str)
    def test_service_contract(check: ServiceCheck, colour: Colour) -> None:
        lacking = sorted(check.requires & missing)
        if lacking:
            pytest.skip(f"the service does not claim: {', '.join(lacking)}")
        with opened() as service:
            run_service_check(check, service, colour)

    return test_service_contract
