"""The attributes of a sampled table, from which a model is written, with their types, roles and the names of fields.

Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from unicodedata import normalize

from holdall import Model
from holdall.cli.inspect.stored_guess import guess_form
from holdall.cli.inspect.template_guess import Design, list_index_keys
from holdall.cli.inspect.type_guess import infer_text, infer_type, is_moment
from holdall.core import Item, KeyAttribute, TableSchema

_OTHER_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", re.DOTALL)


@dataclass(frozen=True)
class TableSample:
    """A table and some of its items; ``complete`` if the table has no others. ``ttl`` is the attribute of expiry.

    ``name`` is the table's name as a model declares it, without the prefix of the settings.
    """

    name: str
    schema: TableSchema
    ttl: str | None
    items: Sequence[Item]
    complete: bool


@dataclass(frozen=True)
class SampledAttribute:
    """An attribute of the table, and what the sample shows of it. ``role`` is Key, SortKey or empty."""

    name: str
    role: str
    annotation: str
    optional: bool
    kinds: Mapping[str, int]
    stored: str | None
    has_other_moments: bool

    def write(self, field: str) -> str:
        """The field's line in the class."""
        options = [] if field == self.name else [f"name={quote(self.name)}"]
        options += [] if self.stored is None else [f"stored={quote(self.stored)}"]
        given = f" = field({', '.join(options)})" if options else ""
        if self.role:
            return f"    {field}: {self.role}[{self.annotation}]{given}"
        if not self.optional:
            return f"    {field}: {self.annotation}{given}"
        given = f"field({', '.join(['default=None', *options])})" if options else "None"
        return f"    {field}: {self.annotation} | None = {given}"


def find_attributes(sample: TableSample, design: Design | None) -> dict[str, SampledAttribute]:
    """The key first, then the attributes that every item has, then the others; each group by name."""
    schema, items = sample.schema, sample.items
    declared: dict[str, KeyAttribute] = {}
    included: set[str] = set()
    if design is None:
        roles = dict(zip((key.name for key in schema.keys), ("Key", "SortKey"), strict=False))
        declared = {key.name: key for key in (*list_index_keys(schema), *schema.keys)}
        included = {name for index in schema.indexes for name in index.projection.names}
        keys = {*declared}
        if sample.ttl is not None:
            declared.setdefault(sample.ttl, KeyAttribute(sample.ttl, "N"))
    else:
        items, roles = design.items, design.roles
        keys = roles.keys() | design.indexed
    seen = {name for item in items for name in item}
    attributes = [
        _describe_attribute(
            name,
            roles.get(name, ""),
            declared.get(name),
            items,
            is_key=name in keys,
            is_expiry=name == sample.ttl,
        )
        for name in sorted(seen | included | declared.keys())
    ]
    order = {"Key": 0, "SortKey": 1, "": 2}
    attributes.sort(key=lambda attribute: (order[attribute.role], attribute.optional))
    return {attribute.name: attribute for attribute in attributes}


def _describe_attribute(
    name: str,
    role: str,
    declared: KeyAttribute | None,
    items: Sequence[Item],
    *,
    is_key: bool,
    is_expiry: bool,
) -> SampledAttribute:
    found = [item[name] for item in items if name in item]
    annotation, null = infer_type(found)
    texts = [str(attribute["S"]) for attribute in found if "S" in attribute]
    if annotation == "str":
        annotation = infer_text(texts)
    if not found and declared is not None:
        annotation = {"S": "str", "N": "int", "B": "bytes"}[declared.type]
    guess = None
    if annotation in ("str", "int"):
        guess = guess_form(name, found, is_key=is_key, is_expiry=is_expiry)
    annotation, stored = guess or (annotation, None)
    return SampledAttribute(
        name,
        role,
        annotation,
        optional=null or len(found) < len(items) or not found,
        kinds=Counter(kind for attribute in found for kind in attribute),
        stored=stored,
        has_other_moments=annotation == "str"
        and bool(texts)
        and all(_OTHER_MOMENT.fullmatch(text) and is_moment(text) for text in texts),
    )


def name_fields(attributes: Mapping[str, SampledAttribute], taken: set[str]) -> dict[str, str]:
    """Return a field name for each attribute: the same wherever Python and Holdall allow it."""
    fields = {name: name for name in attributes if _is_name(name, taken)}
    used = {*fields.values()}
    for name in attributes:
        if name in fields:
            continue
        base = normalize("NFKC", re.sub(r"\W", "_", name)).strip("_")
        base = base if base.isidentifier() else re.sub(r"\W", "_", f"field_{base}").rstrip("_")
        field = base if _is_name(base, taken) else f"{base}_"
        number = 2
        while field in used:
            field = f"{base}_{number}"
            number += 1
        fields[name] = field
        used.add(field)
    return {name: fields[name] for name in attributes}


def _is_name(name: str, taken: set[str]) -> bool:
    plain = name.isidentifier() and normalize("NFKC", name) == name and not iskeyword(name)
    return plain and not name.startswith("_") and name not in {*taken, *dir(Model), "self"}


def quote(text: str) -> str:
    """Return a text as a Python literal, in double quotes if possible."""
    literal = repr(text)
    return literal if '"' in literal else f'"{literal[1:-1]}"'
