"""The scenes: cells of one program, each shown and then run, so that the page shows the code that ran."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

PROGRAM = Path(__file__).resolve().parents[1] / "scenes.py"
CELL = re.compile(r"^# %% (?P<title>.+)\n(?P<intro>(?:# .+\n)+)(?P<code>(?:(?!# %%).*\n)+)", re.MULTILINE)


@dataclass
class Scene:
    """One cell: title, introduction and code, and after its run the output, the picture and the seconds."""

    title: str
    intro: str
    code: str
    line: int
    output: str = ""
    picture: str = ""
    seconds: float = 0.0

    @property
    def shown(self) -> str:
        """The code with single blank lines."""
        return re.sub(r"\n{3,}", "\n\n", self.code)

    @property
    def lines(self) -> int:
        return sum(bool(line.strip()) for line in self.code.splitlines())

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


def read_scenes(program: str) -> list[Scene]:
    """Read the cells of a program, in order."""
    return [
        Scene(
            title=found["title"],
            intro=found["intro"].replace("# ", "").replace("\n", " ").strip(),
            code=found["code"].strip(),
            line=program.count("\n", 0, found.start("code")),
        )
        for found in CELL.finditer(program)
    ]


class Program:
    """The scenes, run one after another in the current directory; ``scope`` has their variables."""

    def __init__(self) -> None:
        text = PROGRAM.read_text(encoding="utf-8")
        self.scenes = read_scenes(text)
        module = ModuleType("scenes")
        sys.modules[module.__name__] = module  # models find the types of their annotations there
        self.scope: dict[str, Any] = vars(module)
        start = text.partition("\n# %%")[0]
        self.imports = start.rpartition('"""')[2].strip()
        exec(compile(start, PROGRAM, "exec"), self.scope)

    def run(self, pictures: list[Callable[[Mapping[str, Any]], str]]) -> Iterator[Scene]:
        """Yield each scene twice: before and after its run."""
        for scene, draw in zip(self.scenes, pictures, strict=True):
            yield scene
            began, printed = time.perf_counter(), io.StringIO()
            with redirect_stdout(printed):
                exec(compile("\n" * scene.line + scene.code, PROGRAM, "exec"), self.scope)
            scene.seconds, scene.output = time.perf_counter() - began, printed.getvalue().rstrip()
            scene.picture = draw(self.scope)
            yield scene
