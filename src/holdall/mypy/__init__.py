"""A plugin for mypy, which checks the keys, fields and indexes that a call names against the model.

Enable it in mypy's configuration: ``plugins = ["holdall.mypy"]``. Without it, mypy accepts any keyword in
``db.get(Order, custmer="ada")``: Python cannot derive a function's parameters from the fields of a class.

`declaration` records what a class statement declares, `model` reads it together with the types of the fields, and
`call` checks the calls. What the plugin cannot see in the source, such as a list of indexes that a function returns, it
does not check.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from inspect import getsource

from mypy.nodes import TypeInfo
from mypy.plugin import ClassDefContext, MethodContext, MethodSigContext, Plugin
from mypy.types import CallableType, Type

from holdall.mypy import call, declaration, model

__all__ = ["plugin"]

__version__ = sha256("".join(map(getsource, (call, declaration, model))).encode()).hexdigest()
"""If this or the present module changes, mypy does not use what it cached."""


def plugin(version: str) -> type[Plugin]:
    """Return the plugin; mypy calls this function."""
    return HoldallPlugin


class HoldallPlugin(Plugin):
    """Records what model classes declare, and checks calls of methods that take keys, fields or indexes."""

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Record a class whose base is a model."""
        return declaration.record_class if self._derives(fullname, model.MODEL) else None

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], CallableType] | None:
        """Check a call before mypy does. Its signature stays as it is."""
        check = self._find_check(fullname)
        return None if check is None else _make_hook(check)

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Infer the rows of a query."""
        return call.infer_rows if self._find_check(fullname) is call.check_query else None

    def _find_check(self, fullname: str) -> call.Check | None:
        owner, _, name = fullname.rpartition(".")
        bases = call.CHECKS.get(name, {})
        return next((check for base, check in bases.items() if self._derives(owner, base)), None)

    def _derives(self, fullname: str, base: str) -> bool:
        symbol = self.lookup_fully_qualified(fullname)
        return symbol is not None and isinstance(symbol.node, TypeInfo) and symbol.node.has_base(base)


def _make_hook(check: call.Check) -> Callable[[MethodSigContext], CallableType]:
    def hook(context: MethodSigContext) -> CallableType:
        check(context)
        return context.default_signature

    return hook
