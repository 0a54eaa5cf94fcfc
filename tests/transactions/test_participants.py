"""Participants: what they prepare, add, settle and abandon for every outcome of a commit, in both colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from toy_participant import TABLE, Album, NameTakenError, Picture, Sweep, Upload, Uploads, sweep_files
from transactions_rig import COLOURS, Colour, Driver, RecordedStore, Thing, is_commit, open_driver, resolve

from holdall.core.port import Port
from holdall.core.requests import PutItem, TransactWrite, UpdateItem
from holdall.core.values import Item
from holdall.errors import (
    AfterCommitError,
    ConflictError,
    ContentionError,
    FrozenItemError,
    InvalidOptionsError,
    InvalidRequestError,
    ModelAlreadyExistsError,
    OutcomeUnknown,
    TransactionErrors,
    TransactionFailedError,
    TransactionTooLarge,
    WriteAttemptedInReadOnlyTxError,
)
from holdall.tables.commit.change import Change, Participant
from holdall.tables.layout import Address
from holdall.tables.record import Record
from holdall.tables.record_column import number
from holdall.testing import Fault, FaultyBackend


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


@pytest.fixture
def store() -> RecordedStore:
    return RecordedStore()


@pytest.fixture
def driver(colour: Colour, store: RecordedStore) -> Iterator[Driver]:
    with open_driver(colour, store) as opened:
        yield opened


@pytest.fixture
def files(tmp_path: Path) -> Path:
    directory = tmp_path / "files"
    directory.mkdir()
    return directory


class RecordingParticipant(Participant):
    """A participant that records the calls of its methods, and fails in given ones."""

    def __init__(
        self,
        events: list[str],
        name: str = "guest",
        *,
        steps: Sequence[str] = (),
        impossible: bool = False,
        fails: Mapping[str, BaseException] | None = None,
        means: Exception | None = None,
    ) -> None:
        self._events = events
        self._name = name
        self._steps = steps
        self._impossible = impossible
        self._fails = fails or {}
        self._means = means

    async def state(self, change: Change) -> None:
        for step in self._steps:
            change.create(Note.new(build_address(step)))
        if self._impossible:
            nowhere = Note(build_address("nowhere"))
            change.require(nowhere, nowhere.address.exists, refused=self._refuse)

    def _refuse(self, found: Item | None) -> Exception | None:
        self._record("refuse")
        return self._means

    async def prepare(self, port: Port) -> None:
        self._record("prepare")

    async def settle(self, port: Port) -> None:
        self._record("settle")

    async def abandon(self, port: Port) -> None:
        self._record("abandon")

    def _record(self, what: str) -> None:
        self._events.append(f"{what} {self._name}")
        if what in self._fails:
            raise self._fails[what]


class Note(Record, type="Note"):
    """An item that only participants write."""

    count = number("count", 0)


def build_address(name: str) -> Address:
    key = {"pk": {"S": name}, "sk": {"S": "#"}}
    return Address(TABLE, key, key)


class AddPicture:
    """A body that adds a picture to an album, with a new upload in each attempt."""

    def __init__(self, files: Path, meanwhile: Callable[[int], None] = lambda attempt: None) -> None:
        self.uploads: list[Upload] = []
        self.events: list[str] = []
        self._files = files
        self._meanwhile = meanwhile

    async def __call__(self, tx: Any) -> str:
        album = await resolve(tx.get(Album, "summer", create_if_missing=True))
        album.size += 1
        upload = Upload(self._files, tx.carry.of(Uploads), "summer", "beach")
        self.uploads.append(upload)
        tx.join(upload)
        tx.after_commit(self.events.append, "committed")
        tx.after_failure(lambda error: self.events.append(type(error).__name__))
        self._meanwhile(len(self.uploads))
        return "added"

    @property
    def upload_events(self) -> list[list[str]]:
        """The calls of each attempt's upload."""
        return [upload.events for upload in self.uploads]


def read_stored(driver: Driver) -> tuple[int | None, list[str]]:
    """Return the stored size of the album, and the names of its pictures."""
    album = driver.db.get(Album, "summer")
    return None if album is None else album.size, [it.name for it in driver.db.query(Picture, album="summer")]


def list_names(files: Path) -> set[str]:
    return {file.name for file in files.iterdir()}


def change_in_first_attempt(driver: Driver) -> Callable[[int], None]:
    """Return a function that creates the album, as another process would, during the first attempt."""

    def meanwhile(attempt: int) -> None:
        if attempt == 1:
            driver.db.run(lambda tx: tx.create(Album, title="summer", size=7))

    return meanwhile


