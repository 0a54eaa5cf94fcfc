"""Web applications: one transaction for each request.

`TransactionMiddleware` is for ASGI applications; `holdall.web.wsgi` has the one for WSGI, `holdall.web.fastapi` the
dependencies for FastAPI. None of them needs a package beyond the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdall.web.asgi import TransactionMiddleware
    from holdall.web.request import retry_on_contention

__all__ = ["TransactionMiddleware", "retry_on_contention"]

_HOMES = {"TransactionMiddleware": "asgi", "retry_on_contention": "request"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.web' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"holdall.web.{home}"), name)
    globals()[name] = found
    return found
