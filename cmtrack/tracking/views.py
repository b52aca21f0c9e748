"""Saved views: MLflow's list of runs and charts, arranged for a ranking.

A view is a tag of the experiment (``mlflow.sharedViewState.<key>``). An MLflow page loads the view
if the page's address contains the key. MLflow documents neither the tag nor its value. The format
of the value depends on the server's version. If the format is wrong, the page shows no runs.
Therefore cmtrack first requests the server's version, and writes nothing if the version is unknown.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cmtrack import untrusted
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import Run
from cmtrack.evaluation.catalog import CATALOG
from cmtrack.report import formatting as fmt
from cmtrack.tracking import mlflow_inside
from cmtrack.tracking._warn import mlflow_errors_as
from cmtrack.tracking.names import IMAGE_KEY, tag
from cmtrack.tracking.runs import TrackedRun, client_for, shown_uri
from cmtrack.tracking.store import PROBE_SECONDS

if TYPE_CHECKING:
    from mlflow import MlflowClient

TAG = "mlflow.sharedViewState."
NOTE = "mlflow.note.content"
KIND = "mlflow.experimentKind"
OF_MODELS = "custom_model_development"
"""Value of the tag for an experiment's kind that makes the page show the list of runs.

If this tag is missing, pages of MLflow versions before 3.16 infer the kind on the first visit and
do not show the view then.
"""
MAX_NAME = 100
MAX_PARAMETERS = 6
MAX_LISTED = 60
"""Maximum number of runs that a view's filter lists by id."""
MAX_LINKS = 5
"""Maximum number of views to which the experiment's description links, newest first."""
_SECTION = "cmtrack"
_DATABASES = ("", "file", "sqlite", "postgresql", "mysql", "mssql")
_LABEL = " <!-- cmtrack views -->"
_LINK = (
    r"\[(?:[^\[\]\\\n]|\\.)*\]"  # the view's name, with escaped brackets
    r"\(#/experiments/[\w.-]+/runs\?viewStateShareKey=(?P<key>cmtrack[0-9a-f]{12})\)"
)
_BLOCK = re.compile(rf"(?P<links>(?:{_LINK.replace('?P<key>', '')}(?: · )?)+){_LABEL}\n*")
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#!|~&])")


@dataclass(frozen=True)
class Form:
    """Format of saved views that a range of MLflow versions can read.

    ``longest``: maximum number of characters in an experiment's tag.
    ``named``: whether the tag also contains the view's name, for MLflow's menu of views.
    """

    longest: int
    named: bool


_FORMS = {(3, 5): Form(5_000, named=False), (3, 16): Form(20_000, named=True)}
"""View formats by the first MLflow version that reads them.

The formats were checked on the pages of MLflow 3.5.1, 3.15.2 and 3.17.2, and against the code of
MLflow 3.10.1 and 3.16.0.
"""
_BEYOND = (4, 0)
"""The first MLflow version whose pages have not been checked."""


@dataclass(frozen=True)
class SavedView:
    """A saved view of an experiment.

    Attributes
    ----------
    name : str
    experiment_id : str
    key : str
        Part of the view's address. Within an experiment, views of the same name share the same key.
    link : str
        Address of the view's list of runs. The address is absolute if the store is a server.
        Otherwise it starts with ``#`` and must be appended to the address of your ``mlflow
        server``.
    charts : str
        Address of the view's charts, in the same form as ``link``.
    mlflow_version : str
        The MLflow version for which the view was written.
    notes : tuple of str
        Sentences that describe what the view does not show.
    """

    name: str
    experiment_id: str
    key: str
    link: str
    charts: str
    mlflow_version: str
    notes: tuple[str, ...]


