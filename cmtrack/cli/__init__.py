"""The command line. Heavy libraries are imported by the commands, so that help is quick."""

from cmtrack.cli import (  # noqa: F401
    at,
    compare,
    demo,
    evaluate,
    gate,
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
