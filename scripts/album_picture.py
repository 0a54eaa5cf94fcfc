"""Take the picture of the photo album that the docs show: python scripts/album_picture.py (needs chromium).

It starts the album with its samples, opens it in a browser, and reduces the picture to 256 colours.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "album.png"


def take_picture(address: str) -> bytes:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 735})
        page.goto(address)
        for picture in page.locator("#tiles img").all():
            expect(picture).to_have_js_property("naturalWidth", 400, timeout=60_000)
        taken = page.screenshot()
        browser.close()
    return taken


def main() -> None:
    with TemporaryDirectory() as data:
        server = subprocess.Popen(
            [sys.executable, ROOT / "examples/album/server.py", "--data", data, "--port", "0", "--samples"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            taken = take_picture(server.stdout.readline().split()[-1])
        finally:
            server.terminate()
            server.communicate()
    PICTURE.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(256).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