# --- outcomes of a commit ---------------------------------------------------------------------------------


def test_a_commit_writes_the_owner_and_the_participants_row_in_one_request(
    driver: Driver, store: RecordedStore, files: Path
) -> None:
    add_picture = AddPicture(files)
    assert driver.run(add_picture) == "added"
    assert read_stored(driver) == (1, ["beach"])
    (request,) = store.writes
    assert isinstance(request, TransactWrite)
    assert len(request.actions) == 2
    assert add_picture.upload_events == [["prepare", "upload", "settle"]]
    assert add_picture.events == ["committed"]
    assert list_names(files) == {"summer-beach"}


def test_a_with_block_prepares_and_settles_too(driver: Driver, files: Path) -> None:
    add_picture = AddPicture(files)
    driver.run_block(add_picture)
    assert read_stored(driver) == (1, ["beach"])
    assert add_picture.upload_events == [["prepare", "upload", "settle"]]


def test_a_later_attempt_takes_over_what_an_earlier_one_uploaded(driver: Driver, files: Path) -> None:
    add_picture = AddPicture(files, change_in_first_attempt(driver))
    assert driver.run(add_picture) == "added"
    assert read_stored(driver) == (8, ["beach"])
    assert add_picture.upload_events == [["prepare", "upload", "abandon"], ["prepare", "settle"]]
    assert add_picture.events == ["committed"]
    assert list_names(files) == {"summer-beach"}, (
        "the second attempt took over the file, so the first one must not delete it"
    )


def test_all_participants_are_abandoned_when_the_last_attempt_fails(driver: Driver, files: Path) -> None:
    count = iter(range(1, 10))

    def meanwhile(attempt: int) -> None:
        driver.db.run(lambda tx: tx.create_or_put(Album, {"title": "summer"}, {"size": 100 * next(count)}))

    add_picture = AddPicture(files, meanwhile)
    with pytest.raises(TransactionFailedError):
        driver.run(add_picture, retries=2)
    assert add_picture.upload_events == [["prepare", "upload", "abandon"], *[["prepare", "abandon"]] * 2]
    assert add_picture.events == ["TransactionFailedError"]
    assert read_stored(driver) == (300, [])
    assert list_names(files) == set()


def test_a_permanent_error_abandons_at_once(driver: Driver, files: Path) -> None:
    driver.db.run(lambda tx: tx.create(Thing, name="a"))
    add_picture = AddPicture(files)

    async def body(tx: Any) -> None:
        await add_picture(tx)
        tx.create(Thing, name="a")

    with pytest.raises(ModelAlreadyExistsError):
        driver.run(body)
    assert add_picture.upload_events == [["prepare", "upload", "abandon"]]
    assert add_picture.events == ["ModelAlreadyExistsError"]
    assert read_stored(driver) == (None, [])
    assert list_names(files) == set()


def test_the_participants_of_a_body_that_fails_are_not_prepared(driver: Driver, files: Path) -> None:
    add_picture = AddPicture(files)

    async def body(tx: Any) -> None:
        await add_picture(tx)
        raise LookupError("changed my mind")

    for way in (driver.run, driver.run_block):
        with pytest.raises(LookupError):
            way(body)
    assert add_picture.upload_events == [[], []]
    assert add_picture.events == ["LookupError"] * 2
    assert list_names(files) == set()


def test_a_participant_explains_its_refused_action(driver: Driver, files: Path) -> None:
    driver.run(AddPicture(files))
    (files / "summer-beach").rename(files / "the first")
    again = AddPicture(files)
    with pytest.raises(NameTakenError):
        driver.run(again)
    assert again.upload_events == [["prepare", "upload", "refuse", "abandon"]]
    assert read_stored(driver) == (1, ["beach"])
    assert list_names(files) == {"the first"}


def test_a_refused_action_that_its_participant_does_not_explain_is_contention(driver: Driver) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        first = not (tried := tx.carry.of(list))
        tried.append(tx)
        tx.join(RecordingParticipant(events, "first" if first else "second", impossible=first))

    driver.run(body)
    assert events == ["prepare first", "refuse first", "prepare second", "settle second", "abandon first"]
    assert driver.db.get(Thing, "a") is not None


