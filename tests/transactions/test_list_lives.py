"""Lists that expire, told as lists that only grow: clean when they should be, and what is wrong is found."""

from __future__ import annotations

from random import Random

from histories import Append, Operation, Outcome, Read, Transaction, check
from hypothesis import given
from hypothesis import strategies as st
from list_lives import life_key, unfold

KEYS = "xyz"
LASTS = 50


def commit(*operations: Operation, at: tuple[int, int]) -> Transaction:
    return Transaction(str(at), operations, Outcome.COMMITTED, *at)


def names(history: list[Transaction], final: Transaction, reached: dict[int, int]) -> list[str]:
    return [anomaly.name for anomaly in check(*unfold(history, final, reached))]


# --- told anew ------------------------------------------------------------------------------------------------------


def test_lives_follow_one_another_with_a_mark_between() -> None:
    history = [
        commit(Read("x", None), Append("x@5", 1), at=(0, 1)),
        commit(Read("x@5", (1,)), Append("x@5", 2), at=(2, 3)),
        commit(Read("x", None), Append("x@9", 3), at=(60, 61)),
    ]
    told, final = unfold(history, commit(Read("x@9", (3,)), at=(70, 71)), {5: 50})
    assert [it.operations for it in told] == [
        (Read("x", None), Append("x", 1)),
        (Read("x", (1,)), Append("x", 2)),
        (Read("x", (1, 2, -5)), Append("x", 3)),
        (Append("x", -5),),
    ]
    assert final.operations == (Read("x", (1, 2, -5, 3)),)
    assert check(told, final) == []


def test_nothing_after_a_life_is_told_by_its_mark() -> None:
    history = [commit(Append("x@5", 1), at=(0, 1)), commit(Read("x", None), at=(60, 61))]
    told, final = unfold(history, commit(Read("x", None), at=(70, 71)), {5: 50})
    assert told[1].operations == (Read("x", (1, -5)),)
    assert final.operations == (Read("x", (1, -5)),)


def test_nothing_before_or_after_a_life_is_left_out_when_nobody_can_tell() -> None:
    history = [commit(Append("x@5", 1), at=(0, 9)), commit(Read("x", None), at=(0, 61))]
    told, _ = unfold(history, commit(Read("x", None), at=(70, 71)), {5: 50})
    assert told[1].operations == ()


def test_what_did_not_happen_begins_no_life() -> None:
    maybe = Transaction("a", (Read("x", None), Append("x@5", 1)), Outcome.UNKNOWN, 0, 1)
    failed = Transaction("b", (Read("x", None), Append("x@6", 2)), Outcome.ABORTED, 0, 1)
    told, final = unfold([maybe, failed], commit(Read("x", None), at=(70, 71)), {5: 50})
    assert [it.operations for it in told] == [(Append("x", 1),), (Append("x", 2),)]
    assert check(told, final) == []


def test_an_append_to_a_life_that_nobody_read_afterwards_is_not_lost() -> None:
    history = [commit(Append("x@5", 1), at=(0, 1)), commit(Read("x@5", (1,)), Append("x@5", 2), at=(2, 3))]
    assert names(history, commit(Read("x", None), at=(70, 71)), {5: 50}) == []


# --- what is wrong --------------------------------------------------------------------------------------------------


def test_a_life_seen_by_one_who_depends_on_another_who_saw_it_gone_is_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x", None), Append("y@9", 2), at=(60, 61)),
        commit(Read("x@5", (1,)), Read("y@9", (2,)), Append("z@9", 3), at=(2, 63)),
    ]
    final = commit(Read("x", None), Read("y@9", (2,)), Read("z@9", (3,)), at=(70, 71))
    assert names(history, final, {5: 50}) == ["G-single"]


def test_two_lives_at_once_are_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x", None), Append("x@9", 2), at=(10, 11)),
        commit(Read("x@5", (1,)), at=(20, 21)),
    ]
    assert names(history, commit(Read("x@9", (2,)), at=(70, 71)), {5: 50}) == ["G0-realtime"]


def test_a_life_that_is_missing_before_its_end_is_found() -> None:
    history = [commit(Append("x@5", 1), at=(0, 1)), commit(Read("x", None), at=(10, 11))]
    assert names(history, commit(Read("x", None), at=(70, 71)), {5: 50}) == ["G-single-realtime"]


def test_two_appends_to_the_same_last_state_of_a_life_are_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x@5", (1,)), Append("x@5", 2), at=(10, 11)),
        commit(Read("x@5", (1,)), Append("x@5", 3), at=(10, 12)),
    ]
    assert names(history, commit(Read("x", None), at=(70, 71)), {5: 50}) == ["lost append"]


def test_an_append_to_a_life_that_came_back_after_another_is_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x", None), Append("x@9", 2), at=(60, 61)),
        commit(Read("x@5", (1,)), Append("x@5", 3), at=(62, 63)),
    ]
    assert names(history, commit(Read("x@5", (1, 3)), at=(70, 71)), {5: 50}) != []


# --- simulated ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.randoms(use_true_random=True))
def test_what_one_at_a_time_would_tell_of_expiring_lists_is_clean(length: int, random: Random) -> None:
    lists: dict[str, tuple[int, tuple[int, ...]]] = {}
    clock = 1000
    reached: dict[int, int] = {}
    history: list[Transaction] = []
    for number in range(length):
        moment = 100 * (number + 1)
        if random.random() < 0.3:
            later = clock + random.choice([10, 60])
            reached.update((ends, moment - 50) for ends in range(clock + 1, later + 1))
            clock = later
        alive = {key: life for key, life in lists.items() if life[0] > clock}
        outcome = random.choice([Outcome.COMMITTED] * 6 + [Outcome.ABORTED, Outcome.UNKNOWN])
        operations, after = _perform(random, number, alive, clock)
        if outcome is Outcome.COMMITTED or (outcome is Outcome.UNKNOWN and random.random() < 0.5):
            lists = after
        before, behind = random.randint(0, 400), random.randint(0, 400)
        history.append(Transaction(f"p{number}", operations, outcome, moment - before, moment + behind))
    alive = {key: life for key, life in lists.items() if life[0] > clock}
    end = 10**6
    final = Transaction("end", tuple(_read(alive, key) for key in KEYS), Outcome.COMMITTED, end, end)
    assert check(*unfold(history, final, reached)) == []


Lists = dict[str, tuple[int, tuple[int, ...]]]


def _read(alive: Lists, key: str) -> Read:
    if key not in alive:
        return Read(key, None)
    ends, values = alive[key]
    return Read(life_key(key, ends), values)


def _perform(random: Random, number: int, alive: Lists, clock: int) -> tuple[tuple[Operation, ...], Lists]:
    after = dict(alive)
    operations: list[Operation] = []
    for value in range(10 * number + 1, 10 * number + 1 + random.randint(1, 4)):
        key = random.choice(KEYS)
        operations.append(_read(after, key))
        if random.random() < 0.5:
            ends, values = after.get(key, (clock + LASTS, ()))
            after[key] = ends, (*values, value)
            operations.append(Append(life_key(key, ends), value))
    return tuple(operations), after
