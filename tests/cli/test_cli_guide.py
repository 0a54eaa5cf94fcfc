"""The commands of the guide, run exactly as printed there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_rig import INSTALLED, bare_environment
from rig.warm import USERS_PATH, warm_programs

pytestmark = pytest.mark.torture  # it takes long, so it should be among the first to run

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "command-line.md"

_BLOCK = re.compile(
    r"^```bash\n(?P<commands>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


def test_the_commands_in_the_guide_print_what_it_shows(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    assert INSTALLED is not None, "install the project: pip install --editable ."
    programs = warm_programs(tmp_path_factory.mktemp("programs"), Path(INSTALLED), path=USERS_PATH)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**bare_environment(tmp_path), "PATH": path}
    blocks = list(_BLOCK.finditer(GUIDE.read_text(encoding="utf-8")))
    assert len(blocks) >= 5
    for block in blocks:
        ended = subprocess.run(
            [bash, "-e", "-o", "pipefail"],
            input=f"exec 2>&1\n{block['commands']}",
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert ended.stdout == (block["shown"] or ""), block["commands"]
