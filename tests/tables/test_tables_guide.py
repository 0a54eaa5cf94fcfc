"""The guide to tables lists every setting, reserved name and method."""

from __future__ import annotations

import re
from pathlib import Path

from holdall.core.settings import NAMES, resolve
from holdall.features import setting_parsers
from holdall.tables import Table
from holdall.tables.definition import RESERVED

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "tables.md").read_text(encoding="utf-8")
ROWS = [line for line in GUIDE.partition("## The settings")[2].splitlines() if line.startswith("| `")]


def test_every_setting_is_in_the_guide_and_nothing_else() -> None:
    listed = [name for row in ROWS for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted({"url", *NAMES, *setting_parsers()})


def test_the_defaults_in_the_guide_are_the_defaults() -> None:
    settings = resolve({}, {}, {})
    listed = {row.split("|")[1].strip(" `"): row.split("|")[2] for row in ROWS}
    for name in ("url", "durability", "table_name", "index_name", "namespace", "separator", "single_writes"):
        assert f"`{getattr(settings, name)}`" in listed[name]


def test_every_reserved_name_is_in_the_guide() -> None:
    assert {name for name in RESERVED if f"`{name}`" not in GUIDE} == set()


def test_every_method_is_in_the_guide() -> None:
    methods = {name for name, member in vars(Table).items() if callable(member) and not name.startswith("_")}
    assert {name for name in methods if f"| `{name}(" not in GUIDE} == set()
