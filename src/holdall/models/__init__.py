"""Models: typed classes whose instances are items.

Pure: a class becomes a frozen schema, an instance is values and marks. Nothing here does I/O, so the same models work
in sync and async code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdall.lazy import fetch_names
from holdall.models.fields.field import Field, Key, SortKey
from holdall.models.fields.handle import FieldHandle
from holdall.models.fields.options import field
from holdall.models.keys.key import KeyMaker, ModelKey
from holdall.models.model import Model

if TYPE_CHECKING:
    from holdall.models.codec.value_text import format_text, parse_text
    from holdall.models.definition.computation import Computed, computed
    from holdall.models.description import FieldFacts, IndexFacts, KeyFacts, ModelFacts, describe_model
    from holdall.models.fields.column import Column, col
    from holdall.models.fields.conditions import Clause
    from holdall.models.fields.update import FieldUpdate
    from holdall.models.hydrator import Hydrator, Joiner, Loader
    from holdall.models.indexes import Index
    from holdall.models.keys.template import Template
    from holdall.models.needs import find_models
    from holdall.models.stream import StreamChange, stream_change, stream_changes

__all__ = [
    "Clause",
    "Column",
    "Computed",
    "Field",
    "FieldFacts",
    "FieldHandle",
    "FieldUpdate",
    "Hydrator",
    "Joiner",
    "Loader",
    "Index",
    "IndexFacts",
    "Key",
    "KeyFacts",
    "KeyMaker",
    "Model",
    "ModelFacts",
    "ModelKey",
    "SortKey",
    "StreamChange",
    "Template",
    "col",
    "computed",
    "describe_model",
    "field",
    "find_models",
    "format_text",
    "parse_text",
    "stream_change",
    "stream_changes",
]

_HOMES = {
    "Clause": ".fields.conditions",
    "Column": ".fields.column",
    "Computed": ".definition.computation",
    "FieldFacts": ".description",
    "FieldUpdate": ".fields.update",
    "Hydrator": ".hydrator",
    "Joiner": ".hydrator",
    "Loader": ".hydrator",
    "Index": ".indexes",
    "IndexFacts": ".description",
    "KeyFacts": ".description",
    "ModelFacts": ".description",
    "StreamChange": ".stream",
    "Template": ".keys.template",
    "col": ".fields.column",
    "computed": ".definition.computation",
    "describe_model": ".description",
    "find_models": ".needs",
    "format_text": ".codec.value_text",
    "parse_text": ".codec.value_text",
    "stream_change": ".stream",
    "stream_changes": ".stream",
}

__getattr__ = fetch_names(__name__, _HOMES)
