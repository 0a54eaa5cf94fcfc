"""Questions: a query's arguments, checked when it is made, and turned into requests once its table is known.

Pure. A query reads one range of one partition, of the table or of an index, and may filter the rows that it read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from holdall.core.expressions import And, Compare, Condition, In, KeyCondition, Path, Value
from holdall.core.expressions.renderer import render
from holdall.core.option import check_count, check_switch
from holdall.core.requests import Query, Scan
from holdall.core.rules.expression import paths_of
from holdall.core.schema import KeyAttribute
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidFieldError, InvalidOptionsError, QueryNotSupported
from holdall.models.fields.conditions import Clause
from holdall.models.fields.field import Field
from holdall.models.keys.form import CollectionForm
from holdall.models.keys.ranges import Range, span
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import all_of, any_of
from holdall.transactions.binding import Binding
from holdall.transactions.query.arguments import (
    check_clause,
    check_lock,
    check_partition,
    check_together,
    find_field,
    find_index,
)
from holdall.transactions.query.row import RowLock, read_whole
from holdall.transactions.read.expiry import alive
from holdall.transactions.read.part import list_attributes


class Question:
    """A query, before it is sent.

    ``schema`` is the model, and ``schemas`` are all models whose items it returns: a query of a collection has several.
    ``segments`` is the number of parts that are read concurrently; only a scan has several.
    """

    segments = 1

    def __init__(
        self,
        schema: ModelSchema,
        components: Mapping[str, Any],
        *,
        beside: Sequence[ModelSchema] = (),
        sort: Clause | None = None,
        where: Clause | None = None,
        index: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
        consistent: bool | None = None,
        only: Iterable[Any] | None = None,
        lock: RowLock = True,
    ) -> None:
        self.schema = schema
        self.schemas = (schema, *beside)
        self.index = find_index(schema, index)
        self.sort = check_clause("sort", sort)
        self.where = check_clause("where", where)
        if limit is not None:
            check_count(limit, "limit")
        self.limit = limit
        check_switch(reverse, "reverse")
        self.reverse = reverse
        self.consistent = self._consistency(consistent)
        self.components = check_partition(schema, self._key_fields, components)
        self.only = None if only is None else tuple(find_field(self.schemas, name) for name in only)
        self.lock = check_lock(lock)
        self._parts = (
            check_together(self.schemas, index, self.components, self.sort) if beside else [self.components]
        )
        self._check_where()
        self._known_range: tuple[KeyAttribute, Range] | None = None
        if sort is not None or index is not None:
            self._range(self._likely_sort())  # refuses an invalid range now

    @property
    def name(self) -> str:
        """The names of the models."""
        return " or ".join(schema.name for schema in self.schemas)

    @property
    def _key_fields(self) -> Sequence[Field[Any]]:
        return self.schema.keys if self.index is None else self.index.key

    def _family(self) -> Iterator[ModelSchema]:
        """The models, and those derived from them."""
        return chain.from_iterable(schema.family() for schema in self.schemas)

    def _expiry(self) -> Field[Any] | None:
        return next((schema.ttl for schema in self.schemas if schema.ttl is not None), None)

    def _consistency(self, given: bool | None) -> bool:
        if given is not None:
            check_switch(given, "consistent")
        if self.lags and given:
            raise InvalidOptionsError(
                f"the index {self.index_name!r} cannot be read consistently",
                hint="a global index lags a moment behind its table; query the table itself or a local index, or "
                "leave out consistent=True",
            )
        return not self.lags if given is None else given

    @property
    def lags(self) -> bool:
        """Whether it reads an index that follows its table with a delay; a local index does not."""
        return self.index is not None and not self.index.local

    @property
    def index_name(self) -> str | None:
        """The name of the model's index, None if it reads the table."""
        return None if self.index is None else self.index.name

    def _check_where(self) -> None:
        for field in () if self.where is None else self.where.fields():
            known = [schema.fields.get(field.name) for schema in self._family()]
            if not any(each is not None and each.stored == field.stored for each in known):
                raise InvalidFieldError(
                    self.schema.name, field.name, f"where= uses {field!r}, which is a field of another model"
                )
            if field.is_key and self.schema.form.in_key_alone:
                raise field.refusal(
                    "a model with its own table stores it in the key alone, so where= cannot use it",
                    hint="compare it in sort=, or in your code",
                )
            if self.index is None and field.stored in self._table_key_names():
                raise field.refusal(
                    "it is the table's key, so where= cannot use it",
                    hint="compare it in sort=, or in your code",
                )
            self._check_held(field, "where=")
        for field in self.only or ():
            if not field.is_key:
                self._check_held(field, "only=", as_key=True)
        if (expiry := self._expiry()) is not None:
            self._check_held(expiry, "a query of items that expire", as_key=True)

    def _check_held(self, field: Field[Any], what: str, *, as_key: bool = False) -> None:
        """Check that an index of a model's own table includes the field; ``as_key``: also allowed in the index's key,
        which no filter may use."""
        if self.index is None or self.schema.table is None:
            return
        schema = self.index.schema
        if field.stored in [key.name for key in schema.keys]:
            if not as_key:
                raise field.refusal(
                    f"it is part of the key of the index {self.index.name!r}, so {what} cannot use it",
                    hint="compare it in sort=, or in your code",
                )
        elif schema.projection.kind != "ALL" and field.stored not in (
            *schema.projection.names,
            *self._table_key_names(),
        ):
            raise field.refusal(
                f"the index {self.index.name!r} does not include it, but {what} needs it",
                hint="add it to the index's include=, or query the table",
            )

    def _table_key_names(self) -> list[str]:
        keys = self.schema.form.table_keys()
        return [] if keys is None else [key.name for key in keys if key is not None]

    # --- requests -------------------------------------------------------------------------------------------

    def range(self, binding: Binding) -> Range:
        """The range of the sort key."""
        return self._range(self._keys(binding)[1] or self._likely_sort())

    def _range(self, attribute: KeyAttribute) -> Range:
        known = self._known_range
        if known is None or known[0] != attribute:  # it is needed for every page, and before the first one
            self._known_range = known = attribute, self._make_range(attribute)
        return known[1]

    def _make_range(self, attribute: KeyAttribute) -> Range:
        if len(self.schemas) == 1:
            return (self.schema.form if self.index is None else self.index).range(
                self.sort, self.components, attribute
            )
        found = [
            (schema.form if self.index is None else schema.indexes[self.index.name]).range(
                self.sort, components, attribute
            )
            for schema, components in zip(self.schemas, self._parts, strict=True)
        ]
        if any(each.fixed for each in found):
            raise QueryNotSupported(
                "a query of several models cannot compare several attributes of an index", hint="use where="
            )
        return span(found)

    def request(self, binding: Binding, now: datetime, *, hold: bool = False) -> Query | None:
        """The query; None if nothing can match. ``hold``: also fetch the attributes that the filter uses."""
        found = self.range(binding)
        if found.empty:
            return None
        (partition, equals), *others = self._equalities(binding)
        filter = self.filter(binding, now)
        return Query(
            binding.table,
            KeyCondition(partition, equals, found.condition, (*others, *found.fixed)),
            index=None if self.index is None else self.index.schema.name,
            filter=filter,
            projection=self.projection(binding, names_in(filter) if hold else ()),
            reverse=self.reverse,
            consistent=self.consistent,
        )

    def filter(self, binding: Binding, now: datetime) -> Condition | None:
        """The condition on rows: matching the caller's condition, of the model, not expired."""
        seen = None if self.expires_unseen(binding) else alive(binding, now)
        return all_of([self._visible(), self._of_model(), seen])

    @property
    def condition(self) -> Condition | None:
        """The caller's condition."""
        return None if self.where is None else self.where.condition()

    @property
    def is_blind(self) -> bool:
        """Whether the store cannot choose the rows alone: it lets pointers through, and does not parse keys."""
        return self.schema.form.is_known_by_key or (self.where is not None and bool(self._pointers()))

    def _visible(self) -> Condition | None:
        """The caller's condition, as far as the store can evaluate it."""
        return any_of(self.condition, *self._pointers()) if self.where is not None else None

    def _pointers(self) -> list[Condition]:
        """The conditions that an item's content is stored elsewhere, for the model and those derived from it.

        None are needed for an index that includes only a part of each item, because pointers have that part too.
        """
        if self.index is not None and self.index.schema.projection.kind != "ALL":
            return []
        found = dict.fromkeys(each.hydrator for each in self._family() if each.hydrator is not None)
        return [hydrator.pointer for hydrator in found]

    def expires_unseen(self, binding: Binding) -> bool:
        """Whether the store cannot filter out expired rows, because no filter may use a key of the index."""
        keys = () if self.index is None else self.index.schema.keys
        return self._expiry() is not None and any(key.name == binding.ttl for key in keys)

    def _of_model(self) -> Condition | None:
        """The condition on the model: rows with this key may be of related models; their root takes them all."""
        return None if self._is_alone() else self._of_family()

    def _is_alone(self) -> bool:
        """Whether no items of other models that this program defines lie in the range."""
        form = self.schema.form
        if any(schema.name != schema.root for schema in self.schemas):
            return False
        if len(self.schemas) == 1:
            return not form.shares_partitions
        names = {schema.name for schema in self.schemas}
        return self.index is None and isinstance(form, CollectionForm) and form.are_adjacent(names)

    def _of_family(self) -> Condition | None:
        attribute = self.schema.form.type_attribute
        return None if attribute is None else any_of(*map(family_condition, self.schemas))

    def count_filter(self, filter: Condition | None) -> Condition | None:
        """The filter of a request that only counts; it also leaves out rows of unknown models."""
        return all_of([filter, self._of_family()]) if self._of_model() is None else filter

    def projection(self, binding: Binding, also: Iterable[str] = ()) -> tuple[Path, ...]:
        """The attributes to fetch: all, or the requested ones and those that identify a row."""
        if self.only is None or any(map(read_whole, self.schemas)):
            return ()
        names = [*list_attributes(binding, self.schemas, self.only), *also]
        if self.index is not None:
            names += [attribute.name for attribute in self.index.schema.keys]
        return tuple(Path((name,)) for name in dict.fromkeys(names))

    def list_fetched_fields(self, schema: ModelSchema) -> frozenset[str] | None:
        """The names of the fields that rows of a model have; None for all of them."""
        keys = {*schema.key_fields}
        if self.index is not None:
            projected = self.index.schema.projection
            if projected.kind != "ALL":
                keys |= {field.name for field in self.index.components}
                held = {field.name for field in schema.plain if field.stored in projected.names}
                asked = held if self.only is None else held & {field.name for field in self.only}
                return frozenset(keys | asked)
        return None if self.only is None else frozenset(keys | {field.name for field in self.only})

    def list_held_names(self, request: Query | Scan) -> frozenset[str]:
        """The attributes that must not change for a row to still match: those that the filter and the index use.

        If only a part of each row is fetched, also that part.
        """
        names = {*names_in(request.filter), *_names(request.projection)}
        if self.index is not None:
            schema = self.index.schema
            keys = {attribute.name for attribute in schema.keys}
            names |= keys
            if schema.projection.kind != "ALL":
                there = {*schema.projection.names, *keys}
                names = names & there if request.projection else there
        return frozenset(
            names - {field.stored for each in self.schemas for field in each.key_fields.values()}
        )

    def start_after(self, binding: Binding, raw: Item) -> dict[str, Attribute]:
        """Where to continue after a row: its key, and for an index also its key there."""
        names = [binding.partition, binding.sort, *(() if self.index is None else self.index.schema.keys)]
        return {each.name: raw[each.name] for each in names if each is not None}

    def identity(self, binding: Binding) -> list[Any]:
        """What identifies this query, as JSON: a page token belongs to one query."""
        found = self.range(binding)
        conditions = {"sort": found.condition, "where": self.condition}
        texts = render({name: each for name, each in conditions.items() if each is not None})
        (_, equals), *others = self._equalities(binding)
        place = [binding.table, self.index_name, self.name, dict(equals)]
        several = [[*others, *found.fixed]] if others or found.fixed else []
        return [*place, texts, self.reverse, *several]

    # --- where it looks -------------------------------------------------------------------------------------

    def _keys(self, binding: Binding) -> tuple[KeyAttribute, KeyAttribute | None]:
        if self.index is None:
            return binding.partition, binding.sort
        schema = self.index.schema
        return schema.partition, schema.sort

    def _likely_sort(self) -> KeyAttribute:
        """The sort key before the table is known."""
        if self.index is not None and self.index.schema.sort is not None:
            return self.index.schema.sort
        keys = self.schema.form.table_keys()
        return KeyAttribute("the sort key") if keys is None or keys[1] is None else keys[1]

    def _equalities(self, binding: Binding) -> tuple[tuple[str, Attribute], ...]:
        """The attributes of the partition key, with their values."""
        if self.index is None or self.index.local:
            return ((binding.partition.name, binding.partition_key(self.components)),)
        return self.index.equalities(self.components)


def family_condition(schema: ModelSchema) -> Condition:
    """That an item is of the model or of one derived from it, by the attributes that name its model."""
    attribute, constants = schema.form.type_attribute, schema.form.constants
    assert attribute is not None
    names = dict.fromkeys(each.name for each in schema.family())
    of_type = In(Path((attribute,)), tuple(Value({"S": name}) for name in names))
    if not constants:
        return of_type
    return And((of_type, *(Compare("=", Path((name,)), Value(text)) for name, text in constants.items())))


def names_in(condition: Condition | None) -> set[str]:
    """The attributes that a condition looks at."""
    return set() if condition is None else _names(paths_of(condition))


def _names(paths: Iterable[Path]) -> set[str]:
    return {str(path.parts[0]) for path in paths}