def test_endless_contention_of_a_participant_fails_the_transaction(driver: Driver) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        tx.join(RecordingParticipant(events, impossible=True))

    with pytest.raises(TransactionFailedError) as failed:
        driver.run(body, retries=1)
    assert isinstance(failed.value.__cause__, ContentionError)
    assert events == ["prepare guest", "refuse guest"] * 2 + ["abandon guest"] * 2


def test_permanent_errors_of_items_and_participants_are_reported_together(driver: Driver) -> None:
    driver.db.run(lambda tx: tx.create(Thing, name="a"))
    events: list[str] = []

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        tx.join(RecordingParticipant(events, "fine"))
        tx.join(RecordingParticipant(events, "sad", impossible=True, means=NameTakenError("taken")))

    with pytest.raises(TransactionErrors) as failed:
        driver.run(body)
    assert [type(error) for error in failed.value.exceptions] == [ModelAlreadyExistsError, NameTakenError]
    assert sorted(events[:2]) == ["prepare fine", "prepare sad"]
    assert events[2:] == ["refuse sad", "abandon fine", "abandon sad"]


def test_a_stale_read_takes_precedence_over_a_participants_permanent_error(driver: Driver) -> None:
    driver.db.run(lambda tx: tx.create(Thing, name="a"))
    events: list[str] = []

    async def body(tx: Any) -> None:
        thing = await resolve(tx.get_one(Thing, "a"))
        thing.n += 1
        if tx.carry.of(dict).setdefault("first", thing) is thing:
            driver.db.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 10))
            tx.join(RecordingParticipant(events, impossible=True, means=NameTakenError("taken")))

    driver.run(body)
    assert driver.db.get_one(Thing, "a").n == 11


@pytest.mark.parametrize("error", [ConflictError("busy"), ContentionError("outdated")], ids=repr)
def test_a_participant_can_request_another_attempt(driver: Driver, error: Exception) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        fails = {} if (tried := tx.carry.of(list)) else {"prepare": error}
        tried.append(tx)
        tx.join(RecordingParticipant(events, fails=fails))

    driver.run(body)
    assert events == ["prepare guest", "prepare guest", "settle guest", "abandon guest"]


# --- unknown outcomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER], ids=str)
@pytest.mark.parametrize("way", ["run", "run_block"])
def test_after_an_unknown_outcome_nothing_is_settled_or_abandoned_before_a_sweep(
    colour: Colour, files: Path, fault: Fault, way: str
) -> None:
    faulty = FaultyBackend(RecordedStore())
    with open_driver(colour, faulty) as driver:
        add_picture = AddPicture(files, lambda attempt: faulty.inject(fault))
        with pytest.raises(OutcomeUnknown):
            getattr(driver, way)(add_picture)
        assert add_picture.upload_events == [["prepare", "upload"]]
        assert add_picture.events == []
        assert list_names(files) == {"summer-beach", "summer-beach.pending"}
        happened = fault is Fault.LOST_AFTER
        assert read_stored(driver) == ((1, ["beach"]) if happened else (None, []))
        found = sweep_files(driver.db, files, ["summer"])
        beach = frozenset({"summer-beach"})
        assert found == (Sweep(frozenset(), beach) if happened else Sweep(beach, frozenset()))
        assert list_names(files) == (beach if happened else set())


def test_an_uploaded_file_is_kept_if_the_outcome_of_the_last_attempt_is_unknown(
    colour: Colour, files: Path
) -> None:
    faulty = FaultyBackend(RecordedStore())
    with open_driver(colour, faulty) as driver:
        other = change_in_first_attempt(driver)

        def meanwhile(attempt: int) -> None:
            other(attempt)
            if attempt == 2:
                faulty.inject(Fault.LOST_AFTER)

        add_picture = AddPicture(files, meanwhile)
        with pytest.raises(OutcomeUnknown):
            driver.run(add_picture)
        assert add_picture.upload_events == [["prepare", "upload", "abandon"], ["prepare"]]
        assert read_stored(driver) == (8, ["beach"])
        assert "summer-beach" in list_names(files), "the second attempt may have committed, and uses it"


class StrangeError(Exception):
    """An unknown error: the outcome of the write is unknown, although the error claims to be retryable."""

    retryable = True


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StrangeError()], ids=repr)
@pytest.mark.parametrize("way", ["run", "run_block"])
def test_a_write_that_is_interrupted_by_an_unknown_error_has_an_unknown_outcome(
    driver: Driver, store: RecordedStore, files: Path, moment: str, error: BaseException, way: str
) -> None:
    add_picture = AddPicture(files)

    def interrupt(request: Any) -> None:
        if is_commit(request):
            raise error

    setattr(store, moment, interrupt)
    with pytest.raises(type(error)):
        getattr(driver, way)(add_picture)
    assert add_picture.upload_events == [["prepare", "upload"]], "the body must not run again"
    assert add_picture.events == []
    assert list_names(files) == {"summer-beach", "summer-beach.pending"}
    assert read_stored(driver) == ((None, []) if moment == "before" else (1, ["beach"]))


