"""``log_counts``: write counts by cell to an MLflow run."""

from __future__ import annotations

import json
import math
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.metrics.names import encode_label
from cmtrack.prevalence.domains import CellShare, DomainPrevalence, is_ordered
from cmtrack.report.counts_page import counts_page
from cmtrack.tracking import spool
from cmtrack.tracking._warn import first_line, is_interrupt, tell
from cmtrack.tracking.artifacts import filing
from cmtrack.tracking.log import chosen_run
from cmtrack.tracking.store import client_for

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

JSON_FILE = "counts.json"
HTML_FILE = "counts.html"
MOST_METRICS = 50
"""Maximum number of cells whose shares are logged as metrics."""


@dataclass(frozen=True)
class LoggedCounts:
    """Result of logging counts.

    Attributes
    ----------
    run_id : str or None
        The run that has the files; None if they could not be sent.
    path : Path or None
        The local folder with the files, if they could not be sent.
    error : str
        The reason why the files are not in the run; empty if they are.

    Examples
    --------
    >>> from cmtrack import LoggedCounts
    >>> LoggedCounts(None, error="no run is active").path is None
    True
    """

    run_id: str | None
    path: Path | None = None
    error: str = ""


def log_counts(
    table: DomainPrevalence, *, run_id: str | None = None, client: MlflowClient | None = None
) -> LoggedCounts:
    """Write counts by cell to an MLflow run.

    The run gets ``counts.json``, from which :meth:`DomainPrevalence.from_dict` can answer later
    questions such as changes, and the page ``counts.html``. If at most 50 cells have a number, the
    run also gets the metrics ``count/<cell>/share``. If the last column is ordered, its values are
    the steps of these metrics.

    A failure never raises an error. You get a warning with the path of a local folder that contains
    the files.

    Parameters
    ----------
    table : DomainPrevalence
    run_id : str, optional
        By default the active run of this thread.
    client : mlflow.MlflowClient, optional
        By default, a client for the current tracking URI.

    Returns
    -------
    LoggedCounts

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from cmtrack import estimate_prevalence, log_counts
    >>> rng = np.random.default_rng(0)
    >>> month, score = rng.integers(1, 4, 6_000), rng.random(6_000)
    >>> y = rng.random(6_000) < score
    >>> table = estimate_prevalence(
    ...     score[600:], by={"month": month[600:]}, positive=True,
    ...     calibration=(y[:600], score[:600]), calibration_by={"month": month[:600]},
    ... )
    >>> with mlflow.start_run() as run:
    ...     logged = log_counts(table)
    >>> logged.run_id == run.info.run_id
    True
    >>> sorted(mlflow.get_run(logged.run_id).data.metrics)
    ['count/1/share', 'count/2/share', 'count/3/share']
    """
    if not isinstance(table, DomainPrevalence):
        tell(
            "the counts were not logged: log_counts needs a table by cell, got "
            f"{type(table).__name__}"
        )
        return LoggedCounts(None, error="not a table by cell")
    try:
        chosen = chosen_run(run_id)
        _send(table, chosen, client or client_for())
    except BaseException as error:
        if is_interrupt(error):
            raise
        reason = first_line(error)
        path = _saved(table)
        kept = "the files could not be saved either"
        if path is not None:
            kept = f"the files are in {path}"
        tell(f"the counts were not logged: {reason} ({kept})")
        return LoggedCounts(None, path, reason)
    return LoggedCounts(chosen)


def _files(table: DomainPrevalence) -> dict[str, Callable[[], str]]:
    """Return functions that make the content of each file."""
    return {
        JSON_FILE: lambda: json.dumps(_without_nan(table.to_dict()), ensure_ascii=False),
        HTML_FILE: lambda: counts_page(table),
    }


def _without_nan(data: Any) -> Any:
    """Return plain data in which numbers that are not finite are None, as JSON requires."""
    if isinstance(data, dict):
        return {name: _without_nan(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_without_nan(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def _send(table: DomainPrevalence, run_id: str, client: MlflowClient) -> None:
    run = client.get_run(run_id)
    with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
        for name, make in _files(table).items():
            (Path(scratch) / name).write_text(make(), encoding="utf-8")
        filing(client, run.info.artifact_uri).log_artifacts(run_id, scratch)
    metrics = _metrics(table)
    if metrics:
        client.log_batch(run_id, metrics=metrics)


def _saved(table: DomainPrevalence) -> Path | None:
    """Save the files in a local folder; None if no folder is writable."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    # Tables that fail in the same second, or in two processes, have folders of their own.
    name = f"counts-{stamp}-{uuid.uuid4().hex[:8]}"
    contents = {}
    for file, make in _files(table).items():
        try:
            contents[file] = make().encode("utf-8")
        except Exception as error:  # without Matplotlib or Jinja, the JSON file is still saved
            tell(f"{file} could not be made: {first_line(error)}")
    for place in spool.places():
        folder = place / name
        try:
            for file, content in contents.items():
                spool.write_private(folder / file, content)
        except OSError:
            continue
        return folder
    return None


def _metrics(table: DomainPrevalence) -> list[Metric]:
    """Return the shares of the cells as metrics; empty if there are too many."""
    from mlflow.entities import Metric

    stated = [cell for cell in table.shares.cells if math.isfinite(cell.share.value)]
    if len(stated) > MOST_METRICS:
        return []
    now = int(time.time() * 1000)
    steps = _steps(table)
    metrics = []
    for cell in stated:
        step = steps.get(cell.key[-1])
        parts = list(cell.key) if step is None else list(cell.key[:-1])
        if len(table.labels) > 2:
            parts.append(table.labels[cell.k])
        name = f"count/{'/'.join(map(encode_label, parts))}/share"
        metrics.append(Metric(name, cell.share.value, now, step or 0))
    return metrics


def _steps(table: DomainPrevalence) -> dict[Any, int]:
    """Return the step of each value of the last column; empty if it has no order.

    Whole numbers are their own steps, and other values are numbered.
    """
    cells: tuple[CellShare, ...] = table.shares.cells
    values = list(dict.fromkeys(cell.key[-1] for cell in cells))
    if not table.shares.tables.has_periods or not is_ordered(values):
        return {}
    numbers = [value for value in values if isinstance(value, int) and 0 <= value < 1 << 31]
    if len(numbers) == len(values):
        return {number: number for number in numbers}
    values.sort()  # type: ignore[call-arg]
    return {value: step for step, value in enumerate(values)}
