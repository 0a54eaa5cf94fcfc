"""The layout of a table: which of its attributes hold which keys, or why Holdall cannot use it.

Pure. Every item has three logical strings: *H*, the list that it is in; *R*, its place in that list; and
*item_id*, which is unique in the table. In mode A, the table's key is (H, R). In mode B, whose sort key is a number,
it is (item_id, 0), and an index has the key (H, R).
"""

from __future__ import annotations

from functools import lru_cache

from holdall.core.expressions import (
    BeginsWith,
    Compare,
    Condition,
    Exists,
    KeyCondition,
    NotExists,
    Path,
    Value,
)
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import Query, TableDescription
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.settings import Settings
from holdall.core.values import Attribute, Item
from holdall.errors import ConfigurationError
from holdall.tables.definition import (
    RESERVED,
    Mode,
    create_table_text,
    plan_index,
    plan_schema,
    update_table_text,
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where an item is stored: its table, its key, and all attributes by which it is found (also those of an index)."""

    table: str
    key: Item
    attributes: Item

    @property
    def absent(self) -> Condition:
        """The condition that no item is stored there."""
        return _absence(next(iter(self.key)))

    @property
    def exists(self) -> Condition:
        """The condition that an item is stored there."""
        return Exists(Path((next(iter(self.key)),)))

    @property
    def listed(self) -> tuple[Condition, ...]:
        """The conditions that an item found by an index, which may be outdated, is still in the same list and place."""
        if self.attributes is self.key:
            return ()
        return tuple(
            Compare("=", Path((name,)), Value(attribute))
            for name, attribute in self.attributes.items()
            if name not in self.key
        )

    @property
    def identity(self) -> str:
        """Equal for addresses of the same item."""
        return f"{self.table} {self.key}"


@lru_cache(64)
def _absence(name: str) -> Condition:
    """The condition that an item has no such attribute; one object, because it remembers its shape."""
    return NotExists(Path((name,)))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a table keeps an item's logical strings H, R and item_id. ``index`` is mode B's index, None in mode A."""

    mode: Mode
    table: str
    partition: KeyAttribute
    sort: KeyAttribute
    index: IndexSchema | None = None

    def key(self, h: str, r: str, item_id: str) -> dict[str, Attribute]:
        """Return an item's key in the table."""
        if self.index is None:
            return {self.partition.name: {"S": h}, self.sort.name: {"S": r}}
        return {self.partition.name: {"S": item_id}, self.sort.name: {"N": "0"}}

    def address(self, h: str, r: str, item_id: str) -> Address:
        """Return the address of an item."""
        key = self.key(h, r, item_id)
        if self.index is None:
            return Address(self.table, key, key)
        listed, place = self._listing_names
        return Address(self.table, key, {**key, listed: {"S": h}, place: {"S": r}})

    def address_of(self, item: Item) -> Address:
        """Return the address of a stored item."""
        key = {part.name: item[part.name] for part in (self.partition, self.sort)}
        return Address(self.table, key, key | {name: item[name] for name in self._listing_names})

    def logical(self, item: Item) -> tuple[str, str]:
        """Return the H and R of a stored item."""
        listed, place = self._listing_names
        return item[listed]["S"], item[place]["S"]

    def listing(
        self, h: str, prefix: str = "", *, before: str | None = None, after: str | None = None
    ) -> Query:
        """Return a query for items of the list H, sorted by R: those with the prefix, or below or above a text.

        It is strongly consistent in mode A. In mode B it is not, but no cache answers it.
        """
        listed, place = self._listing_names
        sort: BeginsWith | Compare | None = None
        if before is not None:
            sort = Compare("<", Path((place,)), Value({"S": before}))
        elif after is not None:
            sort = Compare(">", Path((place,)), Value({"S": after}))
        elif prefix:
            sort = BeginsWith(Path((place,)), Value({"S": prefix}))
        index = None if self.index is None else self.index.name
        key = KeyCondition(listed, {"S": h}, sort)
        return Query(self.table, key, index=index, consistent=self.index is None, fresh=True)

    @property
    def _listing_names(self) -> tuple[str, str]:
        if self.index is None:
            return self.partition.name, self.sort.name
        assert self.index.sort is not None
        return self.index.partition.name, self.index.sort.name


def layout_of(description: TableDescription, settings: Settings) -> Layout:
    """Return the layout of a table. If Holdall cannot use it, `ConfigurationError` says why, and suggests another."""
    mode = base_mode(description, settings)
    schema = description.schema
    assert schema.sort is not None
    index = None if mode == "A" else _index(description, settings)
    return Layout(mode, schema.name, schema.partition, schema.sort, index)


def base_mode(description: TableDescription, settings: Settings) -> Mode:
    """Check a table's key, and return the mode that follows from it."""
    schema = description.schema
    where = f"table {schema.name}"
    if description.status in ("CREATING", "DELETING"):
        raise _explain_wait(f"{where} is {description.status}")
    if schema.sort is None:
        raise _refuse_unfit(f"{where} has no sort key", settings)
    if schema.partition.type != "S":
        raise _refuse_unfit(_describe_type(where, "partition", schema.partition, "a string (S)"), settings)
    if schema.sort.type not in ("S", "N"):
        wanted = "a string (S) or a number (N)"
        raise _refuse_unfit(_describe_type(where, "sort", schema.sort, wanted), settings)
    for part in (schema.partition, schema.sort):
        if part.name in RESERVED:
            raise _refuse_unfit(_describe_reserved(where, part), settings)
    _check_name("partition_key", settings.partition_key, schema.partition, where)
    _check_name("sort_key", settings.sort_key, schema.sort, where)
    return "A" if schema.sort.type == "S" else "B"


def explain_missing_table(settings: Settings) -> ConfigurationError:
    """Return the error for a table that does not exist."""
    return ConfigurationError(
        f"there is no table {settings.table_name}",
        hint=f"run {settings.command('table create')} (with --models MODULE to add the indexes of your models), "
        "or set manage_table so that Holdall creates it when it is needed, "
        f"or create it yourself:\n{create_table_text(_suggest_schema(settings))}",
    )


def _index(description: TableDescription, settings: Settings) -> IndexSchema:
    schema = description.schema
    found = next((index for index in schema.indexes if index.name == settings.index_name), None)
    if found is None:
        raise ConfigurationError(
            f"table {schema.name} has a numeric sort key, so it needs the index {settings.index_name}",
            hint="add the index, or set manage_table so that Holdall adds it:\n"
            f"{_index_text(schema, settings)}",
        )
    where = f"index {found.name} of table {schema.name}"
    if found.sort is None:
        raise _refuse_unfit_index(f"{where} has no sort key", schema, settings)
    for kind, part in (("partition", found.partition), ("sort", found.sort)):
        if part.type != "S":
            raise _refuse_unfit_index(_describe_type(where, kind, part, "a string (S)"), schema, settings)
        if part.name in RESERVED:
            raise _refuse_unfit_index(_describe_reserved(where, part), schema, settings)
    if found.projection.kind != "ALL":
        problem = f"{where} must hold whole items (ALL), not parts of them ({found.projection.kind})"
        raise _refuse_unfit_index(problem, schema, settings)
    _check_name("index_partition_key", settings.index_partition_key, found.partition, where)
    _check_name("index_sort_key", settings.index_sort_key, found.sort, where)
    status = description.index_status.get(found.name, "ACTIVE")
    if status in ("CREATING", "DELETING"):
        raise _explain_wait(f"{where} is {status}")
    return found


# --- refusals -------------------------------------------------------------------------------------------


def _describe_type(where: str, kind: str, part: KeyAttribute, wanted: str) -> str:
    return f"the {kind} key {part.name} of {where} must be {wanted}, not {part.type}"


def _describe_reserved(where: str, part: KeyAttribute) -> str:
    return f"{where} has the key attribute {part.name}, a name that is reserved for attachments"


def _check_name(setting: str, given: str | None, actual: KeyAttribute, where: str) -> None:
    if given is not None and given != actual.name:
        kind = "partition" if "partition" in setting else "sort"
        raise ConfigurationError(
            f"{setting} is {given!r}, but the {kind} key of {where} is {actual.name!r}",
            hint=f"set {setting} to {actual.name!r}, or remove the setting: Holdall finds the name itself",
        )


def _explain_wait(problem: str) -> ConfigurationError:
    refusal = ConfigurationError(f"{problem}, so it cannot be used yet", hint="wait a while and try again")
    refusal.retryable = True
    return refusal


def _refuse_unfit(problem: str, settings: Settings) -> ConfigurationError:
    other = replace(_suggest_schema(settings), name=f"{settings.table_name[:247]}-holdall")
    return ConfigurationError(
        problem,
        hint="the key of a table cannot be changed: create another table, move your items, and set table_name:\n"
        f"{create_table_text(other)}",
    )


def _refuse_unfit_index(problem: str, schema: TableSchema, settings: Settings) -> ConfigurationError:
    return ConfigurationError(
        problem,
        hint="an index cannot be changed: delete it and add this one, or add this one under another name and set "
        f"index_name:\n{_index_text(schema, settings)}",
    )


def _index_text(schema: TableSchema, settings: Settings) -> str:
    return update_table_text(schema.name, plan_index(_without_reserved(settings)))


def _suggest_schema(settings: Settings) -> TableSchema:
    return plan_schema(_without_reserved(settings))


def _without_reserved(settings: Settings) -> Settings:
    """Return the settings without reserved names, so that the suggested definition does not repeat the mistake."""
    names = ("partition_key", "sort_key", "index_partition_key", "index_sort_key")
    kept = {name: getattr(settings, name) for name in names if getattr(settings, name) not in RESERVED}
    return replace(settings, **{**dict.fromkeys(names), **kept})
