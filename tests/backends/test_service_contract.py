"""The shipped contract of services, over each of ours."""

from __future__ import annotations

import pytest
from service_ways import WAYS, Way

from holdall.testing import ServiceCheck, run_service_check, service_checks
from holdall.testing.file_contract import Calls


@pytest.mark.parametrize(
    ("way", "check", "colour"),
    [
        (way, check, colour)
        for way in WAYS
        for check in service_checks()
        if way.takes(check)
        for colour in way.colours(check)
    ],
    ids=str,
)
def test_contract(way: Way, check: ServiceCheck, colour: Calls) -> None:
    lacking = check.requires & way.lacks
    if lacking:
        pytest.skip(f"{way} lacks {', '.join(sorted(lacking))}")
    with way.opened() as service:
        run_service_check(check, service, colour)
