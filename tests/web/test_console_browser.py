"""The pages of the console in a browser: what they show, and that everybody can use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from console_rig import MODELS, TOKEN, check_pages, opened_shop, sign_in_browser
from playwright.sync_api import Browser, Page, expect
from rig.browser import browser_package, opened_browser
from web_rig import served_asgi

from holdall import Database
from holdall.web import Console, create_app

PAGES = ["./", "models", "models/console_rig:Order", "models/console_rig:Customer", "nothing"]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with opened_shop(tmp_path_factory.mktemp("shop")) as found:
        yield found


@pytest.fixture(scope="module")
def address(db: Database) -> Iterator[str]:
    with served_asgi(create_app(db, console=Console(models=MODELS, token=TOKEN, read_only=False))) as url:
        yield f"{url}/console/"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    errors: list[str] = []
    found = sign_in_browser(browser, address, errors)
    yield found
    assert errors == []
    found.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_pages(
    browser: Browser, address: str, scheme: Literal["light", "dark"]
) -> None:
    check_pages(browser, address, scheme, PAGES)


def test_everybody_can_use_the_form_to_sign_in(browser: Browser, address: str) -> None:
    page = browser.new_page(base_url=address, bypass_csp=True, viewport={"width": 360, "height": 640})
    page.goto("sign-in")
    page.evaluate((browser_package("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    assert page.evaluate("axe.run().then(({violations}) => violations)") == []
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    page.close()


def test_the_overview_counts_items(page: Page, db: Database) -> None:
    page.goto("./")
    count = db.table.describe().item_count
    card = page.locator(".card", has=page.get_by_role("heading", name=db.table.name))
    expect(card.locator(".tiles dd").first).to_have_text(f"{count:,}")
    expect(page.get_by_role("heading", name="console-readings")).to_be_visible()
    expect(page.locator("time")).to_contain_text("UTC")


def test_models_are_listed_with_what_they_declare(page: Page) -> None:
    page.get_by_role("link", name="Models").click()
    expect(page.locator(".cards > li")).to_have_count(3)
    expect(page.locator(".cards b")).to_have_count(0)
    page.get_by_role("link", name="ConsoleCustomer").click()
    expect(page.get_by_text("Where <i>invoices</i> are sent")).to_be_visible()
    assert page.title() == "ConsoleCustomer · Holdall"


def test_the_keyboard_reaches_the_content_first(page: Page) -> None:
    page.goto("./")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
