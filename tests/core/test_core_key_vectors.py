"""The vectors in the decision on keys: users have stored such keys, so the code must produce exactly these texts."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from holdall.core.keys import sort_parts, sort_text

DOCUMENT = Path(__file__).parents[2] / "docs" / "decisions" / "0001-order-preserving-keys.md"

KINDS: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "string": (str, str),
    "number": (Decimal, Decimal),
    "time": (datetime, datetime.fromisoformat),
    "uuid": (UUID, UUID),
    "bytes": (bytes, bytes.fromhex),
    "bool": (bool, bool),
}

Row = tuple[list[tuple[str, Any]], str]


def _rows() -> list[Row]:
    blocks = re.findall(
        r"^```json\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 1
    return [([(kind, content) for kind, content in parts], text) for parts, text in json.loads(blocks[0])]


ROWS = _rows()

every_vector = pytest.mark.parametrize(("parts", "text"), ROWS, ids=lambda value: str(value)[:60])


@every_vector
def test_the_code_writes_the_text_of_a_vector(parts: list[tuple[str, Any]], text: str) -> None:
    assert sort_text(*(KINDS[kind][1](content) for kind, content in parts)) == text


@every_vector
def test_the_code_reads_the_values_of_a_vector(parts: list[tuple[str, Any]], text: str) -> None:
    values = tuple(KINDS[kind][1](content) for kind, content in parts)
    assert sort_parts(text, *(KINDS[kind][0] for kind, _ in parts)) == values


def test_the_vectors_of_one_shape_ascend() -> None:
    shapes: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for parts, text in ROWS:
        shapes[tuple(kind for kind, _ in parts)].append(text)
    assert all(texts == sorted(set(texts)) for texts in shapes.values())
    assert {kind for shape in shapes for kind in shape} == KINDS.keys()
    assert all(len(texts) > 1 for texts in shapes.values())
