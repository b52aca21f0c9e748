"""Pages inside MLflow's server: the experiments, and the review of one over its runs as they are now.

``/cmtrack/`` lists the experiments, ``/cmtrack/experiments/<id>`` compares the runs of one. The options are those of
:func:`cmtrack.compare`, by the same names: ``?rank_by=binary/roc_auc&require=multiclass/accuracy >= 0.7&limit=20``.

Whom the pages show what is MLflow's decision: before a run of an experiment is looked at, MLflow's own API is asked for
the experiment, in this process, with the headers of the request, as if the user's browser had asked. What it refuses
is not read. The pages write nothing.
"""

from __future__ import annotations

import contextvars
import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Flask, Response, current_app, redirect, request

from cmtrack import untrusted

if TYPE_CHECKING:
    from cmtrack.comparison import Comparison
    from cmtrack_integrations.server import Inside

MOST_READ = 200
"""The largest ``limit``."""
MOST_PAGES = 32
"""Pages that are kept, until the runs that they show change."""
MOST_BYTES = 64 << 20
"""Of these pages."""
MOST_LISTED = 200
"""Experiments on a page of the list."""
_NUMBERS = {"margin": float, "confidence_level": float, "rope": float, "test_train_ratio": float} | {
    "limit": int,
    "seed": int,
}
_TEXTS = ("filter_string", "against", "block", "model", "block_kind", "prefix")
_SEVERAL = ("runs", "rank_by", "require", "tie_breakers", "segments")
_API = "/ajax-api/2.0/mlflow/"  # every version has it behind the static prefix
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
}


class Refused(Exception):
    """An answer other than a page: its HTTP status, and what is said."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def pages(inside: Inside, name: str) -> Blueprint:
    """The pages, to be registered in MLflow's app."""
    blueprint = Blueprint(name, __name__)
    kept = _Kept()

    def shown(page: Callable[[], str | Response]) -> Response:
        try:
            if inside.missing:
                raise Refused(501, inside.missing)
            made = page()
            answer = made if isinstance(made, Response) else Response(made, mimetype="text/html")
        except Refused as refused:
            answer = _message(refused.status, str(refused))
        except Exception:
            logging.getLogger(__name__).exception("cmtrack's page failed")
            answer = _message(500, "The page could not be made. The server's log says why.")
        answer.headers.update(_HEADERS)
        return answer

    @blueprint.get("")
    def home() -> Any:
        return redirect(f"{name}/")

    @blueprint.get("/")
    def listing() -> Response:
        return shown(_list)

    @blueprint.get("/experiments/<experiment_id>")
    def experiment(experiment_id: str) -> Response:
        return shown(lambda: _review(experiment_id, inside, kept))

    return blueprint


# -- what the user may read -------------------------------------------------------------------------------------------


def _ask(path: str, /, **query: Any) -> tuple[int, dict[str, Any]]:
    """The status and the data with which MLflow's API answers the user who asks for this page."""
    headers = [
        (name, value) for name, value in request.headers if name.lower() not in ("content-length", "content-type")
    ]
    user = {name: text for name, text in request.environ.items() if name.startswith(("REMOTE_", "SSL_", "AUTH_"))}
    client = current_app.test_client(use_cookies=False)
    prefix = request.path.rpartition(f"/{request.blueprint}")[0] if request.blueprint else ""
    answer = client.get(
        prefix + _API + path, query_string=query, headers=headers, base_url=request.host_url, environ_overrides=user
    )
    data = answer.get_json(silent=True) if answer.status_code == 200 else None
    return answer.status_code, data if isinstance(data, dict) else {}


def _list() -> str:
    """The experiments that the user may read."""
    from cmtrack.report.html import render_page

    query: dict[str, Any] = {"max_results": MOST_LISTED}
    if token := request.args.get("page_token", ""):
        query["page_token"] = token[:2000]
    status, data = _ask("experiments/search", **query)
    if status != 200:
        raise Refused(403 if status in (401, 403) else 400, "MLflow does not list its experiments here.")
    found = [entry for entry in data.get("experiments") or [] if isinstance(entry, dict)]
    rows = [(str(entry.get("experiment_id", "")), str(entry.get("name", ""))) for entry in found]
    shown = [{"id": known, "name": untrusted.one_line(name)} for known, name in rows if known.isalnum()]
    return render_page(
        "live.html", title="Experiments", said="", experiments=shown, following=str(data.get("next_page_token") or "")
    )


def _message(status: int, said: str) -> Response:
    from cmtrack.report.html import render_page

    title = {400: "This cannot be compared", 403: "Not allowed", 404: "Nothing here"}.get(status, "No page")
    line = untrusted.one_line(said)
    line += "" if line.endswith((".", "?")) else "."
    page = render_page("live.html", title=title, said=line, experiments=None, following="")
    return Response(page, status, mimetype="text/html")


