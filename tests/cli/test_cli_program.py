"""The command line as a whole: help, version, completion, exit statuses, and which database it opens."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click
import pytest
from cli_rig import INSTALLED, bare_environment, call, list_commands, start

import holdall

COMMANDS = list_commands()
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "command-line.md"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HOLDALL_URL", "HOLDALL_TABLE_NAME"):
        monkeypatch.delenv(name, raising=False)


# --- help ---


@pytest.mark.parametrize(("words", "command"), COMMANDS)
def test_every_command_and_option_has_help(words: str, command: click.Command) -> None:
    assert command.help, f"{words} has no help"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{words} {parameter.opts[0]} has no help"


@pytest.mark.parametrize(("words", "command"), COMMANDS)
def test_every_command_and_option_is_in_the_reference(words: str, command: click.Command) -> None:
    section = REFERENCE.read_text(encoding="utf-8").partition(f"\n## {words}\n")[2].partition("\n## ")[0]
    assert section, f"run python scripts/reference.py: {words} is missing"
    for parameter in command.params:
        for name in (*parameter.opts, *parameter.secondary_opts):
            assert (name if name.startswith("-") else f"{words} [OPTIONS]") in section


def test_the_reference_has_no_command_that_does_not_exist() -> None:
    sections = re.findall(r"^## (.+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(sections) == sorted(words for words, _ in COMMANDS)


@pytest.mark.parametrize(
    "words", [words for words, command in COMMANDS if not isinstance(command, click.Group)]
)
def test_every_command_is_in_the_guide(words: str) -> None:
    assert words in GUIDE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("words", "command"), COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_goes_to_stdout_and_succeeds(words: str, command: click.Command, option: str) -> None:
    ended = call(*words.split()[1:], option)
    assert ended.exit_code == 0
    assert ended.stdout.startswith(f"Usage: {words} ")
    assert ended.stderr == ""


def test_version_prints_the_version_of_the_package() -> None:
    ended = call("--version")
    assert ended.stdout == f"holdall {holdall.__version__}\n"


# --- exit statuses ---


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("table", "nonsense"),
        ("table", "describe", "--nonsense"),
        ("table", "create", "--mode", "C"),
        ("completion", "tcsh"),
        ("table", "export", "--mode", "A", "--existing"),
        ("--url",),
    ],
)
def test_an_invalid_command_line_has_the_exit_status_2(words: tuple[str, ...]) -> None:
    ended = call(*words)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert "Error: " in ended.stderr


@pytest.mark.parametrize("words", [(), ("table",)])
def test_without_a_command_the_help_is_shown(words: tuple[str, ...]) -> None:
    ended = call(*words)
    assert ended.exit_code in (0, 2)  # depends on the version of click
    assert "Usage: holdall" in ended.output


@pytest.mark.parametrize(
    ("url", "problem", "hint"),
    [
        ("sqlite:x", "'sqlite:x' is not a database URL", "use one of: "),
        ("memory:?nonsense=1", "the URL's query has unknown settings: nonsense", "the settings are: "),
        ("dynamodb://my-app?region=nowhere", "'nowhere' is not a known AWS region", "check its spelling"),
    ],
)
def test_an_error_is_printed_as_a_message_and_a_hint(url: str, problem: str, hint: str) -> None:
    ended = call("--url", url, "table", "describe")
    assert ended.exit_code == 2
    assert ended.stdout == ""
    first, second = ended.stderr.splitlines()
    assert first.startswith(f"error: {problem}")
    assert second.startswith(f"hint: {hint}")


def test_the_installed_program_shows_no_traceback(tmp_path: Path) -> None:
    ended = start("--url", "sqlite:x", "table", "describe", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "error: 'sqlite:x' is not a database URL\n"
        "hint: use one of: embedded:PATH, memory:, dynamodb://TABLE\n"
    )


# --- which database it opens ---


def test_the_database_comes_from_the_command_line_the_environment_or_the_file(tmp_path: Path) -> None:
    (tmp_path / "holdall.toml").write_text('url = "embedded:from-file.db"\n')
    variable = {"HOLDALL_URL": "embedded:from-environment.db"}
    assert start("table", "create", folder=tmp_path).returncode == 0
    assert start("table", "create", folder=tmp_path, **variable).returncode == 0
    assert start("--url", "embedded:first.db", "table", "create", folder=tmp_path, **variable).returncode == 0
    assert start("table", "create", "--url", "embedded:last.db", folder=tmp_path, **variable).returncode == 0
    created = {path.name for path in tmp_path.glob("*.db")}
    assert created == {"from-file.db", "from-environment.db", "first.db", "last.db"}


def test_without_settings_the_command_line_opens_the_same_file_as_the_library(tmp_path: Path) -> None:
    assert start("table", "create", folder=tmp_path).returncode == 0
    assert (tmp_path / "holdall.db").exists()


def test_a_url_after_the_command_overrides_one_before_it(tmp_path: Path) -> None:
    call("--url", "embedded:outer.db", "table", "create", "--url", "embedded:inner.db")
    assert [path.name for path in tmp_path.glob("*.db")] == ["inner.db"]


def test_a_deleted_working_directory_is_reported(tmp_path: Path) -> None:
    assert INSTALLED is not None
    script = f"mkdir gone; cd gone; rmdir ../gone; exec '{INSTALLED}' table describe"
    ended = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=bare_environment(tmp_path), capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "error: No such file or directory",
        "hint: the working directory may have been deleted",
    ]


# --- completion ---


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for_each_shell(shell: str) -> None:
    ended = call("completion", shell)
    assert ended.exit_code == 0
    assert f"_HOLDALL_COMPLETE={shell}_complete" in ended.stdout


TYPED = {
    "holdall ta": ["table"],
    "holdall table de": ["delete", "describe"],
    "holdall completion f": ["fish"],
    "holdall items get bashshop:": ["Order", "odd\\$name"],  # bash itself keeps the part before the colon
    "holdall items get bashshop:Or": ["Order"],
    "holdall items get bashshop:Order customer=ada --js": ["--json"],
    "holdall items get nothing:": [],
}


def test_bash_completes_words(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    assert INSTALLED is not None
    (tmp_path / "bashshop.py").write_text(
        "from holdall import Model\n"
        "print('not for the shell')\n"
        "class Order(Model): ...\n"
        "class Odd(Model): __qualname__ = 'odd$name'\n"
    )
    script = start("completion", "bash", folder=tmp_path).stdout
    requests = "".join(
        f"COMP_LINE='{typed}' COMP_POINT={len(typed)} COMPREPLY=(); _holdall_completion '{INSTALLED}'\n"
        'echo "${COMPREPLY[@]}"\n'
        for typed in TYPED
    )
    ended = subprocess.run(
        [bash],
        input=f"{script}\nCOMP_WORDBREAKS=' =:'\n{requests}",
        cwd=tmp_path,
        env=bare_environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert dict(zip(TYPED, map(str.split, ended.stdout.splitlines()), strict=True)) == TYPED


def test_completion_gives_up_on_a_database_that_stops_answering(tmp_path: Path) -> None:
    """The server describes the table, but answers no query while the program runs."""
    assert INSTALLED is not None
    with serve_silent_table() as url:
        ended = subprocess.run(
            [INSTALLED],
            cwd=tmp_path,
            env={
                **bare_environment(tmp_path),
                "AWS_ACCESS_KEY_ID": "x",
                "AWS_SECRET_ACCESS_KEY": "x",
                "HOLDALL_URL": url,
                "HOLDALL_FILES": f"file:{tmp_path}",
                "_HOLDALL_COMPLETE": "bash_complete",
                "COMP_WORDS": "holdall alias show model ",
                "COMP_CWORD": "",
            },
            capture_output=True,
            text=True,
            timeout=50,
        )
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "", "")


@contextmanager
def serve_silent_table() -> Iterator[str]:
    """Serve a table that can be described, but whose other requests get no answer; yield its URL."""
    ended = threading.Event()
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    table = {
        "TableName": "holdall",
        "TableStatus": "ACTIVE",
        "KeySchema": [{"AttributeName": name, "KeyType": role} for name, role in keys],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if not self.headers["x-amz-target"].endswith(".DescribeTable"):
                ended.wait()
                return
            reply = json.dumps({"Table": table}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"dynamodb://holdall?region=here&endpoint=http://127.0.0.1:{server.server_port}"
        finally:
            ended.set()
            server.shutdown()


# --- imports ---


def find_loaded(statement: str, folder: Path) -> set[str]:
    script = f"import sys; {statement}; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=bare_environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stdout.splitlines()[-1].split())


def test_importing_holdall_cli_loads_no_other_module_of_holdall(tmp_path: Path) -> None:
    loaded = find_loaded("import holdall.cli", tmp_path)
    assert "click" not in loaded
    assert {name for name in loaded if name.startswith("holdall.")} == {"holdall.cli"}


def test_help_does_not_load_the_database(tmp_path: Path) -> None:
    run = "from holdall.cli.program import program; program.main(['table', '--help'], standalone_mode=False)"
    loaded = find_loaded(run, tmp_path)
    assert not {
        name for name in loaded if name.startswith(("holdall.backends", "holdall.database", "sqlite3"))
    }
