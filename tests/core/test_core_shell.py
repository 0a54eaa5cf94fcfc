"""Flows bound to the sync and the async shell: their methods look like ordinary methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import Any

import pytest

from holdall.core.port import run
from holdall.core.shell import awaiting, blocking
from holdall.errors import FlowSuspended


class _Pause:
    def __await__(self) -> Generator[None, None, None]:
        yield


async def publish_flow(context: str, name: str, *labels: str, force: bool = False) -> str:
    """Publish an artifact.

    Twice is refused without force.
    """
    return f"{context}: {name} {labels} {force}"


async def bare(context: str) -> str:
    return context


async def suspend(context: str) -> None:
    """Await something other than a port."""
    await _Pause()


class Artifacts:
    """The sync shell."""

    _context = "here"
    publish = blocking(publish_flow)
    bare = blocking(bare)
    suspending = blocking(suspend)


class AsyncArtifacts:
    """The async shell."""

    _context = "there"
    publish = awaiting(publish_flow)
    bare = awaiting(bare)
    suspending = awaiting(suspend)


NAMES = ["publish", "bare", "suspending"]
FLOWS: dict[str, Callable[..., Any]] = {"publish": publish_flow, "bare": bare, "suspending": suspend}


def test_a_sync_method_returns_the_result_of_its_flow() -> None:
    assert Artifacts().bare() == "here"
    assert Artifacts().publish("app", "x", "y", force=True) == "here: app ('x', 'y') True"


def test_an_async_method_returns_the_same_when_awaited() -> None:
    assert run(AsyncArtifacts().bare()) == "there"
    text = run(AsyncArtifacts().publish("app", "x", "y", force=True))
    assert text == "there: app ('x', 'y') True"


def test_each_instance_passes_its_own_context() -> None:
    one, other = Artifacts(), Artifacts()
    one._context, other._context = "one", "other"
    assert (one.bare(), other.bare()) == ("one", "other")


@pytest.mark.parametrize("shell", [Artifacts, AsyncArtifacts])
@pytest.mark.parametrize("name", NAMES)
def test_a_method_has_its_own_name_and_module_and_the_docstring_of_the_flow(shell: type, name: str) -> None:
    method = vars(shell)[name]
    assert inspect.isfunction(method)
    assert method.__name__ == name
    assert method.__qualname__ == f"{shell.__name__}.{name}"
    assert method.__module__ == __name__
    assert method.__doc__ == FLOWS[name].__doc__


@pytest.mark.parametrize("shell", [Artifacts, AsyncArtifacts])
@pytest.mark.parametrize("name", NAMES)
def test_a_method_has_the_signature_of_the_flow_without_the_context(shell: type, name: str) -> None:
    flow = inspect.signature(FLOWS[name])
    method = inspect.signature(vars(shell)[name])
    bound = inspect.signature(getattr(shell(), name))
    assert list(method.parameters.values())[1:] == list(flow.parameters.values())[1:]
    assert list(bound.parameters.values()) == list(flow.parameters.values())[1:]
    assert bound.return_annotation == flow.return_annotation


@pytest.mark.parametrize("name", NAMES)
def test_the_sync_and_the_async_method_have_the_same_signature(name: str) -> None:
    assert inspect.signature(vars(Artifacts)[name]) == inspect.signature(vars(AsyncArtifacts)[name])


@pytest.mark.parametrize("name", NAMES)
def test_only_the_async_method_is_a_coroutine_function(name: str) -> None:
    assert not inspect.iscoroutinefunction(vars(Artifacts)[name])
    assert inspect.iscoroutinefunction(vars(AsyncArtifacts)[name])


def test_the_flow_itself_refuses_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        Artifacts().bare(wrong=1)  # type: ignore[call-arg]


def test_only_the_sync_method_refuses_a_flow_that_suspends() -> None:
    with pytest.raises(FlowSuspended, match="suspend runs"):
        Artifacts().suspending()
    flow = AsyncArtifacts().suspending()
    assert flow.send(None) is None  # the flow suspends, and its caller continues
    with pytest.raises(StopIteration):
        flow.send(None)


def test_a_subclass_inherits_the_methods() -> None:
    class Special(Artifacts):
        _context = "special"

    assert Special().bare() == "special"


@pytest.mark.parametrize("descriptor", [blocking(bare), awaiting(bare)], ids=["blocking", "awaiting"])
def test_a_flow_that_is_bound_after_the_class_was_created_is_an_error(descriptor: object) -> None:
    class Late:
        _context = "late"

    Late.bare = descriptor  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="must be assigned to a class attribute"):
        Late().bare()  # type: ignore[attr-defined]
