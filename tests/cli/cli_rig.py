"""Run the command line: in this process for speed, or as the installed program."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from rig.warm import USERS_PATH, run_warm

from holdall.cli.program import program

INSTALLED = shutil.which("holdall", path=str(Path(sys.executable).parent))


def bare_environment(folder: Path) -> dict[str, str]:
    """The environment without Holdall's or AWS's settings."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("HOLDALL_", "AWS_"))}
    return {**kept, "HOME": str(folder)}


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch, url: str | None = None) -> Path:
    """Work in a folder, without Holdall's settings from outside; ``url`` is the database's."""
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith("HOLDALL_"):
            monkeypatch.delenv(name)
    if url is not None:
        monkeypatch.setenv("HOLDALL_URL", url)
    return folder


def call(*words: str, typed: str | None = None) -> Result:
    """Run a command in this process, in the working directory."""
    return CliRunner().invoke(program, words, input=typed, prog_name="holdall")


def start(*words: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process, as users do."""
    assert INSTALLED is not None, "install the project: pip install --editable ."
    environment = {**bare_environment(folder), **settings}
    return run_warm([INSTALLED, *words], environment=environment, folder=folder, path=USERS_PATH)


def answer_prompts(*words: str, typed: str, folder: Path, url: str) -> tuple[int, str]:
    """Run a command at a terminal and type this; return its exit status and its output."""
    assert INSTALLED is not None
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [INSTALLED, *words],
        cwd=folder,
        env={**bare_environment(folder), "HOLDALL_URL": url},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        os.write(ours, typed.encode())
        seen, _ = program.communicate(timeout=300)
        os.close(theirs)
        os.close(ours)
        return program.returncode, seen


def list_commands(
    command: click.Command = program, words: tuple[str, ...] = ("holdall",)
) -> list[tuple[str, click.Command]]:
    """All commands, each with the words that a user types."""
    found = [(" ".join(words), command)]
    if isinstance(command, click.Group):
        for word, inner in sorted(command.commands.items()):
            found += list_commands(inner, (*words, word))
    return found
