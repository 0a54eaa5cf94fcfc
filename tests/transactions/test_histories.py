"""Tests of the checker of histories: handmade, simulated and corrupted histories, and a search of all serial orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from random import Random

import pytest
from histories import Append, Operation, Order, Outcome, Read, Transaction, check
from hypothesis import assume, given
from hypothesis import strategies as st

ABORTED, UNKNOWN = Outcome.ABORTED, Outcome.UNKNOWN


def read(key: str, *values: int) -> Read:
    return Read(key, values or None)


def commit(*operations: Operation, by: str = "", at: tuple[int, int] = (0, 9)) -> Transaction:
    """Build a committed transaction. By default, all overlap, and each is of its own process."""
    return Transaction(by or str(operations), operations, Outcome.COMMITTED, *at)


def abort(*operations: Operation) -> Transaction:
    return replace(commit(*operations), outcome=ABORTED)


def lose(*operations: Operation, by: str = "", at: tuple[int, int] = (0, 9)) -> Transaction:
    return replace(commit(*operations, by=by, at=at), outcome=UNKNOWN)


def list_anomalies(
    history: Sequence[Transaction],
    final: Transaction | None = None,
    order: tuple[Order, ...] = ("process", "real time"),
) -> list[str]:
    return [anomaly.name for anomaly in check(history, final, order=order)]


# --- clean histories --------------------------------------------------------------------------------------


def test_an_empty_history_is_clean() -> None:
    assert list_anomalies([]) == []


def test_reads_of_what_was_appended_are_clean() -> None:
    history = [
        commit(Append("x", 1)),
        commit(read("x", 1), Append("x", 2), read("x", 1, 2)),
        commit(read("x")),
    ]
    assert list_anomalies(history, commit(read("x", 1, 2))) == []


def test_an_empty_list_counts_as_a_missing_one() -> None:
    assert (
        list_anomalies([commit(Read("x", ()), Append("x", 1)), commit(Read("x", None))], commit(read("x", 1)))
        == []
    )


def test_an_append_without_a_read_is_clean() -> None:
    assert (
        list_anomalies(
            [commit(Append("x", 2), read("x", 1, 2)), commit(Append("x", 1))], commit(read("x", 1, 2))
        )
        == []
    )


def test_aborted_transactions_can_have_read_anything() -> None:
    history = [
        abort(read("x", 7), Append("x", 1)),
        abort(read("x", 8)),
        abort(Append("y", 1), read("y")),
    ]
    assert list_anomalies(history, commit(read("x"))) == []


# --- impossible lists -------------------------------------------------------------------------------------


def test_a_read_of_an_aborted_append_is_g1a() -> None:
    assert list_anomalies([abort(Append("x", 1)), commit(read("x", 1))]) == ["G1a"]


def test_a_read_of_an_aborted_append_inside_a_list_is_g1a() -> None:
    history = [abort(Append("x", 1)), commit(Append("x", 2)), commit(read("x", 1, 2))]
    assert list_anomalies(history) == ["G1a"]


def test_a_read_of_half_of_a_transaction_is_g1b() -> None:
    history = [commit(Append("x", 1), Append("x", 2)), commit(read("x", 1))]
    assert "G1b" in list_anomalies(history, commit(read("x", 1, 2)))


def test_an_own_append_that_is_not_seen_is_internal() -> None:
    assert list_anomalies([commit(Append("x", 1), read("x"))], commit(read("x", 1))) == ["internal"]
    assert list_anomalies(
        [commit(Append("x", 1)), commit(Append("x", 2), read("x", 1))], commit(read("x", 1, 2))
    ) == ["internal"]


def test_two_different_lists_in_one_transaction_are_internal() -> None:
    history = [commit(Append("x", 1)), commit(read("x"), read("x", 1))]
    assert list_anomalies(history) == ["internal"]


def test_an_own_append_seen_before_it_was_made_is_internal() -> None:
    assert list_anomalies([commit(read("x", 1), Append("x", 1))], commit(read("x", 1))) == ["internal"]


def test_a_value_twice_in_a_list_is_a_duplicate() -> None:
    assert list_anomalies([commit(Append("x", 1)), commit(read("x", 1, 1))]) == ["duplicate"]


def test_a_value_that_no_transaction_appended_is_garbage() -> None:
    assert list_anomalies([commit(read("x", 1))]) == ["garbage"]


def test_a_value_appended_to_another_key_is_garbage() -> None:
    assert list_anomalies([commit(Append("y", 1)), commit(read("x", 1))]) == ["garbage"]


def test_lists_that_disagree_are_an_anomaly_of_order() -> None:
    history = [commit(Append("x", 1)), commit(Append("x", 2)), commit(read("x", 1, 2)), commit(read("x", 2))]
    assert list_anomalies(history) == ["order"]
    assert "after 0 values of x, T2 read 1, but T3 2" in str(check(history)[0])


def test_a_committed_append_that_is_missing_in_the_end_is_lost() -> None:
    assert list_anomalies([commit(Append("x", 1))], commit(read("x"))) == ["lost append"]


def test_an_unknown_append_that_was_read_and_is_missing_in_the_end_is_lost() -> None:
    assert "lost append" in list_anomalies([lose(Append("x", 1)), commit(read("x", 1))], commit(read("x")))


def test_a_lost_update_is_a_lost_append() -> None:
    history = [
        commit(Append("x", 1)),
        commit(read("x", 1), Append("x", 2)),
        commit(read("x", 1), Append("x", 3)),
    ]
    assert list_anomalies(history, commit(read("x", 1, 3))) == ["lost append"]


# --- cycles -----------------------------------------------------------------------------------------------


def test_appends_in_opposite_orders_are_g0() -> None:
    history = [commit(Append("x", 1), Append("y", 1)), commit(Append("x", 2), Append("y", 2))]
    assert list_anomalies(history, commit(read("x", 1, 2), read("y", 2, 1))) == ["G0"]


def test_an_append_between_those_of_another_is_g0() -> None:
    history = [commit(Append("x", 1), Append("x", 3)), commit(Append("x", 2))]
    assert list_anomalies(history, commit(read("x", 1, 2, 3))) == ["G0"]


def test_two_transactions_that_read_each_others_appends_are_g1c() -> None:
    history = [commit(Append("x", 1), read("y", 2)), commit(Append("y", 2), read("x", 1))]
    assert list_anomalies(history) == ["G1c"]


def test_an_append_after_a_stale_read_is_g_single() -> None:
    history = [commit(Append("x", 1)), commit(Append("x", 2)), commit(read("x", 1), Append("x", 3))]
    assert list_anomalies(history, commit(read("x", 1, 2, 3))) == ["G-single"]


def test_reads_before_and_after_another_transaction_are_g_single() -> None:
    history = [commit(Append("x", 1), Append("y", 1)), commit(read("x"), read("y", 1))]
    assert list_anomalies(history, commit(read("x", 1), read("y", 1))) == ["G-single"]


def test_write_skew_is_g2() -> None:
    history = [commit(read("x"), read("y"), Append("x", 1)), commit(read("x"), read("y"), Append("y", 1))]
    assert list_anomalies(history, commit(read("x", 1), read("y", 1))) == ["G2"]


def test_readers_who_saw_two_appends_in_opposite_orders_are_g2() -> None:
    history = [
        commit(Append("x", 1)),
        commit(Append("y", 1)),
        commit(read("x", 1), read("y")),
        commit(read("x"), read("y", 1)),
    ]
    assert list_anomalies(history, commit(read("x", 1), read("y", 1))) == ["G2"]


def test_the_shortest_cycle_of_the_worst_class_is_reported_for_a_component() -> None:
    ring = [commit(Append(key, 1), read(after, 1)) for key, after in zip("abcd", "bcda", strict=True)]
    skewed = [commit(read("a", 1), Append("e", 1)), commit(read("e", 1), Append("a", 2), read("b"))]
    (anomaly,) = check([*ring, *skewed], commit(read("a", 1, 2)))
    assert anomaly.name == "G1c"
    assert sorted(anomaly.transactions) == [0, 1, 2, 3]


def test_each_component_is_reported() -> None:
    history = [
        commit(Append(key, value), read(other, 1)) for key, other, value in [("a", "b", 1), ("b", "a", 1)]
    ]
    again = [
        commit(Append(key, value), read(other, 1)) for key, other, value in [("c", "d", 1), ("d", "c", 1)]
    ]
    assert list_anomalies([*history, *again]) == ["G1c", "G1c"]


def test_a_cycle_is_described_step_by_step() -> None:
    history = [
        commit(Append("x", 1), Append("y", 1), by="one"),
        commit(read("x"), read("y", 1), by="two"),
    ]
    (anomaly,) = check(history, commit(read("x", 1), read("y", 1), by="end", at=(10, 11)))
    assert str(anomaly).splitlines() == [
        "G-single: 2 transactions, each before the next and the last before the first",
        "  T1 read x before T0 appended 1 to it (rw)",
        "  T0 appended 1 to y, and T1 read it as the last (wr)",
        "  T1 (two, committed, 0-9): read x missing, read y [1]",
        "  T0 (one, committed, 0-9): append x 1, append y 1",
    ]


def test_only_the_ends_of_long_lists_are_shown() -> None:
    assert str(Read("x", tuple(range(15)))) == "read x [3 more, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]"


# --- process order and real time --------------------------------------------------------------------------


def test_a_process_that_does_not_see_its_own_earlier_append_is_an_anomaly_of_process_order() -> None:
    history = [commit(Append("x", 1), by="a", at=(0, 5)), commit(read("x"), by="a", at=(5, 9))]
    assert list_anomalies(history, commit(read("x", 1), at=(10, 11))) == ["G-single-process"]
    assert list_anomalies(history, commit(read("x", 1), at=(10, 11)), order=()) == []


def test_a_read_that_misses_an_append_that_had_ended_elsewhere_is_an_anomaly_of_real_time() -> None:
    history = [commit(Append("x", 1), by="a", at=(0, 4)), commit(read("x"), by="b", at=(5, 9))]
    assert list_anomalies(history, commit(read("x", 1), at=(10, 11))) == ["G-single-realtime"]
    assert list_anomalies(history, commit(read("x", 1), at=(10, 11)), order=("process",)) == []


def test_appends_against_real_time_are_g0_realtime() -> None:
    history = [commit(Append("x", 1), at=(0, 1)), commit(Append("x", 2), at=(2, 3))]
    assert list_anomalies(history, commit(read("x", 2, 1), at=(4, 5))) == ["G0-realtime"]


def test_real_time_orders_transactions_across_many_others() -> None:
    between = [commit(Append("y", number), at=(2 * number, 2 * number + 1)) for number in range(1, 50)]
    history = [commit(Append("x", 1), at=(0, 1)), *between, commit(read("x"), at=(200, 201))]
    final = commit(read("x", 1), read("y", *range(1, 50)), at=(300, 301))
    assert list_anomalies(history, final) == ["G-single-realtime"]


def test_overlapping_transactions_have_no_real_time_order() -> None:
    history = [
        commit(Append("x", 1), at=(0, 5)),
        commit(read("x"), at=(5, 9)),
        commit(read("x", 1), at=(5, 6)),
    ]
    assert list_anomalies(history, commit(read("x", 1), at=(10, 11))) == []


# --- unknown outcomes -------------------------------------------------------------------------------------


def test_an_unknown_transaction_that_was_not_read_is_ignored() -> None:
    assert list_anomalies([lose(read("x", 5), Append("x", 1))], commit(read("x"))) == []


def test_an_unknown_transaction_of_which_an_append_was_read_counts_as_a_whole() -> None:
    assert list_anomalies([lose(Append("x", 1), Append("y", 1))], commit(read("x", 1), read("y"))) == [
        "lost append"
    ]


def test_the_reads_of_an_unknown_transaction_that_counts_are_checked() -> None:
    assert list_anomalies([lose(read("y", 5), Append("x", 1))], commit(read("x", 1))) == ["garbage"]


def test_a_read_by_an_ignored_transaction_does_not_make_an_unknown_one_count() -> None:
    history = [lose(read("z", 9), Append("x", 1)), lose(read("x", 1), Append("y", 1))]
    assert list_anomalies(history, commit(read("x"), read("y"))) == []


def test_a_read_by_a_counted_unknown_transaction_makes_another_count() -> None:
    history = [lose(read("z", 9), Append("x", 1)), lose(read("x", 1), Append("y", 1))]
    assert list_anomalies(history, commit(read("x", 1), read("y", 1))) == ["garbage"]


def test_an_unknown_transaction_can_take_effect_during_later_ones_of_its_process() -> None:
    history = [lose(Append("x", 1), by="a", at=(0, 1)), commit(read("x"), by="a", at=(2, 3))]
    assert list_anomalies(history, commit(read("x", 1), at=(4, 5))) == []


def test_an_unknown_transaction_cannot_take_effect_before_it_began() -> None:
    history = [commit(read("x", 1), by="a", at=(0, 1)), lose(Append("x", 1), by="b", at=(2, 3))]
    assert list_anomalies(history) == ["G1c-realtime"]


# --- invalid histories ------------------------------------------------------------------------------------


def test_a_value_that_is_appended_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="append x 1 occurs twice"):
        check([commit(Append("x", 1), Append("x", 1))])
    with pytest.raises(ValueError, match="append x 1 occurs twice"):
        check([commit(Append("x", 1)), abort(Append("x", 1))])


def test_overlapping_transactions_of_a_process_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        check([commit(Append("x", 1), by="a", at=(0, 2)), commit(Append("x", 2), by="a", at=(1, 3))])


def test_a_transaction_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="ended before it began"):
        check([commit(Append("x", 1), at=(1, 0))])


# --- simulated histories ----------------------------------------------------------------------------------

KEYS = "xyz"


History = tuple[list[Transaction], Transaction]
"""A history and its final read."""


def draw_serial_history() -> st.SearchStrategy[History]:
    return st.builds(_simulate_serial_history, st.integers(1, 25), st.randoms(use_true_random=True))


def _simulate_serial_history(length: int, random: Random) -> History:
    """Simulate a store that runs one transaction at a time, with random times around each."""
    state: dict[str, tuple[int, ...]] = {}
    history: list[Transaction] = []
    ended: dict[str, int] = {}
    for number in range(length):
        moment = 100 * (number + 1)
        free = [process for process in ended if ended[process] <= moment]
        process = random.choice([*free, f"p{len(ended)}"])
        outcome = random.choice([Outcome.COMMITTED] * 6 + [ABORTED, UNKNOWN])
        operations, after = _perform(random, number, state)
        if outcome is Outcome.COMMITTED or (outcome is UNKNOWN and random.random() < 0.5):
            state = after
        invoked = random.randint(max(ended.get(process, 0), moment - 400), moment)
        ended[process] = random.randint(moment, moment + 400)
        history.append(Transaction(process, operations, outcome, invoked, ended[process]))
    return history, _final(state)


def _perform(
    random: Random, number: int, state: dict[str, tuple[int, ...]]
) -> tuple[tuple[Operation, ...], dict[str, tuple[int, ...]]]:
    after = dict(state)
    operations: list[Operation] = []
    for value in range(10 * number, 10 * number + random.randint(1, 4)):
        key = random.choice(KEYS)
        if random.random() < 0.5:
            operations.append(Read(key, after.get(key)))
        else:
            after[key] = (*after.get(key, ()), value)
            operations.append(Append(key, value))
    return tuple(operations), after


def _final(state: dict[str, tuple[int, ...]]) -> Transaction:
    return Transaction(
        "end", tuple(Read(key, state.get(key)) for key in KEYS), Outcome.COMMITTED, 10**6, 10**6
    )


@given(draw_serial_history())
def test_a_serial_history_is_clean(given_history: History) -> None:
    assert check(*given_history) == []


@given(draw_serial_history(), st.data())
def test_a_value_removed_from_every_list_is_lost(given_history: History, data: st.DataObject) -> None:
    history, final = given_history
    appends = _list_committed_appends(history)
    assume(appends)
    lost = data.draw(st.sampled_from(appends))
    corrupted = [_remove_value(transaction, lost) for transaction in history]
    assert "lost append" in list_anomalies(corrupted, _remove_value(final, lost))


@given(draw_serial_history(), st.data())
def test_an_append_marked_as_aborted_is_found(given_history: History, data: st.DataObject) -> None:
    history, final = given_history
    places = [place for place, it in enumerate(history) if _list_committed_appends([it])]
    assume(places)
    place = data.draw(st.sampled_from(places))
    history[place] = replace(history[place], outcome=ABORTED)
    assert "G1a" in list_anomalies(history, final)


@given(draw_serial_history(), st.data())
def test_swapped_neighbours_in_one_list_are_found(given_history: History, data: st.DataObject) -> None:
    history, final = given_history
    places = [place for place, it in enumerate(history) if _list_reads(it, at_least=2)]
    assume(places)
    place = data.draw(st.sampled_from(places))
    chosen = data.draw(st.sampled_from(_list_reads(history[place], at_least=2)))
    values = chosen.values or ()
    cut = data.draw(st.integers(0, len(values) - 2))
    swapped = (*values[:cut], values[cut + 1], values[cut], *values[cut + 2 :])
    history[place] = _replace_read(history[place], chosen, replace(chosen, values=swapped))
    assert check(history, final) != []


@given(draw_serial_history(), st.data())
def test_a_repeated_value_in_one_list_is_found(given_history: History, data: st.DataObject) -> None:
    history, final = given_history
    reads = _list_reads(final, at_least=1)
    assume(reads)
    chosen = data.draw(st.sampled_from(reads))
    values = chosen.values or ()
    repeated = replace(chosen, values=(*values, values[0]))
    assert "duplicate" in list_anomalies(history, _replace_read(final, chosen, repeated))


@given(draw_serial_history(), st.data())
def test_an_append_after_a_stale_read_is_found(given_history: History, data: st.DataObject) -> None:
    history, final = given_history
    places = [place for place, it in enumerate(history) if _list_reads_of_appended_keys(it)]
    assume(places)
    place = data.draw(st.sampled_from(places))
    chosen = data.draw(st.sampled_from(_list_reads_of_appended_keys(history[place])))
    own = {
        operation.value
        for operation in history[place].operations
        if isinstance(operation, Append) and operation.key == chosen.key
    }
    missed = next(value for value in reversed(chosen.values or ()) if value not in own)
    operations = tuple(
        _remove_value_from_read(operation, missed) if operation.key == chosen.key else operation
        for operation in history[place].operations
    )
    history[place] = replace(history[place], operations=operations)
    assert {name for name in list_anomalies(history, final) if name != "G1b"} & {"G0", "G1c", "G-single"}


def _list_committed_appends(history: Sequence[Transaction]) -> list[Append]:
    return [
        operation
        for it in history
        for operation in it.operations
        if isinstance(operation, Append) and it.outcome is Outcome.COMMITTED
    ]


def _list_reads(it: Transaction, *, at_least: int) -> list[Read]:
    """Return the reads of at least this many values, of a committed transaction."""
    if it.outcome is not Outcome.COMMITTED:
        return []
    return [
        operation
        for operation in it.operations
        if isinstance(operation, Read) and len(operation.values or ()) >= at_least
    ]


def _list_reads_of_appended_keys(it: Transaction) -> list[Read]:
    """Return reads of other transactions' values in lists to which the same transaction appended."""
    own = {(op.key, op.value) for op in it.operations if isinstance(op, Append)}
    return [
        chosen
        for chosen in _list_reads(it, at_least=1)
        if chosen.key in {key for key, _ in own}
        and any((chosen.key, value) not in own for value in chosen.values or ())
    ]


