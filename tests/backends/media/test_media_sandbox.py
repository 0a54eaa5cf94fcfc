"""The process that reads media: each kind of misbehaviour ends in a named error, and the next call works."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rig import samples

from holdall.backends.media import delivery
from holdall.backends.media.delivery import deliver_awaiting, deliver_blocking
from holdall.backends.media.sandbox import read_answer
from holdall.backends.process import Children, children
from holdall.core.media import MediaLimits, Picture, ProbeMedia, TransformImage
from holdall.core.work import CallFunction
from holdall.errors import ConfigurationError, MalformedMediaError, MediaError, MediaLimitError

pytestmark = pytest.mark.torture
TIGHT = MediaLimits(memory=200 << 20, seconds=1.0, output=8 << 20)


def request(folder: Path, limits: MediaLimits = TIGHT) -> TransformImage:
    source = folder / "source.png"
    source.write_bytes(samples.picture("PNG"))
    return TransformImage(str(source), str(folder / "target"), "image/png", (), "png", limits)


def run_hog(name: str, wanted: TransformImage) -> Picture:
    """Make a child run a function of `hogs` instead of the transformation."""
    ending = children.call_blocking(
        CallFunction("holdall.backends.media.sandbox:run", (f"hogs:{name}", wanted), None)
    )
    picture: Picture = delivery._read(wanted, ending)
    return picture


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("hog_processor", MediaLimitError, "1 seconds"),
        ("hog_memory", MediaLimitError, "bytes of memory"),
        ("hog_disk", MediaLimitError, "more than 8,388,608 bytes"),
        ("crash", MalformedMediaError, "signal 11"),
        ("abort", MalformedMediaError, "signal 6"),
        ("exit_silently", MalformedMediaError, "nonsense"),
        ("close_pipe_and_stay", MediaError, "type image/png"),
        ("answer_nonsense", MalformedMediaError, "nonsense"),
        ("answer_without_end", MediaError, "type image/png"),
        ("answer_another_type", MalformedMediaError, "nonsense"),
        ("raise_anything", MalformedMediaError, "inside a parser"),
    ],
)
def test_misbehaviour_ends_in_a_named_error_and_leaves_no_files(
    tmp_path: Path, name: str, error: type[MediaError], text: str
) -> None:
    wanted = request(tmp_path)
    run_hog("succeed", wanted)
    before = set(children._idle)
    with pytest.raises(error, match=text):
        run_hog(name, wanted)
    assert not (tmp_path / "target").exists()
    assert run_hog("succeed", wanted) == Picture(1, 1, "image/png")
    assert set(children._idle) == before  # the child that forked the process is still alive


def test_a_process_that_only_waits_is_killed_after_its_time_limit(tmp_path: Path) -> None:
    with pytest.raises(MediaLimitError, match=r"0\.2 seconds"):
        run_hog("hog_clock", request(tmp_path, MediaLimits(seconds=0.2)))
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"null",
        b'{"result": {"width": 1.5}}',
        b'{"result": {"width": 1e999}}',
        b'{"result": {"duration": NaN}}',
        b'{"result": {"duration": Infinity}}',
        b'{"result": {"analyzed": true}}',
        b'{"result": {"tags": {"a": {"b": 1}}}}',
        b'{"result": {"tags": {"a": "\\ud800"}}}',
        b'{"result": {"display_aspect_ratio": [[], 1]}}',
        b'{"result": [1, 1, "text/html"]}',
        b'{"refusal": "SystemExit"}',
        b"\xff\xfe",
    ],
)
def test_a_malformed_answer_is_a_refusal(answer: bytes) -> None:
    ending = read_answer(ProbeMedia("a", "image/png"), answer)
    assert ending.result is None
    assert ending.refusal is not None


def test_the_process_has_no_descriptors_but_the_standard_streams_and_its_pipe(tmp_path: Path) -> None:
    found = run_hog("list_descriptors", request(tmp_path)).width
    assert found & 0b1111 == 0b1111
    assert found >> 5 == 0  # descriptor 4 is the folder that it lists


def test_the_process_cannot_open_many_files_or_dump_core_or_gain_privileges(tmp_path: Path) -> None:
    limits = run_hog("list_limits", request(tmp_path))
    assert (limits.width, limits.height) == (64, 1)


def test_a_program_that_the_process_starts_has_its_limits(tmp_path: Path) -> None:
    assert run_hog("start_program", request(tmp_path, MediaLimits(seconds=7.0))).width == 7


def test_cancelling_the_call_kills_its_process(tmp_path: Path) -> None:
    wanted = request(tmp_path, MediaLimits())
    call = CallFunction("holdall.backends.media.sandbox:run", ("hogs:write_id_and_wait", wanted), None)
    written = Path(wanted.target)

    async def main() -> None:
        task = asyncio.ensure_future(children.call_awaiting(call))
        while not written.exists() or not written.read_text(encoding="utf-8"):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while is_running(int(written.read_text(encoding="utf-8"))):
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_missing_source_file_is_a_file_not_found_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        deliver_blocking(ProbeMedia(str(tmp_path / "none"), "image/png"))


def test_a_missing_target_folder_is_a_file_not_found_error(tmp_path: Path) -> None:
    wanted = request(tmp_path)
    with pytest.raises(FileNotFoundError):
        deliver_blocking(
            TransformImage(wanted.path, str(tmp_path / "none" / "target"), "image/png", (), "png")
        )


def test_many_requests_run_concurrently(tmp_path: Path) -> None:
    wanted = request(tmp_path)

    async def main() -> list[object]:
        probes = [deliver_awaiting(ProbeMedia(wanted.path, "image/png")) for _ in range(12)]
        return list(await asyncio.gather(*probes))

    assert asyncio.run(main()) == [{"width": 60, "height": 40}] * 12


def test_without_the_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL" / "__init__.py").write_text(
        "raise ModuleNotFoundError('no', name='PIL')", encoding="utf-8"
    )
    wanted = request(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    children.close()
    try:
        with pytest.raises(ConfigurationError, match=r'pip install "holdall\[media\]"'):
            deliver_blocking(wanted)
    finally:
        children.close()


def test_a_job_in_a_child_process_can_send_media_requests(tmp_path: Path) -> None:
    others = Children(1, import_main=True)
    try:
        found = others.call_blocking(CallFunction("hogs:probe_inside", (request(tmp_path).path,), 60.0))
    finally:
        others.close()
    assert found == {"width": 60, "height": 40}


def test_a_program_without_a_main_guard_is_not_run_again(tmp_path: Path) -> None:
    wanted = request(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(
        "from holdall.backends.media.delivery import deliver_blocking\n"
        "from holdall.core.media import ProbeMedia\n"
        "print('once')\n"
        f"print(deliver_blocking(ProbeMedia({wanted.path!r}, 'image/png'))['width'])\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env=environment, check=True
    )
    assert ran.stdout == "once\n60\n"
