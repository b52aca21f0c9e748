"""Command line: each command reads its options, calls a library function, and prints the result.

Only flags, texts and exit codes belong in this package. The other packages compute numbers and send
requests to a store. Each command imports large libraries only when it runs, so that ``--help`` is
fast.

Start with ``frame.py`` (errors, output, progress) and ``flags.py`` (the :class:`~flags.Answer` of a
command, and flags that are generated from the options of the library). Then read ``verify.py``,
which is a short command.
"""

from cmtrack.cli import (  # noqa: F401
    at,
    compare,
    count,
    demo,
    evaluate,
    gate,
    history,
    promote,
    push,
    regroup,
    review,
    rows,
    segments,
    show,
    verify,
    view,
)
from cmtrack.cli.group import main

__all__ = ["main"]
