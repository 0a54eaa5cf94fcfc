"""Workers and enqueuers that are killed around each request: no job is lost, and no job or key is stuck.

Plain jobs do their work at least once, transactional ones exactly once, and a job that dies leaves one dead letter.
"""

from __future__ import annotations

import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from jobs_scenarios import SCENARIOS, Scenario
from jobs_torture_rig import SEEDED, WHENS, run_script

pytestmark = pytest.mark.torture

SCRIPT = "jobs_dying.py"
KILLED, ENDED_WELL = -9, 0
AT_A_TIME = 3
IN_ONE_SCRIPT = 2

Deaths = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> Deaths:
    """For each scenario, how each process died and what it left."""
    directory = tmp_path_factory.mktemp("dying")
    names = [*SCENARIOS]
    groups = [names[first : first + IN_ONE_SCRIPT] for first in range(0, len(names), IN_ONE_SCRIPT)]
    found: Deaths = defaultdict(list)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for lines in pool.map(lambda group: run_script(SCRIPT, directory, *group), groups):
            for line in map(json.loads, lines):
                if "alive" not in line:
                    found[line["scenario"]].append(line)
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_process_killed_at_any_request_loses_no_job_and_leaves_nothing_stuck(
    name: str, deaths: Deaths
) -> None:
    scenario = SCENARIOS[name]
    assert_died_everywhere(deaths[name])
    for line in deaths[name]:
        context = f"{name}: killed {line['when']} request {line['step']}: {line} {SEEDED}"
        assert_job_is_there_iff_its_transaction_is(scenario, line["before"], context)
        assert_done(scenario, line["after"], context)
        if scenario.again is not None:
            assert line["again"] is not None, context
            free = scenario.again[1] if not scenario.ordered or line["after"]["ordered"] else True
            assert line["again"] is free, context


def assert_died_everywhere(lines: list[dict[str, Any]]) -> None:
    """Check that processes died at every request in turn, until one ended because it sent no further request."""
    assert not any("stuck" in line for line in lines), lines
    assert {line["code"] for line in lines} == {KILLED, ENDED_WELL}
    steps = [(line["step"], line["when"]) for line in lines]
    assert steps == [(step, when) for step in range(len(steps) // len(WHENS)) for when in WHENS]
    killed = sum(line["code"] == KILLED for line in lines)
    assert killed >= 2 * len(WHENS), "a process sends more than one request"


def assert_job_is_there_iff_its_transaction_is(
    scenario: Scenario, before: dict[str, Any], context: str
) -> None:
    """Check the state right after a process died."""
    if scenario.ordered:
        assert before["jobs"] == ({"waiting": 1} if before["ordered"] else {}), context
        keyed = scenario.again is not None or scenario.tallies
        assert len(before["held"]) == (1 if keyed and before["ordered"] else 0), context


def assert_done(scenario: Scenario, after: dict[str, Any], context: str) -> None:
    """Check the state after the rescuing worker has done the remaining work."""
    done = after["ordered"] or not scenario.ordered
    assert bool(after["effects"]) is (scenario.effects and done), context
    assert after["tallies"] == [1 if done else 0] * len(scenario.tallies), context
    left = {"waiting": scenario.waiting, "dead": scenario.dead}
    assert after["jobs"] == {state: count for state, count in left.items() if count}, context
    assert after["held"] == [], context
