"""Errors for frameworks that are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn the failed import of a framework into one sentence that names the extra.

    Raises
    ------
    ImportError
        If an import inside the block fails.
    """
    try:
        yield
    except ImportError as error:
        missing = error.name or extra
        what = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
        raise type(error)(
            f"cmtrack_integrations.{extra} needs {missing}, which {what}: pip install '.[{extra}]'"
            " in the folder of cmtrack's source",
            name=missing,
        ) from error
