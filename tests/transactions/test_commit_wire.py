"""Transactions over the wire, with lost replies: what is sent again, and what the caller learns.

The commits of the cases are of two kinds. *Stamped*: one conditional write, recognized by its stamp. *Token*: a
transaction that the service itself recognizes. In both, the body runs once: sending again is not a new attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from fault_cases import WRITES, Case
from rig.torture import TORTURE
from transactions_rig import COLOURS, Body, Colour, Driver, Thing, resolve
from troubled_wire import HAPPENED, UNCERTAIN, Fate, TroubledNetwork, open_troubled_backend

from holdall import Database
from holdall.core.settings import SingleWrites
from holdall.errors import ContentionError, OutcomeUnknown, TransactionFailedError

IN_COLOURS = [
    pytest.param(case, colour, id=f"{case}-{colour}")
    for case in WRITES
    for colour in COLOURS
    if colour == "blocking" or case.name in ("update", "two items")
]
"""Every case, and one of each kind also in the awaiting colour: below the port, the colours hardly differ."""

ONE_OF_EACH_KIND = WRITES if TORTURE else [case for case in WRITES if case.name in ("update", "two items")]
"""The number and the times of repetitions depend only on the kind of the commit."""

STAMPED = {"create", "create if missing", "update", "append", "update and increment"}
"""The cases whose commit is a single stamped write."""


@contextmanager
def stage(
    colour: Colour, start: Callable[[Any], Any], single_writes: SingleWrites = "auto"
) -> Iterator[tuple[Driver, TroubledNetwork, Database]]:
    """Open a driver on a troubled network; yield it with the network and an untroubled database on the same table."""
    table = f"holdall-transactions-{uuid4().hex}"
    with (
        open_troubled_backend() as calm_backend,
        open_troubled_backend(single_writes) as backend,
        Database(backend=calm_backend, table_name=table) as calm,
    ):
        try:
            calm.run(start)
            troubled = Database(backend=backend, table_name=table)
            troubled.get(Thing, "any key: the first use finds the table")
            backend.network.sent.clear()
            yield Driver(colour, troubled), backend.network, calm
        finally:
            calm.table.delete()


class RecordingBody:
    """A body that records how often it ran, and which handlers were called."""

    def __init__(self, body: Body | Callable[[Any], Any]) -> None:
        self.bodies = 0
        self.handlers: list[str] = []
        self._body = body

    async def __call__(self, tx: Any) -> Any:
        self.bodies += 1
        tx.after_commit(self.handlers.append, "committed")
        tx.after_failure(lambda error: self.handlers.append("failed"))
        return await self._body(tx)


def is_stamped(case: Case) -> bool:
    return case.name in STAMPED


# --- lost messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", WRITES, ids=str)
def test_a_commit_that_finally_succeeds_was_done_once(case: Case) -> None:
    """Every fate, and any two losses; only in the blocking colour, because repetitions do not depend on the colour."""
    assert case.done is not None
    refused = [(Fate.THROTTLED,), (Fate.CONFLICT,)]
    losses = product((Fate.LOST, Fate.REPLY_LOST), repeat=2) if case in ONE_OF_EACH_KIND else ()
    for fates in [*refused, *product(UNCERTAIN), *losses]:
        with stage("blocking", case.start) as (driver, network, calm):
            network.coming.extend(fates)
            body = RecordingBody(case.body)
            driver.run(body)
            assert case.done(calm) == 1
            assert body.handlers == ["committed"]
            assert body.bodies == 1
            expected = 1 if fates[0] in HAPPENED else 2  # repeated only if the check does not find the write
            assert network.sent.total() == (expected if is_stamped(case) else 1 + len(fates))
            assert len(network.sent) == 1
            assert ("TransactWriteItems" in network.sent) != is_stamped(case)


@pytest.mark.parametrize(("case", "colour"), IN_COLOURS)
def test_a_commit_that_the_network_delivers_twice_is_done_once(case: Case, colour: Colour) -> None:
    """The effect of the first delivery makes the server refuse the second, and only that refusal comes back."""
    assert case.done is not None
    with stage(colour, case.start) as (driver, network, calm):
        network.coming.append(Fate.TWICE)
        body = RecordingBody(case.body)
        driver.run(body)
        assert (case.done(calm), body.bodies, body.handlers) == (1, 1, ["committed"])


@pytest.mark.parametrize("case", WRITES, ids=str)
def test_a_message_that_arrives_after_its_repetition_changes_nothing(case: Case) -> None:
    assert case.done is not None
    with stage("blocking", case.start) as (driver, network, calm):
        network.coming.append(Fate.LATE)
        driver.run(case.body)
        assert case.done(calm) == 1
        (late,) = network.late
        late()
        assert case.done(calm) == 1


@pytest.mark.parametrize(("case", "colour"), IN_COLOURS)
@pytest.mark.parametrize("first", [Fate.LOST, Fate.REPLY_LOST], ids=str)
def test_if_no_message_gets_through_any_more_the_outcome_is_unknown(
    case: Case, first: Fate, colour: Colour
) -> None:
    assert case.done is not None
    with stage(colour, case.start) as (driver, network, calm):
        network.coming.extend([first, *[Fate.LOST] * 11])
        body = RecordingBody(case.body)
        with pytest.raises(OutcomeUnknown):
            driver.run(body)
        assert body.bodies == 1
        assert body.handlers == []
        assert case.done(calm) == (first in HAPPENED)


@pytest.mark.parametrize(("case", "colour"), IN_COLOURS)
def test_after_a_reply_that_makes_no_sense_the_outcome_is_unknown(case: Case, colour: Colour) -> None:
    assert case.done is not None
    with stage(colour, case.start) as (driver, network, calm):
        network.coming.append(Fate.STRANGE)
        body = RecordingBody(case.body)
        with pytest.raises(OutcomeUnknown):
            driver.run(body)
        assert body.bodies == 1
        assert body.handlers == []
        assert case.done(calm) == 1


@pytest.mark.parametrize("fate", [Fate.THROTTLED, Fate.CONFLICT], ids=str)
@pytest.mark.parametrize("case", ONE_OF_EACH_KIND, ids=str)
def test_endless_refusals_are_a_plain_failure(case: Case, fate: Fate) -> None:
    assert case.done is not None
    with stage("blocking", case.start) as (driver, network, calm):
        network.coming.extend([fate] * 24)
        body = RecordingBody(case.body)
        with pytest.raises(TransactionFailedError):
            driver.run(body, retries=1)
        assert body.bodies == 2
        assert body.handlers == ["failed"]
        assert case.done(calm) == 0


# --- concurrent changes by other processes ----------------------------------------------------------------


def create_alone(tx: Any) -> None:
    """Create a thing in a single write, which stamps it."""
    tx.create(Thing, name="a", n=10, m=5)


def create_together(tx: Any) -> None:
    """Create two things in one transaction."""
    create_alone(tx)
    tx.create_or_put(Thing, {"name": "b"}, {})


async def withdraw(tx: Any) -> None:
    """Take 5 of 10."""
    (await resolve(tx.get_one(Thing, "a"))).n -= 5


async def add_word(tx: Any) -> None:
    """Append a word together with an increment."""
    thing = await resolve(tx.get_one(Thing, "a"))
    thing.words.append("word")
    thing.field("n").increment_by(-5)


def deposit(tx: Any) -> None:
    """Put 5 back and remove the word: the item is as before, although two changes have happened."""
    thing = tx.get_one(Thing, "a")
    thing.n += 5
    thing.words = []


def deposit_together(tx: Any) -> None:
    deposit(tx)
    tx.create(Thing, name="receipt")


def deposit_by_increment(tx: Any) -> None:
    thing = tx.get_one(Thing, "a")
    thing.field("n").increment_by(5)
    thing.words = []


def deposit_blindly(tx: Any) -> None:
    words = tx.query(Thing, name="a", lock=False).all()[0].words
    tx.update(Thing, {"name": "a", "n": 5, "words": words}, {"n": 10, "words": []})


def replace(tx: Any) -> None:
    tx.create_or_put(Thing, {"name": "a"}, {"n": 10, "m": 5})


def replace_together(tx: Any) -> None:
    replace(tx)
    tx.create(Thing, name="receipt")


REVERTING: list[Callable[[Any], None]] = [
    deposit,
    deposit_together,
    deposit_by_increment,
    deposit_blindly,
    replace,
    replace_together,
]


def recreate(db: Database) -> None:
    """Delete the thing and create it again."""
    db.run(lambda tx: tx.delete(tx.get_one(Thing, "a")))
    db.run(create_alone)


def recreate_together(db: Database) -> None:
    db.run(lambda tx: tx.delete(tx.get_one(Thing, "a")))
    db.run(create_together)


REVERSALS: list[Callable[[Database], Any]] = [
    *[lambda db, revert=revert: db.run(revert) for revert in REVERTING],
    recreate,
    recreate_together,
]
REVERSAL_NAMES = [*[revert.__name__ for revert in REVERTING], "recreate", "recreate_together"]


REVERSED = [
    pytest.param(
        start, body, reversal, single_writes, id=f"{start.__name__}-{body.__name__}-{name}-{single_writes}"
    )
    for (s, start), (b, body), (r, (name, reversal)), (w, single_writes) in product(
        enumerate([create_alone, create_together]),
        enumerate([withdraw, add_word]),
        enumerate(zip(REVERSAL_NAMES, REVERSALS, strict=True)),
        enumerate(["auto", "token"]),
    )
    if TORTURE or (s + b + r + w) % 2 == 0  # covers every combination of three parameters
]


@pytest.mark.parametrize(("start", "body", "reversal", "single_writes"), REVERSED)
def test_a_change_whose_reply_was_lost_is_not_made_twice_if_another_process_undoes_it_meanwhile(
    start: Callable[[Any], Any],
    body: Callable[[Any], Any],
    reversal: Callable[[Database], Any],
    single_writes: SingleWrites,
) -> None:
    """After a withdrawal and a deposit by another process, the repetition must not withdraw the amount again."""
    with stage("blocking", start, single_writes) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: reversal(calm)
        recording = RecordingBody(body)
        try:
            driver.run(recording)
        except OutcomeUnknown:
            assert recording.handlers == []
            assert single_writes == "auto"
        else:
            assert recording.handlers == ["committed"]
        assert recording.bodies == 1
        thing = calm.get_one(Thing, "a")
        assert (thing.n, thing.words) == (10, []), "the repetition undid the change of another process"


@pytest.mark.parametrize("colour", COLOURS)
def test_a_change_is_found_even_if_another_transaction_changed_the_item_meanwhile(colour: Colour) -> None:
    """The other transaction keeps the stamp."""
    with stage(colour, create_alone) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: calm.run(lambda tx: tx.get_one(Thing, "a").field("n").increment_by(100))
        driver.run(RecordingBody(withdraw))
        assert calm.get_one(Thing, "a").n == 105


@pytest.mark.parametrize("first", [Fate.LOST, Fate.REPLY_LOST], ids=str)
@pytest.mark.parametrize("colour", COLOURS)
def test_a_stamped_change_that_another_process_overwrote_has_an_unknown_outcome(
    colour: Colour, first: Fate
) -> None:
    with stage(colour, create_alone) as (driver, network, calm):
        network.coming.append(first)
        network.meanwhile = lambda: calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 77))
        body = RecordingBody(withdraw)
        with pytest.raises(OutcomeUnknown) as unknown:
            driver.run(body)
        assert unknown.value.item is not None
        assert unknown.value.item["n"] == {"N": "77"}
        assert body.bodies == 1
        assert body.handlers == []
        assert calm.get_one(Thing, "a").n == 77


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_a_change_whose_item_is_deleted_before_the_check_has_an_unknown_outcome_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    with stage("blocking", create_alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: calm.run(lambda tx: tx.delete(tx.get_one(Thing, "a")))
        body = RecordingBody(withdraw)
        if single_writes == "token":
            driver.run(body)
        else:
            with pytest.raises(OutcomeUnknown):
                driver.run(body)
        assert body.bodies == 1
        assert calm.get(Thing, "a") is None


@pytest.mark.parametrize("colour", COLOURS)
def test_a_transaction_that_was_lost_and_then_outdated_is_retried(colour: Colour) -> None:
    """Its token shows that no earlier message was carried out, so the refusal is contention."""

    async def transfer(tx: Any) -> None:
        payer, payee = await resolve(tx.get_all([Thing.key("a"), Thing.key("b")]))
        payer.n, payee.n = payer.n - 5, payee.n + 5

    with stage(colour, create_together) as (driver, network, calm):
        network.coming.append(Fate.LOST)
        network.meanwhile = lambda: calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 77))
        body = RecordingBody(transfer)
        driver.run(body)
        assert body.bodies == 2
        assert [calm.get_one(Thing, name).n for name in "ab"] == [72, 5]


@pytest.mark.parametrize("colour", COLOURS)
def test_changes_of_different_fields_of_an_item_do_not_contend(colour: Colour) -> None:
    """Each writes its stamp into the item, but depends only on the fields that it read or wrote."""
    with stage(colour, create_alone) as (driver, _, calm):

        async def body(tx: Any) -> None:
            thing = await resolve(tx.get_one(Thing, "a"))
            thing.n -= 5
            calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "m", 7))

        recording = RecordingBody(body)
        driver.run(recording, retries=0)
        thing = calm.get_one(Thing, "a")
        assert (thing.n, thing.m) == (5, 7)


def test_contention_over_the_wire_names_the_field_and_both_values() -> None:
    with stage("blocking", create_alone) as (driver, _, calm):

        async def body(tx: Any) -> None:
            thing = await resolve(tx.get_one(Thing, "a"))
            thing.n -= 5
            calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 77))

        with pytest.raises(TransactionFailedError) as failed:
            driver.run(body, retries=0)
        cause = failed.value.__cause__
        assert isinstance(cause, ContentionError)
        ((_, field, expected, stored),) = cause.differences
        assert (field, expected, stored) == ("n", {"N": "10"}, {"N": "77"})


# --- limits of stamps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_an_item_that_was_deleted_after_the_lost_reply_of_its_creation_comes_back_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    """The stamp is deleted with its item, so the repetition cannot find it. ``single_writes="token"`` prevents that."""

    async def create(tx: Any) -> None:
        tx.create(Thing, name="job")

    with stage("blocking", create_alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: calm.run(lambda tx: tx.delete(tx.get_one(Thing, "job")))
        driver.run(create)
        assert (calm.get(Thing, "job") is not None) == (single_writes == "auto")


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_an_item_comes_back_if_its_delayed_creation_arrives_after_a_deletion_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    async def create(tx: Any) -> None:
        tx.create(Thing, name="job")

    with stage("blocking", create_alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.LATE)
        driver.run(create)
        calm.run(lambda tx: tx.delete(tx.get_one(Thing, "job")))
        (late,) = network.late
        late()
        assert (calm.get(Thing, "job") is not None) == (single_writes == "auto")


def test_a_creation_whose_reply_was_lost_is_not_sent_again_if_the_check_finds_it() -> None:
    """So no message is left that could arrive late and restore the item after a deletion."""

    async def create(tx: Any) -> None:
        tx.create(Thing, name="job")

    with stage("blocking", create_alone) as (driver, network, _):
        network.coming.append(Fate.REPLY_LOST)
        driver.run(create)
        assert network.sent == {"PutItem": 1}


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_a_delayed_change_is_made_again_if_its_repetition_was_undone_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    """The condition contains only the fields that the change depends on, so that other processes can change the rest.
    If the message is delayed until its repetition was carried out and undone, these fields have their old values again.
    """
    with stage("blocking", create_alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.LATE)
        driver.run(withdraw)
        calm.run(deposit)
        (late,) = network.late
        late()
        assert calm.get_one(Thing, "a").n == (5 if single_writes == "auto" else 10)
