"""The command line ``holdall``: a program on the public API.

Importing this is cheap; commands import what they need when they run. Data goes to stdout and everything else to
stderr. The exit code is 0 when it worked, 1 for an error of ours, 2 for a command line that makes no sense.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process."""
    from holdall.cli.program import program

    program.main(prog_name="holdall")
