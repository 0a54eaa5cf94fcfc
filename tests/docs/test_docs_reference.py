"""The reference is written from the source, and everything public has words of its own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("holdall_reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()
NAMES = [
    (module, name) for module in SCRIPT.PAGES for name in SCRIPT.public_names(importlib.import_module(module))
]


@pytest.mark.parametrize("file", SCRIPT.PAGES.values())
def test_a_reference_page_is_current(file: str) -> None:
    on_disk = (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8")
    assert on_disk == SCRIPT.pages()[file], "run python scripts/reference.py"


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_has_a_docstring_and_a_place_in_the_reference(module: str, name: str) -> None:
    assert SCRIPT.documentation(importlib.import_module(module), name)
    page = (ROOT / "docs" / "reference" / SCRIPT.PAGES[module]).read_text(encoding="utf-8")
    assert f"\n## {name}\n" in page


def test_the_check_sees_a_stale_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SCRIPT, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reference.py"])
    assert SCRIPT.main() == 0
    monkeypatch.setattr(sys, "argv", ["reference.py", "--check"])
    assert SCRIPT.main() == 0
    (tmp_path / "core.md").write_text("old")
    assert SCRIPT.main() == 1
    assert "core.md is stale" in capsys.readouterr().err
