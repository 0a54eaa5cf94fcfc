"""The example photo album as a visitor sees it: in a browser, from a server started with its own command."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from rig.browser import open_browser

pytestmark = pytest.mark.torture

ALBUM = Path(__file__).parents[2] / "examples" / "album"

WATCH = """
window.seen = [];
new MutationObserver(() => {
  for (const tile of document.querySelectorAll(".upload"))
    seen.push(tile.innerText + tile.querySelector("progress").value);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
"""Records what the page shows for uploads in progress."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A JPEG, a PDF and a video."""
    folder = tmp_path_factory.mktemp("samples")
    script = (
        "import sys; from pathlib import Path; from sample import *; folder = Path(sys.argv[1]);"
        "make_picture(folder / 'Dunes.jpg', 'Dunes', 640, 480); make_document(folder / 'Lake.pdf');"
        "make_video(folder / 'Sunset.mp4', 160, 120, 6)"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], cwd=ALBUM, check=True)
    (folder / "notes.txt").write_text("not a picture")
    (folder / "page.jpg").write_text("<html><script>alert(1)</script></html>")
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The empty album in a browser; an error in the page's scripts or on the server's stderr fails the tests."""
    data = tmp_path_factory.mktemp("album")
    command = [sys.executable, "-W", "error", str(ALBUM / "server.py"), "--data", str(data), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().rpartition(" ")[2].strip()
            assert address, server.stderr and server.stderr.read()
            with open_browser() as browser:
                found = browser.new_page(base_url=address)
                errors: list[str] = []
                found.on("pageerror", lambda error: errors.append(str(error)))
                found.add_init_script(WATCH)
                found.goto("/")
                yield found
                assert errors == []
        finally:
            server.terminate()
            _, stderr = server.communicate(timeout=60)
    assert stderr == ""


def choose(page: Page, *files: Path) -> None:
    page.set_input_files("#choose", [str(file) for file in files])


def test_files_are_uploaded_with_their_progress_and_shown_as_pictures(page: Page, samples: Path) -> None:
    expect(page.locator("#empty")).to_be_visible()
    names = ["Dunes.jpg", "Lake.pdf", "Sunset.mp4"]
    choose(page, *(samples / name for name in names))
    tiles = page.locator(".tile:not(.upload)")
    expect(tiles).to_have_count(3, timeout=60_000)
    expect(page.locator("#count")).to_have_text("3 files")
    seen = page.evaluate("seen")
    for name in names:
        assert any(name in text and "100 %" in text and text.endswith("1") for text in seen), name
    for _ in range(2):
        for index in range(3):
            expect(tiles.nth(index).locator("img")).to_have_js_property("naturalWidth", 400, timeout=60_000)
        assert sorted(page.locator(".badge").all_inner_texts()) == ["PDF", "Video"]
        page.reload()
    expect(tiles).to_have_count(3)
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1180, "height": 860})


def test_the_viewer_shows_a_picture_and_plays_a_video(page: Page) -> None:
    viewer = page.locator("#viewer")
    page.get_by_role("button", name="Dunes.jpg", exact=True).click()
    expect(viewer).to_be_visible()
    expect(viewer.locator("img")).to_have_js_property("naturalWidth", 640, timeout=60_000)
    page.keyboard.press("Escape")
    expect(viewer).to_be_hidden()
    page.get_by_role("button", name=re.compile("^Sunset.mp4")).click()
    expect(viewer.locator("video")).to_have_js_property("videoWidth", 160, timeout=60_000)
    page.get_by_role("button", name="Close").click()
    expect(viewer).to_be_hidden()


def test_a_rejected_file_is_reported_and_not_stored(page: Page, samples: Path) -> None:
    choose(page, samples / "notes.txt")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("notes.txt: The accepted types are image/*")
    choose(page, samples / "page.jpg")  # looks like a picture until the server reads its bytes
    expect(alert).to_contain_text("page.jpg: A file in the request is not accepted.")
    expect(page.locator(".tile")).to_have_count(3)
    for button in reversed(page.get_by_role("button", name="Dismiss").all()):
        button.click()
    expect(alert).to_be_empty()


def test_a_file_is_deleted_with_its_bytes(page: Page) -> None:
    tile = page.locator(".tile", has_text="Dunes.jpg")
    original = str(tile.locator(".open").get_attribute("data-original"))
    assert page.request.get(original).status == 200
    delete = page.get_by_role("button", name="Delete Dunes.jpg")
    delete.click()
    page.get_by_role("button", name="Keep it").click()
    expect(tile).to_have_count(1)
    delete.click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(tile).to_have_count(0)
    expect(page.locator("#count")).to_have_text("2 files")
    page.reload()
    expect(page.locator(".tile")).to_have_count(2)
    assert page.request.get(original).status == 404
    again = page.request.delete("/files/nonsense")
    assert (again.status, again.json()["code"]) == (404, "record-not-found")
