"""Every error Holdall raises, under one root: `HoldallError`. Importable from everywhere; imports nothing.

Each class has a stable ``code``, which is also its anchor in ``docs/errors.md``, and an attribute ``retryable``, which
says whether repeating the call can help. A second line of the message, after ``hint:``, says what to do.
"""

# One file for each room of the package. To add an error, write its class there and add its name to that file's __all__.

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

for _name in (*__all__, "_rebuilt"):  # tracebacks and pickles name this package, not the file of the class
    globals()[_name].__module__ = __name__
