"""The ``holdall`` command, built on the public API.

Importing this package is cheap: each command imports what it needs when it runs. Data goes to stdout, everything else
to stderr. The exit status is 0 on success; `holdall.cli.exit_status` lists the others.
"""

from __future__ import annotations


def main() -> None:
    """Run the command given in this process's arguments."""
    import os
    import sys

    from holdall.cli.program import program

    try:
        program.main(prog_name="holdall")
    except SystemExit as ended:
        if "_HOLDALL_COMPLETE" not in os.environ:
            raise
        sys.stdout.flush()
        # a shell must not wait for threads whose requests a database does not answer
        os._exit(0 if ended.code == 0 else 1)
