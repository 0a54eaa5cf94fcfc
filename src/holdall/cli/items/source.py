"""Where the commands of ``holdall items`` read and write: the items of a model, or a table as it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from itertools import islice
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.items.values import (
    format_attribute,
    parse_attribute,
    parse_conditions,
    parse_fields,
    parse_json_value,
    parse_key,
    split_condition,
    split_pairs,
)
from holdall.cli.module import load_model
from holdall.cli.output import Refusal, say
from holdall.core import (
    BeginsWith,
    Compare,
    Condition,
    DeleteItem,
    DescribeTable,
    Exists,
    GetItem,
    Item,
    KeyCondition,
    NotExists,
    Page,
    PutItem,
    Query,
    Remove,
    Scan,
    Set,
    TableSchema,
    Update,
    UpdateItem,
    Value,
    encode_item,
    path,
)
from holdall.errors import (
    ConditionFailedError,
    ConfigurationError,
    InvalidFieldError,
    ModelAlreadyExistsError,
    RecordNotFound,
)

if TYPE_CHECKING:
    from holdall import Database, Model

TABLE = "table:"
_REPLACE = "pass --replace to replace it"


class Shown(NamedTuple):
    """An item: as JSON data, and as a text for each field or attribute."""

    data: Mapping[str, Any]
    texts: Mapping[str, str]


class Listing(NamedTuple):
    """Some items. ``more``: there are others; ``token`` continues after these, if the database can sign one."""

    items: list[Shown]
    more: bool
    token: str | None = None


@dataclass(frozen=True)
class Wanted:
    """What to list: conditions as they were typed, names of fields, and the most items."""

    words: Sequence[str] = ()
    sorts: Sequence[str] = ()
    conditions: Sequence[str] = ()
    index: str | None = None
    reverse: bool = False
    only: Sequence[str] | None = None
    limit: int = 50
    after: str | None = None


def open_source(db: Database, name: str) -> ModelItems | StoredItems:
    """The items that a command's first argument names."""
    return (
        StoredItems(db, name.removeprefix(TABLE))
        if name.startswith(TABLE)
        else ModelItems(db, load_model(name))
    )


class ModelItems:
    """The items of a model."""

    def __init__(self, db: Database, model: type[Model]) -> None:
        self._db = db
        self._model = model

    def key(self, words: Iterable[str]) -> Any:
        """The key that was typed."""
        return parse_key(self._model, split_pairs(words))

    def get(self, key: Any) -> Shown | None:
        """The item under a key."""
        item = self._db.get(key)
        return None if item is None else _show_model(item)

    def query(self, wanted: Wanted) -> Listing:
        """The items of one partition."""
        rows = self._rows(wanted)
        try:
            page = rows.page(wanted.limit, after=wanted.after)
        except ConfigurationError:  # without a secret, there are no tokens
            if wanted.after is not None:
                raise
            return _take(map(_show_model, rows), wanted.limit)
        return Listing([_show_model(item) for item in page.items], page.next is not None, page.next)

    def scan(self, wanted: Wanted) -> Listing:
        """Some items of the whole table."""
        if wanted.after is not None:
            raise click.UsageError("a scan by a model has no pages: raise --limit, or scan table:NAME")
        where = parse_conditions(self._model, wanted.conditions)
        return _take(
            map(_show_model, self._db.scan(self._model, where=where, only=wanted.only)), wanted.limit
        )

    def count(self, wanted: Wanted) -> int:
        """How many items there are in one partition, or without a key in the whole table."""
        if wanted.words:
            return int(self._rows(wanted).count())
        return self._db.scan(self._model, where=parse_conditions(self._model, wanted.conditions)).count()

    def put(self, words: Sequence[str], text: str | None, *, replace: bool) -> tuple[Any, Shown]:
        """Store an item from its values, or from JSON."""
        item = (
            self._model(**parse_fields(self._model, split_pairs(words))) if text is None else self._read(text)
        )
        try:
            stored = self._db.put(item) if replace else self._db.create(item)
        except ModelAlreadyExistsError as error:
            raise ModelAlreadyExistsError(error.message, hint=_REPLACE) from None
        return stored.key, _show_model(stored)

    def _read(self, text: str) -> Model:
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(self._model).validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = "".join(f"{each}: " for each in first["loc"])
            problem = f"the JSON does not fit {self._model.__name__}: {where}{first['msg']}"
            raise Refusal(problem, status=ExitStatus.USAGE) from None

    def update(self, key: Any, changes: Sequence[str], cleared: Sequence[str]) -> Shown:
        """Change fields of the item under a key."""
        values = {**parse_fields(self._model, split_pairs(changes)), **dict.fromkeys(cleared)}
        return _show_model(self._db.update(key, **values))

    def delete(self, key: Any) -> None:
        """Delete the item under a key."""
        self._db.delete(key)

    def _rows(self, wanted: Wanted) -> Any:
        return self._db.query(
            self._model,
            sort=parse_conditions(self._model, wanted.sorts),
            where=parse_conditions(self._model, wanted.conditions),
            index=wanted.index,
            reverse=wanted.reverse,
            only=wanted.only,
            **parse_fields(self._model, split_pairs(wanted.words)),
        )


