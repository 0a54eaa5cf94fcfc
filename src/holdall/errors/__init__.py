"""Every error Holdall raises, under one root: `HoldallError`. Importable from everywhere; imports nothing.

Each class has a stable ``code`` (also its anchor in ``docs/errors.md``) and says whether trying the same thing again
can help (``retryable``). What to do about it follows the message on a line of its own, after ``hint:``.
"""

# A file for each room. To add an error, write its class there and name it in that file's __all__.

from __future__ import annotations

from holdall.errors import (
    archive,
    artifacts,
    attachments,
    backends,
    core,
    files,
    jobs,
    models,
    tables,
    transactions,
    web,
)
from holdall.errors.archive import *
from holdall.errors.artifacts import *
from holdall.errors.attachments import *
from holdall.errors.backends import *
from holdall.errors.core import *
from holdall.errors.files import *
from holdall.errors.jobs import *
from holdall.errors.models import *
from holdall.errors.models import _rebuilt  # noqa: F401 - pickles name it
from holdall.errors.tables import *
from holdall.errors.transactions import *
from holdall.errors.web import *

__all__: list[str] = []
__all__ += core.__all__
__all__ += tables.__all__
__all__ += models.__all__
__all__ += transactions.__all__
__all__ += files.__all__
__all__ += jobs.__all__
__all__ += artifacts.__all__
__all__ += attachments.__all__
__all__ += archive.__all__
__all__ += web.__all__
__all__ += backends.__all__

for _name in (*__all__, "_rebuilt"):  # tracebacks and pickles name this package, whichever file a class is in
    globals()[_name].__module__ = __name__
