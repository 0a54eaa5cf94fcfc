"""The checker of histories, checked: handmade histories, simulated ones, spoilt ones, and every serial order tried."""

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
    """A committed transaction; all of them overlap, in processes of their own, unless said otherwise."""
    return Transaction(by or str(operations), operations, Outcome.COMMITTED, *at)


def abort(*operations: Operation) -> Transaction:
    return replace(commit(*operations), outcome=ABORTED)


def unknown(*operations: Operation, by: str = "", at: tuple[int, int] = (0, 9)) -> Transaction:
    return replace(commit(*operations, by=by, at=at), outcome=UNKNOWN)


def names(
    history: Sequence[Transaction],
    final: Transaction | None = None,
    order: tuple[Order, ...] = ("process", "real time"),
) -> list[str]:
    return [anomaly.name for anomaly in check(history, final, order=order)]


# --- clean ----------------------------------------------------------------------------------------------------------


def test_an_empty_history_is_clean() -> None:
    assert names([]) == []


def test_reads_of_what_was_appended_are_clean() -> None:
    history = [
        commit(Append("x", 1)),
        commit(read("x", 1), Append("x", 2), read("x", 1, 2)),
        commit(read("x")),
    ]
    assert names(history, commit(read("x", 1, 2))) == []


def test_an_empty_list_is_as_good_as_a_missing_one() -> None:
    assert names([commit(Read("x", ()), Append("x", 1)), commit(Read("x", None))], commit(read("x", 1))) == []


def test_an_append_after_no_read_at_all_is_clean() -> None:
    assert (
        names([commit(Append("x", 2), read("x", 1, 2)), commit(Append("x", 1))], commit(read("x", 1, 2)))
        == []
    )


def test_aborted_transactions_may_have_read_anything() -> None:
    history = [
        abort(read("x", 7), Append("x", 1)),
        abort(read("x", 8)),
        abort(Append("y", 1), read("y")),
    ]
    assert names(history, commit(read("x"))) == []


# --- lists that cannot be -------------------------------------------------------------------------------------------


def test_an_append_of_an_aborted_transaction_that_was_read_is_g1a() -> None:
    assert names([abort(Append("x", 1)), commit(read("x", 1))]) == ["G1a"]


def test_an_aborted_append_in_the_midst_of_a_list_is_g1a() -> None:
    history = [abort(Append("x", 1)), commit(Append("x", 2)), commit(read("x", 1, 2))]
    assert names(history) == ["G1a"]


def test_half_of_a_transaction_that_was_read_is_g1b() -> None:
    history = [commit(Append("x", 1), Append("x", 2)), commit(read("x", 1))]
    assert "G1b" in names(history, commit(read("x", 1, 2)))


def test_an_own_append_that_is_not_seen_is_internal() -> None:
    assert names([commit(Append("x", 1), read("x"))], commit(read("x", 1))) == ["internal"]
    assert names([commit(Append("x", 1)), commit(Append("x", 2), read("x", 1))], commit(read("x", 1, 2))) == [
        "internal"
    ]


def test_two_different_lists_in_one_transaction_are_internal() -> None:
    history = [commit(Append("x", 1)), commit(read("x"), read("x", 1))]
    assert names(history) == ["internal"]


def test_an_own_append_seen_before_it_was_made_is_internal() -> None:
    assert names([commit(read("x", 1), Append("x", 1))], commit(read("x", 1))) == ["internal"]


def test_a_value_twice_in_a_list_is_a_duplicate() -> None:
    assert names([commit(Append("x", 1)), commit(read("x", 1, 1))]) == ["duplicate"]


def test_a_value_that_nobody_appended_is_garbage() -> None:
    assert names([commit(read("x", 1))]) == ["garbage"]


def test_a_value_appended_to_another_key_is_garbage() -> None:
    assert names([commit(Append("y", 1)), commit(read("x", 1))]) == ["garbage"]


def test_lists_that_disagree_are_an_anomaly_of_order() -> None:
    history = [commit(Append("x", 1)), commit(Append("x", 2)), commit(read("x", 1, 2)), commit(read("x", 2))]
    assert names(history) == ["order"]
    assert "after 0 values of x, T2 read 1, but T3 2" in str(check(history)[0])


