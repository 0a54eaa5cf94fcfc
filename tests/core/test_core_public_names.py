"""The public names of the core."""

from __future__ import annotations

from holdall import core


def test_every_public_name_of_the_core_exists_and_is_listed_once() -> None:
    assert len(set(core.__all__)) == len(core.__all__)
    for name in core.__all__:
        assert getattr(core, name) is not None
