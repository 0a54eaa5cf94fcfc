"""The shipped contract of services, run on each of our services."""

from __future__ import annotations

import pytest
from service_setups import SETUPS, Setup

from holdall.testing import ServiceCheck, run_service_check, service_checks
from holdall.testing.file_contract import Calls


@pytest.mark.parametrize(
    ("setup", "check", "colour"),
    [
        (setup, check, colour)
        for setup in SETUPS
        for check in service_checks()
        if setup.takes(check)
        for colour in setup.colours(check)
    ],
    ids=str,
)
def test_contract(setup: Setup, check: ServiceCheck, colour: Calls) -> None:
    lacking = check.requires & setup.lacks
    if lacking:
        pytest.skip(f"{setup} does not support {', '.join(sorted(lacking))}")
    with setup.opened() as service:
        run_service_check(check, service, colour)
