"""Reading items, sync and async: the methods that a database and its transactions have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Never, TypeVar, Unpack, overload

from holdall.core.port import run, wait
from holdall.core.traceback import ShortTracebacks, shorten_traceback
from holdall.errors import HoldallError

if TYPE_CHECKING:
    from holdall.core.context import Context
    from holdall.models.fields.conditions import Clause
    from holdall.models.keys.key import ModelKey
    from holdall.models.model import Model
    from holdall.transactions.query.api import AsyncRows, AsyncScanRows, Rows, ScanRows
    from holdall.transactions.query.question import Question
    from holdall.transactions.query.scan import ScanArguments
    from holdall.transactions.read.flow import GetArguments
    from holdall.transactions.unit import Unit

M = TypeVar("M", bound="Model")
N = TypeVar("N", bound="Model")
L = TypeVar("L", bound="Model")


@cache
def _flows() -> Any:
    """The flows, loaded on first use; an import statement in each method would slow down every call."""
    from holdall.transactions.read import flow

    return flow


class Queries:
    """Asks for rows. Nothing is awaited: pages are fetched while the caller iterates."""

    _context: Context

    def query(
        self,
        models: Any,
        /,
        *values: Any,
        sort: Clause | None = None,
        where: Clause | None = None,
        index: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
        consistent: bool | None = None,
        lock: Literal["rows"] | bool = True,
        only: Iterable[Any] | None = None,
        **components: Any,
    ) -> Any:
        """Query the items of one partition, in the order of their sort key; pages are fetched as you iterate.

        Pass every component of the partition key as a keyword. ``sort`` is a range of the sort key, such as
        ``Order.number.begins_with("2026")``. ``where`` filters the items that were read, such as
        ``col(Order.quantity) > 1``. ``index`` queries an index by its own key, and ``only`` names the fields to fetch.
        ``query((Customer, Order), customer="ada")`` returns the items of several models that share a partition, grouped
        by model if they are in a collection.

        In a transaction that writes, a row is locked once you read or change one of its fields. With ``lock="rows"``
        every row that you get is locked, at the price of one action each: at commit it must still exist and still match
        the query. With ``lock=False`` rows take no part in the transaction and cannot be changed. Items that other
        writers add meanwhile are never noticed.
        """
        from holdall.transactions.query.question import Question
        from holdall.transactions.read.target import model_schemas, refuse_values

        with ShortTracebacks(self._context):
            schema, *beside = model_schemas(models)
            if values:
                raise refuse_values("query", schema, values, schema.keys)
            question = Question(
                schema,
                components,
                beside=beside,
                sort=sort,
                where=where,
                index=index,
                reverse=reverse,
                limit=limit,
                consistent=consistent,
                only=only,
                lock=lock,
            )
        return self._rows(question)

    def _rows(self, question: Question) -> Any:
        """The rows of a query, sync or async."""
        raise NotImplementedError


class Reader(Queries):
    """Reads items. Items that are read outside a transaction cannot be changed."""

    _unit: Unit | None = None

    @overload
    def get(self, key: ModelKey[M], /, **options: Unpack[GetArguments]) -> M | None: ...
    @overload
    def get(self, model: type[M], key: object, /, **options: Unpack[GetArguments]) -> M | None: ...
    @overload
    def get(self, model: type[M], /, **components: Any) -> M | None: ...
    def get(self, target: Any, /, *values: Any, **keywords: Any) -> Any:
        """Return the item under a key, or None if there is none.

        Call ``get(Order, "42")``, ``get(Order, customer="ada", number="1")`` or ``get(Order.key(...))``. Keywords are
        the key's components if there is no positional key, and options if there is one. Reads are strongly consistent;
        ``consistent=False`` costs half and may be slightly out of date. ``include`` names attributes to load with the
        item, such as attachments. ``only`` names the fields to fetch; the item then has no others, and cannot be
        changed.

        In a transaction, the same item is the same instance each time. There, ``create_if_missing`` creates the item if
        it is missing: pass True, or the values that it should have. ``item.is_new`` is then true.
        """
        try:
            return run(_flows().get(self._context, self._unit, target, values, keywords))
        except HoldallError as error:
            shorten_traceback(error, self._context, here=True)
            raise

    @overload
    def get_one(self, key: ModelKey[M], /, **options: Unpack[GetArguments]) -> M: ...
    @overload
    def get_one(self, model: type[M], key: object, /, **options: Unpack[GetArguments]) -> M: ...
    @overload
    def get_one(self, model: type[M], /, **components: Any) -> M: ...
    def get_one(self, target: Any, /, *values: Any, **keywords: Any) -> Any:
        """Return the item under a key, as `get` does, but raise `RecordNotFound` if there is none."""
        try:
            return run(_flows().get_one(self._context, self._unit, target, values, keywords))
        except HoldallError as error:
            shorten_traceback(error, self._context, here=True)
            raise

    def get_by(self, model: type[M], /, *values: Never, **value: Any) -> M | None:
        """Return the item with this value of a unique field, or None: ``get_by(Account, email="ada@example.com")``.

        It reads the value's guard and then the item. In a transaction, the field is locked as if you had read it; None
        is not locked, but the commit refuses a value that another item took meanwhile.
        """
        return run(_flows().get_by(self._context, self._unit, model, values, value), self._context)  # type: ignore[no-any-return]

    def get_all(
        self,
        keys: Iterable[ModelKey[M]],
        *,
        consistent: bool = True,
        include: Iterable[str] = (),
        only: Iterable[Any] | None = None,
    ) -> list[M | None]:
        """Return the items under up to 100 keys, as of one instant, in the order of the keys; None for a missing one.

        With ``consistent=False`` there may be any number of keys; they are read in batches, not as of one instant.
        """
        from holdall.transactions.read.flow import fetch_all

        flow = fetch_all(
            self._context, self._unit, list(keys), consistent=consistent, include=include, only=only
        )
        return run(flow, self._context)

    def load(self, items: Iterable[object], *names: str) -> None:
        """Load the attributes with these names, such as attachments, for all items at once."""
        run(_flows().load(self._context, items, names), self._context)

    if TYPE_CHECKING:

        @overload
        def query(
            self,
            model: type[M],
            /,
            *values: Never,
            sort: Clause | None = None,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> Rows[M]: ...
        @overload
        def query(
            self,
            models: tuple[type[M], type[N]],
            /,
            *,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> Rows[M | N]: ...
        @overload
        def query(
            self,
            models: tuple[type[M], type[N], type[L]],
            /,
            *,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> Rows[M | N | L]: ...
        @overload
        def query(
            self,
            models: Sequence[type[M]],
            /,
            *,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> Rows[M]: ...
        def query(self, models: Any, /, *values: Any, **options: Any) -> Any: ...  # noqa: D102 - as in Queries

    def scan(self, model: type[M], **options: Unpack[ScanArguments]) -> ScanRows[M]:
        """Read every item of a model, and of models derived from it, in no order, by reading its whole table.

        Expensive in a shared table: it reads, and you pay for, every model's items; the log reports how much that was.
        ``segments`` parts of the table are read concurrently, one page of each at a time. ``where`` filters the items
        that were read, ``only`` names the fields to fetch. ``progress`` is called with a `ScanProgress` after each
        page. ``lock`` is as in `query`.
        """
        from holdall.transactions.query.api import ScanRows
        from holdall.transactions.query.scan import ask_scan

        with ShortTracebacks(self._context):
            question = ask_scan(model, options)
        return ScanRows(self._context, self._unit if question.lock else None, question)

    def _rows(self, question: Question) -> Rows[Any]:
        from holdall.transactions.query.api import Rows

        return Rows(self._context, self._unit if question.lock else None, question)


class AsyncReader(Queries):
    """Reads items. Items that are read outside a transaction cannot be changed."""

    _unit: Unit | None = None

    @overload
    async def get(self, key: ModelKey[M], /, **options: Unpack[GetArguments]) -> M | None: ...
    @overload
    async def get(self, model: type[M], key: object, /, **options: Unpack[GetArguments]) -> M | None: ...
    @overload
    async def get(self, model: type[M], /, **components: Any) -> M | None: ...
    async def get(self, target: Any, /, *values: Any, **keywords: Any) -> Any:
        """Return the item under a key, or None if there is none.

        Call ``get(Order, "42")``, ``get(Order, customer="ada", number="1")`` or ``get(Order.key(...))``. Keywords are
        the key's components if there is no positional key, and options if there is one. Reads are strongly consistent;
        ``consistent=False`` costs half and may be slightly out of date. ``include`` names attributes to load with the
        item, such as attachments. ``only`` names the fields to fetch; the item then has no others, and cannot be
        changed.

        In a transaction, the same item is the same instance each time. There, ``create_if_missing`` creates the item if
        it is missing: pass True, or the values that it should have. ``item.is_new`` is then true.
        """
        try:
            return await _flows().get(self._context, self._unit, target, values, keywords)
        except HoldallError as error:
            shorten_traceback(error, self._context, here=True)
            raise

    @overload
    async def get_one(self, key: ModelKey[M], /, **options: Unpack[GetArguments]) -> M: ...
    @overload
    async def get_one(self, model: type[M], key: object, /, **options: Unpack[GetArguments]) -> M: ...
    @overload
    async def get_one(self, model: type[M], /, **components: Any) -> M: ...
    async def get_one(self, target: Any, /, *values: Any, **keywords: Any) -> Any:
        """Return the item under a key, as `get` does, but raise `RecordNotFound` if there is none."""
        try:
            return await _flows().get_one(self._context, self._unit, target, values, keywords)
        except HoldallError as error:
            shorten_traceback(error, self._context, here=True)
            raise

    async def get_by(self, model: type[M], /, *values: Never, **value: Any) -> M | None:
        """Return the item with this value of a unique field, or None: ``get_by(Account, email="ada@example.com")``.

        It reads the value's guard and then the item. In a transaction, the field is locked as if you had read it; None
        is not locked, but the commit refuses a value that another item took meanwhile.
        """
        return await wait(_flows().get_by(self._context, self._unit, model, values, value), self._context)

    async def get_all(
        self,
        keys: Iterable[ModelKey[M]],
        *,
        consistent: bool = True,
        include: Iterable[str] = (),
        only: Iterable[Any] | None = None,
    ) -> list[M | None]:
        """Return the items under up to 100 keys, as of one instant, in the order of the keys; None for a missing one.

        With ``consistent=False`` there may be any number of keys; they are read in batches, not as of one instant.
        """
        from holdall.transactions.read.flow import fetch_all

        flow = fetch_all(
            self._context, self._unit, list(keys), consistent=consistent, include=include, only=only
        )
        return await wait(flow, self._context)

    async def load(self, items: Iterable[object], *names: str) -> None:
        """Load the attributes with these names, such as attachments, for all items at once."""
        await _flows().load(self._context, items, names)

    if TYPE_CHECKING:

        @overload
        def query(
            self,
            model: type[M],
            /,
            *values: Never,
            sort: Clause | None = None,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> AsyncRows[M]: ...
        @overload
        def query(
            self,
            models: tuple[type[M], type[N]],
            /,
            *,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> AsyncRows[M | N]: ...
        @overload
        def query(
            self,
            models: tuple[type[M], type[N], type[L]],
            /,
            *,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> AsyncRows[M | N | L]: ...
        @overload
        def query(
            self,
            models: Sequence[type[M]],
            /,
            *,
            where: Clause | None = None,
            index: str | None = None,
            reverse: bool = False,
            limit: int | None = None,
            consistent: bool | None = None,
            lock: Literal["rows"] | bool = True,
            only: Iterable[Any] | None = None,
            **components: Any,
        ) -> AsyncRows[M]: ...
        def query(self, models: Any, /, *values: Any, **options: Any) -> Any: ...  # noqa: D102 - as in Queries

    def scan(self, model: type[M], **options: Unpack[ScanArguments]) -> AsyncScanRows[M]:
        """Read every item of a model, and of models derived from it, in no order, by reading its whole table.

        Expensive in a shared table: it reads, and you pay for, every model's items; the log reports how much that was.
        ``segments`` parts of the table are read concurrently, one page of each at a time. ``where`` filters the items
        that were read, ``only`` names the fields to fetch. ``progress`` is called with a `ScanProgress` after each
        page. ``lock`` is as in `query`.
        """
        from holdall.transactions.query.api import AsyncScanRows
        from holdall.transactions.query.scan import ask_scan

        with ShortTracebacks(self._context):
            question = ask_scan(model, options)
        return AsyncScanRows(self._context, self._unit if question.lock else None, question)

    def _rows(self, question: Question) -> AsyncRows[Any]:
        from holdall.transactions.query.api import AsyncRows

        return AsyncRows(self._context, self._unit if question.lock else None, question)