def _show_model(item: Model) -> Shown:
    from pydantic_core import to_jsonable_python

    from holdall.models import format_text

    values, unreadable = _read_values(item)
    texts = {
        name: "" if content is None else format_text(getattr(type(item), name), content)
        for name, content in values.items()
    }
    data = to_jsonable_python(values | dict.fromkeys(unreadable), bytes_mode="base64", fallback=str)
    for name in (name for name, content in values.items() if isinstance(content, (set, frozenset))):
        data[name].sort(key=json.dumps)  # a set has another order in every process
    return Shown(data, texts | dict.fromkeys(unreadable, "(unreadable)"))


def _read_values(item: Model) -> tuple[dict[str, Any], list[str]]:
    """The values of an item, and the names of fields whose stored values do not fit; those are reported."""
    from holdall.models import describe_model

    try:
        return item.to_dict(), []
    except InvalidFieldError:
        values: dict[str, Any] = {}
        unreadable = []
    for facts in describe_model(type(item))["fields"]:
        name = facts["name"]
        try:
            if not getattr(type(item), name).hidden:
                values[name] = getattr(item, name)
        except InvalidFieldError as error:
            if error.stored is not None:
                say(f"warning: {error.message}")
                unreadable.append(name)
    return values, unreadable


class StoredItems:
    """The items of a table as it stores them; its data is DynamoDB's JSON."""

    def __init__(self, db: Database, table: str) -> None:
        self._db = db
        self._table = table
        self._schema: TableSchema = db.send(DescribeTable(table, counts=False)).schema

    def key(self, words: Iterable[str]) -> Item:
        """The key that was typed."""
        texts = split_pairs(words)
        kinds = {part.name: part.type for part in self._schema.keys}
        if texts.keys() != kinds.keys():
            raise click.UsageError(f"the key of table {self._table} is {', '.join(kinds)}")
        return {name: parse_attribute(text, kinds[name]) for name, text in texts.items()}

    def _show(self, item: Item) -> Shown:
        """An item with its key first; servers have no order."""
        key = {part.name: item[part.name] for part in self._schema.keys if part.name in item}
        return Shown(item, {name: format_attribute(each) for name, each in {**key, **item}.items()})

    def get(self, key: Item) -> Shown | None:
        """The item under a key."""
        item = self._db.send(GetItem(self._table, key, consistent=True)).item
        return None if item is None else self._show(item)

    def query(self, wanted: Wanted) -> Listing:
        """The items of one partition."""
        return self._list(self._query(wanted), wanted)

    def scan(self, wanted: Wanted) -> Listing:
        """Some items of the whole table."""
        return self._list(Scan(self._table, filter=_parse_filter(wanted.conditions)), wanted)

    def count(self, wanted: Wanted) -> int:
        """How many items there are in one partition, or without a key in the whole table."""
        filter = _parse_filter(wanted.conditions)
        request = self._query(wanted) if wanted.words else Scan(self._table, filter=filter)
        return sum(page.count for page in self._db.pages(request))

    def put(self, words: Sequence[str], text: str | None, *, replace: bool) -> tuple[Item, Shown]:
        """Store an item: attributes that were typed, or JSON, plain or DynamoDB's."""
        if text is None:
            kinds = {part.name: part.type for part in self._schema.keys}
            item: Item = {
                name: parse_attribute(given, kinds[name]) if name in kinds else parse_json_value(given)
                for name, given in split_pairs(words).items()
            }
        else:
            item = _read_item(text)
        absent = None if replace else NotExists(path(self._schema.partition.name))
        key = {part.name: item.get(part.name, {}) for part in self._schema.keys}
        try:
            self._db.send(PutItem(self._table, item, condition=absent))
        except ConditionFailedError:
            raise ModelAlreadyExistsError(f"the item {name_key(key)} already exists", hint=_REPLACE) from None
        return key, self._show(item)

    def update(self, key: Item, changes: Sequence[str], cleared: Sequence[str]) -> Shown:
        """Change attributes of the item under a key."""
        actions = [
            Set(path(name), Value(parse_json_value(text))) for name, text in split_pairs(changes).items()
        ]
        removals = [Remove(path(name)) for name in cleared]
        there = Exists(path(self._schema.partition.name))
        update = UpdateItem(self._table, key, Update((*actions, *removals)), condition=there, returns="new")
        try:
            stored = self._db.send(update).item
        except ConditionFailedError:
            raise RecordNotFound(f"there is no item {name_key(key)}") from None
        return self._show(stored or {})

    def delete(self, key: Item) -> None:
        """Delete the item under a key."""
        self._db.send(DeleteItem(self._table, key))

    def _query(self, wanted: Wanted) -> Query:
        texts = split_pairs(wanted.words)
        schema = next((each for each in self._schema.indexes if each.name == wanted.index), None)
        if wanted.index is not None and schema is None:
            raise click.UsageError(f"table {self._table} has no index {wanted.index}")
        partition, sort = (schema or self._schema).partition, (schema or self._schema).sort
        if texts.keys() != {partition.name}:
            raise click.UsageError(f"the partition key is {partition.name}")
        range_ = None
        if wanted.sorts:
            (word, *others) = wanted.sorts
            name, operator, text = split_condition(word)
            if others or sort is None or name != sort.name or operator == "!=":
                raise click.UsageError(f"--sort takes one range of {'no key' if sort is None else sort.name}")
            range_ = _compare(name, operator, parse_attribute(text, sort.type))
        return Query(
            self._table,
            KeyCondition(partition.name, parse_attribute(texts[partition.name], partition.type), range_),
            index=wanted.index,
            filter=_parse_filter(wanted.conditions),
            reverse=wanted.reverse,
            consistent=wanted.index is None,
        )

    def _list(self, request: Query | Scan, wanted: Wanted) -> Listing:
        """Some items; the token is the key of the last one, in the table and in the index."""
        index = request.index if isinstance(request, Query) else None
        keys = [key.name for each in self._schema.indexes if each.name == index for key in each.keys]
        keys = list(dict.fromkeys([*(key.name for key in self._schema.keys), *keys]))
        only = wanted.only
        projection = () if only is None else tuple(map(path, dict.fromkeys([*only, *keys])))
        after = None if wanted.after is None else _read_token(wanted.after, keys)
        pages: Iterator[Page] = self._db.pages(replace(request, projection=projection, start_after=after))
        found = list(islice((item for page in pages for item in page.items), wanted.limit + 1))
        more, found = len(found) > wanted.limit, found[: wanted.limit]
        token = _make_token({name: found[-1][name] for name in keys}) if more else None
        if only is not None:
            found = [{name: item[name] for name in only if name in item} for item in found]
        return Listing(list(map(self._show, found)), more, token)


