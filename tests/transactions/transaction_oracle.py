"""What transactions of one client alone must do, told with dictionaries: the oracle of the model-based test.

A store is a dictionary of accounts by name and, for their unique mails, of who holds which. A transaction is a list of
operations. `predicted` tells the store after it, and the errors that it must end with: none, one, or several at once.
The errors are told as classes, in the order in which a transaction tells them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from holdall.errors import (
    ContentionError,
    InvalidFieldError,
    InvalidModelUpdateError,
    ModelAlreadyExistsError,
    ModelTrackedTwiceError,
    UniqueViolationError,
)

__all__ = [
    "LARGEST",
    "Abort",
    "AbortedError",
    "Add",
    "Amend",
    "Append",
    "Change",
    "Create",
    "Delete",
    "Forget",
    "Look",
    "Operation",
    "Put",
    "Set",
    "State",
    "predict",
]

Values: TypeAlias = dict[str, Any]
"""The fields of an account besides its name: balance, mail, tags, note."""

LARGEST = 20
"""A balance is between 0 and this."""


class AbortedError(Exception):
    """The body changed its mind."""


@dataclass(frozen=True)
class Look:
    """Get an account."""

    name: str


@dataclass(frozen=True)
class Create:
    """Make an account."""

    name: str
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Set:
    """Get an account and, if it is there, assign to a field; a tag is appended in place."""

    name: str
    field: str
    value: Any


@dataclass(frozen=True)
class Add:
    """Get an account and, if it is there, increment its balance."""

    name: str
    amount: int


@dataclass(frozen=True)
class Delete:
    """Get an account and, if it is there, delete it."""

    name: str


@dataclass(frozen=True)
class Forget:
    """Delete whatever is under a key."""

    name: str


@dataclass(frozen=True)
class Change:
    """Update an account blindly."""

    name: str
    expected: tuple[tuple[str, Any], ...]
    changes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Put:
    """Write an account blindly."""

    name: str
    expected: tuple[tuple[str, Any], ...]
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Append:
    """Get an account and, if it is there, append a tag to whatever tags it has."""

    name: str
    tag: str


@dataclass(frozen=True)
class Amend:
    """Change an account without reading it: add to its balance, append a tag, on a condition; or create it."""

    name: str
    amount: int
    tag: str
    at_least: int
    create: bool


@dataclass(frozen=True)
class Abort:
    """Raise an error."""


Operation: TypeAlias = Look | Create | Set | Add | Delete | Forget | Change | Put | Append | Amend | Abort


@dataclass
class State:
    """What is stored: accounts, and who holds which mail."""

    accounts: dict[str, Values] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)


class StopError(Exception):
    """The body ends here, with an error of that class."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class Role:
    """An account in a transaction: how it came in, its values as they are now, and as they were."""

    kind: str  # missing, new, loaded, updated, put, forgotten, amended
    values: Values | None = None
    before: Values | None = None
    expected: Values | None = None
    was_missed: bool = False
    deleted: bool = False
    amend: Amend | None = None


