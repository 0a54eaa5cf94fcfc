"""A service made of others: a primary that answers everything, and mirrors from which deletions delete, too.

Copying to the mirrors is for the flows above, by a job: see `holdall.files.mirror`.
"""

from __future__ import annotations

from typing import Any, Protocol

from holdall.core.frozen import replace
from holdall.core.layer import Layer, Send
from holdall.core.objects import DeleteObject, DeleteObjects, DeleteReport, ServiceTraits
from holdall.core.port import Backend
from holdall.core.requests import Request
from holdall.errors import HoldallError


class Named(Protocol):
    """Where the others are found."""

    def service(self, name: str) -> Backend:
        """The service of that name."""


class MirrorService(Layer):
    """A primary service with mirrors, by their names."""

    def __init__(self, services: Named, primary: str, mirrors: tuple[str, ...]) -> None:
        self._services = services
        self._primary = primary
        self._mirrors = mirrors

    def close(self) -> None:
        """The others are closed by themselves."""

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        reply = await self._send(send, request, self._primary)
        if isinstance(request, DeleteObject | DeleteObjects):
            return await self._delete_from_mirrors(send, request, reply)
        if isinstance(reply, ServiceTraits):
            return replace(reply, mirrors=self._mirrors)
        return reply

    async def _delete_from_mirrors(self, send: Send, request: Request[Any], reply: Any) -> Any:
        """What became of a deletion in all services; one that fails does not keep it from the others."""
        if isinstance(request, DeleteObject) and request.if_match is not None:
            # It was the one; mirrors have etags of their own.
            request = replace(request, if_match=None)
        replies, errors = [reply], []
        for name in self._mirrors:
            try:
                replies.append(await self._send(send, request, name))
            except HoldallError as error:
                error.add_note(f"it is deleted from {self._primary}; this is the mirror {name}")
                errors.append(error)
        if errors:
            raise errors[0]
        if isinstance(reply, DeleteReport):
            return DeleteReport({key: why for each in replies for key, why in each.failures.items()})
        return reply

    async def _send(self, send: Send, request: Request[Any], name: str) -> Any:
        service = self._services.service(name)
        if request.destination != "service":
            return await send(service, request)  # to be refused there, as by any service
        changed: Any = request
        return await send(service, replace(changed, service=name))
