"""Every error has the common base, its own stable code, a hint on its own line, and a place in the docs."""

from __future__ import annotations

import copy
import json
import pickle
import re
import traceback
from base64 import b64decode
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest

from holdall import errors
from holdall.errors import (
    AfterCommitError,
    CancellationReason,
    ConditionFailedError,
    ContentionError,
    Difference,
    HoldallError,
    InvalidFieldError,
    InvalidFieldsError,
    InvalidValueError,
    OutcomeUnknown,
    StoreBusyError,
    TransactionCanceledError,
    TransactionErrors,
)

T = TypeVar("T")


def find_errors() -> list[type[HoldallError]]:
    found: list[type[HoldallError]] = []
    waiting: list[type[HoldallError]] = [HoldallError]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting.extend(kind.__subclasses__())
    ours = [kind for kind in found if kind.__module__.partition(".")[0] == "holdall"]
    return sorted(ours, key=lambda kind: kind.__name__)


ROOT = Path(__file__).parents[2]
ROOMS = [import_module(f"holdall.errors.{path.stem}") for path in ROOT.glob("src/holdall/errors/[a-z]*.py")]
ALL = find_errors()
TREE = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
PICKLES: dict[str, str] = json.loads((ROOT / "tests/fixtures/errors/pickles.json").read_text())
"""The first release that had each error made its pickle with ``build_example``; never make them again."""

CODES = {
    "AccessDeniedError": "access-denied",
    "AfterCommitError": "after-commit",
    "ContentionError": "contention",
    "IntegrityError": "integrity",
    "InvalidObjectKeyError": "invalid-object-key",
    "InvalidTokenError": "invalid-token",
    "ObjectNotFoundError": "object-not-found",
    "PreconditionFailedError": "precondition-failed",
    "QueryNotSupported": "query-not-supported",
    "FrozenItemError": "frozen-item",
    "InvalidFieldError": "invalid-field",
    "InvalidFieldsError": "invalid-fields",
    "InvalidJobArgumentsError": "invalid-job-arguments",
    "InvalidModelUpdateError": "invalid-model-update",
    "InvalidOptionsError": "invalid-options",
    "JobBusyError": "job-busy",
    "JobDefinitionError": "job-definition",
    "JobNotFoundError": "job-not-found",
    "JobProcessError": "job-process",
    "JobTimeoutError": "job-timeout",
    "LeaseLostError": "lease-lost",
    "ModelAlreadyExistsError": "model-already-exists",
    "ModelDefinitionError": "model-definition",
    "ModelMismatchError": "model-mismatch",
    "ModelTrackedTwiceError": "model-tracked-twice",
    "NoJobError": "no-job",
    "NoTransactionError": "no-transaction",
    "RecordNotFound": "record-not-found",
    "RequestAbandoned": "request-abandoned",
    "TransactionClosedError": "transaction-closed",
    "TransactionErrors": "transaction-errors",
    "TransactionFailedError": "transaction-failed",
    "TransactionTimeoutError": "transaction-timeout",
    "UniqueViolationError": "unique-violation",
    "WriteAttemptedInReadOnlyTxError": "read-only-transaction",
    "AwaitableRefused": "awaitable-refused",
    "GeneratorRefused": "generator-refused",
    "BatchTooLargeError": "batch-too-large",
    "ConditionFailedError": "condition-failed",
    "CredentialsError": "credentials",
    "ConfigurationError": "configuration",
    "ConflictError": "conflict",
    "DuplicateItemError": "duplicate-item",
    "EndpointError": "endpoint",
    "FlowSuspended": "flow-suspended",
    "HoldallError": "holdall",
    "IndexExistsError": "index-exists",
    "IndexNotFoundError": "index-not-found",
    "InvalidExpressionError": "invalid-expression",
    "InvalidKeyError": "invalid-key",
    "InvalidRequestError": "invalid-request",
    "InvalidValueError": "invalid-value",
    "ItemTooLargeError": "item-too-large",
    "MalformedReplyError": "malformed-reply",
    "OutcomeUnknown": "outcome-unknown",
    "ServiceError": "service",
    "ServiceUnavailableError": "service-unavailable",
    "StoreBusyError": "store-busy",
    "StoreClosedError": "store-closed",
    "StoreCorruptError": "store-corrupt",
    "StoreError": "store",
    "StoreFullError": "store-full",
    "StoreNotWritableError": "store-not-writable",
    "StoreVersionError": "store-version",
    "TableExistsError": "table-exists",
    "TableNotFoundError": "table-not-found",
    "ThrottledError": "throttled",
    "TokenReusedError": "token-reused",
    "TransactionCanceledError": "transaction-canceled",
    "TransactionTooLarge": "transaction-too-large",
    "AliasNotFoundError": "alias-not-found",
    "ArtifactChangedError": "artifact-changed",
    "ArtifactInUseError": "artifact-in-use",
    "ArtifactNotFoundError": "artifact-not-found",
    "InvalidAliasError": "invalid-alias",
    "InvalidArtifactError": "invalid-artifact",
    "InvalidWeightError": "invalid-weight",
    "ProtectedAliasError": "protected-alias",
    "RolloutError": "rollout",
    "VersionsExhaustedError": "versions-exhausted",
}
"""Listed here because a changed code breaks programs that match on it. Only add to this list."""