def _remove_value(it: Transaction, lost: Append) -> Transaction:
    operations = (
        _remove_value_from_read(operation, lost.value) if operation.key == lost.key else operation
        for operation in it.operations
    )
    return replace(it, operations=tuple(operations))


def _remove_value_from_read(operation: Operation, missed: int) -> Operation:
    if isinstance(operation, Append) or operation.values is None:
        return operation
    return replace(operation, values=tuple(value for value in operation.values if value != missed))


def _replace_read(it: Transaction, old: Read, new: Read) -> Transaction:
    return replace(
        it, operations=tuple(new if operation is old else operation for operation in it.operations)
    )


# --- a search of all serial orders ------------------------------------------------------------------------


@st.composite
def draw_history(draw: st.DrawFn) -> History:
    """Draw a history of a store that interleaves transactions, sometimes reads stale lists, and loses appends."""
    versions: dict[str, list[tuple[int, ...]]] = {key: [()] for key in KEYS}
    turns = draw(st.lists(st.integers(0, 4), min_size=2, max_size=9))
    operations: dict[int, list[Operation]] = {}
    moments: dict[int, list[int]] = {}
    for moment, who in enumerate(turns):
        key = draw(st.sampled_from(KEYS))
        moments.setdefault(who, []).append(moment)
        own = operations.setdefault(who, [])
        known = versions[key][-draw(st.sampled_from([1] * 8 + [2])) :][0]
        if draw(st.booleans()):
            own.append(Read(key, known))
        else:
            own.append(Append(key, moment))
            versions[key].append((*known, moment))
    outcomes = st.sampled_from([Outcome.COMMITTED] * 8 + [ABORTED, UNKNOWN])
    width = draw(st.sampled_from([0, 2, 20]))
    history = [
        Transaction(f"p{who}", tuple(own), draw(outcomes), moments[who][0] - width, moments[who][-1] + width)
        for who, own in operations.items()
    ]
    return _share_processes(draw, history), _final({key: versions[key][-1] for key in KEYS})


