"""Pages of the console on a table with 1,000,000 items: the server's CPU time for each."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from re import search
from statistics import median
from typing import Any
from urllib.parse import quote, unquote

from benchmarks.console_shop import ARTIFACT, COUNT, OWNER, Purchase, Shopper, fill
from benchmarks.harness import Figure
from holdall import Database
from holdall.web import Console, create_app

BAR = 50.0
SLICES = 20
WARMUPS = 3
TOKEN = "the token of this benchmark"

PAGES = {
    "overview": "/",
    "models": "/models",
    "model": "/models/{model}",
    "items by key, 100": "/models/{model}?key-customer=customer-500&size=100",
    "items by a range": "/models/{model}?key-customer=customer-500&op-number=between&from-number=200&to-number=400",
    "items by index, 100": "/models/{model}?index=by_product&key-product=product-77&size=100&order=reverse",
    "the next 100": "{next of items by key, 100}",
    "archived items, 100": "/models/{model}?key-customer=customer-0&size=100",
    "first items": "/models/{model}?browse=1",
    "first items, none found": "/models/{owner}?browse=1",
    "item": "/models/{model}/item?key-customer=customer-999&key-number=999",
    "archived item": "/models/{model}/item?key-customer=customer-0&key-number=7",
    "form of an item": "/models/{model}/item/edit?key-customer=customer-999&key-number=999",
    "item with 200 files": "/models/{owner}/item?key-id={owner id}",
    "files": "/blobs",
    "more files": "{next of files}",
    "the last files": "/blobs?after={last blob}",
    "files of an owner": "/blobs?type=Shopper&owner={owner id}",
    "more files of an owner": "{next of files of an owner}",
    "file": "{first /blobs/blob of files of an owner}",
    "artifacts": "/artifacts",
    "more artifacts by prefix": "/artifacts?prefix=model-1&after=model-124",
    "artifact": "/artifacts/artifact?name={artifact}",
    "older versions": "{next of artifact}",
    "alias": "/artifacts/alias?name={artifact}&alias=live",
    "archives": "/archive",
    "archive": "/archive/{model}",
    "holdings": "/archive/{model}?show=holdings",
    "dry run": "/archive/{model}?show=dry-run",
    "waiting jobs": "/jobs",
    "more waiting jobs": "{next of waiting jobs}",
    "waiting jobs by queue and name": "/jobs?queue=mail&name=job-7",
    "running jobs": "/jobs?state=running",
    "dead jobs": "/jobs?state=dead",
    "paused jobs": "/jobs?state=paused",
    "counted jobs": "/jobs?count=1",
    "job": "{first /jobs/job of dead jobs}",
    "deletion of a job": "{first /jobs/job/delete of job}",
}
"""The address of each page; ``next of`` and ``first of`` are links on earlier pages."""


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per page."""
    url, files = f"embedded:{workshop / 'console.db'}", f"file:{workshop / 'console-files'}"
    logging.getLogger("holdall").setLevel(logging.ERROR)  # each scan is reported
    with Database(url, files=files, durability="normal", secret="a secret of some length") as db:
        print(f"preparing {COUNT:,} items", file=sys.stderr)
        fill(db)
        yield from measure(db)


def measure(db: Database) -> Iterator[Figure]:
    """Measure the pages of a filled database, all on one event loop."""
    with asyncio.Runner() as runner:
        found = _measure(db)
        while True:
            try:
                yield runner.run(anext(found))  # type: ignore[arg-type]
            except StopAsyncIteration:
                return


async def _measure(db: Database) -> AsyncIterator[Figure]:
    app = create_app(db, console=Console(models=[Purchase, Shopper], token=TOKEN, read_only=False))
    headers, _ = await _ask(app, "POST", "/sign-in", f"token={quote(TOKEN)}")
    cookie = search(r"holdall_console[^=;]*=[^;]+", headers["set-cookie"])
    assert cookie is not None
    values = {
        "model": f"{Purchase.__module__}:Purchase",
        "owner": f"{Shopper.__module__}:Shopper",
        "owner id": OWNER,
        "artifact": ARTIFACT,
        "last blob": _find_last_blob(db),
    }
    bodies: dict[str, str] = {}
    for page, address in PAGES.items():
        figure, bodies[page] = await _measure_page(app, page, _fill_in(address, values, bodies), cookie[0])
        yield figure


def _find_last_blob(db: Database) -> str:
    """Return the id of one of the last blobs; a page that starts after it has few rows or none."""
    last = None
    while page := db.blobs.scan(limit=100, after=last, most_scanned=2_000).blobs:
        last = page[-1].id
    assert last is not None
    return last


def _fill_in(address: str, values: dict[str, str], bodies: dict[str, str]) -> str:
    """Return an address with its values, or the link that it describes."""
    link = search(r"^{(next|first (\S+)) of (.+)}$", address)
    if link is None:
        return address.format(**values)
    kind = 'rel="next"' if link[1] == "next" else ""
    path = "" if link[2] is None else rf"{link[2]}\?"
    found = search(rf'href="/console({path}[^"]+)" ?{kind}', bodies[link[3]])
    assert found is not None, address
    return found[1].replace("&amp;", "&")


async def _measure_page(app: Any, name: str, address: str, cookie: str) -> tuple[Figure, str]:
    start = time.perf_counter()
    body = await _fetch(app, address, cookie)
    first = (time.perf_counter() - start) * 1000
    while "data-reload" in body:  # the page is still counting in the background
        await asyncio.sleep(0.1)
        body = await _fetch(app, address, cookie)
    gc.collect()  # of the previous page and of counts in the background
    taken, worked = [], []
    for _ in range(WARMUPS + SLICES):
        start, before = time.perf_counter(), time.process_time()
        body = await _fetch(app, address, cookie)
        taken.append((time.perf_counter() - start) * 1000)
        worked.append((time.process_time() - before) * 1000)
    waited = f"{median(taken[WARMUPS:]):.1f} ms by the clock, the first {first:.1f} ms"
    note = f"{waited}; {len(body):,} characters"
    return Figure("console_page", (name,), median(worked[WARMUPS:]), BAR, "≤", " ms", note=note), body


async def _fetch(app: Any, address: str, cookie: str) -> str:
    headers, body = await _ask(app, "GET", address, cookie=cookie)
    assert headers["status"] == "200", f"{address}: {headers['status']}"
    return body


async def _ask(
    app: Any, method: str, address: str, form: str = "", cookie: str = ""
) -> tuple[dict[str, str], str]:
    """Call the application as a server does; return the headers, including the status, and the body."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": f"/console{unquote(path)}",
        "root_path": "",
        "query_string": query.encode(),
        "server": ("x", 80),
        "headers": [
            (b"host", b"x"),
            (b"cookie", cookie.encode()),
            (b"content-type", b"application/x-www-form-urlencoded"),
        ],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": form.encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return {**headers, "status": str(sent[0]["status"])}, body.decode()