class Prediction:
    """One transaction on a state: first its body, then its commit."""

    def __init__(self, state: State, unique: bool) -> None:
        self._state = state
        self._unique = unique
        self._roles: dict[str, Role] = {}

    def of(self, operations: Sequence[Operation]) -> tuple[State, list[type[Exception]]]:
        """The state after it, and its errors; with errors the state is the one before."""
        try:
            for operation in operations:
                self._do(operation)
            errors = self._errors()
        except StopError as stop:
            errors = [stop.error]
        return (self._state, errors) if errors else (self._commit(), [])

    # --- the body -----------------------------------------------------------------------------------------

    def _do(self, operation: Operation) -> None:
        match operation:
            case Abort():
                raise StopError(AbortedError)
            case Look(name):
                self._got(name)
            case Create(name, values):
                self._create(name, dict(values))
            case Set(name, key, value):
                role = self._got(name)
                if role is not None:
                    self._set(role, key, value)
            case Add(name, amount):
                role = self._got(name)
                if role is not None:
                    assert role.values is not None
                    self._set(role, "balance", role.values["balance"] + amount)
            case Delete(name):
                role = self._got(name)
                if role is not None:
                    role.deleted = True
            case Forget(name):
                self._forget(name)
            case Change(name, expected, changes):
                self._check_untouched(name)
                self._roles[name] = Role("updated", dict(changes), expected=dict(expected))
            case Put(name, expected, values):
                self._check_untouched(name)
                self._roles[name] = Role("put", dict(values), expected=dict(expected))
            case Append(name, tag):
                role = self._got(name)
                if role is not None:
                    self._set(role, "tags", tag)
            case Amend(name):
                if operation.create:
                    _check({"balance": operation.amount})
                self._check_untouched(name)
                self._roles[name] = Role("amended", amend=operation)

    def _got(self, name: str) -> Role | None:
        role = self._roles.get(name)
        if role is None:
            stored = self._state.accounts.get(name)
            if stored is None:
                role = self._roles[name] = Role("missing")
            else:
                role = self._roles[name] = Role("loaded", _copy(stored), _copy(stored))
        if role.kind in ("updated", "put", "forgotten", "amended"):
            raise StopError(ModelTrackedTwiceError)
        return None if role.deleted or role.values is None else role

    def _create(self, name: str, values: Values) -> None:
        _check(values)
        known = self._roles.get(name)
        if known is not None and known.kind != "missing":
            raise StopError(ModelTrackedTwiceError)
        self._roles[name] = Role("new", _complete(values), was_missed=known is not None)

    def _set(self, role: Role, key: str, value: Any) -> None:
        assert role.values is not None
        if key == "tags":
            role.values["tags"] = [*role.values["tags"], value]
        else:
            _check({key: value})
            role.values[key] = value

    def _forget(self, name: str) -> None:
        role = self._roles.get(name)
        if role is None:
            self._roles[name] = Role("forgotten")
        elif role.kind in ("new", "loaded") and not role.deleted:
            role.deleted = True
        elif role.kind != "missing":
            raise StopError(ModelTrackedTwiceError)

    def _check_untouched(self, name: str) -> None:
        if name in self._roles:
            raise StopError(ModelTrackedTwiceError)

    # --- the commit ---------------------------------------------------------------------------------------

    def _errors(self) -> list[type[Exception]]:
        found: list[type[Exception]] = []
        outdated = False
        for name, role in self._roles.items():
            stored = self._state.accounts.get(name)
            if role.kind == "new" and not role.was_missed and stored is not None:
                found.append(ModelAlreadyExistsError)
            elif role.kind == "updated" and not _fits(stored, role.expected):
                found.append(InvalidModelUpdateError)
            elif role.kind == "put" and stored is not None and not _fits(stored, role.expected):
                outdated = True
            elif role.kind == "amended" and not _meets(stored, role.amend):
                found.append(InvalidModelUpdateError)
        found += self._violations()
        if any(self._overflows(name, role) for name, role in self._roles.items()):
            return [InvalidFieldError]  # computed from what the refused write found
        return [ContentionError] if outdated else found

    def _overflows(self, name: str, role: Role) -> bool:
        stored = self._state.accounts.get(name)
        if role.amend is None or stored is None or not _meets(stored, role.amend):
            return False
        return not 0 <= stored["balance"] + role.amend.amount <= LARGEST

    def _violations(self) -> list[type[Exception]]:
        """A mail may be taken if no user has it, or if its user gives it up in the same transaction."""
        released: dict[str, str] = {}
        taken: dict[str, str] = {}
        order: list[str] = []
        for name, lets_go, takes in self._claims():
            if lets_go is not None:
                released[lets_go] = name
                order.append(lets_go)
            if takes is not None:
                if takes in taken:
                    raise StopError(UniqueViolationError)
                taken[takes] = name
                order.append(takes)
        holders = self._state.holders
        return [
            UniqueViolationError
            for mail in dict.fromkeys(order)
            if holders.get(mail) not in (None, released.get(mail, taken.get(mail)))
        ]

    def _claims(self) -> list[tuple[str, str | None, str | None]]:
        """Who lets go of which mail and takes which."""
        if not self._unique:
            return []
        found: list[tuple[str, str | None, str | None]] = []
        for name, role in self._roles.items():
            match role.kind:
                case "new" if not role.deleted:
                    assert role.values is not None
                    found.append((name, None, role.values.get("mail")))
                case "loaded":
                    assert role.before is not None
                    assert role.values is not None
                    old, new = role.before["mail"], None if role.deleted else role.values["mail"]
                    if old != new:
                        found.append((name, old, new))
                case "updated":
                    assert role.expected is not None
                    assert role.values is not None
                    if "mail" in role.values and role.expected["mail"] != role.values["mail"]:
                        found.append((name, role.expected["mail"], role.values["mail"]))
        return found

    def _commit(self) -> State:
        after = State(
            {name: _copy(values) for name, values in self._state.accounts.items()},
            dict(self._state.holders),
        )
        claims = self._claims()
        for _, lets_go, _ in claims:
            if lets_go is not None:
                after.holders.pop(lets_go, None)
        for name, _, takes in claims:
            if takes is not None:
                after.holders[takes] = name
        for name, role in self._roles.items():
            if role.kind == "forgotten" or (role.kind == "loaded" and role.deleted):
                after.accounts.pop(name, None)
            elif role.kind in ("new", "put") and not role.deleted:
                after.accounts[name] = _complete({**(role.expected or {}), **(role.values or {})})
            elif role.amend is not None:
                stored = after.accounts.get(name) or _complete({})
                tags = [*stored["tags"], role.amend.tag]
                after.accounts[name] = {
                    **stored,
                    "balance": stored["balance"] + role.amend.amount,
                    "tags": tags,
                }
            elif role.kind == "updated" or (role.kind == "loaded" and not role.deleted):
                after.accounts[name] |= role.values or {}
        return after


def predict(
    state: State, operations: Sequence[Operation], *, unique: bool
) -> tuple[State, list[type[Exception]]]:
    """What a transaction of these operations does to the state."""
    return Prediction(state, unique).of(operations)


def _complete(values: Mapping[str, Any]) -> Values:
    return {"balance": 0, "mail": None, "tags": [], "note": None, **values}


def _copy(values: Values) -> Values:
    return {**values, "tags": list(values["tags"])}


def _check(values: Mapping[str, Any]) -> None:
    if not 0 <= values.get("balance", 0) <= LARGEST:
        raise StopError(InvalidFieldError)


def _meets(stored: Values | None, amend: Amend | None) -> bool:
    assert amend is not None
    return amend.create if stored is None else stored["balance"] >= amend.at_least


def _fits(stored: Values | None, expected: Values | None) -> bool:
    return stored is not None and all(stored[key] == value for key, value in (expected or {}).items())
