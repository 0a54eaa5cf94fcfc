"""How a database is composed: the contexts of sync and async flows over one store, and what file services need."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from holdall.backends.configuration import observe, open_backend
from holdall.backends.port.blocking import BlockingPort
from holdall.backends.port.once import BlockingOnce, Memo
from holdall.backends.port.turn import Turns
from holdall.backends.services import Services
from holdall.core.context import Context, State
from holdall.core.port import Backend
from holdall.core.settings import SettingArguments, Settings
from holdall.core.traceback import ShortTracebacks
from holdall.features import find_hook, setting_parsers

if TYPE_CHECKING:
    from holdall.artifacts.settings import ArtifactSettings
    from holdall.attachments.owner.attachable import Attachable, Destroying, Saving
    from holdall.attachments.settings import AttachmentSettings
    from holdall.backends.services import FilesArgument
    from holdall.tables.claim import TableClaims

D = TypeVar("D", bound="Composed")


class DatabaseArguments(SettingArguments, total=False):
    """The settings that a database accepts as keyword arguments, including those of its features."""

    artifacts: ArtifactSettings | None
    attachments: AttachmentSettings | None


class Shared:
    """What the sync and the async form of a database share in this process, besides the store."""

    def __init__(self) -> None:
        self.memo = Memo()
        self.state = State()
        self.turns = Turns()


class Composed:
    """What a database has in sync and in async code alike: its store, its file services, the context of its flows."""

    def __init__(
        self,
        url: str | None = None,
        *,
        client: Any = None,
        credentials: Callable[[], Any] | None = None,
        backend: Backend | None = None,
        reads: Backend | str | None = None,
        files: FilesArgument = None,
        **settings: Unpack[DatabaseArguments],
    ) -> None:
        given = (url, backend, client, credentials, settings, reads, files)
        self._compose(*open_backend(*given, setting_parsers()), Shared())

    def _compose(self, backend: Backend, settings: Settings, services: Services, shared: Shared) -> None:
        self._backend = backend
        self._services = equip_services(backend, settings, services, shared)
        self._shared = shared
        self._context = self._make_context(backend, settings, services, shared)

    @staticmethod
    def _make_context(backend: Backend, settings: Settings, services: Services, shared: Shared) -> Context:
        raise NotImplementedError

    def _make_twin(self, kind: type[D]) -> D:
        """The database in its other form, on the same store."""
        twin = kind.__new__(kind)
        twin._compose(self._backend, self._context.settings, self._services, self._shared)
        return twin

    def saving(self, owner: Attachable) -> Saving:
        """``with db.saving(owner):`` stores the attachments of an owner that the block saves by other means.

        With `AsyncDatabase`, write ``async with``.
        """
        from holdall.attachments.owner.attachable import Saving

        with ShortTracebacks(self._context):
            return Saving(self._context, owner)

    def destroying(self, owner: Attachable) -> Destroying:
        """``with db.destroying(owner):`` deletes the attachments of an owner that the block deletes.

        With `AsyncDatabase`, write ``async with``.
        """
        from holdall.attachments.owner.attachable import Destroying

        with ShortTracebacks(self._context):
            return Destroying(self._context, owner)

    @property
    def path(self) -> str | None:
        """The file of an embedded database; None for any other."""
        return self._context.settings.path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._context.settings.url!r})"


def make_blocking_context(
    backend: Backend, settings: Settings, services: Services, shared: Shared
) -> Context:
    """The context of flows that run in the calling thread."""
    port = BlockingPort(observe(backend, settings), services, shared.turns)
    return Context(port, settings, BlockingOnce(shared.memo), shared.state, find_hook)


def make_awaiting_context(
    backend: Backend, settings: Settings, services: Services, shared: Shared
) -> Context:
    """The context of flows that are awaited."""
    from holdall.backends.port.awaiting import AwaitingPort
    from holdall.backends.port.awaiting_once import AwaitingOnce

    port = AwaitingPort(observe(backend, settings), services, shared.turns)
    return Context(port, settings, AwaitingOnce(shared.memo), shared.state, find_hook)


def equip_services(backend: Backend, settings: Settings, services: Services, shared: Shared) -> Services:
    """Let services store claims on their keys in the database's table, and use URLs of the web application."""

    def claims(service: str) -> TableClaims:
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