def save_view(comparison: Comparison, name: str | None = None) -> SavedView:
    """Write a saved view of a comparison; see :meth:`Comparison.view`."""
    compared = _compared(comparison)
    name = f"cmtrack: {comparison.criterion}"[:MAX_NAME] if name is None else name
    _check_name(name)
    home = compared[0]
    for run in compared:
        if comparison.best is not None and run.run_id == comparison.best.run_id:
            home = run
            break
    client = client_for(home.tracking_uri)
    version = server_version(client)
    form = form_for(version)
    place = (home.tracking_uri, home.experiment_id)
    shown = [run for run in compared if (run.tracking_uri, run.experiment_id) == place]
    notes: list[str] = []
    if len(shown) < len(compared):
        runs = fmt.counted(len(compared), "run")
        notes.append(
            f"{len(compared) - len(shown)} of {runs} are in other experiments and are not shown."
        )
    state, cards = _state(comparison, shown, notes)
    value, n_left_out = fitted(state, cards, form, name, now=int(time.time() * 1000))
    if n_left_out:
        notes.append(
            f"{n_left_out} of MLflow's automatic charts could not be hidden: this version of "
            f"MLflow stores at most {form.longest:,} characters of a view."
        )
    key = "cmtrack" + hashlib.blake2b(name.encode(), digest_size=6).hexdigest()
    path = f"#/experiments/{home.experiment_id}/runs?viewStateShareKey={key}"
    tags = client.get_experiment(home.experiment_id).tags
    written = {TAG + key: value}
    if not form.named and KIND not in tags:
        written[KIND] = OF_MODELS
    title = _MARKS.sub(r"\\\1", name)
    link = f"[{title}]({path})"
    description = with_link(tags.get(NOTE) or "", link, key, {*tags, TAG + key})
    if len(description) > form.longest:
        notes.append("The experiment's description has no room for the link.")
    else:
        written[NOTE] = description
    _write(client, home.experiment_id, written)
    if urlsplit(client.tracking_uri).scheme in ("http", "https"):
        path = f"{shown_uri(client).rstrip('/')}/{path}"
    return SavedView(
        name=name,
        experiment_id=home.experiment_id,
        key=key,
        link=path,
        charts=f"{path}&compareRunsMode=CHART",
        mlflow_version=version,
        notes=tuple(notes),
    )


def _check_name(name: Any) -> None:
    """Raise ValueError unless a view's name is a single line that MLflow's menu can show."""
    is_text = isinstance(name, str) and name.strip() and untrusted.one_line(name) == name
    if not is_text or len(name) > MAX_NAME:
        raise ValueError(
            f"the name of a view must be a single-line string of at most {MAX_NAME} "
            f"characters, got {name!r:.120}"
        )


def _compared(comparison: Comparison) -> list[Run]:
    """Return the ranked runs and the runs that a gate stopped, if they are in a store."""
    judged = [entry.run for entry in comparison.runs]
    judged += [stop.run for stop in comparison.failed if stop.run_id]
    if not judged:
        raise ValueError("a view needs a run that is ranked or that a gate stopped, got none")
    compared = [run for run in judged if run.tracking_uri and run.experiment_id]
    if not compared:
        raise ValueError(
            "a saved view needs runs of a tracking store, got evaluations that are not in a run"
        )
    return compared


def _write(client: MlflowClient, experiment_id: str, tags: Mapping[str, str]) -> None:
    for key, text in tags.items():
        with mlflow_errors_as(f"{shown_uri(client)} refused the tag {key}"):
            client.set_experiment_tag(experiment_id, key, text)


# -- the MLflow version and its format -------------------------------------------------------------


def server_version(client: MlflowClient) -> str:
    """Return the MLflow version that shows a store's pages: the server's or the local version.

    Raises ValueError if the store is not an MLflow server or a local store, or if the server does
    not return a version, and ConnectionError if the server does not answer.
    """
    scheme = urlsplit(client.tracking_uri).scheme.split("+")[0]
    if scheme in _DATABASES:
        import mlflow

        return untrusted.version(mlflow.__version__)
    if scheme not in ("http", "https"):
        raise ValueError(
            f"a saved view needs MLflow's own server, got a tracking URI of the scheme "
            f"{scheme!r:.40}"
        )
    with mlflow_errors_as(f"{shown_uri(client)} did not answer", ConnectionError):
        answer = mlflow_inside.get(
            client.tracking_uri, "/version", max_retries=1, timeout=PROBE_SECONDS
        )
    if answer.status_code != 200:
        raise ValueError(
            f"{shown_uri(client)} answers {answer.status_code} to a request for its version"
        )
    return untrusted.version(answer.text)


def form_for(version: str) -> Form:
    """Return the format for an MLflow version; raise ValueError if it is not known."""
    numbers = tuple(int(number) for number in version.split(".")[:2])
    fitting = [form for first, form in _FORMS.items() if first <= numbers < _BEYOND]
    if not fitting:
        first = ".".join(map(str, min(_FORMS)))
        raise ValueError(
            f"saved views are supported for MLflow {first} to 3.x, but this server has {version}: "
            "no view was written"
        )
    return fitting[-1]


def fitted(
    state: Mapping[str, Any], cards: Sequence[Mapping[str, Any]], form: Form, name: str, now: int
) -> tuple[str, int]:
    """Return the tag's value with as many cards as fit into it, and the number of omitted cards.

    Raises ValueError if the value is too long even without any cards.
    """

    def value(n_cards: int) -> str:
        whole = {**state, "compareRunCharts": [*state["compareRunCharts"], *cards[:n_cards]]}
        plain = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
        text = "deflate;" + base64.b64encode(zlib.compress(plain.encode(), 9)).decode()
        if not form.named:
            return text
        return json.dumps({"name": name, "createdAt": now, "updatedAt": now, "state": text})

    # The length grows with the number of cards, so find the largest number by bisection.
    most = -1
    too_many = len(cards) + 1
    while too_many - most > 1:
        middle = (most + too_many) // 2
        if len(value(middle)) <= form.longest:
            most = middle
        else:
            too_many = middle
    if most < 0:
        raise ValueError(
            f"the view takes more than the {form.longest:,} characters that this version of MLflow "
            "stores: compare all runs of an experiment instead of named runs, or shorten the filter"
        )
    return value(most), len(cards) - most


