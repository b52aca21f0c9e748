"""Creation of an entry's files, metrics, tags and description from an evaluation.

The folder of an entry is complete before anything is sent. Therefore nothing is lost if sending
fails, and the result is the same if the entry is sent later.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from cmtrack import schemas
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.names import quoted
from cmtrack.report.formatting import BETWEEN
from cmtrack.report.views import report_html, segments_json, table_json
from cmtrack.statistics.inputs import as_array
from cmtrack.tracking import dataset as datasets
from cmtrack.tracking import names, spool
from cmtrack.tracking.description import description
from cmtrack.tracking.entry import ARTIFACTS, CHARTS, Entry, Figures, State, file_digests

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture


def make(
    entry: Entry,
    evaluation: BaseEvaluation,
    *,
    rows: Callable[[BinaryIO], object] | None = None,
    listed: BaseEvaluation | None = None,
    report: bool = True,
) -> None:
    """Create the files, metrics, tags and description of an entry.

    The evaluation is written before its rows. If a figure or table cannot be created, it is omitted
    and listed in the entry's problems. All other files are still created.

    ``rows``: a function that writes the row-level predictions into a file.
    ``listed``: the evaluation with the rows that the report may list.
    ``report``: whether to create a report; if False, only the image for the charts is drawn.
    """
    entry.timestamp = entry.timestamp or int(time.time() * 1000)
    entry.dataset = datasets.described(evaluation, entry.dataset_name)
    day = time.strftime("%Y-%m-%d", time.gmtime(entry.timestamp / 1000))

    _add(entry, names.EVALUATION_FILE, evaluation.to_json())
    if rows is not None:
        _attempt(entry, "predictions", lambda: _add(entry, names.PREDICTIONS_FILE, _content(rows)))
    pictures = _add_pictures(entry, evaluation, entry.figures if report else (), day)
    _attempt(entry, "class table", lambda: _add(entry, names.CLASSES_FILE, table_json(evaluation)))
    if isinstance(evaluation, Evaluation) and evaluation.segments:
        table = partial(segments_json, evaluation)
        _attempt(entry, "segment table", lambda: _add(entry, names.SEGMENTS_FILE, table()))
    # The report comes last: it lists the problems of all other files.
    if report:
        page = partial(
            report_html,
            evaluation,
            {name: picture for name, picture in pictures.items() if picture.svg},
            rows=listed,
            title=entry.run_name or None,
            subtitle=_subtitle(entry, day),
            problems=entry.problems,
        )
        _attempt(entry, "report", lambda: _add(entry, names.REPORT_FILE, page()))

    entry.metrics, undefined = names.finite_metrics(evaluation, entry.metric_names, entry.prefix)
    entry.table = names.file_name(names.CLASSES_FILE, entry.prefix)
    entry.tags = _tags(entry, evaluation, undefined)
    files = {name: picture for name, picture in pictures.items() if picture.content}
    report_file = names.file_name(names.REPORT_FILE, entry.prefix)
    has_report = f"{ARTIFACTS}/{report_file}" in entry.contents
    entry.description = description(evaluation, entry.prefix, files, report=has_report)


def build_into(
    evaluation: BaseEvaluation,
    folder: Path,
    *,
    listed: BaseEvaluation | None = None,
    metrics: str | Sequence[str] = "headline",
    dataset: str | None = None,
    **address: Any,
) -> Entry:
    """Create a complete entry in a given folder; other options are passed to :class:`Entry`."""
    entry = Entry(metric_names=metrics, dataset_name=dataset, **address)
    make(entry, evaluation, listed=listed)
    entry.finish_in(folder)
    return entry


def keep_inputs(arrays: Mapping[str, Any]) -> Path | None:
    """Store the inputs of a failed evaluation; labels become strings, because nothing is pickled.

    Returns the folder, or None if there are no inputs or no folder could be written.
    """
    if not arrays:
        return None
    columns = {}
    for name, values in arrays.items():
        if values is not None:
            array = as_array(values)
            if array.dtype.kind == "O":
                array = np.array([str(value) for value in array.ravel()]).reshape(array.shape)
            columns[name] = array
    entry = Entry()
    with entry.writing():
        entry.write(spool.INPUTS, _content(lambda file: np.savez_compressed(file, **columns)))
        entry.finish(State.INPUTS)
    return entry.folder


def _attempt(entry: Entry, what: str, action: Callable[[], object]) -> None:
    """Create a part of an entry; add any error to the entry's problems instead of raising it."""
    try:
        action()
    except Exception as error:
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        entry.problems += (f"{what}: {kind}{error}",)


