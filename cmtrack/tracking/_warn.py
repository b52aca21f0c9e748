"""Warnings and one-line errors about parts of an evaluation that could not be made or sent; a training goes on."""

from __future__ import annotations

import logging
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cmtrack import untrusted

MAX_MESSAGE = 2000
"""Characters of a server's message that are read: it may send any number."""
_log = logging.getLogger("cmtrack")


class EvaluationWarning(UserWarning):
    """Part of an evaluation could not be made or sent; the training goes on."""


def tell(
    message: str, stacklevel: int = 4, category: type[UserWarning] = EvaluationWarning
) -> None:
    """Warn, and never raise: warnings may be errors, and streams and hooks of the script may fail."""
    text = f"cmtrack: {untrusted.printable(untrusted.without_credentials(message))}"
    try:
        warnings.warn(text, category, stacklevel=stacklevel)
    except Exception:  # a filter that makes it an error, a closed stderr, a showwarning that raises
        with suppress(Exception):
            stream = sys.stderr
            written = text.encode(getattr(stream, "encoding", None) or "utf-8", "backslashreplace")
            print(written.decode(getattr(stream, "encoding", None) or "utf-8"), file=stream)


def note(message: str) -> None:
    """Log at level INFO, and never raise: a handler of the script may fail."""
    with suppress(Exception):
        _log.info(message)


def text_of(error: BaseException) -> str:
    """The text of an error; the name of its type if it has none, or making it raises."""
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def is_of_a_signal_handler(error: BaseException) -> bool:
    """True if the script's own signal handler raised the error, such as at the time limit of a job.

    Python runs a handler wherever the main thread is, so that its error comes out of any code of
    ours.
    """
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without credentials or control characters of a server."""
    line = text_of(error).strip().split("\n", 1)[0][:MAX_MESSAGE]
    return untrusted.printable(untrusted.without_credentials(line.strip()))


@contextmanager
def mlflow_errors_as(what: str, kind: type[Exception] = ValueError) -> Iterator[None]:
    """Raise MLflow's errors as another kind: what failed, and the first line of why."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise kind(f"{what}: {first_line(error)}") from None