# -- the review ---------------------------------------------------------------------------------------------------


def _review(experiment_id: str, inside: Inside, kept: _Kept) -> str:
    from cmtrack.comparison.compare import NothingFound

    context = contextvars.copy_context()  # before MLflow is asked: it forgets the workspace afterwards
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    store = _Store(inside, app, context, request.host_url.rstrip("/"))
    name = store.admit(experiment_id)
    options, runs = asked(request.args)
    for run_id in [*runs, *([options["against"]] if "against" in options else [])]:
        store.admit_run(run_id)
    try:
        return kept.page(store, options, runs, name)
    except NothingFound as error:
        raise Refused(404, f"There is nothing to compare: {error}") from None
    except (ConnectionError, TypeError, ValueError) as error:
        raise Refused(400, untrusted.without_credentials(str(error))) from None


def asked(query: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The options of :func:`cmtrack.compare` and the runs that a query asks for.

    Parameters
    ----------
    query : MultiDict

    Raises
    ------
    Refused
        If there is no such option here, or its value is none.
    """
    known = (*_SEVERAL, *_NUMBERS, *_TEXTS)
    options: dict[str, Any] = {}
    for name in query:
        texts = [text for text in query.getlist(name) if text.strip()]  # type: ignore[attr-defined]
        if name not in known:
            raise Refused(400, f"There is no option {name!r:.60} here; there are {', '.join(known)}.")
        if name not in _SEVERAL and len(texts) > 1:
            raise Refused(400, f"{name} must be given once, got {len(texts)} times.")
        if name in _NUMBERS and texts:
            try:
                options[name] = _NUMBERS[name](texts[0])
            except (OverflowError, ValueError):
                raise Refused(400, f"{name} must be a number, got {texts[0]!r:.60}.") from None
        elif texts:
            options[name] = texts if name in _SEVERAL else texts[0]
    if not 1 <= options.get("limit", 1) <= MOST_READ:
        raise Refused(400, f"limit must be from 1 to {MOST_READ}, got {options['limit']}.")
    runs = options.pop("runs", [])
    if len(runs) > MOST_READ:
        raise Refused(400, f"runs must be at most {MOST_READ}, got {len(runs)}.")
    for run_id in (*runs, *([options["against"]] if "against" in options else [])):
        if not run_id.isalnum():
            raise Refused(400, f"A run is named by its id here, got {run_id!r:.60}.")
    if runs and options.get("filter_string"):
        raise Refused(400, "filter_string chooses among all runs of the experiment: leave it out, or runs.")
    if "rank_by" in options:
        options["rank_by"] = _criterion(options["rank_by"])
    return options, runs


def _criterion(texts: list[str]) -> Any:
    """One metric, several, or weights by metric, each as ``metric=weight``."""
    if not any("=" in text for text in texts):
        return texts if len(texts) > 1 else texts[0]
    pairs = [text.rpartition("=") for text in texts]
    try:
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise Refused(400, "rank_by must give every metric a number as its weight, or none.") from None


@dataclass(frozen=True)
class _Store:
    """The server's own store as :func:`cmtrack.compare` asks one, for experiments that a user may read.

    What it does not hold of :class:`mlflow.MlflowClient` a comparison of runs by their ids does not ask for.
    """

    inside: Inside
    app: Flask
    context: contextvars.Context
    tracking_uri: str
    readable: dict[str, str] = field(default_factory=dict)

    def admit(self, experiment_id: str) -> str:
        """Read an experiment and its runs from here on, if MLflow lets the user; give its name.

        MLflow's API is asked for the experiment, and for one of its runs: rules on runs are the same for all of them.

        Raises
        ------
        Refused
        """
        try:
            untrusted.identifier(experiment_id, "an experiment's id")
        except ValueError as error:
            raise Refused(400, str(error)) from None
        status, data = _ask("experiments/get", experiment_id=experiment_id)
        found = data.get("experiment")
        if status in (401, 403):
            raise Refused(403, "You may not read this experiment.")
        if not isinstance(found, dict) or str(found.get("experiment_id")) != experiment_id:
            raise Refused(404, f"There is no experiment {experiment_id}.")
        sample = self._search([experiment_id], "", 1, [], None)
        if sample and _ask("runs/get", run_id=sample[0].info.run_id)[0] != 200:
            raise Refused(403, "You may not read the runs of this experiment.")
        self.readable[experiment_id] = str(found.get("name", ""))
        return self.readable[experiment_id]

    def admit_run(self, run_id: str) -> None:
        """Admit the experiment of a run; one that the user may not read is refused as one that does not exist.

        Raises
        ------
        Refused
        """
        from mlflow.exceptions import MlflowException

        try:
            experiment_id = str(self._run(run_id).info.experiment_id)
            if experiment_id not in self.readable:
                self.admit(experiment_id)
        except (MlflowException, Refused):
            raise Refused(403, f"There is no run {run_id}, or you may not read it.") from None

    def get_experiment_by_name(self, name: str) -> Any:
        found = next((known for known, text in self.readable.items() if text == name), None)
        return None if found is None else self.get_experiment(found)

    def get_experiment(self, experiment_id: str) -> Any:
        if experiment_id not in self.readable:
            raise LookupError(experiment_id)
        return self._in_context(lambda: self.inside.store().get_experiment(experiment_id))

    def search_experiments(self, **_: Any) -> list[Any]:
        return []

    def search_runs(
        self,
        experiment_ids: Sequence[str],
        filter_string: str,
        max_results: int,
        order_by: Sequence[str],
        page_token: str | None,
    ) -> Any:
        ids = [known for known in experiment_ids if known in self.readable]
        return self._search(ids, filter_string, max_results, order_by, page_token)

    def get_run(self, run_id: str) -> Any:
        run = self._run(run_id)
        if str(run.info.experiment_id) not in self.readable:
            raise _no_such_run()
        return run

    def _search(self, ids: list[str], text: str, most: int, order: Sequence[str], token: str | None) -> Any:
        from mlflow.entities import ViewType

        return self._in_context(
            lambda: self.inside.store().search_runs(ids, text, ViewType.ACTIVE_ONLY, most, list(order), token)
        )

    def _run(self, run_id: str) -> Any:
        """An active run."""
        run = self._in_context(lambda: self.inside.store().get_run(run_id))
        if run.info.lifecycle_stage != "active":
            raise _no_such_run()
        return run

    def read_artifact(self, run_id: str, name: str, _: str = "") -> bytes:
        """A file of a run that was found by this store, as MLflow's page would get it."""
        from cmtrack.tracking.artifacts import MAX_BYTES

        def read() -> bytes:
            query = {"path": untrusted.file_name(name), "run_uuid": run_id}
            with self.app.test_request_context("/get-artifact", query_string=query):
                answer = self.inside.get_artifact()
                if answer.status_code != 200:
                    raise FileNotFoundError(f"the artifact store answers {answer.status_code}")
                if (answer.content_length or 0) > MAX_BYTES:
                    raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
                answer.direct_passthrough = False
                return bytes(answer.get_data())

        content: bytes = self._in_context(read)
        return content

    def _in_context(self, call: Callable[[], Any]) -> Any:
        """Comparisons read in threads, which do not know the request's workspace."""
        return self.context.copy().run(call)


def _no_such_run() -> Exception:
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST

    error: Exception = MlflowException("there is no such run", RESOURCE_DOES_NOT_EXIST)
    return error


class _Kept:
    """Pages by what was asked, and by everything that the store lists of the runs, digests of evaluations among it."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.Lock()

    def page(self, store: _Store, options: dict[str, Any], runs: list[str], experiment: str) -> str:
        """The page; one at a time is made."""
        from cmtrack.comparison import CompareOptions
        from cmtrack.report.review.report import html
        from cmtrack.tracking.comparing import compare_by, list_runs

        choice: Any = runs or None
        record = CompareOptions(**options, experiment_names=None if runs else [experiment])
        listed = list_runs(choice, record, lambda *_: None, order=None, clients=[store]).runs
        seen = [[run.run_id, run.name, run.tags, run.params, sorted(run.metrics.items())] for run in listed]
        if "against" in options:
            baseline = store.get_run(options["against"])
            seen.append([baseline.info.run_id, baseline.info.run_name, dict(baseline.data.tags), {}, []])
        asked_for = [store.tracking_uri, experiment, sorted(options.items()), runs, seen]
        key = hashlib.blake2b(json.dumps(asked_for, sort_keys=True, default=str).encode()).hexdigest()
        if (known := self._found(key)) is not None:
            return known
        with self._making:
            if (known := self._found(key)) is not None:
                return known
            comparison = compare_by(record, choice, clients=[store])
            page = html(_live(comparison), f"“{untrusted.one_line(experiment)}” as it is now")
        self._keep(key, page)
        return page

    def _found(self, key: str) -> str | None:
        with self._lock:
            if key in self._pages:
                self._pages.move_to_end(key)
            return self._pages.get(key)

    def _keep(self, key: str, page: str) -> None:
        with self._lock:
            self._pages[key] = page
            while len(self._pages) > MOST_PAGES or sum(map(len, self._pages.values())) > MOST_BYTES:
                self._pages.popitem(last=False)


def _live(comparison: Comparison) -> Comparison:
    record = replace(comparison.record, author="")  # it would be who runs the server
    note = "This page shows the runs as they are when it is opened, and is stored nowhere: cmtrack review stores one."
    return replace(comparison, notes=(*comparison.notes, note), record=record)
