"""Transactions over the wire, where replies get lost: what is sent again, and what the caller is told.

The writes of the models are of two kinds there. *Stamped*: one conditional write, recognised by its stamp. *Token*: a
transaction that the service itself recognises. In both the body runs once: sending again is not trying again.
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
from transactions_rig import COLOURS, Body, Colour, Driver, Thing, now
from troubled_wire import HAPPENED, UNCERTAIN, Fate, Fates, on_the_wire

from holdall import Database
from holdall.core.settings import SingleWrites
from holdall.errors import ContentionError, OutcomeUnknown, TransactionFailedError

IN_COLOURS = [
    pytest.param(case, colour, id=f"{case}-{colour}")
    for case in WRITES
    for colour in COLOURS
    if colour == "blocking" or case.name in ("update", "two items")
]
"""Every case, and one of each kind also in the awaiting colour: below the port there is little of a colour."""

OF_EACH_KIND = WRITES if TORTURE else [case for case in WRITES if case.name in ("update", "two items")]
"""How often something is sent again, and for how long, is decided for the two kinds, not for each case."""

STAMPED = {"create", "create if missing", "update", "append", "update and increment"}
"""The cases whose commit is a single write that makes its own condition false."""


@contextmanager
def stage(
    colour: Colour, start: Callable[[Any], Any], single_writes: SingleWrites = "auto"
) -> Iterator[tuple[Driver, Fates, Database]]:
    """A driver whose messages meet their fates, these, and a database on the same table without any."""
    table = f"holdall-transactions-{uuid4().hex}"
    with (
        on_the_wire() as calm_backend,
        on_the_wire(single_writes) as backend,
        Database(backend=calm_backend, table_name=table) as calm,
    ):
        try:
            calm.run(start)
            troubled = Database(backend=backend, table_name=table)
            troubled.get(Thing, "nobody")
            backend.fates.sent.clear()
            yield Driver(colour, troubled), backend.fates, calm
        finally:
            calm.table.delete()


class Telling:
    """A body that tells how often it ran, and which handlers followed."""

    def __init__(self, body: Body | Callable[[Any], Any]) -> None:
        self.bodies = 0
        self.handlers: list[str] = []
        self._body = body

    async def __call__(self, tx: Any) -> Any:
        self.bodies += 1
        tx.after_commit(self.handlers.append, "committed")
        tx.after_failure(lambda error: self.handlers.append("failed"))
        return await self._body(tx)


def stamps(case: Case) -> bool:
    return case.name in STAMPED


# --- a network that loses things ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", WRITES, ids=str)
def test_what_gets_through_in_the_end_was_done_once(case: Case) -> None:
    """Every fate, and any two losses; in the blocking colour, as sending again knows no colours."""
    assert case.done is not None
    refused = [(Fate.THROTTLED,), (Fate.CONFLICT,)]
    losses = product((Fate.LOST, Fate.REPLY_LOST), repeat=2) if case in OF_EACH_KIND else ()
    for fates in [*refused, *product(UNCERTAIN), *losses]:
        with stage("blocking", case.start) as (driver, network, calm):
            network.coming.extend(fates)
            body = Telling(case.body)
            driver.run(body)
            assert case.done(calm) == 1
            assert body.handlers == ["committed"]
            assert body.bodies == 1
            looked_for = 1 if fates[0] in HAPPENED else 2  # sent again only where it is not found
            assert network.sent.total() == (looked_for if stamps(case) else 1 + len(fates))
            assert len(network.sent) == 1
            assert ("TransactWriteItems" in network.sent) != stamps(case)


@pytest.mark.parametrize(("case", "colour"), IN_COLOURS)
def test_a_commit_that_the_network_delivers_twice_has_happened_and_its_body_runs_once(
    case: Case, colour: Colour
) -> None:
    """The second delivery is refused by what the first has done, and only its answer comes back."""
    assert case.done is not None
    with stage(colour, case.start) as (driver, network, calm):
        network.coming.append(Fate.TWICE)
        body = Telling(case.body)
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
def test_when_nothing_comes_through_any_more_the_caller_is_told_that_nobody_knows(
    case: Case, first: Fate, colour: Colour
) -> None:
    assert case.done is not None
    with stage(colour, case.start) as (driver, network, calm):
        network.coming.extend([first, *[Fate.LOST] * 11])
        body = Telling(case.body)
        with pytest.raises(OutcomeUnknown):
            driver.run(body)
        assert body.bodies == 1
        assert body.handlers == []
        assert case.done(calm) == (first in HAPPENED)


@pytest.mark.parametrize(("case", "colour"), IN_COLOURS)
def test_an_answer_that_makes_no_sense_says_nothing_about_the_write(case: Case, colour: Colour) -> None:
    assert case.done is not None
    with stage(colour, case.start) as (driver, network, calm):
        network.coming.append(Fate.STRANGE)
        body = Telling(case.body)
        with pytest.raises(OutcomeUnknown):
            driver.run(body)
        assert body.bodies == 1
        assert body.handlers == []
        assert case.done(calm) == 1


@pytest.mark.parametrize("fate", [Fate.THROTTLED, Fate.CONFLICT], ids=str)
@pytest.mark.parametrize("case", OF_EACH_KIND, ids=str)
def test_refusals_without_end_are_a_plain_failure(case: Case, fate: Fate) -> None:
    assert case.done is not None
    with stage("blocking", case.start) as (driver, network, calm):
        network.coming.extend([fate] * 24)
        body = Telling(case.body)
        with pytest.raises(TransactionFailedError):
            driver.run(body, retries=1)
        assert body.bodies == 2
        assert body.handlers == ["failed"]
        assert case.done(calm) == 0


# --- others, meanwhile -------------------------------------------------------------------------------------


def alone(tx: Any) -> None:
    """A thing that was made by itself carries a stamp."""
    tx.create(Thing, name="a", n=10, m=5)


def in_company(tx: Any) -> None:
    """Things that were made together."""
    alone(tx)
    tx.create_or_put(Thing, {"name": "b"}, {})


async def withdraw(tx: Any) -> None:
    """Take 5 of 10."""
    (await now(tx.get_one(Thing, "a"))).n -= 5


async def add_word(tx: Any) -> None:
    """Write something together with an increment."""
    thing = await now(tx.get_one(Thing, "a"))
    thing.words.append("word")
    thing.field("n").increment_by(-5)


def deposit(tx: Any) -> None:
    """Put 5 back, and take the word away: the item is as it was, and yet two things have happened."""
    thing = tx.get_one(Thing, "a")
    thing.n += 5
    thing.words = []


def deposit_in_company(tx: Any) -> None:
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


def replace_in_company(tx: Any) -> None:
    replace(tx)
    tx.create(Thing, name="receipt")


REVERTING: list[Callable[[Any], None]] = [
    deposit,
    deposit_in_company,
    deposit_by_increment,
    deposit_blindly,
    replace,
    replace_in_company,
]


def anew(db: Database) -> None:
    """Delete the thing and make it again."""
    db.run(lambda tx: tx.delete(tx.get_one(Thing, "a")))
    db.run(alone)


def anew_in_company(db: Database) -> None:
    db.run(lambda tx: tx.delete(tx.get_one(Thing, "a")))
    db.run(in_company)


REVERSALS: list[Callable[[Database], Any]] = [
    *[lambda db, revert=revert: db.run(revert) for revert in REVERTING],
    anew,
    anew_in_company,
]
REVERSAL_NAMES = [*[revert.__name__ for revert in REVERTING], "anew", "anew_in_company"]


UNDONE = [
    pytest.param(
        start, body, reversal, single_writes, id=f"{start.__name__}-{body.__name__}-{name}-{single_writes}"
    )
    for (s, start), (b, body), (r, (name, reversal)), (w, single_writes) in product(
        enumerate([alone, in_company]),
        enumerate([withdraw, add_word]),
        enumerate(zip(REVERSAL_NAMES, REVERSALS, strict=True)),
        enumerate(["auto", "token"]),
    )
    if TORTURE or (s + b + r + w) % 2 == 0  # any two of these meet, and any three
]


@pytest.mark.parametrize(("start", "body", "reversal", "single_writes"), UNDONE)
def test_a_change_whose_reply_was_lost_is_not_made_twice_when_others_undo_it_meanwhile(
    start: Callable[[Any], Any],
    body: Callable[[Any], Any],
    reversal: Callable[[Database], Any],
    single_writes: SingleWrites,
) -> None:
    """Withdrawn, deposited: what they put back must not be taken once more by the second send."""
    with stage("blocking", start, single_writes) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: reversal(calm)
        telling = Telling(body)
        try:
            driver.run(telling)
        except OutcomeUnknown:
            assert telling.handlers == []
            assert single_writes == "auto"
        else:
            assert telling.handlers == ["committed"]
        assert telling.bodies == 1
        thing = calm.get_one(Thing, "a")
        assert (thing.n, thing.words) == (10, []), "what the others did is undone by the second send"


@pytest.mark.parametrize("colour", COLOURS)
def test_a_change_that_others_built_upon_is_still_known_to_have_happened(colour: Colour) -> None:
    """They wrote in a transaction, which leaves our stamp where it is."""
    with stage(colour, alone) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: calm.run(lambda tx: tx.get_one(Thing, "a").field("n").increment_by(100))
        driver.run(Telling(withdraw))
        assert calm.get_one(Thing, "a").n == 105


@pytest.mark.parametrize("first", [Fate.LOST, Fate.REPLY_LOST], ids=str)
@pytest.mark.parametrize("colour", COLOURS)
def test_a_stamped_change_that_somebody_overwrote_has_an_unknown_fate(colour: Colour, first: Fate) -> None:
    with stage(colour, alone) as (driver, network, calm):
        network.coming.append(first)
        network.meanwhile = lambda: calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 77))
        body = Telling(withdraw)
        with pytest.raises(OutcomeUnknown) as unknown:
            driver.run(body)
        assert unknown.value.item is not None
        assert unknown.value.item["n"] == {"N": "77"}
        assert body.bodies == 1
        assert body.handlers == []
        assert calm.get_one(Thing, "a").n == 77


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_a_change_whose_item_is_deleted_before_the_look_has_an_unknown_fate_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    with stage("blocking", alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: calm.run(lambda tx: tx.delete(tx.get_one(Thing, "a")))
        body = Telling(withdraw)
        if single_writes == "token":
            driver.run(body)
        else:
            with pytest.raises(OutcomeUnknown):
                driver.run(body)
        assert body.bodies == 1
        assert calm.get(Thing, "a") is None


@pytest.mark.parametrize("colour", COLOURS)
def test_a_transaction_that_never_arrived_and_came_too_late_is_tried_again(colour: Colour) -> None:
    """Its token tells that no earlier send succeeded, so it is contention and nothing worse."""

    async def transfer(tx: Any) -> None:
        payer, payee = await now(tx.get_all([Thing.key("a"), Thing.key("b")]))
        payer.n, payee.n = payer.n - 5, payee.n + 5

    with stage(colour, in_company) as (driver, network, calm):
        network.coming.append(Fate.LOST)
        network.meanwhile = lambda: calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 77))
        body = Telling(transfer)
        driver.run(body)
        assert body.bodies == 2
        assert [calm.get_one(Thing, name).n for name in "ab"] == [72, 5]


@pytest.mark.parametrize("colour", COLOURS)
def test_two_who_change_different_fields_of_an_item_do_not_contend(colour: Colour) -> None:
    """Each leaves its stamp in the item, but depends only on the fields that it read or wrote."""
    with stage(colour, alone) as (driver, _, calm):

        async def body(tx: Any) -> None:
            thing = await now(tx.get_one(Thing, "a"))
            thing.n -= 5
            calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "m", 7))

        telling = Telling(body)
        driver.run(telling, retries=0)
        thing = calm.get_one(Thing, "a")
        assert (thing.n, thing.m) == (5, 7)


def test_contention_over_the_wire_names_the_field_and_both_values() -> None:
    with stage("blocking", alone) as (driver, _, calm):

        async def body(tx: Any) -> None:
            thing = await now(tx.get_one(Thing, "a"))
            thing.n -= 5
            calm.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 77))

        with pytest.raises(TransactionFailedError) as failed:
            driver.run(body, retries=0)
        cause = failed.value.__cause__
        assert isinstance(cause, ContentionError)
        ((_, field, expected, stored),) = cause.differences
        assert (field, expected, stored) == ("n", {"N": "10"}, {"N": "77"})


# --- what a stamp cannot tell ------------------------------------------------------------------------------


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_a_creation_whose_reply_was_lost_and_that_was_deleted_meanwhile_comes_back_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    """A stamp is gone with its item, so the second send cannot know of the first. ``single_writes="token"`` can."""

    async def create(tx: Any) -> None:
        tx.create(Thing, name="job")

    with stage("blocking", alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.REPLY_LOST)
        network.meanwhile = lambda: calm.run(lambda tx: tx.delete(tx.get_one(Thing, "job")))
        driver.run(create)
        assert (calm.get(Thing, "job") is not None) == (single_writes == "auto")


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_a_creation_that_arrives_after_its_repetition_was_deleted_comes_back_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    async def create(tx: Any) -> None:
        tx.create(Thing, name="job")

    with stage("blocking", alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.LATE)
        driver.run(create)
        calm.run(lambda tx: tx.delete(tx.get_one(Thing, "job")))
        (late,) = network.late
        late()
        assert (calm.get(Thing, "job") is not None) == (single_writes == "auto")


def test_a_creation_whose_first_reply_was_lost_sends_no_second_message_that_could_arrive_late() -> None:
    """The look finds it, so nothing is under way any more that could bring it back after a deletion."""

    async def create(tx: Any) -> None:
        tx.create(Thing, name="job")

    with stage("blocking", alone) as (driver, network, _):
        network.coming.append(Fate.REPLY_LOST)
        driver.run(create)
        assert network.sent == {"PutItem": 1}


@pytest.mark.parametrize("single_writes", ["auto", "token"])
def test_a_change_that_arrives_after_its_repetition_was_undone_is_made_again_unless_it_has_a_token(
    single_writes: SingleWrites,
) -> None:
    """The first send asks only for the fields that it depends on, so that others may change the rest. If it is held up
    on its way until its repetition was carried out and undone, it finds those fields as they were.
    """
    with stage("blocking", alone, single_writes) as (driver, network, calm):
        network.coming.append(Fate.LATE)
        driver.run(withdraw)
        calm.run(deposit)
        (late,) = network.late
        late()
        assert calm.get_one(Thing, "a").n == (5 if single_writes == "auto" else 10)
