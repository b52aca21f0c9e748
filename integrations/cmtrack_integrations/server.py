"""Apps of ``mlflow server``: MLflow's own, with cmtrack's pages in it (entry points ``mlflow.app``).

``mlflow server --app-name cmtrack`` serves them with everything else, ``--app-name cmtrack-auth`` the same behind
MLflow's basic-auth. MLflow has no public way to do either. This file alone names
insides of its server; where a version lacks one, the server starts all the same, and the pages say what is missing.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask

NAME = "cmtrack"
KNOWN = "3.5 to 3.17"
"""Versions of MLflow that the pages were tried with."""
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
    user : callable
        The name of whom MLflow authenticated for the request that is being handled, else the address.
    workspace : callable
        The name of that request's workspace; None where there is none.
    within : callable
        A context manager in which the store is that of a workspace.

    Examples
    --------
    >>> from cmtrack_integrations.server import Inside
    >>> Inside(store=lambda: None, get_artifact=lambda: None, missing="This MLflow has no artifacts.").missing
    'This MLflow has no artifacts.'
    """

    store: Callable[[], Any]
    get_artifact: Callable[[], Any]
    missing: str = ""
    user: Callable[[], str] = lambda: _user(guarded=False)
    workspace: Callable[[], str | None] = lambda: None
    within: Callable[[str | None], AbstractContextManager[object]] = nullcontext


def create_app() -> Any:
    """MLflow's app with cmtrack's pages, for ``mlflow server --app-name cmtrack``.

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
    _with_pages(app, _let_pass(import_module(found.value.split(":")[0])), guarded=True)
    return guarded(app)


def _with_pages(app: Flask, missing: Sequence[str], *, guarded: bool = False) -> None:
    """Add the pages to MLflow's app once; an error is logged, and the server starts all the same."""
    if NAME in app.blueprints:
        return
    try:
        from cmtrack_integrations.live_page import pages

        prefix = os.environ.get(_STATIC_PREFIX, "").rstrip("/")
        app.register_blueprint(pages(insides(missing, guarded=guarded), NAME), url_prefix=f"{prefix}/{NAME}")
    except Exception:
        logging.getLogger(__name__).exception("cmtrack's pages are not served")


def insides(missing: Sequence[str] = (), *, guarded: bool = False) -> Inside:
    """The insides of the MLflow that is installed; ``missing`` names what is known to be missing already.

    Examples
    --------
    >>> from cmtrack_integrations.server import insides
    >>> insides(["mlflow.gone"]).missing  # doctest: +ELLIPSIS
    'This MLflow, ..., has no mlflow.gone; these pages know 3.5 to ...'
    """
    import mlflow
    from mlflow.server import handlers

    try:
        rooms: Any = import_module("mlflow.utils.workspace_context")
    except ImportError:  # a version without workspaces
        rooms = None
    needed = [(handlers, "_get_tracking_store"), (handlers, "get_artifact_handler")]
    needed += [(rooms, "get_request_workspace"), (rooms, "ServerWorkspaceContext")] if rooms else []
    lacking = [*missing, *(f"{module.__name__}.{name}" for module, name in needed if not hasattr(module, name))]
    if lacking:
        sentence = f"This MLflow, {mlflow.__version__}, has no {' and no '.join(lacking)}; these pages know {KNOWN}."
        return Inside(lambda: None, lambda: None, sentence)
    more = {"workspace": rooms.get_request_workspace, "within": rooms.ServerWorkspaceContext} if rooms else {}
    user = partial(_user, guarded=guarded)
    return Inside(handlers._get_tracking_store, handlers.get_artifact_handler, user=user, **more)


def handling(path: str, query: dict[str, str]) -> Any:
    """A context in which MLflow's functions answer a request with this query.

    Examples
    --------
    >>> from cmtrack_integrations.server import handling
    >>> with handling("/get-artifact", {"path": "file"}):  # doctest: +SKIP
    ...     answer = insides().get_artifact()
    """
    from mlflow.server import app

    return app.test_request_context(path, query_string=query)


def _user(*, guarded: bool) -> str:
    """The user name from basic-auth if it guards the server, else the address."""
    from flask import g, request

    name = getattr(g, "mlflow_authenticated_user", None)
    if guarded and name is None and request.authorization is not None:  # MLflow before 3.16
        name = request.authorization.username
    return str(name or request.remote_addr)


def _let_pass(auth: Any) -> list[str]:
    """Let basic-auth pass authenticated requests to the pages; return the names that it lacks.

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
