"""A headless browser, and packages for its pages. Where there is no browser, tests are skipped with that reason.

While a browser is open, its thread has a running event loop: talk to servers with blocking clients.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from rig.installation import NotHereError, install

__all__ = ["browser_package", "open_browser"]


def browser_package(name: str) -> Path:
    """The directory of an npm package that ``browser_packages/package.json`` names."""
    try:
        return install(".venv-browser") / name
    except NotHereError as error:
        pytest.skip(f"the npm packages of the pages cannot be installed here: {error}")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open Chromium."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
