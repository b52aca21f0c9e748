"""Warnings of what could not be made or sent, which never end a training."""

from __future__ import annotations

import sys
import warnings

from cmtrack import untrusted


class EvaluationWarning(UserWarning):
    """Something of an evaluation could not be made or sent; the training goes on."""


def tell(message: str, stacklevel: int = 4) -> None:
    """Warn, also where warnings are turned into errors: a training is not ended by a warning."""
    text = f"cmtrack: {untrusted.printable(untrusted.without_credentials(message))}"
    try:
        warnings.warn(text, EvaluationWarning, stacklevel=stacklevel)
    except Warning:
        print(text, file=sys.stderr)
