"""Names of an evaluation's files, tags and metrics in a run, which all have the same prefix."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from cmtrack import untrusted
from cmtrack.archive import FILE_NAME, ROWS_NAME
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.names import OF_SEGMENTS, near_metric

EVALUATION_FILE = FILE_NAME
REPORT_FILE = "cmtrack_report.html"
CLASSES_FILE = "cmtrack_classes.json"
SEGMENTS_FILE = "cmtrack_segments.json"
PREDICTIONS_FILE = ROWS_NAME
DIGESTS = "digests"
"""Tag with machine-readable information about an evaluation, as JSON; see :func:`digests`.

All other tags are meant to be read by people.
"""
ROWS_FILE = "predictions_file"
"""Key in :func:`digests` for the name of the predictions file if its prefix is different."""
REGROUPING = "regrouping"
"""Key in :func:`digests` for a digest that identifies a regrouping by its source and options."""
TAGS_BEFORE = {
    "schema": "schema",
    "labels": "labels_digest",
    "row_ids": "row_ids_digest",
    "evaluation": "evaluation_digest",
    "predictions": "predictions_digest",
    ROWS_FILE: "predictions_file",
    REGROUPING: "regrouping",
}
"""For each key of :func:`digests`, the name of the separate tag that earlier versions wrote."""
SHORT = {"grouping": "groups", "undefined": "nan", "warnings": "warning", "criterion": "rank_by"}
"""Short names of readable tags; the keys are the names that earlier versions used.

MLflow's pages cut off names of more than 15 letters if the values are long.
"""
KIND_TAG = "cmtrack.kind"
REVIEW = "review"
IMAGE_KEY = "cmtrack/confusion_matrix"
MAX_NAME = 250
MAX_PREFIX = 150
"""Maximum length of a prefix in characters.

MLflow limits tag names to 250 characters, and file systems limit file names to 255 bytes.
"""
MAX_TAG = 4000
"""Maximum length, in characters, of a tag's text or a review's parameter.

Every store accepts texts of 5,000 characters.
"""

_LEGAL_PREFIX = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ ./-]*")


def tag_text(text: str) -> str:
    """Shorten a text so that it fits into a tag, with an ellipsis at the end if it was cut."""
    return text if len(text) <= MAX_TAG else text[: MAX_TAG - 1] + "…"


def check_prefix(prefix: str) -> str:
    """Validate a prefix according to MLflow's rules for metric names and image keys.

    Raises ValueError if the prefix contains characters other than letters, digits, ``_ - . /`` and
    spaces, or if it leads to a parent folder.
    """
    if not isinstance(prefix, str):
        raise ValueError(f"prefix must be a string, got {type(prefix).__name__}")
    if prefix and (not _LEGAL_PREFIX.fullmatch(prefix) or "//" in prefix or ".." in prefix):
        raise ValueError(
            "prefix must start with a letter or digit and contain letters, digits and _-./, "
            f"got {prefix!r}"
        )
    return prefix


def prefix_to_log(prefix: str | None) -> str:
    """Return the prefix under which an evaluation is logged: ``val`` becomes ``val/``.

    Without the added slash, a metric's name would be ``valbinary/f1``. Raises ValueError if
    :func:`check_prefix` does, or if the prefix is too long for file names or tag names.
    """
    checked = check_prefix(prefix or "")
    if len(checked) > MAX_PREFIX:
        raise ValueError(f"prefix must have at most {MAX_PREFIX} characters, got {len(checked)}")
    ends_in_a_word = checked[-1:].isalnum()
    return f"{checked}/" if ends_in_a_word else checked


def under_prefix(prefix: str) -> str:
    """Return words that can follow "an evaluation" to name a prefix.

    The result is empty if the prefix is empty.
    """
    return f" under the prefix {prefix!r}" if prefix else ""


def file_name(name: str, prefix: str = "") -> str:
    """Return a file name without folders: MLflow's compare page lists only root-level files."""
    return prefix.replace("/", "_").replace(" ", "_") + name


