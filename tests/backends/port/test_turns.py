"""Turns: which contender is first, which ones wait for each other, and that none waits forever."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.port import turn as turn_module
from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.backends.port.turn import Turn, Turns
from holdall.core.port import run

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
LONG = 1000.0


class Crowd:
    """Contenders by their time of arrival, and the turns that have begun, in order."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.began: list[int] = []

    def join(self, came: int, names: str = "a") -> Turn:
        return self.turns.join(
            frozenset(names), NOON + timedelta(seconds=came), lambda: self.began.append(came)
        )


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


def test_the_first_contender_begins_at_once_and_the_others_in_order_of_arrival(crowd: Crowd) -> None:
    first, third, second = crowd.join(1), crowd.join(3), crowd.join(2)
    assert crowd.began == [1]
    first.end()
    assert crowd.began == [1, 2]
    second.end()
    third.end()
    assert crowd.began == [1, 2, 3]
    assert crowd.turns.is_empty


def test_a_contender_that_arrived_earlier_goes_before_waiting_ones_but_not_before_a_turn_that_has_begun(
    crowd: Crowd,
) -> None:
    under_way, _ = crowd.join(5), crowd.join(6)
    crowd.join(1)
    assert crowd.began == [5]
    under_way.end()
    assert crowd.began == [5, 1]


def test_contenders_for_other_names_do_not_wait(crowd: Crowd) -> None:
    crowd.join(1, "a")
    crowd.join(2, "b")
    assert crowd.began == [1, 2]


def test_a_contender_for_two_names_waits_for_both(crowd: Crowd) -> None:
    a, b = crowd.join(1, "a"), crowd.join(2, "b")
    both, later = crowd.join(3, "ab"), crowd.join(4, "b")
    b.end()
    assert crowd.began == [1, 2]
    a.end()
    assert crowd.began == [1, 2, 3]
    both.end()
    later.end()
    assert crowd.began == [1, 2, 3, 4]
    assert crowd.turns.is_empty


def test_contenders_move_up_when_another_leaves_the_line(crowd: Crowd) -> None:
    first, second, third = crowd.join(1), crowd.join(2), crowd.join(3)
    second.end()
    first.end()
    first.end()
    assert crowd.began == [1, 3]
    third.end()
    assert crowd.turns.is_empty


def test_contenders_do_not_wait_for_a_turn_that_takes_too_long(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_module, "LONGEST", 0.0)
    long, next_one, last = crowd.join(1), crowd.join(2), crowd.join(3)
    assert crowd.turns.compute_wait(next_one, LONG**3) == 0
    assert crowd.began == [1, 2]
    assert long.over
    monkeypatch.undo()
    long.end()  # has no effect, because the turn is already over
    assert crowd.began == [1, 2]
    next_one.end()
    last.end()
    assert crowd.turns.is_empty


def test_a_contender_that_has_waited_to_its_deadline_leaves_without_a_turn(crowd: Crowd) -> None:
    crowd.join(1)
    late = crowd.join(2)
    assert crowd.turns.compute_wait(late, until=0.0) == 0
    assert late.over
    assert crowd.began == [1]


def test_a_contender_whose_event_loop_is_closed_is_skipped(crowd: Crowd) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    first = crowd.join(1)
    crowd.turns.join(frozenset("a"), NOON + timedelta(seconds=2), lambda: loop.call_soon_threadsafe(print))
    crowd.join(3)
    first.end()
    assert crowd.began == [1, 3]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "ab", "bc", "ac", "abc"]), st.integers(0, 9))),
    st.randoms(use_true_random=False),
)
def test_every_contender_has_a_turn_and_no_two_of_one_name_at_a_time(
    comers: list[tuple[str, int]], chance: object
) -> None:
    crowd = Crowd()
    left: list[Turn] = [crowd.join(came, names) for names, came in comers]
    choose: Callable[[list[Turn]], Turn] = chance.choice  # type: ignore[attr-defined]
    while left:
        under_way = [each for each in left if not each.is_waiting]
        names = [name for each in under_way for name in each.names]
        assert len(names) == len(set(names))
        ended = choose(under_way)  # fails unless a turn has begun
        ended.end()
        left.remove(ended)
    assert len(crowd.began) == len(comers)
    assert crowd.turns.is_empty


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_does_not_wait_for_a_turn_of_its_parent(crowd: Crowd) -> None:
    mine = crowd.join(1)
    crowd.join(2)
    child = os.fork()
    if child == 0:
        mine.end()
        crowd.join(3)
        os._exit(0 if crowd.began == [1, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert crowd.began == [1]


# --- in the ports ---------------------------------------------------------------------------------------


@pytest.fixture
def backend() -> Iterator[EmbeddedBackend]:
    store = EmbeddedBackend(None)
    yield store
    store.close()


def test_threads_and_tasks_wait_in_one_line(backend: EmbeddedBackend) -> None:
    turns = Turns()
    blocking, awaiting = BlockingPort(backend, turns=turns), AwaitingPort(backend, turns=turns)
    names = frozenset("a")
    order: list[str] = []
    first = turns.join(names, NOON, lambda: None)

    def go_in_thread() -> None:
        turn = run(blocking.take_turn(names, NOON + timedelta(seconds=1), LONG))
        order.append("thread")
        turn.end()

    async def go() -> None:
        thread = threading.Thread(target=go_in_thread)
        thread.start()
        task = asyncio.create_task(awaiting.take_turn(names, NOON + timedelta(seconds=2), LONG))
        while len(_list_waiting(turns, "a")) < 2:
            await asyncio.sleep(0)
        assert order == []
        first.end()
        turn = await task
        order.append("task")
        turn.end()
        thread.join()

    asyncio.run(go())
    assert order == ["thread", "task"]
    assert turns.is_empty


def test_a_task_that_is_cancelled_while_waiting_leaves_the_line(backend: EmbeddedBackend) -> None:
    turns = Turns()
    port = AwaitingPort(backend, turns=turns)
    names = frozenset("a")

    async def go() -> None:
        first = await port.take_turn(names, NOON, LONG)
        second = asyncio.create_task(port.take_turn(names, NOON, LONG))
        third = asyncio.create_task(port.take_turn(names, NOON, LONG))
        while len(_list_waiting(turns, "a")) < 2:
            await asyncio.sleep(0)
        second.cancel()
        first.end()
        (await third).end()
        assert (await asyncio.gather(second, return_exceptions=True))[0].__class__ is asyncio.CancelledError

    asyncio.run(go())
    assert turns.is_empty


def _list_waiting(turns: Turns, name: str) -> list[Turn]:
    return turns._lines[name].waiting