def test_a_committed_append_that_is_gone_in_the_end_is_lost() -> None:
    assert names([commit(Append("x", 1))], commit(read("x"))) == ["lost append"]


def test_an_append_that_somebody_saw_and_is_gone_in_the_end_is_lost() -> None:
    assert "lost append" in names([unknown(Append("x", 1)), commit(read("x", 1))], commit(read("x")))


def test_a_lost_update_is_a_lost_append() -> None:
    history = [
        commit(Append("x", 1)),
        commit(read("x", 1), Append("x", 2)),
        commit(read("x", 1), Append("x", 3)),
    ]
    assert names(history, commit(read("x", 1, 3))) == ["lost append"]


# --- cycles ---------------------------------------------------------------------------------------------------------


def test_appends_in_opposite_orders_are_g0() -> None:
    history = [commit(Append("x", 1), Append("y", 1)), commit(Append("x", 2), Append("y", 2))]
    assert names(history, commit(read("x", 1, 2), read("y", 2, 1))) == ["G0"]


def test_an_append_between_those_of_another_is_g0() -> None:
    history = [commit(Append("x", 1), Append("x", 3)), commit(Append("x", 2))]
    assert names(history, commit(read("x", 1, 2, 3))) == ["G0"]


def test_two_transactions_that_saw_each_other_are_g1c() -> None:
    history = [commit(Append("x", 1), read("y", 2)), commit(Append("y", 2), read("x", 1))]
    assert names(history) == ["G1c"]


def test_a_stale_read_acted_upon_is_g_single() -> None:
    history = [commit(Append("x", 1)), commit(Append("x", 2)), commit(read("x", 1), Append("x", 3))]
    assert names(history, commit(read("x", 1, 2, 3))) == ["G-single"]


def test_one_half_read_before_and_the_other_after_a_transaction_is_g_single() -> None:
    history = [commit(Append("x", 1), Append("y", 1)), commit(read("x"), read("y", 1))]
    assert names(history, commit(read("x", 1), read("y", 1))) == ["G-single"]


def test_write_skew_is_g2() -> None:
    history = [commit(read("x"), read("y"), Append("x", 1)), commit(read("x"), read("y"), Append("y", 1))]
    assert names(history, commit(read("x", 1), read("y", 1))) == ["G2"]


def test_readers_who_saw_two_appends_in_opposite_orders_are_g2() -> None:
    history = [
        commit(Append("x", 1)),
        commit(Append("y", 1)),
        commit(read("x", 1), read("y")),
        commit(read("x"), read("y", 1)),
    ]
    assert names(history, commit(read("x", 1), read("y", 1))) == ["G2"]


def test_of_a_knot_the_worst_and_shortest_cycle_is_told() -> None:
    ring = [commit(Append(key, 1), read(after, 1)) for key, after in zip("abcd", "bcda", strict=True)]
    skewed = [commit(read("a", 1), Append("e", 1)), commit(read("e", 1), Append("a", 2), read("b"))]
    (anomaly,) = check([*ring, *skewed], commit(read("a", 1, 2)))
    assert anomaly.name == "G1c"
    assert sorted(anomaly.transactions) == [0, 1, 2, 3]


def test_each_knot_is_told() -> None:
    history = [
        commit(Append(key, value), read(other, 1)) for key, other, value in [("a", "b", 1), ("b", "a", 1)]
    ]
    again = [
        commit(Append(key, value), read(other, 1)) for key, other, value in [("c", "d", 1), ("d", "c", 1)]
    ]
    assert names([*history, *again]) == ["G1c", "G1c"]


def test_a_cycle_is_told_step_by_step() -> None:
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


def test_long_lists_are_told_by_their_ends() -> None:
    assert str(Read("x", tuple(range(15)))) == "read x [3 more, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]"


# --- order of processes and of time ---------------------------------------------------------------------------------


def test_a_process_that_does_not_see_its_own_earlier_append_goes_back_in_time() -> None:
    history = [commit(Append("x", 1), by="a", at=(0, 5)), commit(read("x"), by="a", at=(5, 9))]
    assert names(history, commit(read("x", 1), at=(10, 11))) == ["G-single-process"]
    assert names(history, commit(read("x", 1), at=(10, 11)), order=()) == []


