"""What the transactions of a single client must do, modelled with dictionaries: the oracle of the model-based test.

A store is a dictionary of accounts by name, and a dictionary of the accounts that hold the unique mails. A transaction
is a list of operations. `predict` returns the store after it, and the errors with which it must end: none, one, or
several. The errors are classes, in the order in which a transaction reports them.
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
    """The body aborts the transaction."""


@dataclass(frozen=True)
class Look:
    """Get an account."""

    name: str


@dataclass(frozen=True)
class Create:
    """Create an account."""

    name: str
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Set:
    """Get an account and, if it exists, assign to a field, or append a tag in place."""

    name: str
    field: str
    value: Any


@dataclass(frozen=True)
class Add:
    """Get an account and, if it exists, increment its balance."""

    name: str
    amount: int


@dataclass(frozen=True)
class Delete:
    """Get an account and, if it exists, delete it."""

    name: str


@dataclass(frozen=True)
class Forget:
    """Delete an account by its key, without reading it."""

    name: str


@dataclass(frozen=True)
class Change:
    """Update an account blindly."""

    name: str
    expected: tuple[tuple[str, Any], ...]
    changes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Put:
    """Create or replace an account blindly."""

    name: str
    expected: tuple[tuple[str, Any], ...]
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Append:
    """Get an account and, if it exists, append a tag without locking the tags."""

    name: str
    tag: str


@dataclass(frozen=True)
class Amend:
    """Change an account without reading it: add to its balance and append a tag, on a condition; or create it."""

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
    """The stored accounts, and the account that holds each mail."""

    accounts: dict[str, Values] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)


class StopError(Exception):
    """Ends the body with an error of the given class."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class Role:
    """An account in a transaction: its kind of use, its current values, and its stored values."""

    kind: str  # missing, new, loaded, updated, put, forgotten, amended
    values: Values | None = None
    before: Values | None = None
    expected: Values | None = None
    was_missed: bool = False
    deleted: bool = False
    amend: Amend | None = None


class Prediction:
    """The prediction for one transaction on a state: first its body, then its commit."""

    def __init__(self, state: State, unique: bool) -> None:
        self._state = state
        self._unique = unique
        self._roles: dict[str, Role] = {}

    def compute(self, operations: Sequence[Operation]) -> tuple[State, list[type[Exception]]]:
        """Return the state afterwards, unchanged if there are errors, and the errors."""
        try:
            for operation in operations:
                self._apply(operation)
            errors = self._find_errors()
        except StopError as stop:
            errors = [stop.error]
        return (self._state, errors) if errors else (self._commit(), [])

    # --- the body -----------------------------------------------------------------------------------------

    def _apply(self, operation: Operation) -> None:
        match operation:
            case Abort():
                raise StopError(AbortedError)
            case Look(name):
                self._get(name)
            case Create(name, values):
                self._create(name, dict(values))
            case Set(name, key, value):
                role = self._get(name)
                if role is not None:
                    self._set(role, key, value)
            case Add(name, amount):
                role = self._get(name)
                if role is not None:
                    assert role.values is not None
                    self._set(role, "balance", role.values["balance"] + amount)
            case Delete(name):
                role = self._get(name)
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
                role = self._get(name)
                if role is not None:
                    self._set(role, "tags", tag)
            case Amend(name):
                if operation.create:
                    _check({"balance": operation.amount})
                self._check_untouched(name)
                self._roles[name] = Role("amended", amend=operation)

    def _get(self, name: str) -> Role | None:
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

    def _find_errors(self) -> list[type[Exception]]:
        found: list[type[Exception]] = []
        outdated = False
        for name, role in self._roles.items():
            stored = self._state.accounts.get(name)
            if role.kind == "new" and not role.was_missed and stored is not None:
                found.append(ModelAlreadyExistsError)
            elif role.kind == "updated" and not _is_as_expected(stored, role.expected):
                found.append(InvalidModelUpdateError)
            elif role.kind == "put" and stored is not None and not _is_as_expected(stored, role.expected):
                outdated = True
            elif role.kind == "amended" and not _is_condition_met(stored, role.amend):
                found.append(InvalidModelUpdateError)
        found += self._find_violations()
        if any(self._is_out_of_bounds(name, role) for name, role in self._roles.items()):
            return [InvalidFieldError]  # Holdall computes it from the item that the refused write found
        return [ContentionError] if outdated else found

    def _is_out_of_bounds(self, name: str, role: Role) -> bool:
        stored = self._state.accounts.get(name)
        if role.amend is None or stored is None or not _is_condition_met(stored, role.amend):
            return False
        return not 0 <= stored["balance"] + role.amend.amount <= LARGEST

    def _find_violations(self) -> list[type[Exception]]:
        """A mail can be taken if no account has it, or if its account releases it in the same transaction."""
        released: dict[str, str] = {}
        taken: dict[str, str] = {}
        order: list[str] = []
        for name, releases, takes in self._list_claims():
            if releases is not None:
                released[releases] = name
                order.append(releases)
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

    def _list_claims(self) -> list[tuple[str, str | None, str | None]]:
        """List each account that changes its mail, with the mail that it releases and the one that it takes."""
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
        claims = self._list_claims()
        for _, releases, _ in claims:
            if releases is not None:
                after.holders.pop(releases, None)
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
    """Predict the state after a transaction of these operations, and its errors."""
    return Prediction(state, unique).compute(operations)


def _complete(values: Mapping[str, Any]) -> Values:
    return {"balance": 0, "mail": None, "tags": [], "note": None, **values}


def _copy(values: Values) -> Values:
    return {**values, "tags": list(values["tags"])}


def _check(values: Mapping[str, Any]) -> None:
    if not 0 <= values.get("balance", 0) <= LARGEST:
        raise StopError(InvalidFieldError)


def _is_condition_met(stored: Values | None, amend: Amend | None) -> bool:
    assert amend is not None
    return amend.create if stored is None else stored["balance"] >= amend.at_least


def _is_as_expected(stored: Values | None, expected: Values | None) -> bool:
    return stored is not None and all(stored[key] == value for key, value in (expected or {}).items())
