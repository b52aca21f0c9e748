"""Warnings and one-line errors about parts of an evaluation that could not be made or sent; a training goes on."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

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


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without credentials or control characters of a server."""
    return untrusted.printable(untrusted.without_credentials((str(error).splitlines() or [type(error).__name__])[0]))


@contextmanager
def mlflow_errors_as(what: str, kind: type[Exception] = ValueError) -> Iterator[None]:
    """Raise MLflow's errors as another kind: what failed, and the first line of why."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise kind(f"{what}: {first_line(error)}") from None
