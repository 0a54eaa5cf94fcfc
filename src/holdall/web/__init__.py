"""Web applications: one transaction for each request, and errors that clients understand.

`TransactionMiddleware` is for ASGI applications; `holdall.web.wsgi` has the one for WSGI, `holdall.web.fastapi` the
dependencies for FastAPI. `install_error_handlers` is for Starlette and FastAPI; `holdall.web.flask` and
`holdall.web.django` have theirs. None needs a package beyond the framework that it is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdall.web.asgi import TransactionMiddleware
    from holdall.web.problem import Problem, find_problem
    from holdall.web.request import retry_on_contention
    from holdall.web.starlette import install_error_handlers

__all__ = [
    "Problem",
    "TransactionMiddleware",
    "find_problem",
    "install_error_handlers",
    "retry_on_contention",
]

_HOMES = {
    "Problem": "problem",
    "TransactionMiddleware": "asgi",
    "find_problem": "problem",
    "install_error_handlers": "starlette",
    "retry_on_contention": "request",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.web' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"holdall.web.{home}"), name)
    globals()[name] = found
    return found
