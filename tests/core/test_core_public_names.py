"""The public names of the core and of each of its modules."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from holdall import core

MODULES = sorted(module.name for module in pkgutil.iter_modules(core.__path__))


def test_every_public_name_of_the_core_is_there_once() -> None:
    assert len(set(core.__all__)) == len(core.__all__)
    for name in core.__all__:
        assert getattr(core, name) is not None


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module: str) -> None:
    assert import_module(f"holdall.core.{module}").__doc__