BUILTINS: dict[str, type[Exception]] = {
    "AccessDeniedError": PermissionError,
    "AwaitableRefused": TypeError,
    "ConfigurationError": ValueError,
    "EndpointError": ConnectionError,
    "FlowSuspended": RuntimeError,
    "GeneratorRefused": TypeError,
    "IndexExistsError": ValueError,
    "IndexNotFoundError": LookupError,
    "InvalidModelUpdateError": ValueError,
    "InvalidRequestError": ValueError,
    "JobDefinitionError": TypeError,
    "JobNotFoundError": LookupError,
    "JobTimeoutError": TimeoutError,
    "ModelAlreadyExistsError": ValueError,
    "ModelDefinitionError": TypeError,
    "ModelMismatchError": LookupError,
    "NoJobError": LookupError,
    "RecordNotFound": LookupError,
    "StoreBusyError": TimeoutError,
    "StoreClosedError": ValueError,
    "StoreError": OSError,
    "TableExistsError": ValueError,
    "TableNotFoundError": LookupError,
    "TokenReusedError": ValueError,
    "TransactionErrors": ExceptionGroup,
    "TransactionTimeoutError": TimeoutError,
    "UniqueViolationError": ValueError,
    "AliasNotFoundError": LookupError,
    "ArtifactNotFoundError": LookupError,
    "InvalidAliasError": ValueError,
    "InvalidWeightError": TypeError,
    "ProtectedAliasError": PermissionError,
    "VersionsExhaustedError": OverflowError,
}

RETRYABLE = {"ConflictError", "ContentionError", "EndpointError", "JobBusyError"}
RETRYABLE |= {"ServiceUnavailableError", "StoreBusyError", "ThrottledError"}


def for_each(things: Iterable[T]) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Run a test for all of them at once: there are many, and each takes less time than pytest's overhead."""

    def all_in_one(test: Callable[[T], None]) -> Callable[[], None]:
        def test_all() -> None:
            for thing in things:
                try:
                    test(thing)
                except AssertionError as error:
                    error.add_note(f"of {thing}")
                    raise

        test_all.__name__ = test.__name__
        return test_all

    return all_in_one


every_error = for_each(ALL)


HINTLESS = {AfterCommitError, ContentionError, TransactionCanceledError, TransactionErrors}


def build_example(kind: type[HoldallError], *, hint: str | None = None) -> HoldallError:
    if issubclass(kind, TransactionCanceledError):
        return kind("it went wrong", reasons=[CancellationReason("ConditionalCheckFailed")])
    if issubclass(kind, InvalidFieldsError):
        names = ("quantity", "product")
        return kind([InvalidFieldError("Order", name, "it went wrong", hint=hint) for name in names])
    if issubclass(kind, InvalidFieldError):
        return kind("Order", "quantity", "it went wrong", hint=hint)
    if issubclass(kind, TransactionErrors):
        return kind("it went wrong", [ValueError("first"), KeyError("second")])
    if issubclass(kind, ContentionError):
        return kind("it went wrong", differences=[Difference("Order", "quantity", {"N": "1"}, None)])
    if issubclass(kind, AfterCommitError):
        return kind("it went wrong", result=3)
    return kind("it went wrong", hint=hint)


def test_each_error_keeps_its_code() -> None:
    assert CODES.items() <= {kind.__name__: kind.code for kind in ALL}.items()


def test_every_error_has_its_own_code() -> None:
    codes = [kind.code for kind in ALL]
    assert len(set(codes)) == len(codes)
    assert all("code" in vars(kind) for kind in ALL)


@every_error
def test_a_code_can_be_an_anchor(kind: type[HoldallError]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code)
    assert build_example(kind).docs == f"docs/errors.md#{kind.code}"


def test_every_file_of_a_room_is_part_of_the_package() -> None:
    listed = [name for room in ROOMS for name in room.__all__]
    assert sorted(listed) == sorted(errors.__all__)


@every_error
def test_every_error_is_public_and_in_the_tree_of_the_reference(kind: type[HoldallError]) -> None:
    assert kind.__name__ in errors.__all__
    depth = len(set(kind.__mro__) & set(ALL)) - 1
    assert f"\n{'  ' * depth}- [`{kind.__name__}`](#{kind.__name__.lower()})" in TREE


