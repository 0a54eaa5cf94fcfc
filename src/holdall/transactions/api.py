"""Transactions as users see them, sync and async."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Never,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    TypeVarTuple,
    Unpack,
    overload,
)

from holdall.core.context import Carry, Context
from holdall.core.generator import refuse_generator_function
from holdall.core.internal import internal
from holdall.core.port import run, wait
from holdall.core.traceback import shorten_traceback
from holdall.errors import HoldallError, InvalidOptionsError
from holdall.models.keys.key import ModelKey
from holdall.models.model import Model
from holdall.tables.commit.change import Participant, require_participant
from holdall.transactions.current import enter_transaction, exit_transaction
from holdall.transactions.enqueued import PLAN_JOB, Enqueueable, Enqueued
from holdall.transactions.read.flow import GetArguments
from holdall.transactions.read.reader import AsyncReader, Reader
from holdall.transactions.read.target import (
    model_schema,
    refuse_components,
    take_create_if_missing,
    take_update,
)
from holdall.transactions.run.flow import leave
from holdall.transactions.run.witness import Witness
from holdall.transactions.unit import ItemChange, Unit

if TYPE_CHECKING:
    from datetime import timedelta
    from decimal import Decimal

    from holdall.models.fields.conditions import Clause
    from holdall.models.fields.update import FieldUpdate

M = TypeVar("M", bound=Model)
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


class FindArguments(GetArguments, total=False):
    """The options of a get in a transaction that may return None."""

    create_if_missing: Literal[False]


class _WholeArguments(TypedDict, total=False):
    """The options of a get of whole items."""

    consistent: bool
    include: Iterable[str]


class CreateArguments(_WholeArguments):
    """The options of a get in a transaction that creates a missing item."""

    create_if_missing: Literal[True] | Mapping[str, Any]


class Writes:
    """The methods of a transaction that record changes. They are never awaited: nothing is sent before the commit."""

    _context: Context
    _unit: Unit
    _outer: Any = None  # the transaction in whose body this one's block runs
    _witness: Witness | None = None  # set when the block is entered

    @internal
    def __init__(self, context: Context, unit: Unit) -> None:
        self._context = context
        self._unit = unit

    @overload
    def create(self, model: Callable[P, M], /, *args: P.args, **values: P.kwargs) -> M: ...
    @overload
    def create(self, item: M, /) -> M: ...
    def create(self, model: Any, /, *args: Any, **values: Any) -> Any:
        """Create an item from a model and its values, or from an instance (``Order(...)``), and return it.

        It is written at commit, which raises `ModelAlreadyExistsError` if an item with its key exists.
        """
        self._unit.check_open()
        borrowed = isinstance(model, Model) and not values
        if not (borrowed or isinstance(model, type)):
            raise InvalidOptionsError(
                f"{model!r:.80} cannot be created",
                hint="pass a model class and the values of its fields by name, or only an item",
            )
        item = model if borrowed else model_schema(model).model(*args, **values)
        self._unit.create(item, borrowed=borrowed)
        return item

    @overload
    def update(
        self,
        key: ModelKey[Any],
        /,
        *updates: FieldUpdate,
        where: Clause | None = None,
        create_if_missing: bool | Mapping[str, Any] = False,
    ) -> None: ...
    @overload
    def update(
        self,
        model: type[Model],
        expected: Mapping[str, Any],
        changes: Mapping[str, Any],
        *,
        where: Clause | None = None,
    ) -> None: ...
    def update(self, *args: Any, where: Clause | None = None, **options: Any) -> None:
        """Change an item without reading it.

        ``tx.update(Order.key(7), col(Order.tags).add("x"), col(Order.note).remove())`` changes fields whatever they
        are: sets, lists and numbers are changed in the store, so transactions that do so do not collide. With
        ``create_if_missing=True``, or the values that a new item should have, a missing item is created.

        ``tx.update(Order, {"id": 7, "quantity": 1}, {"quantity": 2})`` names the key, the old value of each field that
        is changed, and the values of any other fields that the change depends on. None in ``changes`` removes an
        optional field.

        The commit raises `InvalidModelUpdateError` if the item is missing, has expired, or does not meet the expected
        values or ``where=``, a condition such as ``col(Order.quantity) >= 3``. Models with a ``before_...`` hook
        refuse this, because the hook would be skipped; under a key of a base model, the commit refuses their items.
        """
        if args and isinstance(args[0], ModelKey):
            create_if_missing = take_create_if_missing(args[0], options)
            self._unit.update_fields(args[0], args[1:], where, create_if_missing)
        else:
            model, expected, changes = take_update(args, options)
            self._unit.update(model_schema(model), expected, changes, where)

    def create_or_put(
        self,
        model: type[Model],
        expected: Mapping[str, Any],
        new: Mapping[str, Any],
        *,
        where: Clause | None = None,
    ) -> None:
        """Write a whole item without reading it, replacing any item with its key.

        ``expected`` has the key, and values that an existing item must have. Together with ``new`` it makes up the
        whole item. If an existing item does not meet ``where=``, the commit raises `InvalidModelUpdateError`. Models
        with a ``before_...`` hook, and their base models, refuse this, because the hook would be skipped.
        """
        self._unit.create_or_put(model_schema(model), expected, new, where)

    def increment(self, item: Model, /, **amounts: int | float | Decimal) -> None:
        """Add to numeric fields of an item without locking them, so concurrent increments do not conflict.

        ``tx.increment(order, quantity=-1)`` is short for ``order.field("quantity").increment_by(-1)``. The bounds of
        the field's type (``Ge``, ``Le``, ...) still hold for the stored result. If your code decides by the value,
        change it with ``-=`` or ``+=``, which lock the field.
        """
        self._unit.increment(item, amounts)

    def delete(
        self, *targets: Model | ModelKey[Any], where: Clause | None = None, **components: Never
    ) -> None:
        """Delete items that this transaction has read or created, or items by their keys, without reading them.

        An item is deleted under the same conditions as a change; a key unconditionally, unless ``where=`` is given: the
        commit then raises `InvalidModelUpdateError` if the item is missing or does not meet it. A key is refused if its
        model, or one derived from it, has a ``before_...`` hook, because the hook would be skipped.
        """
        refuse_components("delete", targets, components)
        for target in targets:
            self._unit.delete(target, where)

    @overload
    def enqueue(
        self,
        job: Enqueueable[*Ts],
        /,
        *args: *Ts,
        key: str | None = None,
        delay: float | timedelta | None = None,
        queue: str | None = None,
    ) -> Enqueued: ...
    @overload
    def enqueue(
        self,
        job: str,
        /,
        *args: Any,
        key: str | None = None,
        delay: float | timedelta | None = None,
        queue: str | None = None,
    ) -> Enqueued: ...
    def enqueue(  # type: ignore[misc]  # mypy takes a TypeVarTuple for more than any arguments
        self,
        job: Any,
        /,
        *args: Any,
        key: str | None = None,
        delay: float | timedelta | None = None,
        queue: str | None = None,
    ) -> Enqueued:
        """Enqueue a job for a worker; the job exists if and only if the transaction commits.

        The arguments can be JSON values, keys and items. While a job with the same ``key`` waits, no second one is
        enqueued. ``delay`` is the shortest time that the job waits, in seconds or as a timedelta. ``queue`` replaces
        the queue that the job was declared with.
        """
        self._unit.check_writable("a job was enqueued")
        enqueued, participant = self._context.hook(PLAN_JOB)(
            self._context, self._unit.participants, job, args, key=key, delay=delay, queue=queue
        )
        if participant is not None:
            self._unit.participants.append(participant)
        return enqueued

    def after_commit(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function after the transaction has committed. If an attempt fails, its functions are not called."""
        self._unit.check_open()
        refuse_generator_function(function, "a handler")
        self._unit.on_commit.append(lambda: function(*args))

    def after_failure(self, function: Callable[[Exception], Any]) -> None:
        """Call a function with the error after the transaction has failed for good."""
        self._unit.check_open()
        refuse_generator_function(function, "a handler")
        self._unit.on_failure.append(function)

    def join(self, participant: Participant) -> None:
        """Add a participant, which can add its own writes to the commit."""
        self._unit.check_writable("a participant joined")
        self._unit.participants.append(require_participant(participant))

    @property
    def carry(self) -> Carry:
        """What the attempts of one run share: ``tx.carry.of(Uploads)`` is the same object in each of them."""
        return self._unit.carry

    @property
    def read_only(self) -> bool:
        """Whether the transaction is read-only."""
        return self._unit.read_only

    def changes(self) -> list[ItemChange]:
        """The changes so far, or, in a handler, those that were committed: each item's values before and after."""
        return self._unit.changes()

    def __del__(self) -> None:
        unit = getattr(self, "_unit", None)
        if unit is None or not unit.open or self._witness is not None:
            return
        if unit.participants or unit.changes():
            from warnings import warn

            warn(
                "a transaction recorded changes but was never entered, so nothing was written: "
                "use `with db.transaction() as tx:` (`async with` for AsyncDatabase)",
                RuntimeWarning,
                stacklevel=2,
            )

    def _here(self) -> Any:
        """This transaction as the calling code can use it, sync or async, for one that has both forms."""
        return self

    def _enter(self) -> None:
        self._unit.check_open()
        if self._witness is None:
            self._witness = Witness(None, read_only=self._unit.read_only)
        outer = enter_transaction(self)
        if outer is not self:
            self._outer = outer

    def _end(self, error: BaseException | None) -> None:
        exit_transaction(self, self._outer)
        self._outer = None
        if isinstance(error, HoldallError):
            shorten_traceback(error, self._context)