def _add(entry: Entry, name: str, content: str | bytes) -> None:
    """Write a file that will be uploaded to the run."""
    if isinstance(content, str):
        content = content.encode("utf-8")
    entry.write(f"{ARTIFACTS}/{names.file_name(name, entry.prefix)}", content)


def _content(write: Callable[[BinaryIO], object]) -> bytes:
    """Return the bytes that a function writes to a file."""
    content = BytesIO()
    write(content)
    return content.getvalue()


def _add_pictures(
    entry: Entry, evaluation: BaseEvaluation, figures: Figures, day: str
) -> dict[str, Picture]:
    """Draw the figures, and write the run's figure files and the image for MLflow's charts."""
    pictures: dict[str, Picture] = {}
    problems: list[str] = []
    if figures is not False:
        about = {
            "run": entry.run_name,
            "step": entry.step,
            "data": entry.dataset["name"],
            "date": day,
        }
        _attempt(entry, "figures", lambda: _draw(evaluation, pictures, problems, about, figures))
    entry.problems += tuple(problems)
    images = {}
    for picture in pictures.values():
        if picture.content:
            _add(entry, picture.file, picture.content)
        if picture.chart:
            file = names.file_name(picture.file, entry.prefix)
            images[entry.prefix + names.IMAGE_KEY] = file
            entry.write(f"{CHARTS}/{file}", picture.chart)
    entry.images = images
    return pictures


def _draw(
    evaluation: BaseEvaluation,
    pictures: dict[str, Picture],
    problems: list[str],
    about: dict[str, Any],
    figures: Figures,
) -> None:
    from cmtrack.report.figures import About, draw_pictures

    if figures is True:
        figures = "auto"
    pictures |= draw_pictures(evaluation, problems, figures=figures or (), about=About(**about))


def _subtitle(entry: Entry, day: str) -> str:
    """Return the line below a report's title: evaluation, step, data, run, model and date."""
    prefix = entry.prefix.strip("/ ._-")
    parts = (
        prefix and f"Evaluation {quoted(prefix)}",
        "" if entry.step is None else f"step {entry.step}",
        entry.dataset_name,
        entry.run_id and f"run {entry.run_id}",
        entry.model or (entry.model_id and f"model {entry.model_id}"),
        day,
    )
    return BETWEEN.join(part for part in parts if part)


def _errors(evaluation: BaseEvaluation) -> str:
    """Return the standard errors of the headline metrics as JSON."""
    errors = evaluation.standard_errors
    headline = names.chosen_metrics(evaluation, "headline")
    known = {name: errors[name] for name in headline if math.isfinite(errors.get(name, math.nan))}
    return json.dumps(known, ensure_ascii=False)


def _tags(entry: Entry, evaluation: BaseEvaluation, undefined: list[str]) -> dict[str, str]:
    tags = {"samples": f"{evaluation.n_samples:.15g}"}
    if not isinstance(evaluation, Evaluation):
        parts = {
            name: f"{evaluation.sizes[name]} {name}, {part}" for name, part in evaluation.design
        }
        tags |= {"kind": evaluation.kind, **parts}
    if evaluation.positive is not None:
        tags["positive"] = str(evaluation.positive)
    if evaluation.grouping is not None:
        tags["grouping"] = evaluation.grouping.describe()
    tags |= {name: text for name, text in evaluation.design if name == "costs"}
    if entry.model:
        tags["model"] = entry.model
        errors = _errors(evaluation)
        # A text that is cut off would not be JSON.
        if len(errors) <= names.MAX_TAG:
            tags["errors"] = errors
    if undefined:
        tags["undefined"] = ", ".join(undefined)
    if evaluation.warnings:
        tags["warnings"] = "\n".join(evaluation.warnings)
    ids = evaluation.statistics.row_ids
    entries = {
        "schema": str(schemas.EVALUATION.newest),
        "labels": evaluation.labels_digest,
        "row_ids": None if ids is None else str(ids),
    }
    files = {name.removeprefix(f"{ARTIFACTS}/"): file for name, file in entry.contents.items()}
    entries |= file_digests(files, entry.prefix)
    readable = {names.tag(name, entry.prefix): names.tag_text(text) for name, text in tags.items()}
    return names.with_digests(readable, entry.prefix, entries)
