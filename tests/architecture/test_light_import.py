"""Importing Holdall is cheap, because modules are loaded only when they are first used."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

HEAVY = {
    "SDKs": {"boto3", "botocore", "aiobotocore", "h11"},
    "web": {"starlette", "uvicorn", "jinja2", "fastapi", "flask"},
    "imaging": {"PIL", "pillow_heif", "pypdfium2", "av"},
    "tests": {"pytest", "hypothesis"},
}


@cache
def find_loaded(statement: str) -> set[str]:
    script = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("kind", HEAVY)
@pytest.mark.parametrize("statement", ["import holdall", "from holdall import AsyncDatabase, Database"])
def test_importing_does_not_load_heavy_packages(statement: str, kind: str) -> None:
    assert not {name.partition(".")[0] for name in find_loaded(statement)} & HEAVY[kind]


def test_importing_the_package_loads_none_of_its_rooms() -> None:
    loaded = {name for name in find_loaded("import holdall") if name.startswith("holdall.")}
    assert loaded == set()


def test_public_names_are_loaded_on_first_use() -> None:
    script = (
        "import holdall; assert set(holdall.__all__) <= set(dir(holdall)); print(holdall.Database.__name__)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "Database\n"


def test_a_misspelt_name_is_an_attribute_error() -> None:
    import holdall

    with pytest.raises(AttributeError, match="Databse"):
        _ = holdall.Databse
