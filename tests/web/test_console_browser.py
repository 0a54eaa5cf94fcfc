"""The pages of the console in a browser: what they show, and that everybody can use them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote, urlencode

import pytest
from console_rig import (
    MODELS,
    TOKEN,
    Customer,
    Order,
    check_pages,
    make_picture,
    opened_shop,
    sign_in_browser,
)
from playwright.sync_api import Browser, Page, expect
from rig.browser import browser_package, opened_browser
from web_rig import served_asgi

from holdall import Database
from holdall.web import Console, create_app

KEY = "key-customer=ada&key-number=0"
PAGES = [
    "./",
    "models",
    "models/console_rig:Order?key-customer=ada&op-number=ge&from-number=1",
    "models/console_rig:Customer?browse=1",
    f"models/console_rig:Order/item?{KEY}",
    f"models/console_rig:Order/item/edit?{KEY}",
    f"models/console_rig:Order/item/delete?{KEY}",
    "nothing",
]
EVIL = (
    """</title></textarea></script>'"><script>document.title = "evil"</script><img src=x onerror="evil()">"""
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with opened_shop(tmp_path_factory.mktemp("shop"), items=12) as found:
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
    expect(page.get_by_role("heading", name="console-stations")).to_be_visible()
    expect(page.locator(".head time")).to_contain_text("UTC")
    orders = page.get_by_role("row", name="ConsoleOrder")
    expect(orders.get_by_role("cell").first).to_have_text("12")


def test_models_are_listed_with_what_they_declare(page: Page) -> None:
    page.get_by_role("link", name="Models").click()
    expect(page.locator(".cards > li")).to_have_count(4)
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


def test_an_item_is_found_edited_and_deleted(page: Page, db: Database) -> None:
    page.goto("models/console_rig:Order")
    page.get_by_label("customer", exact=False).first.fill("ada")
    page.get_by_label("Comparison of number").select_option("between")
    page.get_by_label("number", exact=True).fill("1")
    page.get_by_label("End of the range of number").fill("3")
    page.get_by_role("button", name="Find").click()
    rows = page.get_by_role("region", name="Items").get_by_role("row")
    expect(rows).to_have_count(4)
    rows.nth(1).get_by_role("link").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("note", exact=False).first.fill("Ring <twice>")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved: note.")
    expect(page.get_by_text("Ring <twice>", exact=True)).to_be_visible()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Delete").click()
    assert db.get(Order, customer="ada", number=1) is not None
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted ConsoleOrder ada · 1.")
    assert db.get(Order, customer="ada", number=1) is None


def test_the_second_end_of_a_range_is_shown_when_it_is_needed(page: Page) -> None:
    page.goto("models/console_rig:Order")
    end = page.get_by_label("End of the range of number")
    expect(end).to_be_hidden()
    page.get_by_label("Comparison of number").select_option("between")
    expect(end).to_be_visible()


def test_a_picture_of_an_attachment_is_shown(page: Page, db: Database) -> None:
    with db.transaction() as tx:
        item = tx.create(Customer, email="picture@example.com")
        item.files.attach(make_picture(), filename="dunes.png")
    page.goto(f"models/console_rig:Customer/item?key-id={item.id}")
    expect(page.locator(".thumb img")).to_have_js_property("naturalWidth", 320, timeout=60_000)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download dunes.png").click()
    assert download.value.suggested_filename == "dunes.png"


HOSTILE = {
    "markup": EVIL,
    "direction": "\u202egnp.exe\u2066",
    "header": "line\r\nSet-Cookie: a=b\r\n\r\n",
    "huge": "long " * 60_000,
    "template": "{{ 7 * 7 }}{% include 'base.html' %}",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_that_an_item_contains_runs_or_breaks_a_page(page: Page, db: Database, kind: str) -> None:
    name, short = HOSTILE[kind], HOSTILE[kind][:200]
    with db.transaction() as tx:
        item = tx.create(Customer, email=short, name=name)
        item.files.attach(b"x", filename=short, content_type="text/html", identify=False)
        order = tx.create(
            Order,
            customer=short,
            number=1,
            product=short,
            placed_at=datetime.now(UTC),
            address={short: short},
        )
    where = urlencode({"key-customer": order.customer, "key-number": 1})
    addresses = [
        f"models/console_rig:Customer/item?key-id={item.id}",
        f"models/console_rig:Customer/item/edit?key-id={item.id}",
        f"models/console_rig:Customer/item/delete?key-id={item.id}",
        f"models/console_rig:Order?{urlencode({'key-customer': order.customer})}",
        f"models/console_rig:Order/item?{where}",
        f"models/console_rig:Order/item/edit?{where}",
        f"models/console_rig:Order/item/delete?{where}",
        f"models/{quote(short, safe='')}",
    ]
    page.set_viewport_size({"width": 360, "height": 640})
    for address in addresses:
        reply = page.goto(address)
        assert reply is not None
        assert reply.status in (200, 404), address
        assert "set-cookie" not in reply.all_headers()
        assert page.locator("main script, main img[onerror]").count() == 0
        assert page.title().endswith(" · Holdall") or reply.status == 404
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), address
    page.set_viewport_size({"width": 1180, "height": 860})
    page.goto(addresses[2])
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted ConsoleCustomer")
