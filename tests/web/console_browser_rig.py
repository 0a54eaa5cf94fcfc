"""The console in a browser: one database with something of everything, its server, and a page that has signed in.

A module of tests opens one screen and shares it. A test that changes something makes what it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console_artifact_rig import publish_model
from console_job_rig import store_jobs
from console_rig import MODELS, TOKEN, Customer, make_picture, opened_shop
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from rig.browser import browser_package, opened_browser
from web_rig import served_asgi

from holdall import Database, Model, Variant
from holdall.attachments import Blob
from holdall.jobs import JobRecord
from holdall.web import Console, create_app

__all__ = ["HOSTILE", "Screen", "check_access", "make_page", "opened_screen", "tab_to"]

HOSTILE = {
    "markup": (
        """</title></textarea></pre></script>'"><script>document.title = "evil"</script>"""
        """<img src=x onerror="evil()"><svg onload="evil()">{{ 7 * 7 }}{% include 'x' %}"""
    ),
    "control": "line\r\nSet-Cookie: a=b\r\n\r\n\u202egnp.exe\u2066",
    "huge": "long" * 2000,
}
"""What attackers write."""

_PHONE, _DESK = (360, 640), (1180, 800)
_HAS_RING = """() => [null, "::after"].some(
    (part) => getComputedStyle(document.activeElement, part).outlineStyle !== "none")"""


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
        """Look at pages that show what an attacker wrote: nothing of it runs, and they fit a phone."""
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

    def check_access(self, paths: Sequence[str]) -> None:
        """Check that everybody can use these pages."""
        page = make_page(self.browser, self.address, bypass_csp=True)
        for path in paths:
            check_access(page, path)
        page.context.close()


def check_access(page: Page, path: str) -> None:
    """Check that axe finds nothing on a page, in light and in dark colours, and that it fits a phone."""
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": _DESK[0], "height": _DESK[1]})
    page.goto(path)
    page.locator("[data-reload]").wait_for(
        state="detached", timeout=60_000
    )  # the page would load itself again
    page.evaluate((browser_package("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    faults = _find_faults(page, "{}")
    page.emulate_media(color_scheme="dark")  # only colours change
    faults += _find_faults(page, "{runOnly: ['color-contrast']}")
    page.set_viewport_size({"width": _PHONE[0], "height": _PHONE[1]})
    faults += _find_faults(page, "{runOnly: ['scrollable-region-focusable', 'target-size']}")
    assert not faults, f"{path}: {faults}"
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), path


def _find_faults(page: Page, options: str) -> list[str]:
    found = page.evaluate(
        f"axe.run({{resultTypes: ['violations'], ...{options}}}).then(({{violations}}) => violations)"
    )
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def make_page(browser: Browser, address: str, errors: list[str] | None = None, **options: Any) -> Page:
    """A page of a browser without cookies, signed in; ``errors`` gets those of its scripts and of the policy."""
    page = browser.new_context(base_url=address, **options).new_page()
    if errors is not None:
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
    """Press the tab key until something has the focus; everything on the way shows that it has it."""
    for _ in range(60):
        if target.evaluate("(element) => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
        assert page.evaluate(_HAS_RING), page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
    raise AssertionError(f"the keyboard does not reach {target}")


@contextmanager
def opened_screen(folder: Path, *models: type[Model]) -> Iterator[Screen]:
    """A screen, which shows these models too; at the end, no script has failed and the policy was never violated."""
    errors: list[str] = []
    with opened_browser() as browser, opened_shop(folder, items=12) as db:
        artifact, jobs, blob = publish_model(db), store_jobs(db), _attach_picture(db)
        app = create_app(db, console=Console(models=[*MODELS, *models], token=TOKEN, read_only=False))
        with served_asgi(app) as url:
            address = f"{url}/console/"
            page = make_page(browser, address, errors)
            yield Screen(db, browser, address, page, jobs, artifact, blob)
            assert errors == []
            page.context.close()


def _attach_picture(db: Database) -> Blob:
    """A picture that a customer has, with a variant."""
    with db.transaction() as tx:
        item = tx.create(Customer, email="blob@example.com")
        item.files.attach(make_picture(), filename="dunes.png")
    (found,) = db.blobs.list("ConsoleCustomer", item.id)
    db.blobs.variant(found.blob, Variant(resize_to_limit=(40, 40)))
    return found.blob
