"""Apps of ``mlflow server``: MLflow's own, with cmtrack's pages in it (entry points ``mlflow.app``).

``mlflow server --app-name cmtrack`` serves them beside everything else, ``--app-name cmtrack-auth`` the same behind
MLflow's basic-auth. MLflow has no public way to do either. The names of its insides that are used stand in this file
and nowhere else; where a version lacks one, the server starts all the same, and the pages say what is missing.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask

NAME = "cmtrack"
KNOWN = "3.5 to 3.17"
"""Versions of MLflow that the pages were tried with."""
_HEAVY = ("cmtrack.tracking.comparing", "cmtrack.report.review.report", "cmtrack.report.figures", "matplotlib.figure")
"""Modules that the first page would wait for, while gunicorn counts the seconds."""
_STATIC_PREFIX = "_MLFLOW_STATIC_PREFIX"
_SERVED_BY = "_MLFLOW_SGI_NAME"


@dataclass(frozen=True)
class Inside:
    """The insides of MLflow's server that the pages use.

    Attributes
    ----------
    store : callable
        The tracking store.
    get_artifact : callable
        The answer to the request ``get-artifact`` that is being handled; it checks no permission.
    missing : str
        The reason why the pages cannot be shown, in a sentence; empty where they can.

    Notes
    -----
    Cost: two functions and a text.

    Examples
    --------
    >>> from cmtrack_integrations.server import Inside
    >>> Inside(store=lambda: None, get_artifact=lambda: None, missing="This MLflow has no artifacts.").missing
    'This MLflow has no artifacts.'
    """

    store: Callable[[], Any]
    get_artifact: Callable[[], Any]
    missing: str = ""


def create_app() -> Any:
    """MLflow's app with cmtrack's pages, for ``mlflow server --app-name cmtrack``.

    Notes
    -----
    Cost: imports what the pages need once, when the server starts.

    Examples
    --------
    >>> from cmtrack_integrations.server import create_app  # doctest: +SKIP
    >>> app = create_app()  # what `mlflow server --app-name cmtrack` serves  # doctest: +SKIP
    """
    from mlflow.server import app

    _with_pages(app, [])
    by = os.environ.get(_SERVED_BY) or ("uvicorn" if "uvicorn" in sys.modules else "")
    # under uvicorn MLflow's own app is a wrapper of the same Flask app
    return import_module("mlflow.server.fastapi_app").app if by == "uvicorn" else app


def create_auth_app() -> Any:
    """MLflow's basic-auth with cmtrack's pages behind it, for ``mlflow server --app-name cmtrack-auth``.

    Raises
    ------
    RuntimeError
        If this MLflow has no app "basic-auth": nothing is served without it.

    Notes
    -----
    Cost: as :func:`create_app`; a page asks MLflow once which experiments the user may read.

    Examples
    --------
    >>> from cmtrack_integrations.server import create_auth_app  # doctest: +SKIP
    >>> app = create_auth_app()  # what `mlflow server --app-name cmtrack-auth` serves  # doctest: +SKIP
    """
    from mlflow.server import app

    found = next(iter(entry_points(group="mlflow.app", name="basic-auth")), None)
    if found is None:
        raise RuntimeError("MLflow has no app 'basic-auth' here: install mlflow[auth]")
    guarded = found.load()
    _with_pages(app, _let_pass(import_module(found.value.split(":")[0])))
    return guarded(app)


def _with_pages(app: Flask, missing: list[str]) -> None:
    """Add the pages to MLflow's app, if they are not there; what goes wrong with that is logged, and stops nothing."""
    if NAME in app.blueprints:
        return
    try:
        from cmtrack_integrations.live_page import pages

        for module in _HEAVY:
            import_module(module)
        prefix = os.environ.get(_STATIC_PREFIX, "").rstrip("/")
        app.register_blueprint(pages(_insides(missing), NAME), url_prefix=f"{prefix}/{NAME}")
    except Exception:
        logging.getLogger(__name__).exception("cmtrack's pages are not served")


def _insides(missing: list[str]) -> Inside:
    import mlflow
    from mlflow.server import handlers

    needed = ("_get_tracking_store", "get_artifact_handler")
    store, get_artifact = (getattr(handlers, name, None) for name in needed)
    lacking = [name for name, value in zip(needed, (store, get_artifact), strict=True) if value is None]
    missing = [*missing, *(f"mlflow.server.handlers.{name}" for name in lacking)]
    said = f"This MLflow, {mlflow.__version__}, has no {' and no '.join(missing)}; these pages know {KNOWN}."
    return Inside(store, get_artifact, said if missing else "")  # type: ignore[arg-type]


def _let_pass(auth: Any) -> list[str]:
    """Let basic-auth pass requests for the pages on to them, once it knows who asks; give the names that it lacks.

    From 3.16 on, basic-auth refuses every route that it has no rule for, and before it refuses none. In either case
    the pages themselves ask MLflow's API, as the user, which experiments may be read.
    """
    find = getattr(auth, "_find_validator", None)
    if find is None:
        return ["mlflow.server.auth._find_validator"]

    def found(request: Any) -> Any:
        return (lambda: True) if request.blueprint == NAME else find(request)

    auth._find_validator = found
    return []
