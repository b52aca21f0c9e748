"""Pages inside MLflow's server: a list of experiments, and the live review of each.

``/cmtrack/`` lists the experiments, ``/cmtrack/experiments/<id>`` compares the runs of one. The options are those of
:func:`cmtrack.compare`, by the same names: ``?rank_by=binary/roc_auc&require=multiclass/accuracy >= 0.7&limit=20``.

Access control is MLflow's: each page first asks MLflow's own API for the experiment, in this process, with the headers
of the request, as the user's browser would. If MLflow refuses, the page is not shown; if it fails, the user is asked to
try again. A separate process makes the pages (:mod:`cmtrack_integrations._page_work`), and they write nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, current_app, redirect, request

from cmtrack import untrusted
from cmtrack_integrations._page_work import Later, Works

if TYPE_CHECKING:
    from cmtrack_integrations.server import Inside

MOST_READ = 200
"""The largest ``limit``."""
MOST_LISTED = 200
"""Experiments on a page of the list."""
MOST_REVIEWS = 50
"""Logged reviews above it."""
_API = "/ajax-api/2.0/mlflow/"  # every version has it behind the static prefix
_NOTHING = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "NOT_FOUND")
_MAKER = (sys.executable, "-m", "cmtrack_integrations._live_review")
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
}


class Refused(Exception):
    """An answer other than a page: its HTTP status, and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def pages(inside: Inside, name: str) -> Blueprint:
    """The pages, to be registered in MLflow's app."""
    blueprint = Blueprint(name, __name__)
    works = Works(_MAKER)

    def shown(page: Callable[[], str | bytes]) -> Response:
        try:
            if inside.missing:
                raise Refused(501, inside.missing)
            answer = Response(page(), mimetype="text/html")
        except Refused as refused:
            answer = _message(refused.status, str(refused))
        except Later as later:
            answer = _message(503, str(later))
            answer.headers["Retry-After"] = str(later.seconds)
            if later.worth_waiting:
                answer.headers["Refresh"] = str(later.seconds)
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
        return shown(lambda: _review(experiment_id, inside, works))

    return blueprint


def _message(status: int, sentence: str) -> Response:
    return Response(_message_page(status, sentence), status, mimetype="text/html")


@lru_cache(maxsize=16)
def _message_page(status: int, sentence: str) -> str:
    from cmtrack.report.html import render_page

    titles = {400: "This cannot be compared", 403: "Not allowed", 404: "Nothing here", 503: "Not now"}
    line = untrusted.one_line(sentence)
    line += "" if line.endswith((".", "?")) else "."
    return render_page(
        "live.html", title=titles.get(status, "No page"), said=line, experiments=None, reviews=[], following=""
    )


# -- what the user may read -------------------------------------------------------------------------------------------


def _ask(path: str, body: dict[str, Any] | None = None, /, **query: Any) -> tuple[int, dict[str, Any]]:
    """Query MLflow's API as the page's user: 200 and data, 403, or 404; a request with a body is a POST.

    Raises
    ------
    Later
        If it has no answer.
    """
    headers = [
        (name, value) for name, value in request.headers if name.lower() not in ("content-length", "content-type")
    ]
    user = {name: text for name, text in request.environ.items() if name.startswith(("REMOTE_", "SSL_", "AUTH_"))}
    client = current_app.test_client(use_cookies=False)
    prefix = request.path.rpartition(f"/{request.blueprint}")[0] if request.blueprint else ""
    answer = client.open(
        prefix + _API + path, query_string=query, headers=headers, base_url=request.host_url, environ_overrides=user,
        method="GET" if body is None else "POST", json=body,
    )  # fmt: skip
    data = answer.get_json(silent=True)
    if not isinstance(data, dict):
        data = {}
    elif answer.status_code == 200:
        return 200, data
    if answer.status_code in (401, 403):
        return 403, {}
    if data.get("error_code") in _NOTHING:
        return 404, {}
    logging.getLogger(__name__).warning("MLflow answers %d where cmtrack asks for %s", answer.status_code, path)
    raise Later(f"MLflow does not answer now (status {answer.status_code}).")


def _list() -> str:
    """The experiments that the user may read, and their logged reviews."""
    from cmtrack.report.html import render_page
    from cmtrack.tracking.publish import REVIEWS

    query: dict[str, Any] = {"max_results": MOST_LISTED}
    if token := request.args.get("page_token", ""):
        query["page_token"] = token[:2000]
    status, data = _ask("experiments/search", **query)
    if status != 200:
        raise Refused(403 if status == 403 else 400, "MLflow does not list its experiments here.")
    entries = [entry for entry in data.get("experiments") or [] if isinstance(entry, dict)]
    rows = [(str(entry.get("experiment_id", "")), str(entry.get("name", ""))) for entry in entries]
    shown = [{"id": key, "name": untrusted.one_line(name)} for key, name in rows if key.isalnum()]
    of_reviews = [one for one in shown if one["name"].endswith(REVIEWS)]
    return render_page(
        "live.html", title="Reviews of models", said="", experiments=[one for one in shown if one not in of_reviews],
        reviews=_reviews([one["id"] for one in of_reviews]), following=str(data.get("next_page_token") or ""),
    )  # fmt: skip


