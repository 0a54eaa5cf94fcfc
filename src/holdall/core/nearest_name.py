"""The hint for a name that does not exist: the most similar one that does.

Pure. `difflib` is loaded only when a name is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable


def find_nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to this one, or None if none is similar."""
    from difflib import get_close_matches

    names = {each.casefold(): each for each in known}
    near = get_close_matches(str(name).casefold(), names, n=1)
    return names[near[0]] if near else None


def suggest_name(name: object, known: Iterable[str], kind: str) -> str:
    """Return the hint for an unknown name; ``kind`` is what the known names are, in the plural."""
    names = [*known]
    near = find_nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"the {kind} are: {', '.join(names)}" if names else f"it declares no {kind}"
