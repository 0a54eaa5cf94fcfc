"""The ``holdall`` command, built on the public API.

Importing this package is cheap: each command imports what it needs when it runs. Data goes to stdout, everything else
to stderr. The exit status is 0 on success; `holdall.cli.exit_status` lists the others.
"""

from __future__ import annotations


def main() -> None:
    """Run the command given in this process's arguments."""
    from holdall.cli.program import program

    program.main(prog_name="holdall")