def _reviews(experiments: list[str]) -> list[dict[str, str]]:
    """The latest reviews that were logged, each with its date, what it decided, and the address of its page."""
    from cmtrack.tracking.description import artifact_link
    from cmtrack.tracking.names import KIND_TAG, REVIEW, tag
    from cmtrack.tracking.publish import HTML_FILE

    if not experiments:
        return []
    query = {"experiment_ids": experiments, "max_results": MOST_REVIEWS, "order_by": ["start_time DESC"]}
    status, data = _ask("runs/search", query | {"filter": f"tags.`{KIND_TAG}` = '{REVIEW}'"})
    shown = []
    for run in data.get("runs") or [] if status == 200 else []:
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            tags = {entry["key"]: untrusted.one_line(entry["value"]) for entry in run["data"]["tags"]}
            info = {name: untrusted.identifier(run["info"][name], name) for name in ("experiment_id", "run_id")}
            date = datetime.fromtimestamp(int(run["info"]["start_time"]) / 1000, UTC).strftime("%Y-%m-%d %H:%M")
            shown.append({
                "date": date, "of": untrusted.one_line(run["info"].get("run_name") or ""),
                "ranked": tags.get(tag("ranked"), ""), "decision": tags.get(tag("decision"), ""),
                "link": f"../{artifact_link(info['experiment_id'], info['run_id'], HTML_FILE)}", "id": info["run_id"],
            })  # fmt: skip
    if shown and _ask("runs/get", run_id=shown[0]["id"])[0] != 200:  # rules on runs are the same for all of them
        return []
    return shown


@dataclass(frozen=True)
class _Admission:
    """The experiments that MLflow lets the user read."""

    inside: Inside
    workspace: str | None
    names: dict[str, str] = field(default_factory=dict)

    def experiment(self, experiment_id: str) -> str:
        """Admit an experiment and its runs, if MLflow lets the user; give its name.

        MLflow's API is asked for the experiment, and for one of its runs: rules on runs are the same for all of them.

        Raises
        ------
        Refused, Later
        """
        try:
            untrusted.identifier(experiment_id, "an experiment's id")
        except ValueError as error:
            raise Refused(400, str(error)) from None
        status, data = _ask("experiments/get", experiment_id=experiment_id)
        experiment = data.get("experiment")
        if status == 403:
            raise Refused(403, "You may not read this experiment.")
        if not isinstance(experiment, dict) or str(experiment.get("experiment_id")) != experiment_id:
            raise Refused(404, f"There is no experiment {experiment_id}.")
        sample = self._sample(experiment_id)
        if sample and _ask("runs/get", run_id=sample[0].info.run_id)[0] != 200:
            raise Refused(403, "You may not read the runs of this experiment.")
        self.names[experiment_id] = str(experiment.get("name", ""))
        return self.names[experiment_id]

    def run(self, run_id: str) -> None:
        """Admit the experiment of a run; an unreadable run is refused like one that does not exist.

        Raises
        ------
        Refused, Later
        """
        _, data = _ask("runs/get", run_id=run_id)
        try:
            info = data["run"]["info"]
            if info["lifecycle_stage"] != "active":
                raise KeyError
            if info["experiment_id"] not in self.names:
                self.experiment(info["experiment_id"])
        except (KeyError, TypeError, Refused):
            raise Refused(403, f"There is no run {run_id}, or you may not read it.") from None

    def _sample(self, experiment_id: str) -> Any:
        from mlflow.entities import ViewType

        try:
            with self.inside.within(self.workspace):
                return self.inside.store().search_runs([experiment_id], "", ViewType.ACTIVE_ONLY, 1, [], None)
        except Exception:
            logging.getLogger(__name__).exception("MLflow's store does not list an experiment's runs")
            raise Later("MLflow does not answer now.") from None


# -- the review ---------------------------------------------------------------------------------------------------


def _review(experiment_id: str, inside: Inside, works: Works) -> bytes:
    user = inside.user()
    with works.place(user):
        admission = _Admission(inside, inside.workspace())  # before MLflow is asked, which forgets it afterwards
        experiment = admission.experiment(experiment_id)
        options, runs = asked(request.args)
        for run_id in [*runs, *([options["against"]] if "against" in options else [])]:
            admission.run(run_id)
        question = {
            "experiment": experiment, "readable": admission.names, "options": options, "runs": runs,
            "workspace": admission.workspace, "address": request.host_url.rstrip("/"),
        }  # fmt: skip
        status, text = works.answer(user, question)
    if status != 200:
        raise Refused(status, text.decode())
    return text


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
    from cmtrack.comparison.spec import CompareSpec

    entries = {name: one for name, one in CompareSpec.entries().items() if one.in_query}
    names, several = ("runs", *entries), {"runs", *(name for name, one in entries.items() if one.several)}
    options: dict[str, Any] = {}
    for name in query:
        texts = [text for text in query.getlist(name) if text.strip()]  # type: ignore[attr-defined]
        if name not in names:
            raise Refused(400, f"There is no option {name!r:.60} here; there are {', '.join(names)}.")
        if name not in several and len(texts) > 1:
            raise Refused(400, f"{name} must be given once, got {len(texts)} times.")
        if texts and name in entries and entries[name].of_flag in (int, float):
            try:
                options[name] = entries[name].of_flag(texts[0])
            except (OverflowError, ValueError):
                raise Refused(400, f"{name} must be a number, got {texts[0]!r:.60}.") from None
        elif texts:
            options[name] = texts if name in several else texts[0]
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
