"""Models: typed classes whose instances are items.

Pure: a class becomes a frozen schema, an instance is values and marks. Nothing here does I/O, so the same models work
in sync and async code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdall.lazy import fetch_names
from holdall.models.field_options import field
from holdall.models.fields import Field, Key, SortKey
from holdall.models.handle import FieldHandle
from holdall.models.keys import KeyMaker, ModelKey
from holdall.models.model import Model

if TYPE_CHECKING:
    from holdall.models.column import Column, col
    from holdall.models.computation import Computed, computed
    from holdall.models.conditions import Clause
    from holdall.models.description import FieldFacts, IndexFacts, KeyFacts, ModelFacts, describe_model
    from holdall.models.field_update import FieldUpdate
    from holdall.models.hydrator import Hydrator, Joiner, Loader
    from holdall.models.indexes import Index
    from holdall.models.needs import find_models
    from holdall.models.stream import StreamChange, stream_change, stream_changes
    from holdall.models.template import Template
    from holdall.models.value_text import format_text, parse_text

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
    "Clause": ".conditions",
    "Column": ".column",
    "Computed": ".computation",
    "FieldFacts": ".description",
    "FieldUpdate": ".field_update",
    "Hydrator": ".hydrator",
    "Joiner": ".hydrator",
    "Loader": ".hydrator",
    "Index": ".indexes",
    "IndexFacts": ".description",
    "KeyFacts": ".description",
    "ModelFacts": ".description",
    "StreamChange": ".stream",
    "Template": ".template",
    "col": ".column",
    "computed": ".computation",
    "describe_model": ".description",
    "find_models": ".needs",
    "format_text": ".value_text",
    "parse_text": ".value_text",
    "stream_change": ".stream",
    "stream_changes": ".stream",
}

__getattr__ = fetch_names(__name__, _HOMES)