@every_error
def test_every_error_has_a_docstring(kind: type[HoldallError]) -> None:
    assert kind.__doc__


def test_errors_derive_from_the_matching_builtin() -> None:
    for name, builtin in BUILTINS.items():
        assert issubclass(getattr(errors, name), builtin)


@for_each(CODES)
def test_only_temporary_errors_are_retryable(name: str) -> None:
    assert build_example(getattr(errors, name)).retryable is (name in RETRYABLE)


@every_error
def test_the_text_of_an_error_contains_its_message(kind: type[HoldallError]) -> None:
    error = build_example(kind)
    assert error.message in str(error)
    assert error.message.endswith("it went wrong")


@for_each([kind for kind in ALL if kind not in HINTLESS])
def test_a_hint_is_on_its_own_line(kind: type[HoldallError]) -> None:
    error = build_example(kind, hint="do it differently")
    assert str(error).splitlines() == [error.message, "hint: do it differently"]
    assert error.hint == "do it differently"


@every_error
def test_an_error_survives_copying_and_pickling(kind: type[HoldallError]) -> None:
    error = build_example(kind, hint="do it differently")
    assert b"holdall.errors." not in pickle.dumps(error), "a class may move to another file"
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is kind
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


@for_each(PICKLES)
def test_a_pickle_of_the_first_release_still_loads(name: str) -> None:
    loaded = pickle.loads(b64decode(PICKLES[name]))
    assert type(loaded) is getattr(errors, name)
    if isinstance(loaded, HoldallError):
        expected = build_example(type(loaded), hint="do it differently")
        assert str(loaded) == str(expected)
        assert vars(loaded).keys() == vars(expected).keys()


@for_each(errors.__all__)
def test_the_name_of_a_class_shows_the_package_and_not_its_file(name: str) -> None:
    kind = getattr(errors, name)
    assert repr(kind) == f"<class 'holdall.errors.{name}'>"
    if issubclass(kind, HoldallError):
        shown = "".join(traceback.format_exception_only(build_example(kind)))
        assert f"holdall.errors.{name}: " in shown


def test_a_users_own_error_keeps_its_module() -> None:
    class OutOfStock(HoldallError):
        code = "out-of-stock"

    assert OutOfStock.__module__ == __name__


def test_a_place_comes_before_the_problem() -> None:
    error = InvalidValueError("an empty set", place="lines[3].tags")
    assert str(error) == "lines[3].tags: an empty set"
    assert (error.problem, error.place) == ("an empty set", "lines[3].tags")


def test_a_place_is_extended_from_the_inside_out() -> None:
    error = InvalidValueError("an empty set", hint="leave it out")
    grown = error.inside("tags").inside("[3]").inside("lines").inside("order")
    assert grown.place == "order.lines[3].tags"
    assert str(grown) == "order.lines[3].tags: an empty set\nhint: leave it out"
    assert error.place == ""


@pytest.mark.parametrize("kind", [ConditionFailedError, OutcomeUnknown])
def test_an_error_carries_the_stored_item(
    kind: type[ConditionFailedError] | type[OutcomeUnknown],
) -> None:
    item = {"k": {"S": "x"}}
    assert kind("no", item=item).item == item
    assert kind("no").item is None


def test_a_cancelled_transaction_keeps_its_reasons_in_order() -> None:
    reasons = [
        CancellationReason("None"),
        CancellationReason("ConditionalCheckFailed", "not so", {"k": {"S": "x"}}),
    ]
    error = TransactionCanceledError("cancelled", reasons=reasons)
    assert error.reasons == tuple(reasons)
    assert error.reasons[1].item == {"k": {"S": "x"}}


@pytest.mark.parametrize(
    ("codes", "retryable"),
    [
        (("TransactionConflict",), True),
        (("None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"), True),
        (("None", "ConditionalCheckFailed"), False),
        (("TransactionConflict", "ConditionalCheckFailed"), False),
        (("ItemCollectionSizeLimitExceeded",), False),
        (("ValidationError", "ThrottlingError"), False),
    ],
)
def test_a_cancelled_transaction_is_retryable_if_every_reason_is_temporary(
    codes: tuple[str, ...], retryable: bool
) -> None:
    error = TransactionCanceledError("cancelled", reasons=[CancellationReason(code) for code in codes])
    assert error.retryable is retryable


def test_a_busy_store_is_caught_as_a_timeout_and_as_an_os_error() -> None:
    with pytest.raises(TimeoutError):
        raise StoreBusyError("locked")
    with pytest.raises(OSError, match="locked"):
        raise StoreBusyError("locked")
