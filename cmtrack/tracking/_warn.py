"""Warnings about parts of an evaluation that could not be made or sent; they never end a training."""

from __future__ import annotations

import sys
import warnings

from cmtrack import untrusted


class EvaluationWarning(UserWarning):
    """Part of an evaluation could not be made or sent; the training goes on."""


def tell(message: str, stacklevel: int = 4) -> None:
    """Warn without raising, even if warnings are turned into errors."""
    text = f"cmtrack: {untrusted.printable(untrusted.without_credentials(message))}"
    try:
        warnings.warn(text, EvaluationWarning, stacklevel=stacklevel)
    except Warning:
        print(text, file=sys.stderr)
