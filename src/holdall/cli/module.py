"""Models and functions that a command names as MODULE or MODULE:NAME."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.output import Refusal
from holdall.cli.suggestion import suggest_model
from holdall.errors import HoldallError

if TYPE_CHECKING:
    from types import ModuleType

    from holdall import Model
    from holdall.models import Clause

F = TypeVar("F", bound=Callable[..., Any])

models_argument = click.argument(
    "names", metavar="MODULE[:CLASS]...", nargs=-1, required=True, shell_complete=suggest_model
)
model_argument = click.argument("name", metavar="MODULE:CLASS", shell_complete=suggest_model)


def models_option(*, required: bool = False) -> Callable[[F], F]:
    """``--models``, which can be given several times."""
    return click.option(
        "--models",
        "names",
        metavar="MODULE[:CLASS]",
        multiple=True,
        required=required,
        shell_complete=suggest_model,
        help="A module whose models to use, or one model of it; can be given several times.",
    )


def load_models(names: Sequence[str]) -> list[type[Model]]:
    """The models with these names, each once. A bare module means every model it defines that is not abstract."""
    return list(dict.fromkeys(model for name in names for model in _load(name)))


def name_roots(models: Sequence[type[Model]]) -> dict[str, type[Model]]:
    """Models by name, without those that derive from another one of them: a run over their base includes them."""
    roots = (model for model in models if not any(base in models for base in model.__mro__[1:]))
    return {f"{model.__module__}:{model.__qualname__}": model for model in roots}


def load_model(name: str) -> type[Model]:
    """The one model with this name."""
    if ":" not in name:
        place, _, last = name.rpartition(".")
        like = f"{place or 'app.models'}:{last}" if last[:1].isupper() else f"{name}:Order"
        if not all(map(str.isidentifier, name.split("."))):  # such as a field's value before the model
            like = "app.models:Order"
        raise click.UsageError(f"{name!r} does not name a model; write MODULE:CLASS, as in {like}")
    return load_models([name])[0]


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
            "name the module that defines them, or one class as module:Class; abstract classes do not count",
        )
    return found


def load_module(name: str) -> ModuleType:
    """Import a module; the working directory is searched first, as Python does."""
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
        raise  # its message names the model or job that is wrong
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _refuse_broken(name, error) from error
        raise _refuse_name(
            f"there is no module {error.name}",
            "the working directory is searched first, then the installed packages",
        ) from error
    except Exception as error:  # a module can raise anything while it is imported
        raise _refuse_broken(name, error) from error


def load_function(name: str) -> Callable[..., Any]:
    """The function that ``module:function`` names."""
    place, colon, path = name.partition(":")
    if not colon:
        raise _refuse_name(f"{name!r} does not name a function", "write it as module:function")
    module = load_module(place)
    found = _part(module, path)
    if not callable(found):
        raise _refuse_name(f"{module.__name__} has no function {path!r}", "write it as module:function")
    return found  # type: ignore[no-any-return]


def load_condition(name: str) -> Clause:
    """The condition that ``module:name`` names."""
    from holdall.models import Clause

    place, colon, path = name.partition(":")
    found = _part(load_module(place), path) if colon else None
    if not isinstance(found, Clause):
        raise _refuse_name(
            f"{name!r} does not name a condition",
            "write it as module:name, and in the module: name = col(Order.quantity) >= 3",
        )
    return found


def _part(module: ModuleType, path: str) -> Any:
    """The object at a dotted path in a module; None if there is none."""
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
        raise _refuse_name(
            f"model {path} is abstract, so it has no items", "name the models that derive from it"
        )
    return found


def _refuse_name(message: str, hint: str) -> Refusal:
    return Refusal(message, hint, status=ExitStatus.USAGE)


def _refuse_broken(name: str, error: Exception) -> Refusal:
    return _refuse_name(
        f"module {name} cannot be imported: {type(error).__name__}: {error}",
        f"look at {_place(error) or name}",
    )


def _place(error: Exception) -> str | None:
    """The file and line where the error happened, without the frames of Python's import machinery."""
    from traceback import extract_tb

    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}, line {error.lineno}"
    places = [
        f"{frame.filename}, line {frame.lineno}"
        for frame in extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen ")
    ]
    return places[-1] if places else None
