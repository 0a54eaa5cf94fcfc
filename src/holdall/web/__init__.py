"""Web applications: one transaction for each request, errors that clients understand, and files.

`TransactionMiddleware` is for ASGI applications; `holdall.web.wsgi` has the one for WSGI, and `holdall.web.fastapi` has
dependencies for FastAPI. `install_error_handlers` is for Starlette and FastAPI; `holdall.web.flask` and
`holdall.web.django` have their own. Each needs only the framework that it is for. `create_app` returns the application
that serves files and accepts uploads, with a `Console` if you pass one; it needs Starlette:
``pip install "holdall[web]"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdall.lazy import fetch_names

if TYPE_CHECKING:
    from holdall.web.asgi import TransactionMiddleware
    from holdall.web.console.settings import Console
    from holdall.web.problem import Problem, find_problem
    from holdall.web.request import retry_on_contention
    from holdall.web.serving.access import Asked
    from holdall.web.serving.app import create_app
    from holdall.web.starlette import install_error_handlers

__all__ = [
    "Asked",
    "Console",
    "Problem",
    "TransactionMiddleware",
    "create_app",
    "find_problem",
    "install_error_handlers",
    "retry_on_contention",
]

_HOMES = {
    "Asked": ".serving.access",
    "Console": ".console.settings",
    "Problem": ".problem",
    "TransactionMiddleware": ".asgi",
    "create_app": ".serving.app",
    "find_problem": ".problem",
    "install_error_handlers": ".starlette",
    "retry_on_contention": ".request",
}

_fetch = fetch_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    try:
        return _fetch(name)
    except ModuleNotFoundError as error:
        if error.name != "starlette":
            raise
        from holdall.errors import ConfigurationError

        raise ConfigurationError(
            f"holdall.web.{name} needs Starlette", hint='install it with: pip install "holdall[web]"'
        ) from error
