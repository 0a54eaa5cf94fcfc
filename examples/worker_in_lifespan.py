"""A worker inside a web application: it starts and stops with the application, and runs the jobs that requests enqueue.

Run it: python examples/worker_in_lifespan.py (needs fastapi and httpx). It sends requests to itself. To serve it, pass
the result of ``create_app`` to a server such as uvicorn.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from fastapi import Depends, FastAPI
from httpx import ASGITransport, AsyncClient

import holdall
from holdall import AsyncDatabase, AsyncTransaction, Key, Model
from holdall.web import TransactionMiddleware, install_error_handlers
from holdall.web.fastapi import transaction
from holdall.worker import JobEvent


class Report(Model):
    name: Key[str]
    state: Literal["waiting", "done"] = "waiting"
    lines: int = 0


@holdall.job("write-report", transactional=True)
async def write_report(tx: AsyncTransaction, report: Report) -> None:
    """Write the report exactly once: it changes in the transaction that also ends the job."""
    report.lines = 3
    report.state = "done"


Tx = Annotated[AsyncTransaction, Depends(transaction)]


def create_app(db: AsyncDatabase, *hooks: Callable[[JobEvent], None]) -> FastAPI:
    @asynccontextmanager
    async def run_worker(_: FastAPI) -> AsyncIterator[None]:
        # Each process of the server runs its own worker; they share the queue. When the server stops, the block ends:
        # the worker takes no more jobs, and jobs that are still running after `grace` seconds go back to the queue.
        async with db, db.worker(concurrency=4, grace=10, hooks=hooks):
            yield

    app = FastAPI(title="Reports", lifespan=run_worker)
    app.add_middleware(TransactionMiddleware, db=db)
    install_error_handlers(app)

    @app.post("/reports/{name}", status_code=202)
    async def order(name: str, tx: Tx) -> Report:
        report = tx.create(Report, name=name)
        tx.enqueue(write_report, report)  # the job exists only if this request commits
        return report

    @app.get("/reports/{name}")
    async def show(name: str, tx: Tx) -> Report:
        return await tx.get_one(Report, name)

    return app


async def main() -> None:
    done = asyncio.Event()

    def watch(event: JobEvent) -> None:
        print("job", event.name, event.kind)
        if event.kind == "succeeded":
            done.set()

    app = create_app(AsyncDatabase("memory:"), watch)
    transport = ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),  # a server does this
        AsyncClient(transport=transport, base_url="http://reports") as client,
    ):
        ordered = await client.post("/reports/july")
        print(ordered.status_code, ordered.json())
        assert (await client.post("/reports/july")).status_code == 409  # and no second job
        await asyncio.wait_for(done.wait(), timeout=60)
        finished = await client.get("/reports/july")
        print(finished.status_code, finished.json())
        assert finished.json() == {"name": "july", "state": "done", "lines": 3}


if __name__ == "__main__":
    asyncio.run(main())