# --- participants that fail -------------------------------------------------------------------------------


def test_if_one_participant_cannot_prepare_all_are_abandoned_and_nothing_is_written(
    driver: Driver, store: RecordedStore
) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        tx.join(RecordingParticipant(events, "one"))
        tx.join(RecordingParticipant(events, "two", fails={"prepare": OSError("the disk is full")}))
        tx.join(RecordingParticipant(events, "three"))

    for way in (driver.run, driver.run_block):
        events.clear()
        with pytest.raises(OSError, match="full"):
            way(body)
        assert sorted(events[:3]) == ["prepare one", "prepare three", "prepare two"]
        assert events[3:] == ["abandon one", "abandon two", "abandon three"]
    assert store.writes == []


def test_if_one_participant_cannot_settle_the_others_and_the_handlers_still_run(driver: Driver) -> None:
    events: list[str] = []

    async def body(tx: Any) -> int:
        tx.create(Thing, name=f"a{len(events)}")
        tx.join(RecordingParticipant(events, "one", fails={"settle": OSError("the disk is full")}))
        tx.join(RecordingParticipant(events, "two"))
        tx.after_commit(events.append, "handler")
        tx.after_failure(lambda error: events.append("failure"))
        return 42

    with pytest.raises(AfterCommitError) as failed:
        driver.run(body)
    assert failed.value.result == 42
    assert [str(error) for error in failed.value.errors] == ["the disk is full"]
    assert failed.value.__cause__ is failed.value.errors[0]
    assert sorted(events[:2]) == ["prepare one", "prepare two"]
    assert events[2:] == ["settle one", "settle two", "handler"]
    assert driver.db.get(Thing, "a0") is not None
    with pytest.raises(AfterCommitError):
        driver.run_block(body)
    assert driver.db.get(Thing, "a5") is not None


def test_an_interrupt_after_the_commit_abandons_nothing(driver: Driver, files: Path) -> None:
    for way, name in ((driver.run, "a"), (driver.run_block, "b")):
        add_picture = AddPicture(files)

        async def body(tx: Any, name: str = name, add_picture: AddPicture = add_picture) -> None:
            album = await resolve(tx.get(Album, name, create_if_missing=True))
            album.size = 1
            upload = Upload(files, tx.carry.of(Uploads), name, "beach")
            add_picture.uploads.append(upload)
            tx.join(upload)
            tx.after_commit(_interrupt)

        with pytest.raises(KeyboardInterrupt):
            way(body)
        assert add_picture.upload_events == [["prepare", "upload", "settle"]]
        assert f"{name}-beach" in list_names(files)


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_if_one_participant_cannot_abandon_the_others_do_and_the_error_has_a_note(driver: Driver) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        tx.join(RecordingParticipant(events, "one", fails={"abandon": OSError("the disk is gone")}))
        tx.join(RecordingParticipant(events, "two", impossible=True, means=NameTakenError("taken")))

    for way in (driver.run, driver.run_block):
        events.clear()
        with pytest.raises(NameTakenError) as failed:
            way(body)
        assert events[-2:] == ["abandon one", "abandon two"]
        assert any("the disk is gone" in note for note in failed.value.__notes__)


def test_leftovers_of_an_earlier_attempt_are_reported_with_the_result(driver: Driver) -> None:
    events: list[str] = []

    async def body(tx: Any) -> int:
        tx.create(Thing, name="a")
        if not (tried := tx.carry.of(list)):
            tried.append(tx)
            tx.join(
                RecordingParticipant(events, impossible=True, fails={"abandon": OSError("the disk is gone")})
            )
        return 42

    with pytest.raises(AfterCommitError) as failed:
        driver.run(body)
    assert failed.value.result == 42
    assert events == ["prepare guest", "refuse guest", "abandon guest"]
    assert driver.db.get(Thing, "a") is not None


# --- limits and rules -------------------------------------------------------------------------------------


