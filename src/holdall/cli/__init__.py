"""The command line ``holdall``: a program on the public API.

Importing this is cheap; commands import what they need when they run. Data goes to stdout and everything else to
stderr. The exit status is 0 when it worked; `holdall.cli.exit_status` lists the others.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process."""
    from holdall.cli.program import program

    program.main(prog_name="holdall")
