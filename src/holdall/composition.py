"""How a database is put together: the context of each colour over one store, and what services ask of the table."""

from __future__ import annotations

from holdall.backends.blocking_once import BlockingOnce
from holdall.backends.configuration import observed
from holdall.backends.finding import Finding
from holdall.backends.port.blocking import BlockingPort
from holdall.backends.services import Services
from holdall.core.context import Context
from holdall.core.port import Backend
from holdall.core.settings import Settings
from holdall.features import find_hook

__all__ = ["awaiting_context", "blocking_context", "with_claims"]


def blocking_context(backend: Backend, settings: Settings, services: Services, finding: Finding) -> Context:
    """The context of flows that the calling thread waits for."""
    port = BlockingPort(observed(backend, settings), services, finding.turns)
    return Context(port, settings, BlockingOnce(finding), finding.bindings, find_hook)


def awaiting_context(backend: Backend, settings: Settings, services: Services, finding: Finding) -> Context:
    """The context of flows that are awaited."""
    from holdall.backends.awaiting_once import AwaitingOnce
    from holdall.backends.port.awaiting import AwaitingPort

    port = AwaitingPort(observed(backend, settings), services, finding.turns)
    return Context(port, settings, AwaitingOnce(finding), finding.bindings, find_hook)


def with_claims(backend: Backend, settings: Settings, services: Services, finding: Finding) -> Services:
    """The services, with claims in the database's table for those that need some."""

    def claims(service: str) -> object:
        from holdall.tables.claims import TableClaims

        return TableClaims(
            service,
            lambda: blocking_context(backend, settings, services, finding),
            lambda: awaiting_context(backend, settings, services, finding),
        )

    services.claims = claims
    return services
