"""``holdall serve``: the console and the files of a database, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.module import load_models, models_option
from holdall.cli.output import Refusal, say, show
from holdall.cli.session import open_database, url_option
from holdall.cli.worker import on_signals

if TYPE_CHECKING:
    from holdall import Model


@click.command()
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="The port to listen on; 0 chooses a free one.",
)
@click.option("--console/--no-console", default=True, help="Serve the console.")
@click.option("--read-write", is_flag=True, help="Permit changes in the console, and uploads.")
@click.option(
    "--token",
    envvar="HOLDALL_CONSOLE_TOKEN",
    show_envvar=True,
    help="The token to sign in with, at least 16 characters; by default a random one.",
)
@models_option()
@url_option
def serve(
    host: str, port: int, console: bool, read_write: bool, token: str | None, names: tuple[str, ...]
) -> None:
    """Serve the console and the files of the database.

    The console shows tables, models and their items in a browser. It is read-only unless you pass --read-write. The
    command prints a link that signs you in once, within 15 minutes, and the token with which you can sign in again.
    Files are served at their signed URLs.

    The server is for you and your colleagues: it speaks plain HTTP. To reach it from other machines, put a proxy with
    TLS before it. SIGTERM or Ctrl-C stops it, with exit status 0.
    """
    import asyncio

    asyncio.run(_serve(host, port, console, read_write, token, load_models(names)))


async def _serve(
    host: str,
    port: int,
    has_console: bool,
    read_write: bool,
    token: str | None,
    models: Sequence[type[Model]],
) -> None:
    from holdall.web import Asked, Console, create_app

    console = Console(models=models, token=token, read_only=not read_write) if has_console else None

    def authorize(request: Any, asked: Asked) -> bool:
        return read_write or asked.action == "view"

    default_secret = Console().token  # valid until the server stops
    async with open_database(default_secret=default_secret).aio as db:
        await db.table.layout()  # fail now if the database is unreachable
        app = create_app(db, authorize=authorize, console=console)
        if console is not None:
            app.add_route("/", _lead_to(console.path))
        server, listening = _bind(app, host, port)
        address = f"http://{host if ':' not in host else f'[{host}]'}:{listening.getsockname()[1]}"
        if console is None:
            show(f"{address}\n")
        else:
            show(f"{console.sign_in_link(address)}\n")
            say(
                f"table {db.table.name}, {'read-write' if read_write else 'read-only'}; Ctrl-C stops the server"
            )
            if token is None:
                say(f"the link works once; afterwards sign in with the token {console.token}")

        def stop(name: str) -> None:
            """Stop when all replies are sent or, at the second signal, at once."""
            server.force_exit = server.should_exit
            server.should_exit = True

        on_signals(stop)
        await server.serve(sockets=[listening])


def _lead_to(path: str) -> Any:
    """Return an endpoint that redirects to the console."""
    from starlette.responses import RedirectResponse

    async def redirect(request: Any) -> Any:
        return RedirectResponse(f"{path}/")

    return redirect


def _bind(app: Any, host: str, port: int) -> tuple[Any, Any]:
    """Return a server for an application, and the socket that it listens on."""
    from logging import getLogger

    try:
        import uvicorn
    except ModuleNotFoundError:
        raise Refusal(
            "`holdall serve` needs uvicorn", 'install it with: pip install "holdall[web]"'
        ) from None

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave signals to this command."""
            yield

    config = uvicorn.Config(app, host=host, port=port, log_level="warning", lifespan="off", ws="none")
    logger = getLogger("uvicorn.error")
    logger.disabled = True  # it would log the reason, too
    try:
        listening = config.bind_socket()
        listening.listen()  # before the address is printed: its reader may connect at once
    except (SystemExit, OSError) as error:
        reason = error.__context__ if isinstance(error, SystemExit) else error
        raise Refusal(
            f"cannot listen on port {port} of {host}: {getattr(reason, 'strerror', None) or 'uvicorn refused'}",
            "another program may use the port, or this machine may not have the address; choose others with --port "
            "and --host",
            status=ExitStatus.CONFLICT,
        ) from None
    finally:
        logger.disabled = False
    return Server(config), listening
