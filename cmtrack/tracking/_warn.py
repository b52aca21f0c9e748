"""Warnings and one-line errors about failed evaluations, which do not stop training."""

from __future__ import annotations

import logging
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from cmtrack import untrusted

MAX_MESSAGE = 2000
"""Number of characters after which a server's message, which may be arbitrarily long, is cut."""
_PACKAGES = ("cmtrack", "cmtrack_integrations")
_log = logging.getLogger("cmtrack")


class EvaluationWarning(UserWarning):
    """Warning that part of an evaluation could not be created or sent.

    Training continues after the warning.
    """


def tell(message: str, category: type[UserWarning] = EvaluationWarning) -> None:
    """Issue a warning at the script's line that called cmtrack, without ever raising an error.

    The script may turn warnings into errors, and its output streams and warning hooks may fail.
    """
    text = f"cmtrack: {untrusted.printable(untrusted.without_credentials(message))}"
    try:
        warnings.warn(text, category, stacklevel=_frames_inside())
    except Exception:  # a filter that makes it an error, a closed stderr, a showwarning that raises
        with suppress(Exception):
            stream = sys.stderr
            written = text.encode(getattr(stream, "encoding", None) or "utf-8", "backslashreplace")
            print(written.decode(getattr(stream, "encoding", None) or "utf-8"), file=stream)


def _frames_inside() -> int:
    """Count the frames from :func:`tell` to the first frame outside cmtrack's packages."""
    count = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _PACKAGES:
        frame = frame.f_back
        count += 1
    return count


def note(message: str) -> None:
    """Log a message at level INFO; if one of the script's handlers fails, no error is raised."""
    with suppress(Exception):
        _log.info(message)


def text_of(error: BaseException) -> str:
    """Return the text of an error, or the name of its type if the text is unusable."""
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def is_interrupt(error: BaseException) -> bool:
    """Return True for an exit or interrupt, and for errors that the script's signal handlers raise.

    A signal handler may raise an error when a job reaches its time limit. Python interrupts the
    main thread to run the handler, so the error may appear inside cmtrack's code.
    """
    if not isinstance(error, Exception):
        return True
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, without credentials and control characters."""
    line = text_of(error).strip().split("\n", 1)[0][:MAX_MESSAGE]
    return untrusted.printable(untrusted.without_credentials(line.strip()))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then the error that caused it, and so on back to the original error."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def mlflow_errors_as(what: str, kind: type[Exception] = ValueError) -> Iterator[None]:
    """Convert MLflow's errors to a given type, with ``what`` and the first line of the message."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise kind(f"{what}: {first_line(error)}") from None