def _share_processes(draw: st.DrawFn, history: list[Transaction]) -> list[Transaction]:
    """Assign some transactions that do not overlap to the same process."""
    ended: dict[str, int] = {}
    shared: list[Transaction] = []
    for it in sorted(history, key=lambda it: it.invoked):
        free = [process for process, end in ended.items() if end <= it.invoked]
        process = draw(st.sampled_from([it.process, *free]))
        ended[process] = it.completed
        shared.append(replace(it, process=process))
    return shared


@given(draw_history(), st.sampled_from([(), ("process",), ("real time",), ("process", "real time")]))
def test_a_history_is_clean_exactly_if_a_serial_order_explains_it(
    given_history: History, order: tuple[Order, ...]
) -> None:
    assert (list_anomalies(*given_history, order) == []) == _has_serial_order(*given_history, order)


def _has_serial_order(history: Sequence[Transaction], final: Transaction, order: tuple[Order, ...]) -> bool:
    return any(
        _is_in_order(serial, order) and _is_replayable([*serial, final])
        for happened in _choose_effective_transactions(history)
        for serial in permutations(happened)
    )


def _choose_effective_transactions(history: Sequence[Transaction]) -> Iterator[list[Transaction]]:
    committed = [it for it in history if it.outcome is Outcome.COMMITTED]
    unknowns = [it for it in history if it.outcome is UNKNOWN]
    for count in range(len(unknowns) + 1):
        for happened in combinations(unknowns, count):
            yield [*committed, *happened]


def _is_in_order(serial: Sequence[Transaction], order: tuple[Order, ...]) -> bool:
    for earlier, later in combinations(serial, 2):
        if later.outcome is UNKNOWN:
            continue  # it can take effect much later
        same = later.process == earlier.process
        if "process" in order and same and later.invoked < earlier.invoked:
            return False
        if "real time" in order and later.completed < earlier.invoked:
            return False
    return True


def _is_replayable(serial: Sequence[Transaction]) -> bool:
    state: dict[str, tuple[int, ...]] = {}
    for it in serial:
        for operation in it.operations:
            known = state.get(operation.key, ())
            if isinstance(operation, Append):
                state[operation.key] = (*known, operation.value)
            elif (operation.values or ()) != known:
                return False
    return True