def test_the_steps_of_participants_are_counted_before_anything_is_prepared(
    driver: Driver, store: RecordedStore
) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        for each in range(97):
            tx.create(Thing, name=str(each))
        tx.join(RecordingParticipant(events, "one", steps=["x"]))
        tx.join(RecordingParticipant(events, "two", steps=["y", "z", "zz"]))

    for way in (driver.run, driver.run_block):
        with pytest.raises(TransactionTooLarge, match="101 actions"):
            way(body)
    assert events == []
    assert store.writes == []


def test_participants_of_a_unit_that_is_too_large_read_nothing(driver: Driver) -> None:
    asked: list[Change] = []

    class Curious(Participant):
        async def state(self, change: Change) -> None:
            asked.append(change)

    async def body(tx: Any) -> None:
        for each in range(101):
            tx.create(Thing, name=str(each))
        tx.join(Curious())

    with pytest.raises(TransactionTooLarge, match="101 actions"):
        driver.run(body)
    assert asked == []


def test_a_hundred_actions_with_those_of_participants_are_one_transaction(
    driver: Driver, store: RecordedStore, files: Path
) -> None:
    async def body(tx: Any) -> None:
        for each in range(98):
            tx.create(Thing, name=str(each))
        for name in ("one", "two"):
            tx.join(Upload(files, tx.carry.of(Uploads), "summer", name))

    driver.run(body)
    (request,) = store.writes
    assert isinstance(request, TransactWrite)
    assert len(request.actions) == 100


def test_an_attempt_without_participants_abandons_those_of_earlier_attempts(
    driver: Driver, files: Path
) -> None:
    """The second attempt finds the album full, and adds no picture."""
    uploads: list[Upload] = []

    async def body(tx: Any) -> None:
        album = await resolve(tx.get(Album, "summer", create_if_missing=True))
        if album.size < 7:
            uploads.append(Upload(files, tx.carry.of(Uploads), "summer", "beach"))
            tx.join(uploads[0])
            change_in_first_attempt(driver)(1)
        album.size += 1

    driver.run(body)
    assert [upload.events for upload in uploads] == [["prepare", "upload", "abandon"]]
    assert read_stored(driver) == (8, [])
    assert list_names(files) == set()


def test_a_transaction_can_consist_of_participants_only(
    driver: Driver, store: RecordedStore, files: Path
) -> None:
    async def body(tx: Any) -> None:
        tx.join(Upload(files, tx.carry.of(Uploads), "summer", "beach"))

    driver.run(body)
    assert read_stored(driver) == (None, ["beach"])
    (request,) = store.writes
    assert isinstance(request, TransactWrite), "it has a token, so it can be repeated"


def test_participants_without_actions_are_settled_although_nothing_is_sent(
    driver: Driver, store: RecordedStore
) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        await resolve(tx.get(Thing, "a"))
        tx.join(RecordingParticipant(events))

    driver.run(body)
    assert events == ["prepare guest", "settle guest"]
    assert store.writes == []


def test_additions_of_participants_to_one_item_are_one_action(driver: Driver, store: RecordedStore) -> None:
    class Counter(Participant):
        def __init__(self, count: int) -> None:
            self.count = count

        async def state(self, change: Change) -> None:
            change.update(Note(build_address("counter")), Note.count.add(self.count))

    async def body(tx: Any) -> None:
        for count in (1, 1, 2, 4):
            tx.join(Counter(count))

    driver.run(body)
    (request,) = store.writes
    assert isinstance(request, TransactWrite)
    (action,) = request.actions
    assert isinstance(action, UpdateItem)
    assert action.update.actions == (Note.count.add(8),)


def test_a_merged_step_is_refused_by_the_participant_whose_condition_failed(driver: Driver) -> None:
    class Taker(Participant):
        def __init__(self, least: int, error: Exception) -> None:
            self.least = least
            self.error = error

        async def state(self, change: Change) -> None:
            change.update(
                Note(build_address("counter")),
                Note.count.add(-1),
                expect=[Note.count.at_least(self.least)],
                refused=lambda found: self.error,
            )

    class Giver(Participant):
        async def state(self, change: Change) -> None:
            change.create(Note.new(build_address("counter"), Note.count.set(5)))

    async def give(tx: Any) -> None:
        tx.join(Giver())

    async def take(tx: Any) -> None:
        tx.join(Taker(3, LookupError("three")))
        tx.join(Taker(9, NameTakenError("nine")))

    driver.run(give)
    with pytest.raises(NameTakenError, match="nine"):
        driver.run(take)