def test_not_seeing_what_had_ended_elsewhere_goes_back_in_time() -> None:
    history = [commit(Append("x", 1), by="a", at=(0, 4)), commit(read("x"), by="b", at=(5, 9))]
    assert names(history, commit(read("x", 1), at=(10, 11))) == ["G-single-realtime"]
    assert names(history, commit(read("x", 1), at=(10, 11)), order=("process",)) == []


def test_appends_against_the_order_of_time_are_g0_realtime() -> None:
    history = [commit(Append("x", 1), at=(0, 1)), commit(Append("x", 2), at=(2, 3))]
    assert names(history, commit(read("x", 2, 1), at=(4, 5))) == ["G0-realtime"]


def test_time_orders_across_many_transactions() -> None:
    between = [commit(Append("y", number), at=(2 * number, 2 * number + 1)) for number in range(1, 50)]
    history = [commit(Append("x", 1), at=(0, 1)), *between, commit(read("x"), at=(200, 201))]
    final = commit(read("x", 1), read("y", *range(1, 50)), at=(300, 301))
    assert names(history, final) == ["G-single-realtime"]


def test_transactions_that_overlap_have_no_order_of_time() -> None:
    history = [
        commit(Append("x", 1), at=(0, 5)),
        commit(read("x"), at=(5, 9)),
        commit(read("x", 1), at=(5, 6)),
    ]
    assert names(history, commit(read("x", 1), at=(10, 11))) == []


# --- unknown outcomes -----------------------------------------------------------------------------------------------


def test_an_unknown_transaction_that_nobody_saw_did_not_happen() -> None:
    assert names([unknown(read("x", 5), Append("x", 1))], commit(read("x"))) == []


def test_an_unknown_transaction_that_was_seen_happened_as_a_whole() -> None:
    assert names([unknown(Append("x", 1), Append("y", 1))], commit(read("x", 1), read("y"))) == [
        "lost append"
    ]


def test_what_an_unknown_transaction_that_was_seen_had_read_is_checked() -> None:
    assert names([unknown(read("y", 5), Append("x", 1))], commit(read("x", 1))) == ["garbage"]


def test_being_seen_by_one_that_did_not_happen_is_not_being_seen() -> None:
    history = [unknown(read("z", 9), Append("x", 1)), unknown(read("x", 1), Append("y", 1))]
    assert names(history, commit(read("x"), read("y"))) == []


def test_being_seen_by_an_unknown_one_that_was_seen_counts() -> None:
    history = [unknown(read("z", 9), Append("x", 1)), unknown(read("x", 1), Append("y", 1))]
    assert names(history, commit(read("x", 1), read("y", 1))) == ["garbage"]


def test_an_unknown_transaction_may_take_effect_after_its_process_has_gone_on() -> None:
    history = [unknown(Append("x", 1), by="a", at=(0, 1)), commit(read("x"), by="a", at=(2, 3))]
    assert names(history, commit(read("x", 1), at=(4, 5))) == []


def test_an_unknown_transaction_takes_no_effect_before_it_began() -> None:
    history = [commit(read("x", 1), by="a", at=(0, 1)), unknown(Append("x", 1), by="b", at=(2, 3))]
    assert names(history) == ["G1c-realtime"]


# --- what is no history ---------------------------------------------------------------------------------------------


def test_a_value_appended_twice_is_no_history() -> None:
    with pytest.raises(ValueError, match="append x 1 occurs twice"):
        check([commit(Append("x", 1), Append("x", 1))])
    with pytest.raises(ValueError, match="append x 1 occurs twice"):
        check([commit(Append("x", 1)), abort(Append("x", 1))])


def test_a_process_does_one_thing_at_a_time() -> None:
    with pytest.raises(ValueError, match="overlap"):
        check([commit(Append("x", 1), by="a", at=(0, 2)), commit(Append("x", 2), by="a", at=(1, 3))])


def test_nothing_ends_before_it_begins() -> None:
    with pytest.raises(ValueError, match="ended before it began"):
        check([commit(Append("x", 1), at=(1, 0))])


# --- simulated histories --------------------------------------------------------------------------------------------

KEYS = "xyz"