def _make_token(key: Item) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).decode().rstrip("=")


def _read_token(token: str, names: Sequence[str]) -> Item:
    from base64 import urlsafe_b64decode

    try:
        key = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, RecursionError):
        key = None
    if not isinstance(key, dict) or key.keys() != {*names}:
        raise click.UsageError("--after is not a token that this command has printed")
    return key


def _compare(name: str, operator: str, attribute: Any) -> Any:
    if operator == "^=":
        return BeginsWith(path(name), Value(attribute))
    return Compare({"!=": "<>"}.get(operator, operator), path(name), Value(attribute))  # type: ignore[arg-type]


def _parse_filter(words: Iterable[str]) -> Condition | None:
    typed = [split_condition(word) for word in words]
    conditions: list[Condition] = [
        _compare(name, operator, parse_json_value(text)) for name, operator, text in typed
    ]
    return reduce(and_, conditions) if conditions else None


def _read_item(text: str) -> Item:
    try:
        data = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the JSON cannot be read: {error}", status=ExitStatus.USAGE) from None
    if not isinstance(data, dict):
        raise Refusal("the JSON is not an object", status=ExitStatus.USAGE)
    kinds = {"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}
    if data and all(
        isinstance(each, dict) and len(each) == 1 and each.keys() <= kinds for each in data.values()
    ):
        return data
    return encode_item(data)


def name_key(key: Any) -> str:
    """A key in messages: of an item of a model, or of a stored one."""
    if not isinstance(key, dict):
        return repr(key)
    return ", ".join(f"{name}={format_attribute(attribute)}" for name, attribute in key.items() if attribute)


def _take(items: Iterator[Shown], limit: int) -> Listing:
    found = list(islice(items, limit + 1))
    return Listing(found[:limit], len(found) > limit)
