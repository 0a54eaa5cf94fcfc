"""Random transactions compared with an oracle of dictionaries: the store and the errors agree after each."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from transaction_oracle import (
    LARGEST,
    Abort,
    AbortedError,
    Add,
    Amend,
    Append,
    Change,
    Create,
    Delete,
    Forget,
    Look,
    Operation,
    Put,
    Set,
    State,
    predict,
)
from transactions_rig import COLOURS, Colour, Driver, resolve

from holdall import Database, Key, Model, col, field
from holdall.core.requests import Scan
from holdall.errors import ContentionError, TransactionErrors, TransactionFailedError

Balance = Annotated[int, Ge(0), Le(LARGEST)]


class Account(Model):
    """An account that can be written blindly."""

    name: Key[str]
    balance: Balance = 0
    mail: str | None = None
    tags: list[str] = field(default_factory=list)
    note: str | None = None


class Member(Model):
    """The same, but its mail is unique."""

    name: Key[str]
    balance: Balance = 0
    mail: str | None = field(default=None, unique=True)
    tags: list[str] = field(default_factory=list)
    note: str | None = None


# --- operations -------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["ada", "bob", "eve"])
MAILS = st.sampled_from([None, "a@example.com", "b@example.com", "c@example.com"])
BALANCES = st.integers(-1, LARGEST + 1)
VALID = st.integers(0, LARGEST)
FIELDS = {"balance": BALANCES, "mail": MAILS, "note": st.sampled_from([None, "", "x"])}


def choose_fields(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[tuple[str, Any], ...]]:
    """Draw values of some of the fields."""
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: tuple(values.items()))


@st.composite
def draw_change(draw: st.DrawFn) -> Change:
    """Draw a blind update, which names the expected old values of the fields that it changes."""
    changes = dict(draw(choose_fields(**{**FIELDS, "balance": VALID}).filter(bool)))
    expected = {name: draw({**FIELDS, "balance": VALID}[name]) for name in changes}
    return Change(draw(NAMES), tuple(expected.items()), tuple(changes.items()))


COMMON: list[st.SearchStrategy[Operation]] = [
    st.builds(Look, NAMES),
    st.builds(Create, NAMES, choose_fields(**FIELDS)),
    st.sampled_from(sorted(FIELDS)).flatmap(lambda name: st.builds(Set, NAMES, st.just(name), FIELDS[name])),
    st.builds(Set, NAMES, st.just("tags"), st.sampled_from(["x", "y"])),
    st.builds(Add, NAMES, st.integers(-5, 5)),
    st.builds(Delete, NAMES),
    draw_change(),
    st.builds(Append, NAMES, st.sampled_from(["x", "y"])),
    st.builds(
        Amend, NAMES, st.integers(-5, 15), st.sampled_from(["x", "y"]), st.integers(0, 6), st.booleans()
    ),
    st.builds(Abort),
]
BLIND: list[st.SearchStrategy[Operation]] = [
    st.builds(Forget, NAMES),
    st.builds(Put, NAMES, choose_fields(balance=VALID), choose_fields(mail=MAILS, note=FIELDS["note"])),
]


async def perform(tx: Any, model: type[Any], operations: list[Operation]) -> None:
    """Run the operations in a body."""
    for operation in operations:
        if isinstance(operation, Look | Set | Add | Append | Delete):
            item = await resolve(tx.get(model, operation.name))
            if item is not None:
                _apply(tx, item, operation)
            continue
        match operation:
            case Create(name, values):
                tx.create(model, name=name, **dict(values))
            case Forget(name):
                tx.delete(model.key(name))
            case Change(name, expected, changes):
                tx.update(model, {"name": name, **dict(expected)}, dict(changes))
            case Put(name, expected, values):
                tx.create_or_put(model, {"name": name, **dict(expected)}, dict(values))
            case Amend(name, amount, tag, at_least, create):
                updates = col(model.balance).increment_by(amount), col(model.tags).append(tag)
                where = col(model.balance) >= at_least
                tx.update(model.key(name), *updates, where=where, create_if_missing=create)
            case Abort():
                raise AbortedError


def _apply(tx: Any, item: Any, operation: Operation) -> None:
    match operation:
        case Set(_, "tags", value):
            item.tags.append(value)
        case Set(_, name, value):
            setattr(item, name, value)
        case Add(_, amount):
            item.field("balance").increment_by(amount)
        case Append(_, tag):
            item.field("tags").append(tag)
        case Delete():
            tx.delete(item)


def list_classes(error: Exception | None) -> list[type[Exception]]:
    """Return the classes of the errors that an error contains."""
    if error is None:
        return []
    if isinstance(error, TransactionErrors):
        return [type(member) for member in error.exceptions]
    if isinstance(error, TransactionFailedError):
        assert isinstance(error.__cause__, ContentionError)
        return [ContentionError]
    return [type(error)]


# --- machines ---------------------------------------------------------------------------------------------


class Machine(RuleBasedStateMachine):
    """A database and its oracle."""

    model: ClassVar[type[Any]]
    unique: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        self.db = Database("memory:")
        self.state = State()

    @initialize(colour=st.sampled_from(COLOURS))
    def open(self, colour: Colour) -> None:
        self.driver = Driver(colour, self.db)

    def transact(self, operations: list[Operation], block: bool) -> None:
        expected, errors = predict(self.state, operations, unique=self.unique)

        async def body(tx: Any) -> None:
            await perform(tx, self.model, operations)

        found: Exception | None = None
        try:
            self.driver.run_block(body) if block else self.driver.run(body, retries=0)
        except Exception as error:  # noqa: BLE001 - compared with the prediction
            found = error
        assert list_classes(found) == errors, repr(found)
        self.state = expected

    @invariant()
    def the_store_agrees(self) -> None:
        found, holders = {}, {}
        if not self.db.table.exists():
            return
        for item in self.db.send(Scan("holdall", consistent=True)).items:
            if item["_type"]["S"] == self.model.__name__:
                values = self.db.get_one(self.model, item["name"]["S"]).to_dict()
                found[values.pop("name")] = values
            else:
                holders[item["pk"]["S"].rpartition("#")[2]] = item["owner_pk"]["S"].rpartition("#")[2]
        assert found == self.state.accounts
        assert holders == self.state.holders

    def teardown(self) -> None:
        self.db.close()


class AccountMachine(Machine):
    """Accounts, which can also be written blindly."""

    model = Account
    unique = False

    @rule(operations=st.lists(st.one_of(*COMMON, *BLIND), min_size=1, max_size=5), block=st.booleans())
    def transaction(self, operations: list[Operation], block: bool) -> None:
        self.transact(operations, block)


class MemberMachine(Machine):
    """Members, whose mails are unique."""

    model = Member
    unique = True

    @rule(operations=st.lists(st.one_of(*COMMON), min_size=1, max_size=5), block=st.booleans())
    def transaction(self, operations: list[Operation], block: bool) -> None:
        self.transact(operations, block)


LENGTH = settings(stateful_step_count=15, max_examples=max(25, settings().max_examples // 5))

TestAccounts = AccountMachine.TestCase
TestAccounts.settings = LENGTH
TestMembers = MemberMachine.TestCase
TestMembers.settings = LENGTH
