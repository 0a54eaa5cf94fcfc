"""The server of `proxy_throughput`, in its own process: the same files as blobs and as static files."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from holdall import Database
from holdall.web import create_app

SECRET = "a secret of some length"


def open_database(folder: Path) -> Database:
    """Open the embedded database with files on disk."""
    return Database(f"embedded:{folder / 'app.db'}", files=f"file:{folder / 'files'}", secret=SECRET)


def main() -> None:
    """Serve on a socket inherited from the parent until the process is killed."""
    folder, listening = Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    ours = Mount("/attachments", create_app(open_database(folder)))
    app = Starlette(routes=[ours, Mount("/static", StaticFiles(directory=folder))])
    config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
