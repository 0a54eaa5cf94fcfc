"""The pages of the console in a browser: accessibility, signing in, and items."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode, urlsplit

import pytest
import test_console_features
from console_browser_rig import HOSTILE, Screen, check_access, open_screen, skip_to, tab_to
from console_rig import TOKEN, Customer, Order, make_picture
from playwright.sync_api import expect
from starlette.routing import compile_path

from holdall.web.console import figure_cache
from holdall.web.console.section import Section, list_sections

pytestmark = pytest.mark.torture

UNREADABLE = Order.key(customer="ada", number=10)
ORDER = "models/console_rig:Order/item%s?key-customer=ada&key-number=0"


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    with open_screen(tmp_path_factory.mktemp("shop")) as found:
        found.db.files.delete(found.db.archive.key(UNREADABLE))
        yield found


# --- all pages ------------------------------------------------------------------------------------------------


PAGES = {
    "overview": ["./", "nothing"],
    "models": [
        "models",
        "models/console_rig:Order?key-customer=ada&op-number=ge&from-number=9",
        "models/console_rig:Order?key-customer=ada&op-number=ge&from-number=wrong",
        ORDER % "/edit",
        ORDER % "/delete",
        "models/console_rig:Customer/item?key-id={customer}",
    ],
    "blobs": ["blobs", "blobs/blob?id={blob}"],
    "artifacts": [
        "artifacts",
        "artifacts/artifact?name={model}",
        "artifacts/alias?name={model}&alias=live",
        "artifacts/alias?name={model}&alias=next",
        "artifacts/alias/move?name={model}&alias=live&weight-1=50&weight-2=50",
        "artifacts/roll-out?name={model}&alias=next",
    ],
    "archive": [
        "archive",
        "archive/console_rig:Order?show=holdings",
        "archive/console_rig:Order?show=dry-run",
    ],
    "jobs": ["jobs?state=dead&count=1", "jobs/job?id={dead}"],
}
"""A page of every template, with everything that the template can show."""

OTHER_PAGES = {
    "models": ["models/console_rig:Customer?browse=1", ORDER % ""],
    "blobs": ["blobs?type=ConsoleCustomer&owner=none"],
    "artifacts": ["artifacts?prefix=nothing", "artifacts/rollout/abort?name={model}&alias=next"],
    "archive": ["archive/console_rig:Order"],
    "jobs": [
        "jobs?state=running",
        "jobs?state=paused",
        "jobs/job?id={waiting}",
        "jobs/job/retry?id={dead}",
        "jobs/job/delete?id={dead}",
        "jobs/retry-dead",
        "jobs/resume-paused",
    ],
}
"""Pages of the same templates: empty ones, other states, and other confirmations."""

MOVES = {
    "/models/{model}/item/edit": "test_an_item_is_found_edited_and_deleted",
    "/models/{model}/item/delete": "test_an_item_is_found_edited_and_deleted",
    "/artifacts/alias/move": "test_a_split_is_moved_and_rolled_back",
    "/artifacts/alias/roll-back": "test_a_split_is_moved_and_rolled_back",
    "/artifacts/roll-out": "test_a_rollout_is_started",
    "/artifacts/rollout/{move}": "test_a_rollout_is_paused_resumed_advanced_and_aborted",
    "/jobs/job/retry": "test_a_dead_job_is_found_retried_and_deleted",
    "/jobs/job/delete": "test_a_dead_job_is_found_retried_and_deleted",
    "/jobs/retry-dead": "test_all_dead_jobs_of_a_queue_are_retried",
    "/jobs/resume-paused": "test_paused_jobs_are_resumed",
}
"""For each page that changes something, the browser test that uses it."""


@pytest.mark.parametrize("section", PAGES)
def test_the_pages_are_accessible(screen: Screen, section: str) -> None:
    (reference,) = screen.db.blobs.attachments(screen.blob)
    values = {
        "customer": reference.record_id,
        "blob": screen.blob.id,
        "model": screen.artifact,
        "dead": screen.jobs["dead"].id,
        "waiting": screen.jobs["waiting"].id,
    }
    if section == "models":
        screen.visit(PAGES["models"][1])
        expect(screen.page.locator(".reason")).to_have_count(1)
    screen.check_access([path.format(**values) for path in PAGES[section]])
    screen.check_phone([path.format(**values) for path in OTHER_PAGES.get(section, [])])


@pytest.mark.parametrize("section", list_sections(), ids=lambda section: section.name)
def test_every_page_and_every_change_has_a_browser_test(section: Section) -> None:
    """Downloads and thumbnails are not pages; the tests of items and files cover them."""
    addresses = [*PAGES[section.name], *OTHER_PAGES.get(section.name, [])]
    paths = [f"/{urlsplit(path).path.removeprefix('./')}" for path in addresses]
    for page in section.pages:
        if page.changes:
            name = MOVES[page.path]
            assert name in globals() or hasattr(test_console_features, name)
        elif not page.path.startswith("/files/"):
            route = compile_path(page.path)[0]
            assert any(route.match(path) for path in paths), page.path


# --- the frame ------------------------------------------------------------------------------------------------


def test_a_visitor_signs_in_and_out(screen: Screen) -> None:
    page = screen.browser.new_context(base_url=screen.address, bypass_csp=True).new_page()
    check_access(page, "sign-in")
    page.goto("models")
    page.get_by_label("Token").fill("a wrong token")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("This is not the console's token.")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_focused()
    page.goto("models")
    expect(page.get_by_label("Token")).to_be_visible()
    page.context.close()


def test_the_console_can_be_used_with_the_keyboard_alone(screen: Screen) -> None:
    """From signing in to deleting an item, without a mouse."""
    db = screen.db
    db.create(Order, customer="keys", number=7, product="tea", placed_at=datetime.now(UTC))
    page = screen.browser.new_context(base_url=screen.address).new_page()
    press = page.keyboard.press
    page.goto("sign-in")
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(TOKEN)
    press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.goto("./")
    tab_to(page, page.get_by_role("navigation").get_by_role("link", name="Models"))
    press("Enter")
    skip_to(page, page.get_by_role("main").get_by_role("link", name="ConsoleOrder"))
    press("Enter")
    skip_to(page, page.get_by_label("customer str"))
    page.keyboard.type("keys")
    tab_to(page, page.get_by_label("Comparison of number"))
    page.keyboard.type("at least")
    tab_to(page, page.get_by_label("number", exact=True))
    page.keyboard.type("7")
    press("Enter")
    skip_to(page, page.get_by_role("link", name="keys: open keys · 7"))
    press("Enter")
    skip_to(page, page.get_by_role("link", name="Delete"))
    press("Enter")
    skip_to(page, page.get_by_role("link", name="Cancel"))
    press("Shift+Tab")
    expect(page.get_by_role("button", name="Delete")).to_be_focused()
    press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Deleted ConsoleOrder keys · 7.")
    assert db.get(Order, customer="keys", number=7) is None
    page.context.close()


def test_the_policy_stops_inline_scripts_and_styles(screen: Screen) -> None:
    """Even if a page fails to escape a value, the browser does not run it."""
    page = screen.open_page()
    page.goto("models")
    page.evaluate(
        """() => { document.querySelector("main").innerHTML =
            '<img src=x onerror="document.title = 1"><p style="color: red">x</p><iframe srcdoc="x"></iframe>';
            const script = document.createElement("script"); script.textContent = "document.title = 2";
            document.body.append(script); }"""
    )
    expect(page.locator("main p")).not_to_have_css("color", "rgb(255, 0, 0)")
    assert page.title() == "Models · Holdall"
    page.context.close()


# --- items ----------------------------------------------------------------------------------------------------


def test_the_overview_counts_items(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_cache, "_FRESH", timedelta(0))
    monkeypatch.setattr(figure_cache, "_PATIENCE", 600)
    page, db = screen.page, screen.db
    page.goto("./")
    count = db.table.describe().item_count
    card = page.locator(".card", has=page.get_by_role("heading", name=db.table.name))
    expect(card.locator(".tiles dd").first).to_have_text(f"{count:,}")
    expect(page.get_by_role("heading", name="console-stations")).to_be_visible()
    expect(page.locator(".head time")).to_contain_text("UTC")
    orders = page.get_by_role("row", name="ConsoleOrder")
    expect(orders.get_by_role("cell").first).to_have_text("12")


def test_models_are_listed_with_what_they_declare(screen: Screen) -> None:
    page = screen.page
    page.get_by_role("link", name="Models").click()
    expect(page.locator(".cards > li")).to_have_count(4)
    expect(page.locator(".cards b")).to_have_count(0)
    page.get_by_role("link", name="ConsoleCustomer").click()
    expect(page.get_by_text("Where <i>invoices</i> are sent")).to_be_visible()
    assert page.title() == "ConsoleCustomer · Holdall"


def test_an_item_is_found_edited_and_deleted(screen: Screen) -> None:
    page, db = screen.page, screen.db
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


def test_the_end_of_a_range_is_shown_only_for_between(screen: Screen) -> None:
    page = screen.page
    page.goto("models/console_rig:Order")
    end = page.get_by_label("End of the range of number")
    expect(end).to_be_hidden()
    page.get_by_label("Comparison of number").select_option("between")
    expect(end).to_be_visible()


def test_a_picture_of_an_attachment_is_shown(screen: Screen) -> None:
    page, db = screen.page, screen.db
    with db.transaction() as tx:
        item = tx.create(Customer, email="picture@example.com")
        item.files.attach(make_picture(), filename="dunes.png")
    page.goto(f"models/console_rig:Customer/item?key-id={item.id}")
    expect(page.locator(".thumb img")).to_have_js_property("naturalWidth", 320, timeout=60_000)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download dunes.png").click()
    assert download.value.suggested_filename == "dunes.png"


def test_a_hostile_item_neither_runs_scripts_nor_breaks_a_page(screen: Screen) -> None:
    page, db, short = screen.page, screen.db, HOSTILE[:200]
    with db.transaction() as tx:
        item = tx.create(Customer, email=short, name=HOSTILE)
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
    screen.check_hostile(addresses, statuses=(200, 404))
    page.goto(addresses[2])
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted ConsoleCustomer")
