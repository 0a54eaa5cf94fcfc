"""How a database is composed: the contexts of sync and async flows over one store, and what file services need."""

from __future__ import annotations

from functools import partial

from holdall.backends.configuration import observe
from holdall.backends.port.blocking import BlockingPort
from holdall.backends.port.once import BlockingOnce, Finding
from holdall.backends.port.turn import Turns
from holdall.backends.services import Services
from holdall.core.context import Context, State
from holdall.core.port import Backend
from holdall.core.settings import Settings
from holdall.features import find_hook


class Shared:
    """What the sync and the async form of a database share in this process, besides the store."""

    def __init__(self) -> None:
        self.finding = Finding()
        self.state = State()
        self.turns = Turns()


def make_blocking_context(
    backend: Backend, settings: Settings, services: Services, shared: Shared
) -> Context:
    """The context of flows that run in the calling thread."""
    port = BlockingPort(observe(backend, settings), services, shared.turns)
    return Context(port, settings, BlockingOnce(shared.finding), shared.state, find_hook)


def make_awaiting_context(
    backend: Backend, settings: Settings, services: Services, shared: Shared
) -> Context:
    """The context of flows that are awaited."""
    from holdall.backends.port.awaiting import AwaitingPort
    from holdall.backends.port.awaiting_once import AwaitingOnce

    port = AwaitingPort(observe(backend, settings), services, shared.turns)
    return Context(port, settings, AwaitingOnce(shared.finding), shared.state, find_hook)


def equip_services(backend: Backend, settings: Settings, services: Services, shared: Shared) -> Services:
    """Let services store claims on their keys in the database's table, and use URLs of the web application."""

    def claims(service: str) -> object:
        from holdall.tables.claim import TableClaims

        return TableClaims(
            service,
            lambda: make_blocking_context(backend, settings, services, shared),
            lambda: make_awaiting_context(backend, settings, services, shared),
        )

    services.claims = claims
    services.base_url = partial(find_base_url, settings)
    return services


def find_base_url(settings: Settings) -> str:
    """Where the web application serves the signed URLs of services that have no web server."""
    from holdall.attachments.settings import attachment_settings

    return f"{attachment_settings(settings).path}/disk"
