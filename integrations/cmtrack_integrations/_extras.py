"""Error messages for frameworks that are not installed."""

from __future__ import annotations

from contextlib import AbstractContextManager

from cmtrack import _lazy


def needs(extra: str) -> AbstractContextManager[None]:
    """Raise an error that names the extra to install if a framework cannot be imported."""
    return _lazy.needs(
        f"cmtrack_integrations.{extra}", f"'.[{extra}]' in the folder of cmtrack's source"
    )
