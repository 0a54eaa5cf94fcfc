"""The console in a browser: a database with items, jobs, files and an artifact, its server, and a signed-in page.

A test module opens one screen that all its tests share. A test that changes data creates that data itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from console_artifact_rig import publish_model
from console_job_rig import store_jobs
from console_rig import MODELS, TOKEN, Customer, make_picture, open_shop
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from rig.browser import browser_package, open_browser
from web_rig import serve_asgi

from holdall import Database, Model, Variant
from holdall.attachments import Blob
from holdall.jobs import JobRecord
from holdall.web import Console, create_app

__all__ = ["HOSTILE", "Screen", "check_access", "open_screen", "skip_to", "tab_to"]

HOSTILE = (
    "line\r\nSet-Cookie: a=b\r\n\r\n\u202egnp.exe\u2066"
    """'"><img src=x onerror="evil()"></title></textarea></pre></script><script>document.title = "evil"</script>"""
    """<svg onload="evil()">{{ 7 * 7 }}{% include 'x' %}"""
) + "long" * 2000
"""What an attacker might write: header lines, text that runs backwards, markup, templates, and a very long value.

The first 100 characters contain an attack of each kind, the first 200 contain all attacks.
"""

_PHONE, _DESK = (360, 640), (1180, 800)
_LOOK_FOR_FOCUS = """(element) => [
    element === document.activeElement,
    [null, "::after"].some((part) => getComputedStyle(document.activeElement, part).outlineStyle !== "none"),
    document.activeElement.outerHTML.slice(0, 200)]"""


@dataclass(frozen=True, slots=True)
class Screen:
    """A page that has signed in to the console of a database with items, files, an artifact and jobs."""

    db: Database
    browser: Browser
    address: str
    page: Page
    jobs: dict[str, JobRecord]
    artifact: str
    blob: Blob

    def visit(self, path: str) -> int:
        """Go to a page; return the status of the reply."""
        reply = self.page.goto(path)
        assert reply is not None
        return reply.status

    def resize(self, size: tuple[int, int]) -> None:
        """Change the size of the window."""
        self.page.set_viewport_size({"width": size[0], "height": size[1]})

    def check_width(self) -> None:
        """Check that nothing is wider than the window."""
        assert self.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), self.page.url

    def check_hostile(self, paths: Sequence[str], *, statuses: Sequence[int] = (200,)) -> None:
        """Check that pages with an attacker's text do not execute any of it and fit a phone."""
        self.resize(_PHONE)
        for path in paths:
            reply = self.page.goto(path)
            self.page.locator("[data-reload]").wait_for(state="detached", timeout=60_000)
            assert reply is not None
            assert reply.status in statuses, path
            assert "set-cookie" not in reply.all_headers()
            assert self.page.locator("main script, main [onerror], main [onload]").count() == 0
            assert reply.status == 404 or self.page.title().endswith(" · Holdall"), path
            self.check_width()
        self.resize(_DESK)

    def open_page(self, **options: Any) -> Page:
        """Open another signed-in page; its errors are not recorded."""
        state = self.page.context.storage_state()
        return self.browser.new_context(base_url=self.address, storage_state=state, **options).new_page()

    def check_access(self, paths: Sequence[str]) -> None:
        """Check that these pages are accessible."""
        page = self.open_page(bypass_csp=True)
        for path in paths:
            check_access(page, path)
        page.context.close()

    def check_phone(self, paths: Sequence[str]) -> None:
        """Check that these pages load and fit a phone."""
        self.resize(_PHONE)
        for path in paths:
            assert self.visit(path) == 200, path
            self.check_width()
        self.resize(_DESK)


def check_access(page: Page, path: str) -> None:
    """Check that axe finds nothing on a page, in light and in dark colours, and that it fits a phone."""
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": _DESK[0], "height": _DESK[1]})
    page.goto(path)
    page.locator("[data-reload]").wait_for(
        state="detached", timeout=60_000
    )  # the page reloads itself until then
    page.evaluate(_read_axe())
    faults = _find_faults(page, "{}")
    page.emulate_media(color_scheme="dark")  # only colours change
    faults += _find_faults(page, "{runOnly: ['color-contrast']}")
    page.set_viewport_size({"width": _PHONE[0], "height": _PHONE[1]})
    faults += _find_faults(page, "{runOnly: ['scrollable-region-focusable', 'target-size']}")
    assert not faults, f"{path}: {faults}"
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), path


@cache
def _read_axe() -> str:
    return (browser_package("axe-core") / "axe.min.js").read_text(encoding="utf-8")


def _find_faults(page: Page, options: str) -> list[str]:
    found = page.evaluate(
        f"axe.run({{resultTypes: ['violations'], preload: false, ...{options}}}).then((found) => found.violations)"
    )
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def _sign_in(browser: Browser, address: str, errors: list[str]) -> Page:
    """Open a signed-in page; errors of its scripts and violations of its policy are appended to ``errors``."""
    page = browser.new_context(base_url=address).new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: _note(errors, message))
    page.goto("sign-in")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    return page


def _note(errors: list[str], message: ConsoleMessage) -> None:
    if message.type == "error" and not message.text.startswith("Failed to load resource"):
        errors.append(message.text)


def tab_to(page: Page, target: Any) -> None:
    """Press the tab key until the target has the focus; check that each element on the way shows its focus."""
    for place in range(60):
        is_reached, has_ring, text = target.evaluate(_LOOK_FOR_FOCUS)
        assert has_ring or not place, text
        if is_reached:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {target}")


def skip_to(page: Page, target: Any) -> None:
    """On a new page, skip the navigation, then tab to the target in the content."""
    target.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    tab_to(page, target)


@contextmanager
def open_screen(folder: Path, *models: type[Model]) -> Iterator[Screen]:
    """Open a screen that also shows these models; at the end, check that no script failed or violated the policy."""
    errors: list[str] = []
    with open_browser() as browser, open_shop(folder, items=12) as db:
        artifact, jobs, blob = publish_model(db), store_jobs(db), _attach_picture(db)
        app = create_app(db, console=Console(models=[*MODELS, *models], token=TOKEN, read_only=False))
        with serve_asgi(app) as url:
            address = f"{url}/console/"
            page = _sign_in(browser, address, errors)
            yield Screen(db, browser, address, page, jobs, artifact, blob)
            assert errors == []
            page.context.close()


def _attach_picture(db: Database) -> Blob:
    """Attach a picture to a customer and create a variant of it."""
    with db.transaction() as tx:
        item = tx.create(Customer, email="blob@example.com")
        item.files.attach(make_picture(), filename="dunes.png")
    (found,) = db.blobs.list("ConsoleCustomer", item.id)
    db.blobs.variant(found.blob, Variant(resize_to_limit=(40, 40)))
    return found.blob
