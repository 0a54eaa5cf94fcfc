"""An application of the package versioned: it runs the command in each line of standard input, and prints the result.

``interop_versioned.py`` starts it with the interpreter of the environment that has the package; ours has not. A line
is ``{"repository": {...}, "do": METHOD, "with": {...}}``. Besides the methods of the package's ``Repository`` there are
``content`` and ``contents``: the bytes of a version, and of both versions of an alias. Bytes travel as latin-1 text.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import datetime
from importlib import import_module
from typing import Any

_sessions = import_module("boto_session_manager").BotoSesManager()
_Repository = import_module("versioned.api").s3_and_dynamodb_backend.Repository
_repositories: dict[str, Any] = {}


def _repository(settings: dict[str, str]) -> Any:
    """The repository of a test; it creates its tables and buckets if they do not exist."""
    name = json.dumps(settings)
    if name not in _repositories:
        _repositories[name] = _Repository(**settings)
        _repositories[name].bootstrap(_sessions)
    return _repositories[name]


def _run_command(repository: Any, command: str, arguments: dict[str, Any]) -> Any:
    if command == "content":
        return repository.get_artifact_version(**arguments).get_content(_sessions)
    if command == "contents":
        alias = repository.get_alias(**arguments)
        second = alias.secondary_version and alias.get_secondary_version_content(_sessions)
        return [alias.get_version_content(_sessions), second]
    if "content" in arguments:
        arguments["content"] = arguments["content"].encode("latin-1")
    return getattr(repository, command)(**arguments)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def main() -> None:
    """Run commands until the input ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # other output is not an answer
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {
                "ok": _plain(_run_command(_repository(asked["repository"]), asked["do"], asked["with"]))
            }
        except Exception as error:  # noqa: BLE001 - every error goes to the test
            answer = {"error": {"name": type(error).__name__, "message": str(error)}}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