# -- the content of a view -------------------------------------------------------------------------


def _state(
    comparison: Comparison, runs: Sequence[Run], notes: list[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the state of the page, and the unused chart cards marked as deleted."""
    criterion = comparison.criterion
    prefix = str(comparison.how.get("prefix") or "")
    logged = _logged(runs)
    deciding = [prefix + metric for metric in criterion.metrics if prefix + metric in logged]
    missing = [metric for metric in criterion.metrics if prefix + metric not in logged]
    if missing:
        notes.append(
            f"The runs did not log {', '.join(missing)}, so the view cannot use it to order "
            "runs and draw charts."
        )
    if comparison.how.get("grouping") is not None or comparison.how.get("costs") is not None:
        notes.append(
            "The view shows the logged values, but the ranking uses values recomputed with a "
            "grouping or costs."
        )
    second = _second(comparison, runs, deciding, logged, prefix)
    drawn = deciding or [metric for metric in [second] if metric]
    better = criterion.catalog.lookup(criterion.metrics[0]).better
    if deciding and better == "nearest zero":
        notes.append(
            "MLflow cannot order by the distance from zero, so the view orders by the value of "
            f"{deciding[0]}."
        )
    parameters = _differing(runs)
    charts = _charts(drawn, second, parameters, prefix, runs)
    state = {
        **_PLAIN_STATE,
        "searchFilter": _filter(comparison, runs, prefix),
        "orderByKey": _column("metrics", drawn[0]) if drawn else "attributes.start_time",
        "orderByAsc": bool(deciding) and better != "higher",
        "selectedColumns": _columns(comparison, runs, [*deciding, second], parameters, prefix),
        "compareRunCharts": charts,
    }
    return state, _unused_cards(runs, logged, charts, prefix)


_PLAIN_STATE = {
    "startTime": "ALL",
    "lifecycleFilter": "Active",
    "modelVersionFilter": "All Runs",
    "datasetsFilter": [],
    "runsExpanded": {},
    "runsPinned": [],
    "runsHidden": [],
    "runsVisibilityMap": {},
    "runsHiddenMode": "SHOW_ALL",
    "compareRunSections": [
        {
            "uuid": _SECTION,
            "name": "cmtrack",
            "display": True,
            "isReordered": True,
            "deleted": False,
            "isGenerated": False,
            "columns": 2,
            "cardHeight": 360,
        }
    ],
    "isAccordionReordered": True,
    "viewMaximized": False,
    "runListHidden": False,
    "groupBy": None,
    "groupsExpanded": {},
    "autoRefreshEnabled": True,
    "useGroupedValuesInCharts": True,
    "hideEmptyCharts": True,
    "globalLineChartConfig": {
        "xAxisKey": "step",
        "lineSmoothness": 0,
        "selectedXAxisMetricKey": "",
    },
}
"""The constant part of the page's state; MLflow's page requires all of these keys."""


def _unused_cards(
    runs: Sequence[Run], logged: Iterable[str], charts: Iterable[dict[str, Any]], prefix: str
) -> list[dict[str, Any]]:
    """Return the cards that MLflow would add automatically, marked as deleted by the user."""
    deleted = {"metricSectionId": _SECTION, "isGenerated": True, "deleted": True}
    drawn = {chart.get("metricKey") for chart in charts}
    images = {key for run in runs for key in _images(run)} - {prefix + IMAGE_KEY}
    cards: list[dict[str, Any]] = [
        {"type": "BAR", "metricKey": metric} for metric in logged if metric not in drawn
    ]
    cards += [{"type": "IMAGE", "imageKeys": [key]} for key in sorted(images)]
    return [{**card, **deleted, "uuid": f"d{number}"} for number, card in enumerate(cards)]


def _logged(runs: Iterable[Run]) -> list[str]:
    """Return the metrics that the runs logged, most frequent first."""
    times = Counter(metric for run in runs for metric in run.metrics if "`" not in metric)
    return sorted(times, key=lambda metric: (-times[metric], metric))


def _second(
    comparison: Comparison,
    runs: Sequence[Run],
    deciding: Sequence[str],
    logged: Sequence[str],
    prefix: str,
) -> str:
    """Return the scatter plot's second metric, from the criterion, gates or headline metrics."""
    headline = [metric.name for metric in CATALOG if metric.headline and metric.better]
    wanted = [*deciding[1:2], *(prefix + gate.metric for gate in comparison.gates)]
    wanted += [prefix + metric for metric in headline]

    def other(metric: str) -> bool:
        """Return True if the metric's values differ from those of the criterion's metric."""
        return not deciding or any(
            run.metrics.get(metric) != run.metrics.get(deciding[0]) for run in runs
        )

    return next((metric for metric in wanted if metric in logged and other(metric)), "")


def _differing(runs: Sequence[Run]) -> list[str]:
    names = {name for run in runs for name in run.params if "`" not in name}
    differing = [name for name in names if len({run.params.get(name) for run in runs}) > 1]
    # Parameters that all runs have come first, because the chart omits runs without a parameter.
    times = Counter(name for run in runs for name in run.params)
    return sorted(differing, key=lambda name: (-times[name], name))[:MAX_PARAMETERS]


def _filter(comparison: Comparison, runs: Sequence[Run], prefix: str) -> str:
    """Return a search filter for the given runs, or for all evaluated runs, including new runs."""
    named = comparison.how.get("runs") is not None and not comparison.how.get("experiment_names")
    if named and len(runs) <= MAX_LISTED:
        return f"attributes.run_id IN ({', '.join(repr(run.run_id) for run in runs)})"
    status = f"tags.`{tag('status', prefix)}` = 'completed'"
    condition = str(comparison.how.get("filter_string") or "").strip()
    return f"{condition} and {status}" if condition else status


def _columns(
    comparison: Comparison,
    runs: Sequence[Run],
    metrics: Sequence[str],
    parameters: Sequence[str],
    prefix: str,
) -> list[str]:
    columns = []
    if any(tag("rank") in run.tags for run in runs):
        columns.append(_column("tags", tag("rank")))
    logged = {metric for run in runs for metric in run.metrics}
    gates = [prefix + gate.metric for gate in comparison.gates]
    columns += [_column("metrics", metric) for metric in (*metrics, *gates) if metric in logged]
    columns += [_column("params", name) for name in parameters]
    return list(dict.fromkeys(columns))


def _charts(
    deciding: Sequence[str],
    second: str,
    parameters: Sequence[str],
    prefix: str,
    runs: Sequence[Run],
) -> list[dict[str, Any]]:
    card = {"metricSectionId": _SECTION, "isGenerated": False, "deleted": False}
    charts = [
        {**card, "type": "BAR", "metricKey": metric, "runsCountToCompare": 50}
        for metric in deciding[:3]
    ]
    if deciding and second:
        axes = {
            "xaxis": {"key": deciding[0], "type": "METRIC"},
            "yaxis": {"key": second, "type": "METRIC"},
        }
        charts.append({**card, "type": "SCATTER", **axes, "runsCountToCompare": 100})
    if len(parameters) > 1 and deciding:
        lines = {"selectedParams": list(parameters), "selectedMetrics": list(deciding[:3])}
        charts.append(
            {**card, "type": "PARALLEL", **lines, "showAllRuns": False, "runsCountToCompare": 100}
        )
    if any(prefix + IMAGE_KEY in _images(run) for run in runs):
        charts.append(
            {
                **card,
                "type": "IMAGE",
                "imageKeys": [prefix + IMAGE_KEY],
                "step": 0,
                "runsCountToCompare": 10,
            }
        )
    return [chart | {"uuid": f"c{number}"} for number, chart in enumerate(charts)]


def _images(run: Run) -> list[str]:
    """Return the image keys of all confusion matrices that a run may contain."""
    prefixes = run.prefixes if isinstance(run, TrackedRun) else ()
    return [prefix + IMAGE_KEY for prefix in prefixes]


def _column(kind: str, name: str) -> str:
    return f"{kind}.`{name}`"


# -- the experiment's description ------------------------------------------------------------------


def with_link(note: str, link: str, key: str, tags: Iterable[str]) -> str:
    """Add a line with links to saved views at the top of an experiment's description.

    The description itself does not change. Links to earlier views follow the new link if these
    views still exist.
    """
    views = set(tags)
    links = [link]
    rest = note
    block = _BLOCK.search(note)
    if block is not None:
        rest = note[: block.start()] + note[block.end() :]
        earlier_links = re.finditer(_LINK, block["links"])
        others = [earlier for earlier in earlier_links if earlier["key"] != key]
        links += [earlier[0] for earlier in others if TAG + earlier["key"] in views]
    line = " · ".join(links[:MAX_LINKS]) + _LABEL
    return f"{line}\n\n{rest}" if rest.strip() else line