def test_the_steps_of_participants_keep_their_order(driver: Driver, store: RecordedStore) -> None:
    async def body(tx: Any) -> None:
        for step in "abc":
            tx.join(RecordingParticipant([], steps=[step]))

    driver.run(body)
    (request,) = store.writes
    assert isinstance(request, TransactWrite)
    assert [action.item["pk"]["S"] for action in request.actions if isinstance(action, PutItem)] == [*"abc"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_participant_that_another_one_adds_takes_part_in_everything(
    driver: Driver, store: RecordedStore, count: int
) -> None:
    events: list[str] = []

    class Host(Participant):
        def __init__(self, name: str) -> None:
            self.name = name

        async def state(self, change: Change) -> None:
            change.join(Companion(self.name))

    class Companion(Participant):
        def __init__(self, name: str) -> None:
            self.name = name

        async def state(self, change: Change) -> None:
            change.create(Note.new(build_address(self.name), Note.count.set(1)))

        async def prepare(self, port: Port) -> None:
            events.append(f"prepare {self.name}")

        async def settle(self, port: Port) -> None:
            events.append(f"settle {self.name}")

    async def body(tx: Any) -> None:
        for name in "ab"[:count]:
            tx.join(Host(name))

    driver.run(body)
    assert sorted(events) == sorted(
        f"{phase} {name}" for phase in ("prepare", "settle") for name in "ab"[:count]
    )
    (request,) = store.writes
    assert len(request.actions) == count if isinstance(request, TransactWrite) else count == 1


def test_only_a_participant_can_join_a_change(driver: Driver) -> None:
    class Host(Participant):
        async def state(self, change: Change) -> None:
            change.join("me")  # type: ignore[arg-type]

    async def body(tx: Any) -> None:
        tx.join(Host())

    with pytest.raises(InvalidOptionsError, match="'me' is not a participant"):
        driver.run(body)


def test_participants_state_and_prepare_concurrently(driver: Driver) -> None:
    met: Counter[str] = Counter()

    class WaitingParticipant(Participant):
        async def state(self, change: Change) -> None:
            await self._meet("state", change.context.port)

        async def prepare(self, port: Port) -> None:
            await self._meet("prepare", port)

        async def _meet(self, phase: str, port: Port) -> None:
            met[phase] += 1
            for _ in range(10_000):
                if met[phase] == 2:
                    return
                await port.sleep(0.001)
            raise AssertionError(f"the other participant does not {phase} concurrently")

    async def body(tx: Any) -> None:
        tx.join(WaitingParticipant())
        tx.join(WaitingParticipant())

    driver.run(body)
    assert met == {"state": 2, "prepare": 2}


def test_two_puts_of_one_item_are_refused_before_anything_is_prepared(driver: Driver) -> None:
    events: list[str] = []

    async def body(tx: Any) -> None:
        tx.join(RecordingParticipant(events, "one", steps=["x"]))
        tx.join(RecordingParticipant(events, "two", steps=["x"]))

    with pytest.raises(InvalidRequestError, match="twice"):
        driver.run(body)
    assert events == []


def test_a_participant_can_stop_the_commit_after_all_are_prepared(
    driver: Driver, store: RecordedStore
) -> None:
    events: list[str] = []

    class Stop(Participant):
        async def check(self) -> None:
            events.append("check")
            raise LookupError("not now")

    async def body(tx: Any) -> None:
        tx.create(Thing, name="a")
        tx.join(Stop())
        tx.join(RecordingParticipant(events))

    with pytest.raises(LookupError):
        driver.run(body)
    assert events == ["prepare guest", "check", "abandon guest"]
    assert store.writes == []


def test_a_participant_cannot_join_a_read_only_transaction(driver: Driver) -> None:
    async def body(tx: Any) -> None:
        tx.join(RecordingParticipant([]))

    with pytest.raises(WriteAttemptedInReadOnlyTxError):
        driver.run(body, read_only=True)


def test_an_item_cannot_be_changed_while_participants_prepare(driver: Driver) -> None:
    """The plan already exists, so such a change would be lost silently."""

    class ChangingParticipant(RecordingParticipant):
        def __init__(self, thing: Thing) -> None:
            super().__init__([])
            self.thing = thing

        async def prepare(self, port: Port) -> None:
            self.thing.n = 9

    async def body(tx: Any) -> None:
        thing = tx.create(Thing, name="a")
        tx.join(ChangingParticipant(thing))

    with pytest.raises(FrozenItemError):
        driver.run(body)
    assert driver.db.get(Thing, "a") is None
