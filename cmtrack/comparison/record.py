"""The record of a comparison: when it was made, by whom, and with which versions."""

from __future__ import annotations

import getpass
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_VERSIONS = {
    "cmtrack": "cmtrack",
    "MLflow": "mlflow",
    "NumPy": "numpy",
    "scikit-learn": "scikit-learn",
}


@dataclass(frozen=True)
class Record:
    """Facts of a comparison that do not follow from its evaluations.

    ``made``: in UTC, such as "2026-11-22 13:08"; empty where the comparison was not made by
    :func:`cmtrack.compare`.
    ``author``: who compared, by the name that MLflow gives to the runs of the same person; empty
    where that is not known.
    ``versions``: of what computed the numbers, by its name.
    ``experiments``: names of the experiments that the runs are in, by id.
    """

    made: str = ""
    author: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    experiments: dict[str, str] = field(default_factory=dict)

    @classmethod
    def now(cls, author: str | None = None, experiments: dict[str, str] | None = None) -> Record:
        """The record of a comparison that is made now, by default by the user of this process."""
        author = _user() if author is None else author
        return cls(f"{datetime.now(UTC):%Y-%m-%d %H:%M}", author, versions(), experiments or {})


def versions() -> dict[str, str]:
    """Versions of the computing packages, by name."""
    numbers = {name: _installed(package) for name, package in _VERSIONS.items()}
    return {"Python": platform.python_version()} | {
        name: number for name, number in numbers.items() if number
    }


@cache
def _installed(package: str) -> str:
    """Return the version of a package, empty without it.

    It is read once, since a process cannot change its packages.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # no such user, as in a container
        return ""
