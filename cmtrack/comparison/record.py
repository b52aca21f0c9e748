"""Record of a comparison: its time, its author, and the versions of the packages used."""

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
    """Facts about a comparison that its evaluations do not contain.

    ``made``: time in UTC, such as "2026-11-22 13:08"; empty if :func:`cmtrack.compare` did not make
    the comparison.
    ``author``: user name of the user who made the comparison, in the form that MLflow stores for
    runs; empty if unknown.
    ``versions``: versions of the packages that computed the numbers, by the name of each package.
    ``experiments``: names of the experiments that contain the runs, by experiment id.
    """

    made: str = ""
    author: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    experiments: dict[str, str] = field(default_factory=dict)

    @classmethod
    def now(cls, author: str | None = None, experiments: dict[str, str] | None = None) -> Record:
        """Return the record of a comparison that is made now, by default by the current user."""
        author = _user() if author is None else author
        return cls(f"{datetime.now(UTC):%Y-%m-%d %H:%M}", author, versions(), experiments or {})


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute the numbers, by name."""
    numbers = {name: _installed(package) for name, package in _VERSIONS.items()}
    return {"Python": platform.python_version()} | {
        name: number for name, number in numbers.items() if number
    }


@cache
def _installed(package: str) -> str:
    """Return the version of a package; empty if it is not installed.

    The version is cached, because it does not change during a process.
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
