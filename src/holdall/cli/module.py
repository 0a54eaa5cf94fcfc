"""What a command is about, named by its module or as a part of one: models, functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.output import Refusal
from holdall.errors import HoldallError

if TYPE_CHECKING:
    from types import ModuleType

    from holdall import Model

F = TypeVar("F", bound=Callable[..., Any])


def models_option(*, required: bool = False) -> Callable[[F], F]:
    """``--models``, as often as one likes."""
    return click.option(
        "--models",
        "names",
        metavar="MODULE[:CLASS]",
        multiple=True,
        required=required,
        help="The models of a module, or one of them; can be given several times.",
    )


def load_models(names: Sequence[str]) -> list[type[Model]]:
    """The models of these names, each once. A bare module stands for all it defines that are not abstract."""
    return list(dict.fromkeys(model for name in names for model in _load(name)))


def _load(name: str) -> list[type[Model]]:
    from holdall.models import find_models

    place, colon, path = name.partition(":")
    module = load_module(place)
    if colon:
        return [_class(module, path)]
    found = find_models(vars(module), module.__name__)
    if not found:
        raise _refuse_name(
            f"module {place} defines no models",
            "name the module that does, or one class as module:Class; abstract classes do not count",
        )
    return found


def load_module(name: str) -> ModuleType:
    """A module, looked for in the working directory first, as `python` would."""
    import sys
    from importlib import import_module
    from pathlib import Path

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    if not all(part.isidentifier() for part in name.split(".")):
        raise _refuse_name(f"{name!r} is not a module name", "write it as in an import: app.models")
    try:
        return import_module(name)
    except HoldallError:
        raise  # it says itself which model or job is wrong
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _refuse_broken(name, error) from error
        raise _refuse_name(
            f"there is no module {error.name}",
            "the working directory is searched first, then what is installed",
        ) from error
    except Exception as error:  # whatever a module may do
        raise _refuse_broken(name, error) from error


def load_function(name: str) -> Callable[..., Any]:
    """The function of a name, as module:function."""
    place, colon, path = name.partition(":")
    if not colon:
        raise _refuse_name(f"{name!r} does not name a function", "write it as module:function")
    module = load_module(place)
    found = _part(module, path)
    if not callable(found):
        raise _refuse_name(f"{module.__name__} has no function {path!r}", "write it as module:function")
    return found  # type: ignore[no-any-return]


def _part(module: ModuleType, path: str) -> Any:
    """What a dotted path leads to in a module; None when it leads nowhere."""
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _class(module: ModuleType, path: str) -> type[Model]:
    from holdall import Model
    from holdall.models import find_models

    found = _part(module, path)
    if not (isinstance(found, type) and issubclass(found, Model)):
        names = ", ".join(model.__name__ for model in find_models(vars(module), module.__name__))
        raise _refuse_name(f"{module.__name__} has no model {path!r}", f"it has: {names or 'none'}")
    if not find_models({path: found}, found.__module__):
        raise _refuse_name(f"{path} is abstract and has no items", "name models that derive from it")
    return found


def _refuse_name(message: str, hint: str) -> Refusal:
    return Refusal(message, hint, status=ExitStatus.USAGE)


def _refuse_broken(name: str, error: Exception) -> Refusal:
    return _refuse_name(
        f"module {name} cannot be imported: {type(error).__name__}: {error}", f"see {_place(error) or name}"
    )


def _place(error: Exception) -> str | None:
    """Where it happened, as far as that is somebody's text: the importing itself is not."""
    from traceback import extract_tb

    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}, line {error.lineno}"
    places = [
        f"{frame.filename}, line {frame.lineno}"
        for frame in extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen ")
    ]
    return places[-1] if places else None