Told = tuple[list[Transaction], Transaction]
"""A history and its final read."""


def serial_histories() -> st.SearchStrategy[Told]:
    return st.builds(_serial_history, st.integers(1, 25), st.randoms(use_true_random=True))


def _serial_history(length: int, random: Random) -> Told:
    """What a store that runs one transaction at a time would tell, with time around each as wide as may be."""
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


@given(serial_histories())
def test_what_one_at_a_time_would_tell_is_clean(told: Told) -> None:
    assert check(*told) == []


@given(serial_histories(), st.data())
def test_a_value_taken_out_of_every_list_is_lost(told: Told, data: st.DataObject) -> None:
    history, final = told
    appends = _list_committed_appends(history)
    assume(appends)
    lost = data.draw(st.sampled_from(appends))
    spoilt = [_without(transaction, lost) for transaction in history]
    assert "lost append" in names(spoilt, _without(final, lost))


@given(serial_histories(), st.data())
def test_an_append_said_to_be_aborted_is_noticed(told: Told, data: st.DataObject) -> None:
    history, final = told
    places = [place for place, it in enumerate(history) if _list_committed_appends([it])]
    assume(places)
    place = data.draw(st.sampled_from(places))
    history[place] = replace(history[place], outcome=ABORTED)
    assert "G1a" in names(history, final)


@given(serial_histories(), st.data())
def test_two_neighbours_swapped_in_one_list_are_noticed(told: Told, data: st.DataObject) -> None:
    history, final = told
    places = [place for place, it in enumerate(history) if _reads(it, at_least=2)]
    assume(places)
    place = data.draw(st.sampled_from(places))
    chosen = data.draw(st.sampled_from(_reads(history[place], at_least=2)))
    values = chosen.values or ()
    cut = data.draw(st.integers(0, len(values) - 2))
    swapped = (*values[:cut], values[cut + 1], values[cut], *values[cut + 2 :])
    history[place] = _with(history[place], chosen, replace(chosen, values=swapped))
    assert check(history, final) != []


@given(serial_histories(), st.data())
def test_a_value_repeated_in_one_list_is_noticed(told: Told, data: st.DataObject) -> None:
    history, final = told
    reads = _reads(final, at_least=1)
    assume(reads)
    chosen = data.draw(st.sampled_from(reads))
    values = chosen.values or ()
    repeated = replace(chosen, values=(*values, values[0]))
    assert "duplicate" in names(history, _with(final, chosen, repeated))


@given(serial_histories(), st.data())
def test_an_append_after_a_stale_read_is_noticed(told: Told, data: st.DataObject) -> None:
    history, final = told
    places = [place for place, it in enumerate(history) if _read_then_appended(it)]
    assume(places)
    place = data.draw(st.sampled_from(places))
    chosen = data.draw(st.sampled_from(_read_then_appended(history[place])))
    own = {
        operation.value
        for operation in history[place].operations
        if isinstance(operation, Append) and operation.key == chosen.key
    }
    missed = next(value for value in reversed(chosen.values or ()) if value not in own)
    operations = tuple(
        _read_without(operation, missed) if operation.key == chosen.key else operation
        for operation in history[place].operations
    )
    history[place] = replace(history[place], operations=operations)
    assert {name for name in names(history, final) if name != "G1b"} & {"G0", "G1c", "G-single"}


def _list_committed_appends(history: Sequence[Transaction]) -> list[Append]:
    return [
        operation
        for it in history
        for operation in it.operations
        if isinstance(operation, Append) and it.outcome is Outcome.COMMITTED
    ]


def _reads(it: Transaction, *, at_least: int) -> list[Read]:
    """The reads of so many values, of a transaction that committed."""
    if it.outcome is not Outcome.COMMITTED:
        return []
    return [
        operation
        for operation in it.operations
        if isinstance(operation, Read) and len(operation.values or ()) >= at_least
    ]


def _read_then_appended(it: Transaction) -> list[Read]:
    """Reads of others' values in a list that the same transaction appended to."""
    own = {(op.key, op.value) for op in it.operations if isinstance(op, Append)}
    return [
        chosen
        for chosen in _reads(it, at_least=1)
        if chosen.key in {key for key, _ in own}
        and any((chosen.key, value) not in own for value in chosen.values or ())
    ]