def tag(name: str, prefix: str = "") -> str:
    """Return a tag's full name, such as ``cmtrack.status`` or ``cmtrack.val.status``."""
    middle = prefix.strip("/ ._-")
    name = SHORT.get(name, name)
    return f"cmtrack.{middle}.{name}" if middle else f"cmtrack.{name}"


def readable_tag(tags: Mapping[str, str], name: str, prefix: str = "") -> str | None:
    """Return the value of a readable tag, which may have been written under its former name."""
    return tags.get(tag(name, prefix), tags.get(former_tag(name, prefix)))


def former_tag(name: str, prefix: str) -> str:
    """Return the name that earlier versions gave to a tag of :data:`SHORT`."""
    return tag(name, prefix).removesuffix(SHORT.get(name, name)) + name


def digest_key(name: str) -> str:
    """Return a file's key in :func:`digests`: ``evaluation`` for ``cmtrack_evaluation.json``."""
    return name.removeprefix("cmtrack_").split(".")[0]


def digests(tags: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the machine-readable information about an evaluation from a run's tags, by key.

    The entries are ``schema``, ``labels`` and ``row_ids`` (digests of the evaluated rows),
    ``evaluation`` and ``predictions`` (digests of files), :data:`ROWS_FILE` and :data:`REGROUPING`.
    Tags that earlier versions wrote are also read. A damaged tag is ignored.
    """
    text = tags.get(tag(DIGESTS, prefix))
    if text is None:
        before = {entry: tags.get(tag(name, prefix)) for entry, name in TAGS_BEFORE.items()}
        return {entry: value for entry, value in before.items() if value is not None}
    try:
        data = untrusted.parsed_json(text)
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)}


def with_digests(
    tags: Mapping[str, str], prefix: str, changed: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the tags after changing values of :func:`digests`; keys set to None are removed."""
    former_tags = {tag(name, prefix) for name in TAGS_BEFORE.values()}
    former_tags |= {former_tag(name, prefix) for name in SHORT}
    entries = {**digests(tags, prefix), **changed}
    stored = {entry: text for entry, text in entries.items() if text is not None}
    others = {name: text for name, text in tags.items() if name not in former_tags}
    return others | {tag(DIGESTS, prefix): json.dumps(stored)}


def finite_metrics(
    evaluation: BaseEvaluation, chosen: str | Sequence[str], prefix: str
) -> tuple[dict[str, float], list[str]]:
    """Return the finite metrics of :func:`chosen_metrics`, by their names in MLflow.

    The second result lists the chosen metrics that are not finite, because MLflow does not accept
    them.
    """
    finite: dict[str, float] = {}
    undefined: list[str] = []
    for name, value in chosen_metrics(evaluation, chosen).items():
        if math.isfinite(value):
            finite[(prefix + name)[:MAX_NAME]] = value
        else:
            undefined.append(name)
    return finite, undefined


def chosen_metrics(evaluation: BaseEvaluation, chosen: str | Sequence[str]) -> dict[str, float]:
    """Return the metrics to log, by full name.

    Raises ValueError if the evaluation does not contain a chosen metric.

    ``chosen``: "headline", "all" or a sequence of names. A name that ends in ``/*`` stands for all
    metrics of a section, and ``*`` stands for all metrics. ``segment/<column>/<value>/<metric>`` is
    a metric of a segment; ``*`` as the value stands for all segments of the column.
    """
    metrics = evaluation.metrics
    if isinstance(chosen, str):
        if chosen not in ("headline", "all"):
            raise ValueError(
                f"metrics must be 'headline', 'all' or a list of names, got {chosen!r}"
            )
        chosen = evaluation.headline if chosen == "headline" else ["*"]
    values: dict[str, float] = {}
    for name in chosen:
        if name.startswith(OF_SEGMENTS) and isinstance(evaluation, Evaluation):
            values |= evaluation.segments.named(name)
            continue
        if name == "*":
            return dict(metrics)
        named = [name] if name in metrics else []
        if name.endswith("/*"):
            named = [metric for metric in metrics if metric.startswith(name[:-1])]
        if not named:
            raise ValueError(f"this evaluation has no metric {name!r}{near_metric(name, metrics)}")
        values |= {metric: metrics[metric] for metric in named}
    return values
