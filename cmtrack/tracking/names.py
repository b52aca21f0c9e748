"""Names of what an evaluation leaves in a run: files, tags, metrics; all of them under one prefix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cmtrack.archive import FILE_NAME, ROWS_NAME
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.names import OF_SEGMENTS

EVALUATION_FILE = FILE_NAME
REPORT_FILE = "cmtrack_report.html"
CLASSES_FILE = "cmtrack_classes.json"
SEGMENTS_FILE = "cmtrack_segments.json"
PREDICTIONS_FILE = ROWS_NAME
ROWS_FILE = "predictions_file"
"""Tag that names the file of the rows' predictions, where it stands under another prefix."""
KIND_TAG = "cmtrack.kind"
REVIEW = "review"
IMAGE_KEY = "cmtrack/confusion_matrix"
MAX_NAME = 250

_LEGAL_PREFIX = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ ./-]*")


def check_prefix(prefix: str) -> str:
    """The prefix itself, if MLflow takes it in metric names and image keys.

    Raises
    ------
    ValueError
        If it holds other characters than letters, digits, ``_ - . /`` and spaces, or a path that climbs.
    """
    if prefix and (not _LEGAL_PREFIX.fullmatch(prefix) or "//" in prefix or ".." in prefix):
        raise ValueError(f"prefix must start with a letter or digit and hold letters, digits and _-./, got {prefix!r}")
    return prefix


def file_name(name: str, prefix: str = "") -> str:
    """A root-level file name: the compare page of the MLflow UI lists no others."""
    return prefix.replace("/", "_").replace(" ", "_") + name


def tag(name: str, prefix: str = "") -> str:
    """A tag's name, such as ``cmtrack.status`` or ``cmtrack.val.status``."""
    middle = prefix.strip("/ ._-")
    return f"cmtrack.{middle}.{name}" if middle else f"cmtrack.{name}"


def digest_tag(name: str, prefix: str = "") -> str:
    """The tag that holds the digest of a file, such as ``cmtrack.evaluation_digest``."""
    return tag(f"{name.removeprefix('cmtrack_').split('.')[0]}_digest", prefix)


def chosen_metrics(evaluation: BaseEvaluation, chosen: str | Sequence[str]) -> dict[str, float]:
    """The metrics to log, by full name.

    Parameters
    ----------
    chosen : "headline", "all" or sequence of names
        A name may end in ``/*`` to stand for a whole section. ``segment/<column>/<value>/<metric>`` is a metric of a
        segment, of all segments of the column with ``*`` in the place of the value.

    Raises
    ------
    ValueError
        If a name is in no evaluation.
    """
    metrics = evaluation.metrics
    if isinstance(chosen, str):
        if chosen not in ("headline", "all"):
            raise ValueError(f"metrics must be 'headline', 'all' or a list of names, got {chosen!r}")
        return {name: value for name, value in metrics.items() if chosen == "all" or lookup(name).headline}
    out: dict[str, float] = {}
    for name in chosen:
        if name.startswith(OF_SEGMENTS) and isinstance(evaluation, Evaluation):
            out |= evaluation.segments.named(name)
            continue
        found = [n for n in metrics if n.startswith(name[:-1])] if name.endswith("/*") else [name] * (name in metrics)
        if not found:
            raise ValueError(f"this evaluation has no metric {name!r}; Evaluation.metrics lists them")
        out |= {n: metrics[n] for n in found}
    return out