def _without(it: Transaction, lost: Append) -> Transaction:
    operations = (
        _read_without(operation, lost.value) if operation.key == lost.key else operation
        for operation in it.operations
    )
    return replace(it, operations=tuple(operations))


def _read_without(operation: Operation, missed: int) -> Operation:
    if isinstance(operation, Append) or operation.values is None:
        return operation
    return replace(operation, values=tuple(value for value in operation.values if value != missed))


def _with(it: Transaction, old: Read, new: Read) -> Transaction:
    return replace(
        it, operations=tuple(new if operation is old else operation for operation in it.operations)
    )


# --- every serial order tried ---------------------------------------------------------------------------------------


@st.composite
def dubious_histories(draw: st.DrawFn) -> Told:
    """What a store that interleaves as it likes, reads what is old and forgets appends would tell, now and then."""
    versions: dict[str, list[tuple[int, ...]]] = {key: [()] for key in KEYS}
    turns = draw(st.lists(st.integers(0, 4), min_size=2, max_size=9))
    operations: dict[int, list[Operation]] = {}
    moments: dict[int, list[int]] = {}
    for moment, who in enumerate(turns):
        key = draw(st.sampled_from(KEYS))
        moments.setdefault(who, []).append(moment)
        mine = operations.setdefault(who, [])
        known = versions[key][-draw(st.sampled_from([1] * 8 + [2])) :][0]
        if draw(st.booleans()):
            mine.append(Read(key, known))
        else:
            mine.append(Append(key, moment))
            versions[key].append((*known, moment))
    outcomes = st.sampled_from([Outcome.COMMITTED] * 8 + [ABORTED, UNKNOWN])
    width = draw(st.sampled_from([0, 2, 20]))
    history = [
        Transaction(f"p{who}", tuple(mine), draw(outcomes), moments[who][0] - width, moments[who][-1] + width)
        for who, mine in operations.items()
    ]
    return _in_shared_processes(draw, history), _final({key: versions[key][-1] for key in KEYS})


def _in_shared_processes(draw: st.DrawFn, history: list[Transaction]) -> list[Transaction]:
    """Let some that do not overlap be of one process."""
    ended: dict[str, int] = {}
    shared: list[Transaction] = []
    for it in sorted(history, key=lambda it: it.invoked):
        free = [process for process, end in ended.items() if end <= it.invoked]
        process = draw(st.sampled_from([it.process, *free]))
        ended[process] = it.completed
        shared.append(replace(it, process=process))
    return shared


@given(dubious_histories(), st.sampled_from([(), ("process",), ("real time",), ("process", "real time")]))
def test_a_history_is_clean_exactly_when_some_serial_order_explains_it(
    told: Told, order: tuple[Order, ...]
) -> None:
    assert (names(*told, order) == []) == _is_explained(*told, order)


def _is_explained(history: Sequence[Transaction], final: Transaction, order: tuple[Order, ...]) -> bool:
    return any(
        _respects(serial, order) and _replays([*serial, final])
        for happened in _that_may_have_happened(history)
        for serial in permutations(happened)
    )


def _that_may_have_happened(history: Sequence[Transaction]) -> Iterator[list[Transaction]]:
    committed = [it for it in history if it.outcome is Outcome.COMMITTED]
    unknowns = [it for it in history if it.outcome is UNKNOWN]
    for count in range(len(unknowns) + 1):
        for happened in combinations(unknowns, count):
            yield [*committed, *happened]


def _respects(serial: Sequence[Transaction], order: tuple[Order, ...]) -> bool:
    for earlier, later in combinations(serial, 2):
        if later.outcome is UNKNOWN:
            continue  # it may take effect long after
        same = later.process == earlier.process
        if "process" in order and same and later.invoked < earlier.invoked:
            return False
        if "real time" in order and later.completed < earlier.invoked:
            return False
    return True


def _replays(serial: Sequence[Transaction]) -> bool:
    state: dict[str, tuple[int, ...]] = {}
    for it in serial:
        for operation in it.operations:
            known = state.get(operation.key, ())
            if isinstance(operation, Append):
                state[operation.key] = (*known, operation.value)
            elif (operation.values or ()) != known:
                return False
    return True