class Transaction(Writes, Reader):
    """A transaction: all changes made in it are written together, or none of them."""

    _unit: Unit

    if TYPE_CHECKING:

        @overload
        def get(self, key: ModelKey[M], /, **options: Unpack[FindArguments]) -> M | None: ...
        @overload
        def get(self, key: ModelKey[M], /, **options: Unpack[CreateArguments]) -> M: ...
        @overload
        def get(self, model: type[M], key: object, /, **options: Unpack[FindArguments]) -> M | None: ...
        @overload
        def get(self, model: type[M], key: object, /, **options: Unpack[CreateArguments]) -> M: ...
        @overload
        def get(self, model: type[M], /, **components: Any) -> M | None: ...
        def get(self, target: Any, /, *values: Any, **keywords: Any) -> Any: ...  # noqa: D102 - as a reader

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            run(leave(self._context, self._unit, self, error), self._context)
        finally:
            self._end(error)


class AsyncTransaction(Writes, AsyncReader):
    """A transaction: all changes made in it are written together, or none of them. Methods that read are awaited."""

    _unit: Unit

    if TYPE_CHECKING:

        @overload
        async def get(self, key: ModelKey[M], /, **options: Unpack[FindArguments]) -> M | None: ...
        @overload
        async def get(self, key: ModelKey[M], /, **options: Unpack[CreateArguments]) -> M: ...
        @overload
        async def get(self, model: type[M], key: object, /, **options: Unpack[FindArguments]) -> M | None: ...
        @overload
        async def get(self, model: type[M], key: object, /, **options: Unpack[CreateArguments]) -> M: ...
        @overload
        async def get(self, model: type[M], /, **components: Any) -> M | None: ...
        async def get(self, target: Any, /, *values: Any, **keywords: Any) -> Any: ...  # noqa: D102 - as a reader

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await wait(leave(self._context, self._unit, self, error), self._context)
        finally:
            self._end(error)
