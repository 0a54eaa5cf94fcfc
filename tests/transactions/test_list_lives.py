"""Expiring lists, unfolded into lists that only grow: correct histories are clean, and anomalies are found."""

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


def list_anomalies(history: list[Transaction], final: Transaction, reached: dict[int, int]) -> list[str]:
    return [anomaly.name for anomaly in check(*unfold(history, final, reached))]


# --- unfolding --------------------------------------------------------------------------------------------


def test_lives_follow_each_other_with_a_mark_in_between() -> None:
    history = [
        commit(Read("x", None), Append("x@5", 1), at=(0, 1)),
        commit(Read("x@5", (1,)), Append("x@5", 2), at=(2, 3)),
        commit(Read("x", None), Append("x@9", 3), at=(60, 61)),
    ]
    unfolded, final = unfold(history, commit(Read("x@9", (3,)), at=(70, 71)), {5: 50})
    assert [it.operations for it in unfolded] == [
        (Read("x", None), Append("x", 1)),
        (Read("x", (1,)), Append("x", 2)),
        (Read("x", (1, 2, -5)), Append("x", 3)),
        (Append("x", -5),),
    ]
    assert final.operations == (Read("x", (1, 2, -5, 3)),)
    assert check(unfolded, final) == []


def test_a_read_of_a_missing_list_after_a_life_has_its_mark() -> None:
    history = [commit(Append("x@5", 1), at=(0, 1)), commit(Read("x", None), at=(60, 61))]
    unfolded, final = unfold(history, commit(Read("x", None), at=(70, 71)), {5: 50})
    assert unfolded[1].operations == (Read("x", (1, -5)),)
    assert final.operations == (Read("x", (1, -5)),)


def test_a_read_of_a_missing_list_is_omitted_if_it_can_be_before_or_after_a_life() -> None:
    history = [commit(Append("x@5", 1), at=(0, 9)), commit(Read("x", None), at=(0, 61))]
    unfolded, _ = unfold(history, commit(Read("x", None), at=(70, 71)), {5: 50})
    assert unfolded[1].operations == ()


def test_aborted_and_unseen_transactions_begin_no_life() -> None:
    maybe = Transaction("a", (Read("x", None), Append("x@5", 1)), Outcome.UNKNOWN, 0, 1)
    failed = Transaction("b", (Read("x", None), Append("x@6", 2)), Outcome.ABORTED, 0, 1)
    unfolded, final = unfold([maybe, failed], commit(Read("x", None), at=(70, 71)), {5: 50})
    assert [it.operations for it in unfolded] == [(Append("x", 1),), (Append("x", 2),)]
    assert check(unfolded, final) == []


def test_an_append_to_a_life_that_was_not_read_afterwards_is_not_lost() -> None:
    history = [commit(Append("x@5", 1), at=(0, 1)), commit(Read("x@5", (1,)), Append("x@5", 2), at=(2, 3))]
    assert list_anomalies(history, commit(Read("x", None), at=(70, 71)), {5: 50}) == []


# --- anomalies --------------------------------------------------------------------------------------------


def test_a_read_of_a_life_that_had_ended_for_a_transaction_it_depends_on_is_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x", None), Append("y@9", 2), at=(60, 61)),
        commit(Read("x@5", (1,)), Read("y@9", (2,)), Append("z@9", 3), at=(2, 63)),
    ]
    final = commit(Read("x", None), Read("y@9", (2,)), Read("z@9", (3,)), at=(70, 71))
    assert list_anomalies(history, final, {5: 50}) == ["G-single"]


def test_overlapping_lives_are_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x", None), Append("x@9", 2), at=(10, 11)),
        commit(Read("x@5", (1,)), at=(20, 21)),
    ]
    assert list_anomalies(history, commit(Read("x@9", (2,)), at=(70, 71)), {5: 50}) == ["G0-realtime"]


def test_a_life_that_is_missing_before_its_end_is_found() -> None:
    history = [commit(Append("x@5", 1), at=(0, 1)), commit(Read("x", None), at=(10, 11))]
    assert list_anomalies(history, commit(Read("x", None), at=(70, 71)), {5: 50}) == ["G-single-realtime"]


def test_two_appends_to_the_same_last_state_of_a_life_are_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x@5", (1,)), Append("x@5", 2), at=(10, 11)),
        commit(Read("x@5", (1,)), Append("x@5", 3), at=(10, 12)),
    ]
    assert list_anomalies(history, commit(Read("x", None), at=(70, 71)), {5: 50}) == ["lost append"]


def test_an_append_to_an_earlier_life_after_a_later_one_is_found() -> None:
    history = [
        commit(Append("x@5", 1), at=(0, 1)),
        commit(Read("x", None), Append("x@9", 2), at=(60, 61)),
        commit(Read("x@5", (1,)), Append("x@5", 3), at=(62, 63)),
    ]
    assert list_anomalies(history, commit(Read("x@5", (1, 3)), at=(70, 71)), {5: 50}) != []


# --- simulated histories ----------------------------------------------------------------------------------


@given(st.integers(1, 40), st.randoms(use_true_random=True))
def test_a_serial_history_of_expiring_lists_is_clean(length: int, random: Random) -> None:
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
