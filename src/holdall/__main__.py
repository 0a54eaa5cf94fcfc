"""``python -m holdall``: the command line, if the ``holdall`` script is not on the path."""

from __future__ import annotations

from holdall.cli import main

if __name__ == "__main__":
    main()
