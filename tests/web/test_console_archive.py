"""The console's pages of the archive: what they measure and draw, and that they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape

import pytest
from console_rig import Order, Visitor, make_visitor, open_shop, open_visitor
from hypothesis import given
from hypothesis import strategies as some

from holdall import Archive, Database, Key, Model
from holdall.archive import Holdings, Prices
from holdall.web.console import archive
from holdall.web.console.archive import compare_costs
from holdall.web.console.plot import HEIGHT, WIDTH, place_bars, place_line, share_out
from holdall.web.console.template import format_dollars

ORDERS = "/archive/console_rig:Order"


class Untimed(Model, name="ConsoleUntimed", archive=Archive()):
    """A model without a timestamp: the program chooses which items to archive."""

    id: Key[str]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with open_shop(tmp_path_factory.mktemp("shop"), items=12) as found:
        yield found


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page wait for its measurement, however slow the machine is."""
    monkeypatch.setattr(archive, "_PATIENCE", 600)


@pytest.fixture
def visitor(db: Database) -> Visitor:
    return open_visitor(db, models=[Order, Untimed])


def measure(visitor: Visitor, address: str) -> str:
    """Load a page until its measurement has ended; return it."""
    for _ in range(100):
        page = visitor.get(address).text
        if "data-reload" not in page:
            return unescape(page)
    raise AssertionError(page)


def test_models_with_an_archive_are_listed(visitor: Visitor, db: Database) -> None:
    page = visitor.get("/archive").text
    assert "/console/archive/console_rig:Order" in unescape(page).replace("%3A", ":")
    assert "more than 365 days" in page
    assert "No model has an archive" in open_visitor(db, models=[]).get("/archive").text


def test_nothing_is_measured_until_the_visitor_asks(visitor: Visitor) -> None:
    page = visitor.get(ORDERS).text
    assert "Nothing is measured yet" in page
    assert '<svg class="plot"' not in page


def test_hot_and_cold_items_are_drawn(visitor: Visitor, db: Database) -> None:
    held = db.archive.report(Order)
    assert held.cold_items
    page = measure(visitor, f"{ORDERS}?show=holdings")
    hot = held.hot_items / (held.hot_items + held.cold_items)
    assert f"Items: hot, in the table {hot * 100:.1f}".removesuffix(".0") in page
    assert f"<b>{held.cold_items}</b> cold, in the archive" in page
    assert "Without it" in page


def test_a_dry_run_shows_what_stays_and_changes_nothing(db: Database) -> None:
    visitor = open_visitor(db, models=[Order], read_only=True)
    before = db.archive.report(Order)
    page = measure(visitor, f"{ORDERS}?show=dry-run")
    assert f"A run would archive 0 of {before.hot_items} hot items" in page
    assert f"{before.hot_items} too young" in page
    assert db.archive.report(Order) == before


def test_the_page_explains_why_a_dry_run_is_not_possible(visitor: Visitor) -> None:
    page = measure(visitor, f"/archive/{Untimed.__module__}:Untimed?show=dry-run")
    assert "does not declare a timestamp" in page


def test_a_measurement_is_kept_until_the_visitor_asks_for_another(visitor: Visitor, db: Database) -> None:
    first = measure(visitor, f"{ORDERS}?show=holdings")
    db.create(Order, customer="new", number=1, product="tea", placed_at=datetime.now(UTC))
    assert "Measure again" in first
    count = db.archive.report(Order).hot_items
    assert f"<b>{count}</b> hot" not in measure(visitor, f"{ORDERS}?show=holdings")
    reply = visitor.get(f"{ORDERS}?show=holdings&again=1")
    assert reply.headers["location"].endswith("?show=holdings"), "reloading would measure again"
    assert f"<b>{count}</b> hot" in measure(visitor, f"{ORDERS}?show=holdings")


def test_the_archive_pages_need_a_session_and_a_model_with_an_archive(db: Database) -> None:
    for path in ("/archive", f"{ORDERS}?show=dry-run"):
        assert make_visitor(db).get(path).headers["location"] == "/console/sign-in"
    visitor = open_visitor(db)
    assert visitor.get("/archive/console_rig:Customer").status_code == 404
    assert visitor.get("/archive/%3Cb%3E:x").status_code == 404
    assert visitor.post(ORDERS).status_code == 405


# --- plots ----------------------------------------------------------------------------------------------------


@given(some.dictionaries(some.text(max_size=5), some.integers(0, 10**9), max_size=8))
def test_bars_stay_inside_the_picture(numbers: dict[str, int]) -> None:
    bars = place_bars(numbers)
    assert [(each.label, each.number) for each in bars] == list(numbers.items())
    for each in bars:
        assert -1e-6 <= each.x <= each.x + each.width <= WIDTH + 1e-6
        assert each.y + each.height == pytest.approx(HEIGHT)
        assert 0 <= each.height <= HEIGHT


@given(some.floats(0, 1e9), some.floats(-1e9, 1e9))
def test_the_line_stays_inside_the_picture_and_breaks_even_when_the_archive_pays_off(
    once: float, monthly: float
) -> None:
    line = place_line(once, monthly)
    points = [tuple(map(float, each.split(","))) for each in line.points.split()]
    assert len(points) == 37
    assert all(-0.1 <= y <= HEIGHT + 0.1 for _, y in points)
    assert (line.break_even is not None) == (monthly > 0 and once / monthly <= 36)


@given(some.lists(some.integers(0, 10**12), max_size=5))
def test_shares_sum_to_one(numbers: list[int]) -> None:
    assert sum(share_out(numbers)) == pytest.approx(1.0 if any(numbers) else 0.0)


def test_costs_are_compared_with_items_of_the_same_size() -> None:
    costs = compare_costs(Holdings(10, 10**9, 30, 10**8, 10**6), Prices())
    assert costs is not None
    assert costs.unarchived == pytest.approx(0.75)
    assert costs.saved == pytest.approx(0.75 - 0.00025 - 0.0023)
    assert compare_costs(Holdings(0, 0, 3, 100, 10), Prices()) is None


def test_amounts_are_short() -> None:
    amounts = [format_dollars(each) for each in (0, 1234.5, 0.01, 0.0012, 0.00001, -2)]
    assert amounts == ["$0.00", "$1,234.50", "$0.01", "$0.0012", "< $0.0001", "-$2.00"]
