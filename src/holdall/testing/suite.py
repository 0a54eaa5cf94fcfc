"""The contract as a pytest test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, get_args

from holdall.core.port import Backend
from holdall.testing.table_contract import Capability, Check, Colour, checks, run_check

__all__ = ["contract"]


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
